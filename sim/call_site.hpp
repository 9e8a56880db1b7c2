#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace remat {

/// The calls that something lies in, for a message: of a region, and of an excluded region in it.
/// Names are the program's. Empty: there is none.
struct CallSite {
  std::string_view unit;
  std::optional<std::int64_t> invocation;
  std::string_view wrapper;
  std::int64_t call = 0;

  /// The same within a call of an excluded region.
  CallSite within(std::string_view name, std::int64_t number) const {
    return {.unit = unit, .invocation = invocation, .wrapper = name, .call = number};
  }
};

}  // namespace remat
