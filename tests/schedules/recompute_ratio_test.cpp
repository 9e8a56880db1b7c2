#include "schedules/recompute_ratio.hpp"

#include <catch2/catch.hpp>
#include <cstddef>

namespace remat {
namespace {

/// Of so many layers of a model, how many are checkpointed; those are the first.
std::size_t n_checkpointed(const RecomputeRatio& ratio, std::size_t n_layers,
                           const char* owner = "") {
  std::size_t n = 0;
  while (n < n_layers && ratio.includes(owner, {.index = n, .count = n_layers}))
    ++n;
  for (std::size_t i = n; i < n_layers; ++i)
    CHECK_FALSE(ratio.includes(owner, {.index = i, .count = n_layers}));
  CHECK(ratio.includes_any(owner, n_layers) == (n > 0));
  return n;
}

}  // namespace

TEST_CASE("a part of the layers is checkpointed: the first, and what is left over is not",
          "[schedules]") {
  struct Row {
    double ratio;
    std::size_t n_layers;
    std::size_t n_checkpointed;
  };
  // The last three are int(layers * ratio) of Python: the product is a double.
  for (const Row& row : {Row{1, 7, 7}, Row{0, 7, 0}, Row{0.5, 8, 4}, Row{0.5, 7, 3}, Row{0.9, 1, 0},
                         Row{0.29, 100, 28}, Row{0.3, 10, 3}, Row{0.7, 10, 7}}) {
    CAPTURE(row.ratio, row.n_layers);
    CHECK(n_checkpointed({.of_models = row.ratio}, row.n_layers) == row.n_checkpointed);
  }
}

TEST_CASE("a model may have a ratio of its own", "[schedules]") {
  const RecomputeRatio ratio = {.of_models = 0.5, .of_model = {{"tower", 0.25}}};
  CHECK(n_checkpointed(ratio, 8) == 4);
  CHECK(n_checkpointed(ratio, 8, "head") == 4);
  CHECK(n_checkpointed(ratio, 8, "tower") == 2);
}

}  // namespace remat
