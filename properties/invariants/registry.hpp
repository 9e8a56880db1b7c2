#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "properties/invariants/invariant.hpp"

namespace remat {

/// Which kinds of event, each by its number.
using KindSet = std::array<bool, kind_count>;

/// One invariant: its name, what it says in two lines, and which events it wants to see.
struct InvariantRow {
  std::string_view name;
  std::string_view holds_when;
  std::string_view example;
  std::unique_ptr<Invariant> (*make)();
  KindSet kinds;
};

/// All invariants, in the order in which findings at one event are sorted (docs/trace-format.md,
/// table).
std::span<const InvariantRow> invariants();
const InvariantRow* invariant_named(std::string_view name);
/// Place in that order; unknown names come last.
std::size_t invariant_place(std::string_view name);

}  // namespace remat
