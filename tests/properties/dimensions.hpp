#pragma once

#include <functional>
#include <vector>

#include "properties/program_generator.hpp"

namespace remat {

const std::vector<Statement>& statements_of(const GeneratedCase& made);
std::size_t n_steps(const GeneratedCase& made);

template <typename T>
bool any(const GeneratedCase& made, const std::function<bool(const T&)>& holds) {
  for (const Statement& statement : statements_of(made))
    if (const auto* it = std::get_if<T>(&statement); it != nullptr && holds(*it)) return true;
  return false;
}

bool any_op(const GeneratedCase& made, const std::function<bool(const OpStatement&)>& holds);
/// A tensor reaches a region past its arguments, or leaves it in a dict.
bool has_hidden_tensor(const GeneratedCase& made);

/// How a dimension of generated cases shows.
struct Dimension {
  Feature feature;
  std::function<bool(const GeneratedCase&)> shows;
  double share_min;  // of the cases that have the feature
  /// Only among these cases: under the protocols that make something of it.
  bool (*among)(const GeneratedCase& made) = nullptr;
};
/// Its protocol leaves regions out of a replay.
bool leaves_regions_out(const GeneratedCase& made);
/// Its protocol asks save units.
bool asks_save_units(const GeneratedCase& made);
/// One for each feature: none shows where the feature is off, often enough where it is on.
std::vector<Dimension> dimensions();

}  // namespace remat
