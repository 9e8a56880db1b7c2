#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/scenario_file.hpp"

namespace remat {

/// A region of torch_remat; `more` is of the form `"in":["a"],"out":"y"`.
inline std::string remat_region(const std::string& name, bool recompute, const std::string& more,
                                const std::string& body) {
  return R"({"region":")" + name + R"(","recompute":)" + (recompute ? "true," : "false,") +
         (more.empty() ? "" : more + ",") + R"("body":[)" + body + "]}";
}
inline std::string saved(const std::string& name, const std::string& more,
                         const std::string& body) {
  return remat_region(name, false, more, body);
}
inline std::string recomputed(const std::string& name, const std::string& more,
                              const std::string& body) {
  return remat_region(name, true, more, body);
}
inline std::string needs(const std::string& name) {
  return R"({"needs_tensor":")" + name + R"("})";
}
inline std::string scaled_in_place(const std::string& name) {
  return R"({"in_place":"scale","in":[")" + name + R"("]})";
}
/// Another shape of a tensor of [4, 8].
inline std::string flat(const std::string& in, const std::string& out) {
  return R"({"view":"view","in":[")" + in + R"("],"out":[")" + out +
         R"("],"shape":[32],"stride":[1]})";
}

// Of which the bodies in tests are made: a recomputed tensor a, and a saved region that returns
// h = a · a, of which a replay can bring both factors.
inline const std::string make_a = op("cos", {"x"}, {"a"}) + ",";
inline const std::string in_a = R"("in":["a"])";
inline const std::string in_h = R"("in":["h"])";
inline const std::string square = saved("s", in_a + R"(,"out":"h")", op("mul", {"a", "a"}, {"h"}));

/// One checkpointed region `r` with this body, which makes `y`, under remat.
inline ScenarioRun run_remat(const std::string& body, const std::string& options = "",
                             const std::string& schedule = "{}") {
  return run_stage(checkpoint("r", body) + "," + loss_of("y"), "remat", options, schedule);
}
/// Likewise under no protocol.
inline ScenarioRun run_plain(const std::string& body, const std::string& schedule = "{}") {
  return run_stage(checkpoint("r", body) + "," + loss_of("y"), "none", "", schedule);
}

/// Regions and outputs that events of this kind are about, in their order: "s.0".
inline std::vector<std::string> outputs_told(const ScenarioRun& run, Kind kind) {
  std::vector<std::string> told;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const EventView event = run.trace[i];
    if (event.kind() != kind) continue;
    told.push_back(std::string(event.text(Field::region)) + "." +
                   std::to_string(event.integer(Field::output).value_or(-1)));
  }
  return told;
}

/// What forward does with each save of saved regions' bodies, in their order: `kept`, or the
/// argument that a replay brings it from, `view of` that.
inline std::vector<std::string> fates(const ScenarioRun& run) {
  std::vector<std::string> told;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const EventView event = run.trace[i];
    if (event.kind() != Kind::pack || !event.has(Field::region)) continue;
    const std::string path = excluded_save(run.trace, event).path;
    told.push_back(path.empty() ? "kept" : (event.is_true(Field::view) ? "view of " : "") + path);
  }
  return told;
}

}  // namespace remat
