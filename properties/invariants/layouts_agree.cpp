#include "properties/invariants/layouts_agree.hpp"

namespace remat {
namespace {

template <typename Value>
bool agree(const std::optional<Value>& a, const std::optional<Value>& b) {
  return !a || !b || *a == *b;
}

}  // namespace

bool layouts_agree(const Layout& a, const Layout& b, CompareOffset offset) {
  if (!agree(a.dtype, b.dtype)) return false;
  if (!agree(a.device, b.device)) return false;
  if (a.has_shape && b.has_shape && a.shape != b.shape) return false;
  if (a.has_stride && b.has_stride && a.stride != b.stride) return false;
  return offset == CompareOffset::no || agree(a.offset, b.offset);
}

}  // namespace remat
