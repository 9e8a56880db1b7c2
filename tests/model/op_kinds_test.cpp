#include "model/op_kinds.hpp"

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace remat {
namespace {

/// The kinds whose output 0 has output 1 as a factor, which backward takes for a constant.
const std::set<std::string_view> picks = {"topk", "max", "max_pool2d_with_indices",
                                          "native_dropout", "dropout"};

}  // namespace

TEST_CASE("a plain op name has no namespace, overload or in-place underscore", "[model]") {
  const std::vector<std::pair<std::string_view, std::string_view>> rows = {
      {"mm", "mm"},
      {"aten.mm.default", "mm"},
      {"aten.add.Tensor", "add"},
      {"aten.add_.Tensor", "add"},
      {"add_", "add"},
      {"aten.relu_.default", "relu"},
      {"aten._softmax.default", "_softmax"},
      {"aten._unsafe_view.default", "_unsafe_view"},
      {"aten.native_layer_norm.default", "native_layer_norm"},
      {"aten.max_pool2d_with_indices.default", "max_pool2d_with_indices"},
      {"aten.sum.dim_IntList", "sum"},
      {"aten.split.Tensor", "split"},
      {"aten.mm", "mm"},
      {"hyper.fused_op_.out_", "fused_op"},
      {"aten.__and__.Tensor", "__and__"},
      {"__iand__", "__iand__"},
      {"_", "_"},
      {"", ""},
      {"aten.", ""},
      {"aten..default", ""},
  };
  for (const auto& [name, plain] : rows) {
    CAPTURE(name);
    CHECK(plain_op_name(name) == plain);
  }
}

TEST_CASE("an in-place name ends in one underscore before its overload", "[model]") {
  for (const std::string_view name :
       {"add_", "aten.add_.Tensor", "aten.relu_.default", "aten.uniform_.default", "aten.detach_",
        "aten._foreach_add_.List"}) {
    CAPTURE(name);
    CHECK(is_in_place_name(name));
  }
  for (const std::string_view name : {"add", "aten.add.Tensor", "aten.__and__.Tensor", "__iand__",
                                      "_softmax", "aten.add.out_", "_", "", "aten.", "aten._.x"}) {
    CAPTURE(name);
    CHECK_FALSE(is_in_place_name(name));
  }
}

TEST_CASE("a kind is found by its plain name and by a framework's", "[model]") {
  for (const OpKind& kind : op_kinds()) {
    const std::string name(kind.name);
    CAPTURE(name);
    CHECK(find_op_kind(name) == &kind);
    CHECK(find_op_kind("aten." + name + ".default") == &kind);
    CHECK(find_op_kind("aten." + name + "_.Tensor") == &kind);
    CHECK(find_op_kind(name + "_") == &kind);
  }
  CHECK(find_op_kind("frobnicate") == nullptr);
  CHECK(find_op_kind("") == nullptr);
  CHECK(find_op_kind("unknown") == nullptr);
  CHECK(find_op_kind("MM") == nullptr);
}

TEST_CASE("no two rows have one name", "[model]") {
  std::set<std::string_view> names;
  for (const OpKind& kind : op_kinds()) {
    CAPTURE(kind.name);
    CHECK(names.insert(kind.name).second);
    CHECK(plain_op_name(kind.name) == kind.name);
  }
  CHECK(names.size() == op_kinds().size());
}

TEST_CASE("the unknown kind is linear, differentiable and saves nothing", "[model]") {
  const OpKind& kind = unknown_op_kind();
  CHECK(kind.value.empty());
  CHECK(kind.saves.empty());
  CHECK(kind.form == ValueForm::polynomial);
  CHECK(kind.shape == ShapeRule::like_first);
  CHECK(kind.differentiable);
  CHECK_FALSE(kind.makes_view);
  CHECK_FALSE(kind.draws);
}

TEST_CASE("every row saves inputs before outputs, and none twice", "[model]") {
  for (const OpKind& kind : op_kinds()) {
    CAPTURE(kind.name);
    std::set<std::pair<SaveRule::What, std::uint8_t>> seen;
    bool has_output = false;
    for (const SaveRule& rule : kind.saves) {
      const bool is_output = rule.what == SaveRule::What::output;
      CHECK((is_output || !has_output));
      has_output |= is_output;
      CHECK(seen.insert({rule.what, rule.index}).second);
      CHECK(rule.index < Monomial::first_output);
    }
  }
}

TEST_CASE("every factor of a row's value is an input, or the output that the row saves",
          "[model]") {
  for (const OpKind& kind : op_kinds()) {
    CAPTURE(kind.name);
    bool has_output = false;
    for (const Monomial& monomial : kind.value) {
      CHECK(monomial.n_factors >= 1);
      CHECK(monomial.n_factors <= 3);
      for (std::size_t f = 0; f < monomial.n_factors; ++f) {
        if (monomial.factors[f] < Monomial::first_output) {
          CHECK(monomial.factors[f] < 3);
          continue;
        }
        has_output = true;
        CHECK(monomial.factors[f] == Monomial::first_output + 1);
      }
    }
    CHECK(has_output == (picks.count(kind.name) > 0));
  }
}

TEST_CASE("kinds without a node save nothing, and only kinds that draw are random", "[model]") {
  std::vector<std::string> drawing;
  for (const OpKind& kind : op_kinds()) {
    CAPTURE(kind.name);
    if (!kind.differentiable) CHECK(kind.saves.empty());
    if (kind.makes_view) CHECK((kind.saves.empty() && kind.value.empty()));
    if (kind.draws) drawing.emplace_back(kind.name);
  }
  CHECK(drawing == std::vector<std::string>{"native_dropout", "dropout", "rand", "randn",
                                            "bernoulli", "uniform", "normal"});
}

TEST_CASE("products save what torch packs, in the order of its parameter names", "[model]") {
  for (const std::string_view name : {"mm", "bmm", "matmul", "mul", "div"}) {
    CAPTURE(name);
    const OpKind* kind = find_op_kind(name);
    REQUIRE(kind != nullptr);
    REQUIRE(kind->saves.size() == 2);
    CHECK(kind->saves[0].index == 1);
    CHECK(kind->saves[0].if_grad_of == 0);
    CHECK(kind->saves[1].index == 0);
    CHECK(kind->saves[1].if_grad_of == 1);
  }
  const OpKind* addmm = find_op_kind("addmm");
  REQUIRE(addmm->saves.size() == 2);
  CHECK(addmm->saves[0].index == 1);
  CHECK(addmm->saves[0].if_grad_of == 2);
  CHECK(addmm->saves[1].index == 2);
  CHECK(addmm->saves[1].if_grad_of == 1);
}

}  // namespace remat
