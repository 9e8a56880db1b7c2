#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace remat {

/// The events of a trace that a prediction is held to, one string each, in order: replays, what
/// runs in them, slots filled and read, and the error that stops the run. Source: cli.md `predict`.
std::vector<std::string> comparable_events(const Trace& trace);

/// Where two lists part first. An absent side means that its list has ended.
struct FirstDifference {
  std::size_t index = 0;
  std::optional<std::string> predicted;
  std::optional<std::string> recorded;
};
std::optional<FirstDifference> first_difference(const std::vector<std::string>& predicted,
                                                const std::vector<std::string>& recorded);

}  // namespace remat
