#include "model/op_values.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/op_kinds.hpp"
#include "model/random_bits.hpp"

namespace remat {
namespace {

constexpr std::uint64_t seed = 20;
constexpr std::size_t n_outputs = 3;
const Ring draw(77);

std::size_t n_inputs_of(const OpKind& kind) {
  std::size_t n = 1;
  for (const Monomial& monomial : kind.value) {
    for (std::size_t f = 0; f < monomial.n_factors; ++f) {
      if (monomial.factors[f] < Monomial::first_output)
        n = std::max<std::size_t>(n, monomial.factors[f] + 1U);
    }
  }
  for (const SaveRule& rule : kind.saves)
    if (rule.what == SaveRule::What::input) n = std::max<std::size_t>(n, rule.index + 1U);
  return kind.value.empty() && n == 1 ? 2 : n;
}

std::vector<Ring> some_inputs(std::size_t n, std::uint64_t counter) {
  std::vector<Ring> inputs;
  for (std::size_t i = 0; i < n; ++i)
    inputs.push_back(constant_of(random_bits(seed, i, counter)));
  return inputs;
}

std::vector<Ring> outputs_of(const OpKind& kind, const std::vector<Ring>& inputs) {
  std::vector<Ring> outputs(n_outputs);
  OpValues(kind, seed).evaluate(inputs, draw, outputs);
  return outputs;
}

bool uses_output(const OpKind& kind) {
  for (const Monomial& monomial : kind.value) {
    for (std::size_t f = 0; f < monomial.n_factors; ++f)
      if (monomial.factors[f] >= Monomial::first_output) return true;
  }
  return false;
}

/// The constant of monomial m, from what is promised of constants: a function of (seed, place).
Ring coefficient(std::size_t m) {
  return constant_of(random_bits(seed, 0, m));
}

/// Output 0 by hand, with every output that is a factor held at `held`.
Ring value_with_held(const OpKind& kind, const std::vector<Ring>& inputs,
                     const std::vector<Ring>& held) {
  Ring sum;
  for (std::size_t m = 0; m < kind.value.size(); ++m) {
    Ring product = coefficient(m);
    for (std::size_t f = 0; f < kind.value[m].n_factors; ++f) {
      const std::uint8_t factor = kind.value[m].factors[f];
      product *=
          factor < Monomial::first_output ? inputs[factor] : held[factor - Monomial::first_output];
    }
    sum += product;
  }
  return sum;
}

/// The derivative at 0 of the polynomial through values[t] at t = 0, 1, …, exact in the field:
/// f'(0) = Σ over t ≥ 1 of (-1)^(t+1)/t · Δ^t f(0).
Ring derivative_at_0(std::vector<Ring> values) {
  Ring sum;
  for (std::uint64_t t = 1; !values.empty(); ++t) {
    for (std::size_t i = 0; i + 1 < values.size(); ++i)
      values[i] = values[i + 1] - values[i];
    values.pop_back();
    if (values.empty()) break;
    const Ring part = values[0] * inverse(Ring(t));
    sum = t % 2 == 1 ? sum + part : sum - part;
  }
  return sum;
}

/// ∂ output / ∂ input by interpolation at more points than any kind's degree of 17 asks for.
Ring true_derivative(const OpKind& kind, std::size_t output, std::size_t input,
                     std::vector<Ring> inputs) {
  const std::vector<Ring> held = outputs_of(kind, inputs);
  std::vector<Ring> values;
  for (std::uint64_t t = 0; t < 22; ++t) {
    values.push_back(output == 0 && uses_output(kind) ? value_with_held(kind, inputs, held)
                                                      : outputs_of(kind, inputs)[output]);
    inputs[input] += Ring(1);
  }
  return derivative_at_0(values);
}

/// What the row saves where only `input` requires grad.
OpValues::Saved saved_for(const OpKind& kind, std::size_t input, const std::vector<Ring>& inputs,
                          const std::vector<Ring>& outputs) {
  return [&kind, input, inputs, outputs](std::uint8_t factor) -> std::optional<Ring> {
    for (const SaveRule& rule : kind.saves) {
      if (rule.if_grad_of >= 0 && static_cast<std::size_t>(rule.if_grad_of) != input) continue;
      const bool is_input = rule.what == SaveRule::What::input;
      if (is_input && factor == rule.index) return inputs[rule.index];
      if (!is_input && factor == rule.index + Monomial::first_output) return outputs[rule.index];
    }
    return std::nullopt;
  };
}

/// Inputs that choose and are no numbers: indices, masks, conditions. Nothing has a gradient to
/// them, and so the rows save nothing for it.
bool chooses(const OpKind& kind, std::size_t input) {
  static const std::set<std::pair<std::string_view, std::size_t>> choosing = {
      {"index", 1},       {"index_select", 1}, {"gather", 1}, {"embedding", 1},
      {"masked_fill", 1}, {"index_add", 1},    {"where", 0}};
  return choosing.count({kind.name, input}) > 0;
}

}  // namespace

TEST_CASE("interpolation gives the derivative of a polynomial exactly", "[model]") {
  std::vector<Ring> values;  // 3·x^5 + x at x = 2: derivative 15·16 + 1 = 241
  for (std::uint64_t t = 0; t < 8; ++t)
    values.push_back(Ring(3) * power(Ring(2 + t), 5) + Ring(2 + t));
  CHECK(derivative_at_0(values) == Ring(241));
}

TEST_CASE("what a row saves for one input is enough for that input's derivative, and right",
          "[model]") {
  for (const OpKind& kind : op_kinds()) {
    if (!kind.differentiable) continue;
    const std::size_t n = n_inputs_of(kind);
    for (std::size_t input = 0; input < n; ++input) {
      for (std::uint64_t point = 0; point < 3; ++point) {
        CAPTURE(kind.name, input, point);
        const std::vector<Ring> inputs = some_inputs(n, point);
        const std::vector<Ring> outputs = outputs_of(kind, inputs);
        const auto found =
            OpValues(kind, seed).derivative(0, input, n, saved_for(kind, input, inputs, outputs));
        CHECK(found.has_value() != chooses(kind, input));
        if (!found) continue;
        CHECK(*found == true_derivative(kind, 0, input, inputs));
      }
    }
  }
}

TEST_CASE("an output after the first has a derivative only where outputs are parts", "[model]") {
  for (const OpKind& kind : op_kinds()) {
    if (!kind.differentiable) continue;
    const std::size_t n = n_inputs_of(kind);
    const std::vector<Ring> inputs = some_inputs(n, 0);
    for (std::size_t output = 1; output < n_outputs; ++output) {
      for (std::size_t input = 0; input < n; ++input) {
        CAPTURE(kind.name, output, input);
        const auto found = OpValues(kind, seed).derivative(output, input, n, [](std::uint8_t) {
          return std::nullopt;
        });
        REQUIRE(found.has_value());
        CHECK(*found ==
              (kind.outputs_are_parts ? true_derivative(kind, output, input, inputs) : Ring(0)));
      }
    }
  }
}

TEST_CASE("a kind that saves something cannot do without all of it", "[model]") {
  const OpValues::Saved nothing = [](std::uint8_t) { return std::nullopt; };
  for (const std::string_view name : {"mm", "mul", "sin", "tanh", "topk", "native_dropout",
                                      "native_layer_norm", "attention", "where", "index"}) {
    CAPTURE(name);
    const OpKind* kind = find_op_kind(name);
    REQUIRE(kind != nullptr);
    CHECK_FALSE(OpValues(*kind, seed).derivative(0, 0, n_inputs_of(*kind), nothing));
  }
  CHECK(OpValues(*find_op_kind("add"), seed).derivative(0, 0, 2, nothing) == coefficient(0));
}

TEST_CASE("an input that a product lacks counts as 1 in value and derivative", "[model]") {
  const OpValues values(*find_op_kind("mul"), seed);
  std::vector<Ring> outputs(1);
  values.evaluate(std::vector<Ring>{Ring(5)}, Ring(0), outputs);
  CHECK(outputs[0] == coefficient(0) * Ring(5));
  const auto nothing = [](std::uint8_t) -> std::optional<Ring> { return std::nullopt; };
  CHECK(values.derivative(0, 0, 1, nothing) == coefficient(0));
}

TEST_CASE("saved-output kinds find their line from the output", "[model]") {
  for (const std::string_view name : {"tanh", "relu", "exp", "_softmax"}) {
    CAPTURE(name);
    const OpKind* kind = find_op_kind(name);
    const std::vector<Ring> inputs = some_inputs(1, 9);
    const std::vector<Ring> outputs = outputs_of(*kind, inputs);
    const OpValues values(*kind, seed);
    const auto right = [&](std::uint8_t) { return std::optional(outputs[0]); };
    const auto wrong = [&](std::uint8_t) { return std::optional(outputs[0] + Ring(1)); };
    CHECK(values.derivative(0, 0, 1, right) == true_derivative(*kind, 0, 0, inputs));
    CHECK(values.derivative(0, 0, 1, wrong) != values.derivative(0, 0, 1, right));
  }
}

TEST_CASE("no two kinds with constants of their own give equal values for equal inputs",
          "[model]") {
  std::set<std::uint64_t> values;
  std::uint64_t row = 0;
  for (const OpKind& kind : op_kinds()) {
    CAPTURE(kind.name);
    std::vector<Ring> outputs(n_outputs);
    OpValues(kind, mixed_bits(++row)).evaluate(some_inputs(n_inputs_of(kind), 0), Ring(0), outputs);
    for (const Ring output : outputs)
      CHECK(values.insert(output.value()).second);
  }
  CHECK(values.size() == n_outputs * op_kinds().size());
}

TEST_CASE("a value is a pure function of kind, seed and inputs", "[model]") {
  for (const OpKind& kind : op_kinds()) {
    CAPTURE(kind.name);
    const std::vector<Ring> inputs = some_inputs(n_inputs_of(kind), 1);
    CHECK(outputs_of(kind, inputs) == outputs_of(kind, inputs));
    std::vector<Ring> other(n_outputs);
    OpValues(kind, seed + 1).evaluate(inputs, draw, other);
    CHECK(other[0] != outputs_of(kind, inputs)[0]);
    CHECK(other[1] != outputs_of(kind, inputs)[1]);
  }
}

TEST_CASE("a draw changes every output of the kinds that draw", "[model]") {
  for (const OpKind& kind : op_kinds()) {
    if (!kind.draws) continue;
    CAPTURE(kind.name);
    const std::vector<Ring> inputs = some_inputs(1, 2);
    std::vector<Ring> first(2);
    std::vector<Ring> second(2);
    OpValues(kind, seed).evaluate(inputs, Ring(1), first);
    OpValues(kind, seed).evaluate(inputs, Ring(2), second);
    CHECK(first[0] != second[0]);
    CHECK(first[1] != second[1]);
  }
}

TEST_CASE("an op without inputs or outputs has a value all the same", "[model]") {
  for (const OpKind& kind : op_kinds()) {
    CAPTURE(kind.name);
    std::vector<Ring> none;
    OpValues(kind, seed).evaluate({}, Ring(0), none);
    std::vector<Ring> one(1);
    OpValues(kind, seed).evaluate({}, Ring(0), one);
    if (kind.form == ValueForm::polynomial) CHECK(one[0] != Ring(0));
  }
}

}  // namespace remat
