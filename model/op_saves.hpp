#pragma once

#include <functional>
#include <vector>

#include "model/program.hpp"

namespace remat {

/// What the op saves for backward by its kind's row, given which of its inputs require grad. In the
/// order packed. A product with a Python number has one tensor and saves nothing (observed-torch.md
/// §8 R12).
std::vector<Save> saves_by_table(const Program& program, const OpStatement& op);
/// The same where a run knows better than the program what requires grad.
std::vector<Save> saves_by_table(const OpStatement& op,
                                 const std::function<bool(ValueId)>& requires_grad);

}  // namespace remat
