#include "properties/program_generator.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/random_bits.hpp"
#include "properties/case_runner.hpp"
#include "sim/scenario_writer.hpp"
#include "tests/properties/dimensions.hpp"
#include "traces/trace_hash.hpp"

namespace remat {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t n_cases = 1000;  // ten times slower
#else
constexpr std::uint64_t n_cases = 10000;
#endif

ChoiceTape tape_of(std::uint64_t number) {
  constexpr std::uint64_t stream = 11;
  return ChoiceTape::from_seed(random_bits(1, stream, number));
}

}  // namespace

TEST_CASE("random programs: no invariant has a word to say, gradients are those of the plain run",
          "[properties]") {
  std::map<std::string, std::uint64_t> codes;
  CaseRunner runner;
  for (std::uint64_t i = 0; i < n_cases; ++i) {
    ChoiceTape tape = tape_of(i);
    const GeneratedCase generated = generate_case(tape, {});
    const CaseOutcome outcome = runner.run(generated);
    CAPTURE(i, generated.scenario.protocol, row_of(generated.edit).name, outcome.alarm,
            outcome.message);
    CHECK(outcome.alarm.empty());
    ++codes[outcome.code];
  }
  // Most are legal, and every error that an edit is to end in is reached.
  CHECK(codes[""] > n_cases / 2);
  for (const EditRow& row : edits()) {
    CAPTURE(row.code);
    CHECK(codes[std::string(row.code)] * 2000 >= n_cases);
  }
}

TEST_CASE("a case is a function of its tape", "[properties]") {
  CaseRunner runner;
  for (std::uint64_t i = 0; i < 50; ++i) {
    ChoiceTape drawn = tape_of(i);
    runner.run(generate_case(drawn, {}));
    const std::string first = trace_hash(runner.trace());
    ChoiceTape again(drawn.chosen());
    runner.run(generate_case(again, {}));
    CHECK(trace_hash(runner.trace()) == first);
    CHECK(again.chosen() == drawn.chosen());
  }
}

TEST_CASE("a tape of zeros gives the smallest case", "[properties]") {
  ChoiceTape tape(std::vector<std::uint64_t>{});
  const GeneratedCase generated = generate_case(tape, {});
  CHECK(generated.features == 0);
  CHECK(generated.edit == Edit::none);
  CHECK(generated.scenario.protocol == "torch");
  std::size_t n_ops = 0;
  for (const Statement& statement : statements_of(generated))
    n_ops += std::holds_alternative<OpStatement>(statement) ? 1 : 0;
  CHECK(n_ops == 1);
}

TEST_CASE("each dimension shows in the cases that have it, and in no other", "[properties]") {
  constexpr std::uint64_t n_seen = 6000;
  const std::vector<Dimension> rows = dimensions();
  REQUIRE(rows.size() == feature_count);
  std::vector<GeneratedCase> cases;
  for (std::uint64_t i = 0; i < n_seen; ++i) {
    ChoiceTape tape = tape_of(i);
    cases.push_back(generate_case(tape, {}));
  }
  for (const Dimension& row : rows) {
    double with = 0;
    double shown = 0;
    double shown_without = 0;
    double n = 0;
    for (const GeneratedCase& made : cases) {
      if (row.among != nullptr && !row.among(made)) continue;
      ++n;
      (made.has(row.feature) ? with : shown_without) += made.has(row.feature) ? 1 : row.shows(made);
      shown += made.has(row.feature) && row.shows(made) ? 1 : 0;
    }
    CAPTURE(name_of(row.feature), with, shown);
    CHECK(with > n * 0.3);
    CHECK(with < n * 0.7);
    CHECK(shown / with >= row.share_min);
    // What can come about without the dimension too is no sign of it: it must be much rarer there.
    CHECK(shown_without / (n - with) <= shown / with / 2);
  }
}

TEST_CASE("a dimension that is switched off is in no case", "[properties]") {
  for (std::size_t f = 0; f < feature_count; ++f) {
    for (std::uint64_t i = 0; i < 20; ++i) {
      ChoiceTape tape = tape_of(i);
      CHECK_FALSE(
          generate_case(tape, {.without = std::uint64_t{1} << f}).has(static_cast<Feature>(f)));
    }
  }
}

TEST_CASE("every 400 cases in a row hold the common parts of programs", "[properties]") {
  for (std::uint64_t begin = 0; begin < 4000; begin += 400) {
    std::set<std::string_view> kinds;
    std::map<std::string, int> with;
    for (std::uint64_t i = begin; i < begin + 400; ++i) {
      ChoiceTape tape = tape_of(i);
      const GeneratedCase made = generate_case(tape, {});
      for (const Statement& statement : statements_of(made))
        if (const auto* op = std::get_if<OpStatement>(&statement)) kinds.insert(op->kind->name);
      with["views"] += any_op(made, [](const OpStatement& op) { return op.kind->makes_view; });
      with["in-place writes"] +=
          any_op(made, [](const OpStatement& op) { return op.writes && !op.by_caller; });
      with["containers"] += has_hidden_tensor(made);
      with["random ops"] += any_op(made, [](const OpStatement& op) { return op.kind->draws; });
      with["exceptions"] += any<Raise>(made, [](const Raise&) { return true; });
      with["no-grad parts"] += any<NoGradBegin>(made, [](const NoGradBegin&) { return true; });
    }
    CHECK(kinds.size() >= 15);
    for (const auto& [part, n] : with) {
      CAPTURE(begin, part);
      CHECK(n >= 20);  // 5 %
    }
  }
}

TEST_CASE("every 4000 cases in a row hold each kind of view, micro-batch and step",
          "[properties]") {
  std::map<std::string_view, int> views;
  std::set<std::int64_t> microbatches;
  std::set<std::size_t> steps;
  bool has_empty = false;
  bool has_hole = false;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    ChoiceTape tape = tape_of(i);
    const GeneratedCase made = generate_case(tape, {});
    steps.insert(n_steps(made));
    for (const PhaseStep& step : made.scenario.order)
      if (step.microbatch) microbatches.insert(*step.microbatch);
    for (const Statement& statement : statements_of(made)) {
      const auto* op = std::get_if<OpStatement>(&statement);
      if (op == nullptr || !op->kind->makes_view) continue;
      ++views[op->kind->name];
      const TensorLayout& layout = made.scenario.program.values[op->outputs[0]].layout;
      has_empty = has_empty || element_count(layout.shape) == 0;
      has_hole = has_hole || layout.stride.back() > 1;
    }
  }
  for (const std::string_view kind : {"slice", "unsqueeze", "expand", "t"})
    CHECK(views[kind] > 40);
  CHECK(views["transpose"] > 0);
  CHECK(has_empty);
  CHECK(has_hole);
  CHECK(microbatches == std::set<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(steps == std::set<std::size_t>{1, 2, 3});
}

TEST_CASE("nineteen of twenty programs are not like another", "[properties]") {
  std::set<std::string> programs;
  constexpr std::size_t n = 2000;
  for (std::uint64_t i = 0; i < n; ++i) {
    ChoiceTape tape = tape_of(i);
    programs.insert(scenario_json(generate_case(tape, {}).scenario, {}));
  }
  CHECK(programs.size() >= n * 95 / 100);
}

TEST_CASE("a generated scenario reads back from its file and runs to the same trace",
          "[properties]") {
  CaseRunner runner;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    ChoiceTape tape = tape_of(i);
    GeneratedCase made = generate_case(tape, {});
    runner.run(made);
    const std::string hash = trace_hash(runner.trace());
    const std::string text = scenario_json(made.scenario, {});
    CAPTURE(i, text);
    made.scenario = parse_scenario("s.json", text);
    runner.run(made);
    CHECK(trace_hash(runner.trace()) == hash);
    CHECK(scenario_json(made.scenario, {}) == text);
  }
}

}  // namespace remat
