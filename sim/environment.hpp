#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "model/flat_map.hpp"
#include "sim/ledger.hpp"
#include "sim/tape.hpp"

namespace remat {

/// A variable of the program while it runs: its tensor, and the node that made it.
struct Variable {
  Tensor tensor;
  NodeRef node;
  std::uint32_t output = 0;  // of the node
  ValueId name{0};           // under which it is found; its tensor may be that of another value
};

/// The variables of one run of a forward or of one replay, by value.
class Environment {
 public:
  Variable* find(ValueId value) {
    const std::uint32_t* at = index_.find(value.index());
    return at == nullptr ? nullptr : &*variables_[*at];
  }
  Variable& set(ValueId value, Variable variable) {
    std::uint32_t at = 0;
    if (const std::uint32_t* known = index_.find(value.index())) {
      at = *known;
    } else if (!free_.empty()) {
      at = free_.back();
      free_.pop_back();
    } else {
      at = static_cast<std::uint32_t>(variables_.size());
      variables_.emplace_back();
    }
    index_[value.index()] = at;
    variable.name = value;
    variables_[at] = std::move(variable);
    return *variables_[at];
  }
  /// The variable goes out of scope; nothing happens where there is none.
  void erase(ValueId value) {
    const std::uint32_t* known = index_.find(value.index());
    if (known == nullptr) return;
    const std::uint32_t at = *known;
    index_.erase(value.index());
    free_.push_back(at);
    variables_[at].reset();
  }
  /// Visits all of them, in the order of their places.
  template <typename Visit>
  void each(Visit visit) const {
    for (const std::optional<Variable>& variable : variables_) {
      if (variable) visit(*variable);
    }
  }
  /// All of them go, in the order of their places.
  void clear() {
    for (std::optional<Variable>& variable : variables_)
      variable.reset();
    variables_.clear();
    free_.clear();
    index_.clear();
  }
  /// Keeps only those for which `keep(variable)` holds.
  template <typename Keep>
  void keep_if(Keep keep) {
    for (std::uint32_t at = 0; at < variables_.size(); ++at) {
      if (!variables_[at] || keep(*variables_[at])) continue;
      index_.erase(variables_[at]->name.index());
      free_.push_back(at);
      variables_[at].reset();
    }
  }

 private:
  FlatMap<std::uint32_t> index_;  // value → place
  std::vector<std::optional<Variable>> variables_;
  std::vector<std::uint32_t> free_;
};

}  // namespace remat
