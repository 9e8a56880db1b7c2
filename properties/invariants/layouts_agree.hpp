#pragma once

#include "traces/trace.hpp"

namespace remat {

enum class CompareOffset : bool { no, yes };

/// F2: dtype, shape, stride, offset and device are equal where both sides recorded them.
bool layouts_agree(const Layout& a, const Layout& b, CompareOffset offset);

}  // namespace remat
