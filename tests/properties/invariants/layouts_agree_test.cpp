#include "properties/invariants/layouts_agree.hpp"

#include <catch2/catch.hpp>

using namespace remat;

namespace {

Layout matrix() {
  Layout layout;
  layout.dtype = NameId(1);
  layout.shape = {4, 8};
  layout.stride = {8, 1};
  layout.has_shape = layout.has_stride = true;
  layout.offset = 0;
  layout.bytes = 128;
  layout.device = NameId(2);
  return layout;
}

/// Does the matrix agree with one that was changed like this, and the other way round?
template <typename Change>
bool agrees_after(Change change, CompareOffset offset = CompareOffset::yes) {
  Layout changed = matrix();
  change(changed);
  const bool agrees = layouts_agree(matrix(), changed, offset);
  CHECK(layouts_agree(changed, matrix(), offset) == agrees);
  return agrees;
}

}  // namespace

TEST_CASE("layouts agree when each part that both recorded is equal", "[invariants]") {
  CHECK(agrees_after([](Layout&) {}));
  CHECK_FALSE(agrees_after([](Layout& layout) { layout.dtype = NameId(3); }));
  CHECK_FALSE(agrees_after([](Layout& layout) { layout.shape = {8, 4}; }));
  CHECK_FALSE(agrees_after([](Layout& layout) { layout.shape = {4, 8, 1}; }));
  CHECK_FALSE(agrees_after([](Layout& layout) { layout.shape = {}; }));  // a scalar
  CHECK_FALSE(agrees_after([](Layout& layout) { layout.stride = {1, 4}; }));
  CHECK_FALSE(agrees_after([](Layout& layout) { layout.offset = 1; }));
  CHECK_FALSE(agrees_after([](Layout& layout) { layout.device = NameId(3); }));
}

TEST_CASE("layouts agree in what one of them did not record", "[invariants]") {
  CHECK(agrees_after([](Layout& layout) { layout.dtype.reset(); }));
  CHECK(agrees_after([](Layout& layout) {
    layout.has_shape = false;
    layout.shape = {};
  }));
  CHECK(agrees_after([](Layout& layout) {
    layout.has_stride = false;
    layout.stride = {};
  }));
  CHECK(agrees_after([](Layout& layout) { layout.offset.reset(); }));
  CHECK(agrees_after([](Layout& layout) { layout.device.reset(); }));
  CHECK(layouts_agree(Layout(), matrix(), CompareOffset::yes));
}

TEST_CASE("layouts agree whatever their bytes: a view has its base's", "[invariants]") {
  CHECK(agrees_after([](Layout& layout) { layout.bytes = 4096; }));
}

TEST_CASE("layouts agree without regard to the offset where it is not asked for", "[invariants]") {
  CHECK(agrees_after([](Layout& layout) { layout.offset = 1; }, CompareOffset::no));
  CHECK_FALSE(agrees_after([](Layout& layout) { layout.shape = {8, 4}; }, CompareOffset::no));
}
