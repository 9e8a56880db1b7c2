#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "schedules/pipeline_lists_text.hpp"
#include "schedules/pipeline_lowering.hpp"
#include "tests/schedules/shared_schedules.hpp"

using namespace remat;

namespace {

std::string lowered_csv(const std::string& csv, Lowering lowering, bool on_demand = false) {
  const auto lists = lowered(read_pipeline_lists("lists.csv", csv), lowering, on_demand);
  return lists ? lists_csv(*lists) : "none";
}

/// What was there before messages were put in.
PipelineLists without_messages(PipelineLists lists) {
  for (RankList& list : lists.ranks) {
    std::erase_if(list, [](const PipelineAction& action) {
      return !is_compute(action.work) && !is_collective(action.work);
    });
  }
  return lists;
}

}  // namespace

TEST_CASE("naive lowering receives right before use and sends right after", "[schedules]") {
  CHECK(lowered_csv("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", Lowering::naive) ==
        "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
        "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
}

TEST_CASE("a replay on demand is behind its gradient's receive, another is not", "[schedules]") {
  const std::string csv = "0F0,0R0,0B0\n1F0,1R0,1B0\n";
  CHECK(lowered_csv(csv, Lowering::naive, true) ==
        "0F0,0SEND_F0,0RECV_B0,0R0,0B0\n1RECV_F0,1F0,1R0,1B0,1SEND_B0\n");
  CHECK(lowered_csv(csv, Lowering::naive, false) ==
        "0F0,0SEND_F0,0R0,0RECV_B0,0B0\n1RECV_F0,1F0,1R0,1B0,1SEND_B0\n");
}

TEST_CASE("stages of one rank have no messages between them", "[schedules]") {
  CHECK(lowered_csv("0F0,1F0,1B0,0B0\n", Lowering::naive) == "0F0,1F0,1B0,0B0\n");
}

TEST_CASE("torch's lowering finds no order for lists that wait for each other", "[schedules]") {
  const std::string csv = "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n";
  CHECK(lowered_csv(csv, Lowering::torch) == "none");
  CHECK(lowered_csv(csv, Lowering::naive) != "none");
}

TEST_CASE("torch's lowerings are those of its own tables", "[schedules]") {
  const auto shared = shared_schedules();
  if (!shared) return;
  int n_compared = 0;
  for (const std::string& file : csv_files_in(*shared + "tables")) {
    const std::string rest = table_name(file).rest;
    if (!rest.starts_with("_comms")) continue;
    CAPTURE(file);
    const PipelineLists table = read_pipeline_lists(file, text_of(*shared + "tables/" + file));
    const auto lists =
        lowered(without_messages(table),
                rest == "_comms" ? Lowering::torch : Lowering::torch_deferred, false);
    REQUIRE(lists);
    CHECK(lists_csv(*lists) == lists_csv(table));
    ++n_compared;
  }
  CHECK(n_compared > 20);
}
