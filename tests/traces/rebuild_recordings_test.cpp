#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "model/flat_map.hpp"
#include "tests/traces/shared_traces.hpp"
#include "traces/reader.hpp"
#include "traces/rebuild/rebuild.hpp"

// Programs made of the runs that were recorded.

namespace remat {
namespace {

RebuiltRun rebuilt(const std::string& name) {
  return rebuild(
      read_trace(std::string(REMATSIM_SOURCE_DIR) + "/traces/recorded/" + name + ".jsonl.gz"));
}

std::size_t n_regions(const Forward& forward) {
  return static_cast<std::size_t>(std::count_if(
      forward.statements.begin(), forward.statements.end(), [](const Statement& statement) {
        const auto* region = std::get_if<RegionBegin>(&statement);
        return region != nullptr && region->kind == RegionKind::checkpointed;
      }));
}

/// Every region ends where its end says that it begins, and none is cut by another.
bool is_nested(const Forward& forward) {
  std::vector<std::size_t> open;
  for (std::size_t at = 0; at < forward.statements.size(); ++at) {
    if (std::holds_alternative<RegionBegin>(forward.statements[at])) open.push_back(at);
    const auto* end = std::get_if<RegionEnd>(&forward.statements[at]);
    if (end == nullptr) continue;
    if (open.empty() || open.back() != end->begin) return false;
    if (std::get<RegionBegin>(forward.statements[end->begin]).end != at) return false;
    open.pop_back();
  }
  return open.empty();
}

/// No op reads, or saves before it runs, what only a later one makes.
bool is_made_before_read(const Forward& forward) {
  IdSet later;
  for (const Statement& statement : forward.statements) {
    const auto* op = std::get_if<OpStatement>(&statement);
    if (op == nullptr) continue;
    for (const ValueId output : op->outputs)
      if (op->writes != output) later.insert(output.index());  // a written leaf was there before
  }
  for (const Statement& statement : forward.statements) {
    const auto* op = std::get_if<OpStatement>(&statement);
    if (op == nullptr) continue;
    for (const ValueId input : op->inputs)
      if (later.contains(input.index())) return false;
    for (const Save& save : op->saves)
      if (!save.after_op && !save.copy_of && later.contains(save.value.index())) return false;
    for (const ValueId output : op->outputs)
      later.erase(output.index());
  }
  return true;
}

/// The factor of a save, where it has one, names the input or output that is saved.
bool has_right_factors(const OpStatement& op) {
  return std::all_of(op.saves.begin(), op.saves.end(), [&](const Save& save) {
    if (save.factor == Save::no_factor || save.copy_of) return true;
    const bool is_output = save.factor >= Monomial::first_output;
    const std::vector<ValueId>& from = is_output ? op.outputs : op.inputs;
    const std::size_t at = save.factor - (is_output ? std::size_t{Monomial::first_output} : 0);
    return at < from.size() && from[at] == save.value;
  });
}

}  // namespace

TEST_CASE("a recording of torch gives its forwards, each with a root, and its parameters",
          "[traces]") {
  struct Row {
    std::string name;
    std::size_t forwards;
    std::size_t regions;  // checkpointed ones, of the first forward
  };
  const std::vector<Row> rows = {{"01_mlp_no_ckpt", 1, 0},
                                 {"02_nonreentrant_early_stop", 1, 3},
                                 {"03_nonreentrant_no_early_stop", 1, 3},
                                 {"04_reentrant", 1, 3},
                                 {"05a_nested", 1, 3},
                                 {"07_sac_policy_mm_attn", 1, 2},
                                 {"09_transformer_dropout_rng", 1, 2},
                                 {"12_1f1b_four_microbatches", 4, 2},
                                 {"13d_dxdw_zb_order", 4, 2},
                                 {"13e_dxdw_graphexecgroup_linear", 1, 2}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const RebuiltRun run = rebuilt(row.name);
    CHECK(run.unsupported == std::nullopt);
    REQUIRE(run.program.forwards.size() == row.forwards);
    CHECK(n_regions(run.program.forwards.front()) == row.regions);
    CHECK_FALSE(run.program.parameters.empty());
    for (const Forward& forward : run.program.forwards)
      CHECK(forward.root.has_value());
  }
}

TEST_CASE("what kind of regions a recording has is seen", "[traces]") {
  CHECK_FALSE(rebuilt("01_mlp_no_ckpt").has_regions);
  const RebuiltRun torch = rebuilt("02_nonreentrant_early_stop");
  CHECK(torch.has_regions);
  CHECK(torch.has_ambient_hooks);
  CHECK_FALSE(torch.has_reentrant_regions);
  CHECK_FALSE(torch.selects_ops);
  CHECK(rebuilt("04_reentrant").has_reentrant_regions);
  const RebuiltRun selective = rebuilt("07_sac_policy_mm_attn");
  CHECK(selective.selects_ops);
  CHECK_FALSE(selective.has_ambient_hooks);
  CHECK_FALSE(selective.has_remat_regions);
  CHECK(rebuilt("15_remat_save_chain_placeholder").has_remat_regions);
}

TEST_CASE("recordings of pre-triggered replays are unsupported", "[traces]") {
  CHECK(rebuilt("16h_pretrigger_silent_group").unsupported ==
        "a pretrigger phase: what it reads is not visible in the forward part");
}

TEST_CASE("every recording gives a sound program, or says why it cannot", "[traces]") {
  std::size_t n_programs = 0;
  for (const std::string& path : some_traces_of_others()) {
    if (path.find("/recorded/") == std::string::npos) continue;
    CAPTURE(path);
    const RebuiltRun run = rebuild(read_trace(path));
    if (run.unsupported) {
      CHECK_FALSE(run.unsupported->empty());
      continue;
    }
    ++n_programs;
    CHECK_FALSE(run.order.empty());
    for (const Forward& forward : run.program.forwards) {
      CHECK(is_nested(forward));
      CHECK(is_made_before_read(forward));
      for (const Statement& statement : forward.statements)
        if (const auto* op = std::get_if<OpStatement>(&statement)) CHECK(has_right_factors(*op));
    }
  }
  CHECK(n_programs >= 4);
}

}  // namespace remat
