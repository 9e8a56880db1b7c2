#include "sim/prediction.hpp"

#include <fmt/format.h>

#include "sim/simulation.hpp"
#include "traces/rebuild/rebuild.hpp"

namespace remat {
namespace {

std::string protocol_of(const RebuiltRun& run) {
  if (!run.has_regions) return "none";
  if (run.has_wrappers) return "exclude-rederive";
  if (run.has_remat_regions) return "remat";
  if (run.selects_ops) return "torch-sac";
  return run.has_reentrant_regions ? "torch-reentrant" : "torch";
}

bool is_border(Kind kind) {
  return kind == Kind::phase_begin || kind == Kind::phase_end || kind == Kind::step_begin ||
         kind == Kind::step_end || kind == Kind::header;
}

/// The recording goes on after its forwards: there is something to compare with.
bool shows_backward(const Trace& recording) {
  for (std::size_t i = 0; i < recording.size(); ++i) {
    const EventView event = recording[i];
    const Phase phase = event.phase();
    if (phase != Phase::setup && phase != Phase::forward && !is_border(event.kind())) return true;
    if (event.kind() == Kind::error) return true;
  }
  return false;
}

/// The recording's backward ran under an exec group: nothing before it shows that.
bool ran_under_a_group(const Trace& recording) {
  for (std::size_t i = 0; i < recording.size(); ++i) {
    const auto session = recording[i].session(Field::gid);
    if (session && recording.names()[recording.session(*session).kind] == "group") return true;
  }
  return false;
}

}  // namespace

Prediction predicted_from(const Trace& recording, Trace& simulated) {
  Prediction prediction;
  const RebuiltRun run = rebuild(recording);
  prediction.protocol = protocol_of(run);
  prediction.unsupported = run.unsupported;
  if (prediction.unsupported) return prediction;
  Simulation simulation;
  simulation.ranks = {{&run.program, &run.order}};
  // A reentrant region says so itself: other regions may stand beside it.
  simulation.protocol = prediction.protocol == "torch-reentrant" ? "torch" : prediction.protocol;
  simulation.options.compat = run.has_wrappers ? Compat::public_code : Compat::torch;
  simulation.rank.dw_counts_once = false;
  simulation.rank.loss_has_dw_at_once = run.knows_sessions;
  simulation.rank.carries_shapes = run.has_wrappers;
  simulation.options.ambient_hooks = run.has_ambient_hooks;
  simulation.options.state_hooks = run.has_state_hooks;
  simulation.config_json = fmt::format(R"({{"protocol":"{}","compat":"{}"}})", prediction.protocol,
                                       run.has_wrappers ? "public" : "torch");
  const SimulationResult result = simulate(simulation, simulated);
  if (result.error && result.error->code == "E-UNKNOWN") {
    prediction.unsupported = result.error->message;
    return prediction;
  }
  prediction.predicted = comparable_events(simulated);
  if (!shows_backward(recording)) return prediction;
  if (ran_under_a_group(recording)) {
    prediction.not_compared =
        "its backward ran under an exec group, which the forward part does not show";
    return prediction;
  }
  prediction.difference = first_difference(prediction.predicted, comparable_events(recording));
  prediction.match = !prediction.difference;
  return prediction;
}

}  // namespace remat
