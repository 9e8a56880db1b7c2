#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <variant>

#include "properties/campaign.hpp"
#include "sim/simulation.hpp"
#include "tests/properties/dimensions.hpp"
#include "traces/trace_hash.hpp"

namespace remat {
namespace {

/// Excluded regions, each of which keeps what it returns: in a chain P4 would hand on placeholders.
bool keeps_all_outputs(const GeneratedCase& made) {
  const auto is_any = [](const WrapperBegin&) { return true; };
  const auto drops = [](const WrapperBegin& wrapper) { return !wrapper.save_output; };
  return any<WrapperBegin>(made, is_any) && !any<WrapperBegin>(made, drops);
}

Trace run_under(const std::string& protocol, Scenario& scenario) {
  scenario.protocol = protocol;
  Trace trace;
  simulate(simulation_of(scenario), trace);
  return trace;
}

bool has_slot(const Trace& trace) {
  for (std::size_t i = 0; i < trace.size(); ++i)
    if (trace[i].kind() == Kind::pack && trace[i].text(Field::held) == "slot") return true;
  return false;
}

}  // namespace

TEST_CASE("P4 where nothing can be made again is P3, event for event", "[properties]") {
  int n_alike = 0;
  int n_with_slots = 0;
  for (std::uint64_t number = 0; number < 1000; ++number) {
    ChoiceTape tape = tape_of_case(23, number);
    GeneratedCase made = generate_case(tape, {.protocol = "exclude", .legal_only = true});
    if (!keeps_all_outputs(made)) continue;
    const Trace rederiving = run_under("exclude-rederive", made.scenario);
    const Trace keeping = run_under("exclude", made.scenario);
    CAPTURE(number);
    CHECK_FALSE(has_slot(keeping));
    const bool is_alike = trace_hash(rederiving) == trace_hash(keeping);
    CHECK(is_alike != has_slot(rederiving));
    ++(is_alike ? n_alike : n_with_slots);
  }
  CHECK(n_alike > 20);
  CHECK(n_with_slots > 20);
}

}  // namespace remat
