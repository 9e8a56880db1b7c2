#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "properties/choice_tape.hpp"
#include "properties/interleaving.hpp"
#include "properties/negative_edit.hpp"
#include "sim/scenario.hpp"

namespace remat {

/// What a case may hold; each is on in about half of the cases (swarm testing: a bug that needs one
/// feature alone is not drowned by the others). Dimensions are those of protocols.md §6; a later
/// dimension is a further row.
enum class Feature : std::uint8_t {
  views,             // D6
  in_place,          // D7
  containers,        // D8: tensors that reach a region past its arguments, or leave it in a dict
  random,            // D19
  no_grad,           // D6
  nesting,           // D1
  fan_out,           // D2
  many_outputs,      // D9
  unused,            // D9: outputs that nobody reads
  side_effects,      // effects outside tensors, which a replay repeats
  frozen,            // D20
  updates,           // D20
  whole_replays,     // D14: no early stop, for some regions
  microbatches,      // D11
  steps,             // D11
  retain,            // D15: two backwards of one graph
  split,             // D15: dx and dw apart
  partial,           // D15: gradients of some leaves only
  dropped,           // D15: a graph without a backward
  groups,            // D15: a backward under an exec group
  sharing,           // D10: a region called twice
  forward_only,      // D24: ops that a replay leaves out, legally: nothing saves them
  same_shapes,       // D22: outputs as large as the first input, so that one passes for another
  counted_policy,    // D16: of an op's kept calls every second one only
  odd_params,        // D6: parameters that are scalars or integers
  excluded,          // D4: excluded regions, and those of torch_remat
  chains,            // D5: excluded regions that hand all they return to the next
  nested_arguments,  // D8: arguments of excluded regions in lists, dicts and by keyword
  fresh_arguments,   // D7: excluded regions are given tensors that are theirs alone, to be written
  caught_errors,     // D23: code that raises, and a caller that catches it and goes on
  save_units,        // D16: callables and markers of save units
  two_models,        // D16: layers of a model of its own, which may select other units
  odd_markers,       // D16: intervals that end before they begin, or are never begun or ended
  compiled,          // D17: stretches of ops that a policy may not see into
  offload,           // D21: groups whose saved tensors go to the host and come back
  ranks,             // D18: two to four ranks, and collectives
  some_layers        // D16: a part of the layers is checkpointed, the others run as plain code
};
inline constexpr std::size_t feature_count = 37;
std::string_view name_of(Feature feature);

/// One generated case: a scenario, and what is to come out of it.
struct GeneratedCase {
  Scenario scenario;
  Edit edit = Edit::none;
  Strategy strategy = Strategy::random;
  std::uint64_t features = 0;  // bits that are on

  bool has(Feature feature) const {
    return ((features >> static_cast<std::uint32_t>(feature)) & 1U) != 0;
  }
  /// Some backward is split in two halves.
  bool is_split = false;
  /// What the edit raises it raises once: the training loop catches it and does the step again.
  bool is_retried = false;
  /// Its groups are offloaded.
  bool offloads() const { return has(Feature::offload) || scenario.protocol == "offload"; }
  /// Several ranks run it. A negative edit is one rank's: where the others stop is not foretold.
  bool has_ranks() const { return has(Feature::ranks) && edit == Edit::none; }
  /// What the run is to end in; empty: in no error.
  std::string_view expected_code() const { return is_retried ? "" : row_of(edit).code; }
};

struct GeneratorOptions {
  /// Features that no case has, as bits: to see what each is worth.
  std::uint64_t without = 0;
  /// Only this protocol; empty: all.
  std::string protocol = {};
  /// Cases without negative edits.
  bool legal_only = false;
};

/// The case that the tape describes: a pure function of it. Constructive, so nothing is discarded;
/// a tape of zeros gives the smallest case.
GeneratedCase generate_case(ChoiceTape& tape, const GeneratorOptions& options);

}  // namespace remat
