#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "model/program.hpp"

namespace remat {

/// Which of a model's layers are checkpointed at all: a part of them, by their number, from the
/// first on. The others run as plain code. Source: xtuner's `recompute_ratio`
/// (xtuner/v1/model/dense/dense.py: layer index < int(layers * ratio)) and `vision_recompute_ratio`
/// for a model within the model; protocols.md I-44.
struct RecomputeRatio {
  double of_models = 1;  // from 0 to 1
  /// Of models that have one of their own, by owner.
  std::map<std::string, double, std::less<>> of_model = {};

  /// The layer of that model is checkpointed. The product is rounded to a double and then cut, as
  /// Python does it: of 100 layers 0.29 are 28.
  bool includes(std::string_view owner, const LayerPlace& layer) const;
  /// Some layer of the model is checkpointed, of the so many that it has.
  bool includes_any(std::string_view owner, std::size_t n_layers) const {
    return includes(owner, {.index = 0, .count = n_layers});
  }
};

}  // namespace remat
