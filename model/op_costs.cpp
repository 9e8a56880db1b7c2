#include "model/op_costs.hpp"

#include <algorithm>

#include "model/shapes.hpp"

namespace remat {
namespace {

/// amount / rate, in nanoseconds, rounded up.
std::int64_t nanoseconds(std::int64_t amount, std::int64_t per_second) {
  const WideInteger rate = per_second;
  return saturated((static_cast<WideInteger>(amount) * 1'000'000'000 + rate - 1) / rate);
}

}  // namespace

Duration cost_of(const OpKind& kind, const std::vector<TensorLayout>& inputs,
                 const std::vector<TensorLayout>& outputs,
                 const std::vector<std::int64_t>& computed, const OpRates& rates) {
  if (kind.makes_view || outputs.empty()) return {};
  std::vector<Shape> shapes;
  std::int64_t bytes = 0;
  const auto add_bytes = [&](const TensorLayout& layout) {
    bytes = saturated_sum(bytes, element_bytes_of(layout));
  };
  for (const TensorLayout& input : inputs) {
    shapes.push_back(input.shape);
    add_bytes(input);
  }
  std::for_each(outputs.begin(), outputs.end(), add_bytes);
  return {std::max(nanoseconds(flops_of(kind, shapes, computed), rates.flops_per_second),
                   nanoseconds(bytes, rates.bytes_per_second))};
}

}  // namespace remat
