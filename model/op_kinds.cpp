#include "model/op_kinds.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace remat {
namespace {

using What = SaveRule::What;

constexpr SaveRule in(std::uint8_t index, std::int8_t if_grad_of = SaveRule::always) {
  return {What::input, index, if_grad_of};
}
constexpr SaveRule out(std::uint8_t index) {
  return {What::output, index, SaveRule::always};
}
constexpr Monomial of(std::uint8_t a) {
  return {1, {a, 0, 0}};
}
constexpr Monomial of(std::uint8_t a, std::uint8_t b) {
  return {2, {a, b, 0}};
}
constexpr Monomial of(std::uint8_t a, std::uint8_t b, std::uint8_t c) {
  return {3, {a, b, c}};
}
constexpr std::uint8_t out1 = Monomial::first_output + 1;

// Values. An input that a statement lacks counts as 1.
constexpr std::array product = {of(0, 1)};
constexpr std::array square = {of(0), of(0, 0)};
constexpr std::array biased_product = {of(0), of(1, 2)};
constexpr std::array normalized = {of(0, 0, 1), of(2)};
constexpr std::array scaled = {of(0, 0, 1)};
constexpr std::array attention = {of(0, 1, 2), of(2)};
constexpr std::array convolved = {of(0, 1), of(2)};
constexpr std::array chosen = {of(0, 1), of(0, 2)};
constexpr std::array placed = {of(0), of(1, 2)};
constexpr std::array picked_by_output = {of(0, out1)};

// Saves. Inputs sorted by the C++ parameter's name, then outputs (R2): `mat2` before `self`, `mat1`
// before `mat2`.
constexpr std::array both_factors = {in(1, 0), in(0, 1)};
constexpr std::array both_matrices = {in(1, 2), in(2, 1)};
constexpr std::array first_input = {in(0)};
constexpr std::array first_output = {out(0)};
constexpr std::array second_output = {out(1)};
constexpr std::array index_input = {in(1, 0)};
constexpr std::array condition_input = {in(0)};
constexpr std::array mask_input = {in(1)};
constexpr std::array source_saves = {in(1, 2), in(2, 2)};
constexpr std::array layer_norm_saves = {in(2), in(0), in(1), out(1), out(2)};
constexpr std::array batch_norm_saves = {in(0), in(3), in(4), in(1), out(1), out(2)};
constexpr std::array rms_norm_saves = {in(0), in(1)};
constexpr std::array attention_saves = {in(1), in(0), in(2), out(1), out(0)};
constexpr std::array convolution_saves = {in(0), in(1)};
constexpr std::array pool_saves = {in(0), out(1)};

constexpr OpKind linear(std::string_view name, ShapeRule shape = ShapeRule::like_first) {
  return {.name = name, .value = {}, .saves = {}, .shape = shape};
}
constexpr OpKind unary(std::string_view name) {
  return {.name = name, .value = square, .saves = first_input};
}
constexpr OpKind by_output(std::string_view name) {
  return {.name = name, .value = {}, .saves = first_output, .form = ValueForm::from_output};
}
constexpr OpKind view(std::string_view name, ShapeRule shape = ShapeRule::like_first) {
  return {.name = name, .value = {}, .saves = {}, .shape = shape, .makes_view = true};
}
constexpr OpKind views(std::string_view name) {
  return {.name = name, .value = {}, .saves = {}, .makes_view = true, .outputs_are_parts = true};
}
constexpr OpKind matmul(std::string_view name) {
  return {.name = name,
          .value = product,
          .saves = both_factors,
          .shape = ShapeRule::matmul,
          .is_matmul = true};
}
constexpr OpKind collective(std::string_view name, Exchange exchange) {
  return {.name = name, .value = {}, .saves = {}, .exchange = exchange};
}
constexpr OpKind no_node(std::string_view name) {
  return {.name = name, .value = {}, .saves = {}, .differentiable = false};
}
constexpr OpKind random(std::string_view name) {
  return {.name = name, .value = {}, .saves = {}, .differentiable = false, .draws = true};
}
constexpr OpKind with(std::string_view name, std::span<const Monomial> value,
                      std::span<const SaveRule> saves, ShapeRule shape = ShapeRule::like_first) {
  return {.name = name, .value = value, .saves = saves, .shape = shape};
}
constexpr OpKind picking(std::string_view name, std::span<const SaveRule> saves) {
  return {.name = name, .value = picked_by_output, .saves = saves, .beside = Beside::indices};
}
constexpr OpKind dropping(std::string_view name) {
  return {.name = name,
          .value = picked_by_output,
          .saves = second_output,
          .beside = Beside::mask,
          .draws = true};
}

constexpr std::array table = {
    matmul("mm"),
    matmul("bmm"),
    matmul("matmul"),
    matmul("grouped_matmul"),
    OpKind{.name = "addmm",
           .value = biased_product,
           .saves = both_matrices,
           .shape = ShapeRule::addmm,
           .is_matmul = true},
    with("mul", product, both_factors, ShapeRule::broadcast),
    with("div", product, both_factors, ShapeRule::broadcast),
    unary("sin"),
    unary("cos"),
    unary("gelu"),
    unary("pow"),
    unary("abs"),
    unary("clamp"),
    unary("silu"),
    unary("softplus"),
    unary("linalg_vector_norm"),
    by_output("tanh"),
    by_output("relu"),
    by_output("_softmax"),
    by_output("softmax"),
    by_output("exp"),
    by_output("sqrt"),
    by_output("sigmoid"),
    by_output("_log_softmax"),
    picking("topk", second_output),
    picking("max", second_output),
    picking("max_pool2d_with_indices", pool_saves),
    with("native_layer_norm", normalized, layer_norm_saves),
    with("layernorm", normalized, layer_norm_saves),
    OpKind{.name = "native_batch_norm",
           .value = normalized,
           .saves = batch_norm_saves,
           .beside = Beside::channel_statistics},
    with("rmsnorm", scaled, rms_norm_saves),
    with("_scaled_dot_product_flash_attention_for_cpu", attention, attention_saves),
    with("attention", attention, attention_saves),
    with("convolution", convolved, convolution_saves),
    with("index", product, index_input),
    with("index_select", product, index_input),
    with("gather", product, index_input),
    with("embedding", product, mask_input, ShapeRule::embedding),
    with("index_add", placed, source_saves),
    with("masked_fill", product, mask_input),
    with("where", chosen, condition_input),
    dropping("native_dropout"),
    dropping("dropout"),
    linear("add", ShapeRule::broadcast),
    linear("sub", ShapeRule::broadcast),
    linear("sum", ShapeRule::scalar),
    linear("mean", ShapeRule::scalar),
    linear("cat", ShapeRule::concatenate),
    linear("stack"),
    linear("clone"),
    linear("neg"),
    linear("cumsum"),
    linear("scale"),
    linear("cast"),
    linear("contiguous"),
    linear("_to_copy"),
    view("t", ShapeRule::transpose),
    view("transpose", ShapeRule::transpose),
    view("view"),
    view("_unsafe_view"),
    view("expand"),
    view("permute"),
    view("select"),
    view("slice"),
    view("unsqueeze"),
    view("squeeze"),
    view("alias"),
    view("as_strided"),
    views("unbind"),
    views("split"),
    views("chunk"),
    collective("all_reduce", Exchange::all_reduce),
    collective("all_gather", Exchange::all_gather),
    collective("reduce_scatter", Exchange::reduce_scatter),
    collective("all_to_all", Exchange::all_to_all),
    OpKind{.name = "view_dtype",  // the same bytes read as another type: no gradient goes through
           .value = {},
           .saves = {},
           .makes_view = true,
           .differentiable = false},
    no_node("detach"),
    no_node("empty"),
    no_node("empty_like"),
    no_node("zeros_like"),
    no_node("full"),
    no_node("ones"),
    no_node("zeros"),
    no_node("gt"),
    no_node("floor_divide"),
    OpKind{.name = "sort",
           .value = {},
           .saves = {},
           .beside = Beside::indices,
           .differentiable = false},
    no_node("argsort"),
    no_node("bincount"),
    no_node("ones_like"),
    OpKind{.name = "record_stream",
           .value = {},
           .saves = {},
           .differentiable = false,
           .preserves_value = true},
    random("rand"),
    random("randn"),
    random("bernoulli"),
    random("uniform"),
    random("normal"),
};

constexpr OpKind unknown{.name = "unknown", .value = {}, .saves = {}};

/// "aten.add_.Tensor" → "add_".
std::string_view without_namespace(std::string_view name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return name;
  name.remove_prefix(dot + 1);
  return name.substr(0, name.find('.'));
}

}  // namespace

std::span<const OpKind> op_kinds() {
  return table;
}

const OpKind& unknown_op_kind() {
  return unknown;
}

std::string_view plain_op_name(std::string_view name) {
  name = without_namespace(name);
  if (is_in_place_name(name)) name.remove_suffix(1);
  return name;
}

bool is_collective_name(std::string_view name) {
  const std::string_view space = name.substr(0, name.find_first_of(".:"));
  if (space.size() < name.size() && (space == "c10d" || space == "_c10d_functional")) return true;
  const OpKind* kind = find_op_kind(name);
  return kind != nullptr && kind->exchange != Exchange::none;
}

bool is_in_place_name(std::string_view name) {
  name = without_namespace(name);
  return name.size() > 1 && name.ends_with('_') && !name.ends_with("__");
}

const OpKind* find_op_kind(std::string_view name) {
  const std::string_view plain = plain_op_name(name);
  const auto* const found = std::find_if(table.begin(), table.end(),
                                         [&](const OpKind& kind) { return kind.name == plain; });
  return found == table.end() ? nullptr : found;
}

}  // namespace remat
