#include "properties/program_generator.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "model/random_bits.hpp"
#include "properties/case_runner.hpp"
#include "traces/trace_hash.hpp"

namespace remat {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t n_cases = 400;  // ten times slower
#else
constexpr std::uint64_t n_cases = 6000;
#endif

ChoiceTape tape_of(std::uint64_t number) {
  constexpr std::uint64_t stream = 11;
  return ChoiceTape::from_seed(random_bits(1, stream, number));
}

}  // namespace

TEST_CASE("random programs: no invariant has a word to say, gradients are those of the plain run",
          "[properties]") {
  std::map<std::string, int> codes;
  for (std::uint64_t i = 0; i < n_cases; ++i) {
    ChoiceTape tape = tape_of(i);
    const GeneratedCase generated = generate_case(tape, {});
    Trace trace;
    const CaseOutcome outcome = run_case(generated, trace);
    CAPTURE(i, generated.scenario.protocol, generated.edit.name, outcome.alarm, outcome.message);
    CHECK(outcome.alarm.empty());
    ++codes[outcome.code];
  }
  // Most are legal, and the edits reach their codes.
  CHECK(codes[""] > static_cast<int>(n_cases) / 2);
  for (const char* code : {"E-USER", "E-TWICE", "E-MUTATED", "E-COUNT"})
    CHECK(codes[code] > 0);
}

TEST_CASE("a case is a function of its tape", "[properties]") {
  for (std::uint64_t i = 0; i < 50; ++i) {
    ChoiceTape drawn = tape_of(i);
    Trace first;
    run_case(generate_case(drawn, {}), first);
    ChoiceTape again(drawn.chosen());
    Trace second;
    run_case(generate_case(again, {}), second);
    CHECK(trace_hash(first) == trace_hash(second));
  }
}

TEST_CASE("a tape of zeros gives the smallest case", "[properties]") {
  ChoiceTape tape(std::vector<std::uint64_t>{});
  const GeneratedCase generated = generate_case(tape, {});
  CHECK(generated.features == 0);
  CHECK(generated.edit.name.empty());
  CHECK(generated.scenario.protocol == "torch");
  std::size_t n_ops = 0;
  for (const Statement& statement : generated.scenario.program.forwards.front().statements)
    n_ops += std::holds_alternative<OpStatement>(statement) ? 1 : 0;
  CHECK(n_ops == 3);  // scale the input, one op in one region, the root
}

TEST_CASE("every feature is in about half of the cases, none where it is switched off",
          "[properties]") {
  std::map<std::size_t, int> with;
  for (std::uint64_t i = 0; i < 400; ++i) {
    ChoiceTape tape = tape_of(i);
    const GeneratedCase generated = generate_case(tape, {});
    for (std::size_t f = 0; f < feature_count; ++f)
      with[f] += generated.has(static_cast<Feature>(f)) ? 1 : 0;
    ChoiceTape same = tape_of(i);
    const GeneratedCase without = generate_case(same, {.without = 1U, .protocol = {}});
    CHECK_FALSE(without.has(Feature::views));
  }
  for (std::size_t f = 0; f < feature_count; ++f) {
    CAPTURE(name_of(static_cast<Feature>(f)));
    CHECK(with[f] > 400 * 3 / 10);
    CHECK(with[f] < 400 * 7 / 10);
  }
}

}  // namespace remat
