#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "properties/expectation.hpp"
#include "properties/invariants/checker.hpp"
#include "sim/simulation.hpp"
#include "traces/diff.hpp"
#include "traces/trace.hpp"

namespace remat {

/// A scenario of one stage, run: its result, its trace and what the invariants say of it.
struct ScenarioRun {
  std::unique_ptr<Scenario> scenario;
  SimulationResult result;
  Trace trace;
  Verdict verdict;
  std::vector<std::string> events;  // the comparable ones

  std::int64_t count(const std::string& event) const {
    return std::count(events.begin(), events.end(), event);
  }
  /// Ops of this name in a phase.
  std::int64_t ops(const std::string& name, Phase phase) const {
    std::int64_t n = 0;
    for (std::size_t i = 0; i < trace.size(); ++i) {
      n += trace[i].kind() == Kind::op && trace[i].phase() == phase &&
                   trace[i].text(Field::name) == name
               ? 1
               : 0;
    }
    return n;
  }
  std::int64_t kinds(Kind kind) const {
    std::int64_t n = 0;
    for (std::size_t i = 0; i < trace.size(); ++i)
      n += trace[i].kind() == kind ? 1 : 0;
    return n;
  }
  std::string code() const { return result.error ? result.error->code : "none"; }
  /// Names of the invariants that found something, each once.
  std::vector<std::string> broken() const {
    std::vector<std::string> names;
    for (const Finding& finding : verdict.findings) {
      if (std::find(names.begin(), names.end(), finding.invariant) == names.end())
        names.push_back(finding.invariant);
    }
    return names;
  }
};

inline ScenarioRun run_scenario(Scenario scenario) {
  ScenarioRun run;
  run.scenario = std::make_unique<Scenario>(std::move(scenario));
  Simulation simulation = simulation_of(*run.scenario);
  simulation.expectation = expectation_of(*run.scenario);
  run.result = simulate(simulation, run.trace);
  Checker checker;
  for (std::size_t i = 0; i < run.trace.size(); ++i)
    checker.observe(run.trace[i]);
  run.verdict = checker.finish();
  run.events = comparable_events(run.trace);
  return run;
}

inline ScenarioRun run_text(const std::string& text) {
  return run_scenario(parse_scenario("test.json", text));
}

/// A stage over an input `x` [4, 8] that requires grad and parameters `w0` … `w7` [8, 8], `b0` …
/// `b7` [8]; the last statement must make `loss`.
inline ScenarioRun run_stage(const std::string& statements, const std::string& protocol = "torch",
                             const std::string& options = "", const std::string& schedule = "{}",
                             const std::string& bodies = "{}", const std::string& steps = "1") {
  std::string params;
  for (int i = 0; i < 8; ++i) {
    params += (i == 0 ? "" : ",") + std::string("\"w") + std::to_string(i) +
              R"(":{"shape":[8,8]},"b)" + std::to_string(i) + R"(":{"shape":[8]})";
  }
  return run_text(R"({"format":"rematsim-scenario","version":1,"program":{"loss":"loss",)"
                  R"("inputs":{"x":{"shape":[4,8],"requires_grad":true}},"params":{)" +
                  params + R"(},"bodies":)" + bodies + R"(,"stages":[[)" + statements +
                  R"(]]},"protocol":{"name":")" + protocol + "\"" +
                  (options.empty() ? "" : "," + options) + R"(},"schedule":)" + schedule +
                  R"(,"steps":)" + steps + "}");
}

/// {"op": kind, …}
inline std::string op(const std::string& kind, const std::vector<std::string>& in,
                      const std::vector<std::string>& out, const std::string& more = "") {
  const auto list = [](const std::vector<std::string>& names) {
    std::string text = "[";
    for (const std::string& name : names)
      text += (text.size() > 1 ? "," : "") + ("\"" + name + "\"");
    return text + "]";
  };
  return R"({"op":")" + kind + R"(","in":)" + list(in) + R"(,"out":)" + list(out) +
         (more.empty() ? "" : "," + more) + "}";
}
/// One linear layer, `addmm` of bias and weight number `i`.
inline std::string linear(int i, const std::string& in, const std::string& out) {
  return op("addmm", {"b" + std::to_string(i), in, "w" + std::to_string(i)}, {out});
}
inline std::string checkpoint(const std::string& name, const std::string& body,
                              const std::string& more = "") {
  return R"({"checkpoint":")" + name + "\"," + (more.empty() ? "" : more + ",") + R"("body":[)" +
         body + "]}";
}
inline std::string loss_of(const std::string& name) {
  return op("sum", {name}, {"loss"});
}

}  // namespace remat
