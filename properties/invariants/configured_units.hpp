#pragma once

#include <string>
#include <utility>
#include <vector>

namespace remat {

/// A save unit as the header's `config.units` has it.
struct ConfiguredUnit {
  std::string name;
  std::vector<std::string> ops;
  std::vector<std::string> callables;
  std::vector<std::pair<std::string, std::string>> intervals;
  std::vector<std::string> owners;          // models that select it
  bool is_ignored = false;                  // their regions are told to keep nothing
  std::vector<std::string> without_layers;  // models that select it and checkpoint no layer

  bool is_inert() const { return ops.empty() && callables.empty() && intervals.empty(); }
};

/// The units of a header's `config`, as JSON; none where it has none. Throws HeaderError on units
/// of another form.
std::vector<ConfiguredUnit> configured_units(std::string_view config_json);

}  // namespace remat
