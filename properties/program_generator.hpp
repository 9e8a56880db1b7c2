#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "properties/choice_tape.hpp"
#include "sim/scenario.hpp"

namespace remat {

/// What a case may hold; each is on in about half of the cases (swarm testing: a bug that needs one
/// feature alone is not drowned by the others). Dimensions are those of protocols.md §6.
enum class Feature : std::uint8_t {
  views,          // D6
  in_place,       // D7
  containers,     // D8: tensors that reach a region past its arguments
  random,         // D19
  no_grad,        // D6
  nesting,        // D1
  fan_out,        // D2
  many_outputs,   // D9
  unused,         // D9: outputs that nobody reads
  side_effects,   // D23
  frozen,         // D20
  updates,        // D20
  whole_replays,  // D14: no early stop, for some regions
  microbatches,   // D11
  steps,          // D11
  retain,         // D15
  split           // D15
};
inline constexpr std::size_t feature_count = 17;
std::string_view name_of(Feature feature);

/// A change that makes a legal program one that must end in a known code.
struct NegativeEdit {
  std::string name;  // empty: none
  std::string code;
};

/// One generated case: a scenario, and what is to come out of it.
struct GeneratedCase {
  Scenario scenario;
  NegativeEdit edit;
  std::uint32_t features = 0;  // bits that are on

  bool has(Feature feature) const {
    return ((features >> static_cast<std::uint32_t>(feature)) & 1U) != 0;
  }
};

struct GeneratorOptions {
  /// Features that no case has, as bits: to see what each is worth.
  std::uint32_t without = 0;
  /// Only this protocol; empty: all.
  std::string protocol;
  /// Cases without negative edits.
  bool legal_only = false;
};

/// The case that the tape describes: a pure function of it. Constructive, so nothing is discarded;
/// a tape of zeros gives the smallest case.
GeneratedCase generate_case(ChoiceTape& tape, const GeneratorOptions& options);

}  // namespace remat
