#include "model/tensor_layout.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace remat {
namespace {

using Numbers = std::vector<std::int64_t>;

TensorLayout layout(std::string dtype, Numbers shape, Numbers stride, std::int64_t offset) {
  return {std::move(dtype), std::move(shape), std::move(stride), offset};
}

}  // namespace

TEST_CASE("dense strides are row-major", "[model]") {
  CHECK(dense_strides({}).empty());
  CHECK(dense_strides({7}) == Numbers{1});
  CHECK(dense_strides({2, 3}) == Numbers{3, 1});
  CHECK(dense_strides({2, 3, 4, 5}) == Numbers{60, 20, 5, 1});
  CHECK(dense_strides({1, 1, 1}) == Numbers{1, 1, 1});
}

TEST_CASE("dense strides count an empty dimension as 1 and saturate", "[model]") {
  CHECK(dense_strides({2, 0, 4}) == Numbers{4, 4, 1});
  CHECK(dense_strides({0}) == Numbers{1});
  CHECK(dense_strides({2, INT64_MAX, 2}) == Numbers{INT64_MAX, 2, 1});
  CHECK(dense_strides({9, 9, INT64_MAX, INT64_MAX}) == Numbers{INT64_MAX, INT64_MAX, INT64_MAX, 1});
}

TEST_CASE("an element count is the product of the extents", "[model]") {
  CHECK(element_count({}) == 1);
  CHECK(element_count({5}) == 5);
  CHECK(element_count({2, 3, 4}) == 24);
  CHECK(element_count({2, 0, 4}) == 0);
  CHECK(element_count({0}) == 0);
}

TEST_CASE("an element count saturates at the largest number", "[model]") {
  CHECK(element_count({INT64_MAX}) == INT64_MAX);
  CHECK(element_count({INT64_MAX, 1}) == INT64_MAX);
  CHECK(element_count({INT64_MAX, 2}) == INT64_MAX);
  CHECK(element_count({std::int64_t{1} << 32, std::int64_t{1} << 31}) == INT64_MAX);
  CHECK(element_count({std::int64_t{1} << 32, std::int64_t{1} << 30}) == std::int64_t{1} << 62);
}

TEST_CASE("an element's bytes follow from the width in its dtype's name", "[model]") {
  const std::vector<std::pair<std::string_view, std::int64_t>> rows = {
      {"f64", 8},    {"i64", 8},    {"c64", 8}, {"f32", 4}, {"i32", 4},  {"bf16", 2},
      {"f16", 2},    {"i16", 2},    {"i8", 1},  {"u8", 1},  {"bool", 1}, {"f8", 1},
      {"f8e4m3", 1}, {"f8e5m2", 1}, {"odd", 4}, {"", 4}};
  for (const auto& [dtype, bytes] : rows) {
    CAPTURE(dtype);
    CHECK(element_bytes(dtype) == bytes);
  }
}

TEST_CASE("floating dtypes are those that a gradient can have", "[model]") {
  for (const std::string_view dtype : {"f64", "f32", "f16", "bf16", "f8e4m3", "c64"}) {
    CAPTURE(dtype);
    CHECK(is_floating(dtype));
  }
  for (const std::string_view dtype : {"i64", "i32", "i8", "u8", "bool", ""}) {
    CAPTURE(dtype);
    CHECK_FALSE(is_floating(dtype));
  }
}

TEST_CASE("equal layouts have equal constants", "[model]") {
  CHECK(layout_constant(layout("f32", {2, 3}, {3, 1}, 0)) ==
        layout_constant(layout("f32", {2, 3}, {3, 1}, 0)));
  CHECK(layout_constant({}) == layout_constant({}));
}

TEST_CASE("layouts that differ anywhere have different constants, none of them 0", "[model]") {
  const std::vector<TensorLayout> layouts = {layout("f32", {2, 3}, {3, 1}, 0),
                                             layout("bf16", {2, 3}, {3, 1}, 0),
                                             layout("f32", {3, 2}, {3, 1}, 0),
                                             layout("f32", {2, 3}, {1, 2}, 0),
                                             layout("f32", {2, 3}, {3, 1}, 1),
                                             layout("f32", {2, 3}, {3, 1}, -1),
                                             layout("f32", {6}, {1}, 0),
                                             layout("f32", {6, 1}, {}, 0),
                                             layout("f32", {}, {6, 1}, 0),
                                             layout("f32", {2, 3, 3}, {1}, 0),
                                             layout("f32", {2}, {3, 3, 1}, 0),
                                             layout("f32", {}, {}, 0),
                                             layout("f32", {0}, {1}, 0),
                                             layout("", {}, {}, 0),
                                             layout("f", {}, {}, 0),
                                             layout("f32", {1}, {1}, 0),
                                             layout("f32", {INT64_MAX}, {1}, 0)};
  std::set<std::uint64_t> constants;
  for (const TensorLayout& each : layouts) {
    CHECK(layout_constant(each) != Ring(0));
    CHECK(constants.insert(layout_constant(each).value()).second);
  }
  CHECK(constants.size() == layouts.size());
}

TEST_CASE("the constants of many shapes are all different", "[model]") {
  std::set<std::uint64_t> constants;
  for (std::int64_t rows = 0; rows < 40; ++rows) {
    for (std::int64_t columns = 0; columns < 40; ++columns) {
      for (std::int64_t offset = 0; offset < 4; ++offset) {
        const Numbers shape = {rows, columns};
        constants.insert(layout_constant(layout("f32", shape, {columns, 1}, offset)).value());
      }
    }
  }
  CHECK(constants.size() == std::size_t{40} * 40 * 4);
}

}  // namespace remat
