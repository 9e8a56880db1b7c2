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

const std::vector<Statement>& statements_of(const GeneratedCase& made) {
  return made.scenario.program.forwards.front().statements;
}

template <typename T>
bool any(const GeneratedCase& made, const std::function<bool(const T&)>& holds) {
  for (const Statement& statement : statements_of(made))
    if (const auto* it = std::get_if<T>(&statement); it != nullptr && holds(*it)) return true;
  return false;
}

bool any_op(const GeneratedCase& made, const std::function<bool(const OpStatement&)>& holds) {
  return any<OpStatement>(made, holds);
}

bool any_phase(const GeneratedCase& made, const std::function<bool(const PhaseStep&)>& holds) {
  for (const PhaseStep& step : made.scenario.order)
    if (holds(step)) return true;
  return false;
}

std::size_t n_steps(const GeneratedCase& made) {
  std::size_t n = 0;
  for (const PhaseStep& step : made.scenario.order)
    n += step.kind == PhaseStep::Kind::step_begin ? 1 : 0;
  return n;
}

bool is_value(const GeneratedCase& made, const std::function<bool(const ProgramValue&)>& holds) {
  const Program& program = made.scenario.program;
  for (std::uint32_t i = 0; i < program.values.size(); ++i)
    if (holds(program.values[ValueId(i)])) return true;
  return false;
}

/// Some op's first output is read by nobody, and it is not the root.
bool has_unused(const GeneratedCase& made) {
  std::set<std::uint32_t> read;
  for (const Statement& statement : statements_of(made)) {
    const auto* op = std::get_if<OpStatement>(&statement);
    if (op == nullptr) continue;
    for (const ValueId input : op->inputs)
      read.insert(input.index());
  }
  const auto root = made.scenario.program.forwards.front().root;
  return any_op(made, [&](const OpStatement& op) {
    return op.makes_node && op.outputs.front() != root && read.count(op.outputs[0].index()) == 0;
  });
}

/// Some op reads what is older than what the op before it read.
bool has_fan_out(const GeneratedCase& made) {
  const Program& program = made.scenario.program;
  std::uint32_t newest_before = 0;
  return any_op(made, [&](const OpStatement& op) {
    std::uint32_t newest = 0;
    for (const ValueId input : op.inputs) {
      if (program.buffers[program.values[input].buffer].role != BufferRole::param)
        newest = std::max(newest, input.index());
    }
    const bool goes_back = newest < newest_before && op.makes_node && op.kind->name != "sum";
    newest_before = newest;
    return goes_back;
  });
}

bool has_shared_region(const GeneratedCase& made) {
  std::set<std::string> names;
  return any<RegionBegin>(
      made, [&](const RegionBegin& region) { return !names.insert(region.name).second; });
}

bool has_nested_region(const GeneratedCase& made) {
  std::size_t end = 0;
  const std::vector<Statement>& statements = statements_of(made);
  for (std::size_t at = 0; at < statements.size(); ++at) {
    const auto* region = std::get_if<RegionBegin>(&statements[at]);
    if (region == nullptr) continue;
    if (at < end) return true;
    end = region->end;
  }
  return false;
}

bool has_hidden_tensor(const GeneratedCase& made) {
  return is_value(made, [](const ProgramValue& value) { return value.in_container; }) ||
         any<RegionBegin>(made, [](const RegionBegin& region) { return !region.captured.empty(); });
}

/// Some forward has no backward.
bool has_dropped_graph(const GeneratedCase& made) {
  return !any_phase(made, [](const PhaseStep& step) {
    return step.kind == PhaseStep::Kind::backward || step.kind == PhaseStep::Kind::dw;
  });
}

bool has_equal_shapes(const GeneratedCase& made) {
  return any_op(made, [&](const OpStatement& op) {
    const auto& values = made.scenario.program.values;
    return !op.writes && !op.kind->makes_view && op.makes_node &&
           values[op.inputs[0]].layout.shape == values[op.outputs[0]].layout.shape;
  });
}

struct Dimension {
  Feature feature;
  std::function<bool(const GeneratedCase&)> shows;
  double share_min;  // of the cases that have the feature
};

/// What each dimension looks like in a case: none where it is off, often enough where it is on.
std::vector<Dimension> dimensions_of_programs() {
  return {
      {Feature::views,
       [](const auto& made) {
         return any_op(made, [](const OpStatement& op) { return op.kind->makes_view; });
       },
       0.15},
      {Feature::in_place,
       [](const auto& made) {
         return any_op(made, [&](const OpStatement& op) {
           return op.writes && !op.by_caller && made.edit == Edit::none;
         });
       },
       0.1},
      {Feature::containers,
       [](const auto& made) { return (made.edit == Edit::none) && has_hidden_tensor(made); }, 0.2},
      {Feature::random,
       [](const auto& made) {
         return any_op(made, [](const OpStatement& op) { return op.kind->draws; });
       },
       0.15},
      {Feature::no_grad,
       [](const auto& made) {
         return made.edit == Edit::none && !made.has(Feature::forward_only) &&
                any<NoGradBegin>(made, [](const NoGradBegin&) { return true; });
       },
       0.05},
      {Feature::nesting, has_nested_region, 0.1},
      {Feature::fan_out, has_fan_out, 0.2},
      {Feature::many_outputs,
       [](const auto& made) {
         return any_op(made, [](const OpStatement& op) {
           return op.outputs.size() > 1 && !op.kind->draws && !op.writes;
         });
       },
       0.2},
      {Feature::unused,
       [](const auto& made) { return made.edit == Edit::none && has_unused(made); }, 0.1},
      {Feature::side_effects,
       [](const auto& made) {
         return any<SideEffect>(made, [](const SideEffect&) { return true; });
       },
       0.05},
      {Feature::frozen,
       [](const auto& made) {
         return is_value(made, [&](const ProgramValue& value) {
           return !value.requires_grad && value.name.starts_with("w");
         });
       },
       0.2}};
}

/// The same of what the training loop does, and of sizes and policies.
std::vector<Dimension> dimensions_of_the_loop() {
  using Kind = PhaseStep::Kind;
  return {
      {Feature::updates,
       [](const auto& made) {
         return any_phase(made, [](const PhaseStep& step) { return step.kind == Kind::update; });
       },
       0.9},
      {Feature::whole_replays,
       [](const auto& made) {
         return made.edit == Edit::none && any<RegionBegin>(made, [](const RegionBegin& region) {
                  return !region.early_stop;
                });
       },
       0.3},
      {Feature::microbatches,
       [](const auto& made) {
         return any_phase(made, [](const PhaseStep& step) { return step.microbatch == 1; });
       },
       0.3},
      {Feature::steps, [](const auto& made) { return n_steps(made) > 1; }, 0.2},
      {Feature::retain,
       [](const auto& made) {
         return made.edit == Edit::none &&
                any_phase(made, [](const PhaseStep& step) { return step.retain; });
       },
       0.1},
      {Feature::split,
       [](const auto& made) {
         return any_phase(made, [](const PhaseStep& step) { return step.kind == Kind::dx; });
       },
       0.1},
      {Feature::partial,
       [](const auto& made) {
         return made.edit == Edit::none &&
                any_phase(made, [](const PhaseStep& step) { return !step.wrt.empty(); });
       },
       0.1},
      {Feature::dropped, has_dropped_graph, 0.1},
      {Feature::groups,
       [](const auto& made) {
         return made.edit == Edit::none &&
                any_phase(made, [](const PhaseStep& step) { return step.group.has_value(); });
       },
       0.3},
      {Feature::sharing, has_shared_region, 0.15},
      {Feature::forward_only,
       [](const auto& made) {
         return any_op(made, [](const OpStatement& op) { return op.kind->name == "cumsum"; });
       },
       0.1},
      {Feature::same_shapes,
       [](const auto& made) { return made.edit == Edit::none && has_equal_shapes(made); }, 0.5},
      {Feature::counted_policy,
       [](const auto& made) { return made.scenario.options.keep_every == 2; }, 0.1},
  };
}

std::vector<Dimension> dimensions() {
  std::vector<Dimension> all = dimensions_of_programs();
  for (Dimension& more : dimensions_of_the_loop())
    all.push_back(std::move(more));
  return all;
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
  constexpr std::uint64_t n = 2000;
  const std::vector<Dimension> rows = dimensions();
  REQUIRE(rows.size() == feature_count);
  std::vector<GeneratedCase> cases;
  for (std::uint64_t i = 0; i < n; ++i) {
    ChoiceTape tape = tape_of(i);
    cases.push_back(generate_case(tape, {}));
  }
  for (const Dimension& row : rows) {
    double with = 0;
    double shown = 0;
    double shown_without = 0;
    for (const GeneratedCase& made : cases) {
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
      CHECK_FALSE(generate_case(tape, {.without = 1U << f}).has(static_cast<Feature>(f)));
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
