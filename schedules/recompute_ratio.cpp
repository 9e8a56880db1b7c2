#include "schedules/recompute_ratio.hpp"

#include <cstddef>

namespace remat {

bool RecomputeRatio::includes(std::string_view owner, const LayerPlace& layer) const {
  const auto own = of_model.find(owner);
  const double ratio = own == of_model.end() ? of_models : own->second;
  return layer.index < static_cast<std::size_t>(static_cast<double>(layer.count) * ratio);
}

}  // namespace remat
