#pragma once

#include <string>

#include "properties/program_generator.hpp"

namespace remat {

// Names that a case's units and its program share.
inline constexpr std::size_t n_callables = 3;
inline constexpr std::size_t n_markers = 4;
inline std::string callable_name(std::size_t number) {
  return "c" + std::to_string(number);
}
inline std::string marker_name(std::size_t number) {
  return "k" + std::to_string(number);
}
/// The model that some layers are of, where a case has two.
inline constexpr std::string_view second_model = "side";

/// The save units of a case, and which of them its models select.
UnitConfig choose_units(ChoiceTape& tape, const GeneratedCase& made);

}  // namespace remat
