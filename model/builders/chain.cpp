#include <array>
#include <string>
#include <vector>

#include "model/builders/builder_arguments.hpp"
#include "model/builders/model_assembly.hpp"
#include "model/builders/program_builders.hpp"

namespace remat {
namespace {

using Holds = BuilderKey::Holds;

constexpr std::int64_t steps_max = 100'000;
/// One byte an element, so that a tensor has as many elements as bytes.
constexpr const char* byte_dtype = "f8";

struct Step {
  std::int64_t bytes = 1;
  std::int64_t cost_ns = 1;
  std::int64_t backward_ns = 2;
};

Step step_of(const BuilderArguments& told, const Step& otherwise) {
  Step step;
  step.bytes = told.size("bytes", otherwise.bytes);
  step.cost_ns = told.cost("cost_ns", otherwise.cost_ns);
  // A forward's cost that is told decides what backward takes, unless that is told as well.
  const std::int64_t twice =
      told.has("cost_ns") ? saturated_sum(step.cost_ns, step.cost_ns) : otherwise.backward_ns;
  step.backward_ns = told.cost("backward_ns", twice);
  return step;
}

std::vector<Step> steps_of(const BuilderArguments& told) {
  const Step common = step_of(told, {});
  if (!told.at("steps").is_array()) {
    const auto n = static_cast<std::size_t>(told.size_up_to("steps", steps_max));
    return std::vector<Step>(n, common);
  }
  std::vector<Step> steps;
  for (const JsonPlace& each : told.at("steps").items())
    steps.push_back(step_of(BuilderArguments(each, chain_step_keys()), common));
  if (steps.empty()) told.at("steps").fail("no step is listed; expected one or more");
  return steps;
}

/// How many steps each segment has. Of equal ones the first are one longer where they must be.
std::vector<std::size_t> segments_of(const BuilderArguments& told, std::size_t n_steps) {
  const JsonPlace place = told.at("segments");
  std::vector<std::size_t> lengths;
  if (place.is_array()) {
    std::int64_t sum = 0;
    for (const JsonPlace& length : place.items()) {
      lengths.push_back(static_cast<std::size_t>(BuilderArguments::size_of(length)));
      sum += BuilderArguments::size_of(length);
    }
    if (sum != static_cast<std::int64_t>(n_steps)) {
      place.fail("segments of " + std::to_string(sum) + " steps; expected " +
                 std::to_string(n_steps) + " together");
    }
    return lengths;
  }
  const auto n = static_cast<std::size_t>(BuilderArguments::size_of(place));
  if (n > n_steps) {
    place.fail("there are " + std::to_string(n) + " segments of " + std::to_string(n_steps) +
               " steps; expected no more than one for each");
  }
  for (std::size_t i = 0; i < n; ++i)
    lengths.push_back(n_steps / n + (i < n_steps % n ? 1 : 0));
  return lengths;
}

/// Lengths of the stretches that are checkpointed, the last perhaps not; of single steps where none
/// is.
std::vector<std::size_t> lengths_of(const BuilderArguments& told, std::size_t n_steps) {
  const std::string how = told.choice("checkpoint");
  if (how == "segments") return segments_of(told, n_steps);
  if (told.has("segments"))
    told.at("segments").fail("nothing is cut into segments; expected \"checkpoint\": \"segments\"");
  return std::vector<std::size_t>(n_steps, 1);
}

}  // namespace

std::span<const BuilderKey> chain_step_keys() {
  static constexpr std::array keys = {BuilderKey{"bytes", Holds::size},
                                      BuilderKey{"cost_ns", Holds::cost},
                                      BuilderKey{"backward_ns", Holds::cost}};
  return keys;
}

std::span<const BuilderKey> chain_keys() {
  static constexpr std::array<std::string_view, 1> names = {"chain"};
  static constexpr std::array<std::string_view, 3> ways = {"none", "each", "segments"};
  static constexpr std::array keys = {BuilderKey{"builder", Holds::choice, true, names},
                                      BuilderKey{"steps", Holds::size_or_steps, true},
                                      BuilderKey{"bytes", Holds::size},
                                      BuilderKey{"cost_ns", Holds::cost},
                                      BuilderKey{"backward_ns", Holds::cost},
                                      BuilderKey{"checkpoint", Holds::choice, false, ways},
                                      BuilderKey{"segments", Holds::size_or_lengths},
                                      BuilderKey{"keep_last", Holds::flag}};
  return keys;
}

Program build_chain(const JsonPlace& place, const ProgramReading& reading) {
  const BuilderArguments told(place, chain_keys());
  const std::vector<Step> steps = steps_of(told);
  const std::vector<std::size_t> lengths = lengths_of(told, steps.size());
  const bool checkpoints = told.choice("checkpoint") != "none";
  const bool keeps_last = told.flag("keep_last");
  ModelAssembly chain(place, reading, byte_dtype);
  ValueId at = chain.own(chain.input("x", {steps.front().bytes}));
  std::size_t i = 0;
  for (std::size_t segment = 0; segment < lengths.size(); ++segment) {
    const std::size_t end = i + lengths[segment];
    const bool is_region = checkpoints && !(keeps_last && segment + 1 == lengths.size());
    const auto run_steps = [&] {
      for (; i < end; ++i) {
        const Step& step = steps[i];
        const Step& next = steps[std::min(i + 1, steps.size() - 1)];
        // Of all kinds that save their input alone; which one does not matter.
        at = chain.step("sin", at, chain.tensor("h" + std::to_string(i + 1), {next.bytes}),
                        {step.cost_ns}, {step.backward_ns});
      }
      return at;
    };
    const std::string name = "segment" + std::to_string(segment);
    at = chain.offloadable(name, [&] { return chain.checkpointed(is_region, name, run_steps); });
  }
  return chain.finish(at);
}

}  // namespace remat
