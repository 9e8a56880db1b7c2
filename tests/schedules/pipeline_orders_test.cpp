#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "model/errors.hpp"
#include "schedules/pipeline_lists_text.hpp"
#include "schedules/pipeline_registry.hpp"
#include "tests/schedules/shared_schedules.hpp"

using namespace remat;

namespace {

/// A schedule whose tables are in the shared folder, under these names.
struct Known {
  std::string pipeline;
  std::int64_t slices = 1;
};
const std::map<std::string, Known> known_tables = {
    {"torch_GPipe", {"gpipe"}},
    {"torch_Interleaved1F1B", {"interleaved-1f1b"}},
    {"torch_LoopedBFS", {"looped-bfs"}},
    {"torch_InterleavedZeroBubble", {"interleaved-zb"}},
    {"torch_ZBVZeroBubble", {"zb-v"}},
    {"torch_DualPipeV", {"dualpipe-v"}},
    {"dsk_DualPipeV", {"dualpipe-v"}},
    {"ref_1F1B", {"1f1b"}},
    {"ref_ZBH1", {"zb-h1"}},
    {"torch_ZBH1", {"zb-h1"}},
    {"ref_ZBH2", {"zb-h2"}},
    {"dsk_DualPipe", {"dualpipe"}},
    {"sail_VHalf", {"v-half"}},
    {"sail_VMin", {"v-min"}},
    {"sail_Seq1F1B2", {"seq1f1b", 2}},
    {"sail_Seq1F1B4", {"seq1f1b", 4}},
};

PipelineLists made(const std::string& name, const PipelineRequest& request) {
  const PipelineRow* row = pipeline_named(name);
  REQUIRE(row != nullptr);
  return make_pipeline(*row, request);
}

std::string csv(const std::string& name, const PipelineRequest& request) {
  return lists_csv(made(name, request));
}

std::string refusal(const std::string& name, const PipelineRequest& request) {
  try {
    made(name, request);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("pipeline schedules have the published orders, at every size of the tables",
          "[schedules]") {
  const auto shared = shared_schedules();
  if (!shared) return;
  std::map<std::string, int> n_compared;
  for (const std::string& file : csv_files_in(*shared + "tables")) {
    const TableName name = table_name(file);
    const auto known = known_tables.find(name.schedule);
    if (known == known_tables.end()) continue;
    CAPTURE(file);
    const PipelineLists table =
        compute_of(read_pipeline_lists(file, text_of(*shared + "tables/" + file)));
    const PipelineLists lists = made(known->second.pipeline, {.ranks = name.ranks,
                                                              .microbatches = name.microbatches,
                                                              .chunks = name.chunks,
                                                              .slices = known->second.slices});
    CHECK(lists_csv(lists) == lists_csv(table));
    CHECK(lists == table);
    ++n_compared[known->second.pipeline];
  }
  CHECK(n_compared.size() == pipelines().size());
}

TEST_CASE("gpipe runs all forwards before the first backward", "[schedules]") {
  CHECK(csv("gpipe", {.ranks = 2, .microbatches = 2}) == "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n");
}

TEST_CASE("1f1b has P - 1 - r forwards ahead", "[schedules]") {
  CHECK(csv("1f1b", {.ranks = 2, .microbatches = 3}) ==
        "0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n");
  CHECK(csv("1f1b", {.ranks = 3, .microbatches = 1}) == "0F0,0B0\n1F0,1B0\n2F0,2B0\n");
}

TEST_CASE("zb-h1 and zb-h2 put a rank's DW behind r or 2r DX's", "[schedules]") {
  CHECK(csv("zb-h1", {.ranks = 2, .microbatches = 2}) ==
        "0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1F1,1I1,1W0,1W1\n");
  CHECK(csv("zb-h2", {.ranks = 2, .microbatches = 3}) ==
        "0F0,0F1,0F2,0I0,0W0,0I1,0W1,0I2,0W2\n1F0,1I0,1F1,1I1,1F2,1I2,1W0,1W1,1W2\n");
}

TEST_CASE("micro-batches that fill no round are those of the next full one without the rest",
          "[schedules]") {
  // Three ranks and seven micro-batches: two rounds of four, of which the last is not there.
  const PipelineLists seven =
      made("interleaved-1f1b", {.ranks = 3, .microbatches = 7, .chunks = 2});
  PipelineLists eight = made("interleaved-1f1b", {.ranks = 3, .microbatches = 8, .chunks = 2});
  for (RankList& list : eight.ranks)
    std::erase_if(list, [](const PipelineAction& action) { return action.microbatch == 7; });
  CHECK(seven == eight);
}

TEST_CASE("dualpipe cut to fewer micro-batches leaves single what has lost its partner",
          "[schedules]") {
  for (const RankList& list : made("dualpipe", {.ranks = 4, .microbatches = 2}).ranks) {
    CHECK(list.back().joined == Joined::no);
    for (const PipelineAction& action : list)
      CHECK(action.microbatch == 0);
  }
}

TEST_CASE("a schedule that has no lists of such a size says so in one line", "[schedules]") {
  CHECK(refusal("zb-v", {.ranks = 4, .microbatches = 8, .chunks = 3}) ==
        "--chunks: zb-v has 2 chunks a rank, not 3");
  CHECK(refusal("1f1b", {.ranks = 4, .microbatches = 8, .chunks = 2}) ==
        "--chunks: 1f1b has 1 chunk a rank, not 2");
  CHECK(refusal("dualpipe", {.ranks = 4, .microbatches = 7}) ==
        "--microbatches: dualpipe takes an even number, a half for each direction, not 7");
  CHECK(refusal("dualpipe", {.ranks = 3, .microbatches = 8}) ==
        "--ranks: dualpipe takes an even number, a half for each direction, not 3");
  CHECK(refusal("1f1b", {.ranks = 0, .microbatches = 8}) ==
        "--ranks: 0 is out of range; expected 1 to 1048576");
  CHECK(refusal("gpipe", {.ranks = 4, .microbatches = 8, .slices = 2}) ==
        "--slices: gpipe runs whole sequences; expected 1, or seq1f1b");
  CHECK(refusal("gpipe", {.ranks = 1048576, .microbatches = 1048576}) ==
        "gpipe: ranks, micro-batches, chunks and slices make more than 1048576 chunk runs; "
        "expected fewer");
}
