#pragma once

#include <cstdint>
#include <vector>

#include "model/op_kinds.hpp"
#include "model/tensor_layout.hpp"
#include "model/units.hpp"

namespace remat {

/// How fast the machine is that ops are given a cost for.
struct OpRates {
  std::int64_t flops_per_second = 100'000'000'000'000;
  std::int64_t bytes_per_second = 1'000'000'000'000;
};

/// The longer of arithmetic and memory traffic, in nanoseconds, rounded up; a view costs nothing.
/// `computed` is the shape of the first output as the kernel computes it.
Duration cost_of(const OpKind& kind, const std::vector<TensorLayout>& inputs,
                 const std::vector<TensorLayout>& outputs,
                 const std::vector<std::int64_t>& computed, const OpRates& rates);

}  // namespace remat
