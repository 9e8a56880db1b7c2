#include "model/op_values.hpp"

#include "model/random_bits.hpp"

namespace remat {
namespace {

/// The exponent of kinds that save their output, and its inverse modulo p − 1.
constexpr std::uint64_t output_power = 17;

constexpr std::uint64_t inverse_exponent(std::uint64_t exponent) {
  // Extended Euclid over p − 1; every number in it stays within ±p.
  constexpr auto order = static_cast<std::int64_t>(Ring::modulus - 1);
  std::int64_t r0 = order;
  auto r1 = static_cast<std::int64_t>(exponent);
  std::int64_t t0 = 0;
  std::int64_t t1 = 1;
  while (r1 != 0) {
    const std::int64_t quotient = r0 / r1;
    const std::int64_t r2 = r0 - quotient * r1;
    const std::int64_t t2 = t0 - quotient * t1;
    r0 = r1;
    r1 = r2;
    t0 = t1;
    t1 = t2;
  }
  return static_cast<std::uint64_t>(t0 < 0 ? t0 + order : t0);
}
constexpr std::uint64_t output_root = inverse_exponent(output_power);
static_assert(power(power(Ring(12345), output_power), output_root) == Ring(12345));

// Places of constants that are no monomial's.
constexpr std::size_t scale_place = 100;
constexpr std::size_t shift_place = 101;

bool is_output(std::uint8_t factor) {
  return factor >= Monomial::first_output;
}

}  // namespace

std::uint64_t op_seed(std::string_view kind, std::string_view attributes) {
  constexpr std::uint64_t stream = 0x6f70ULL;
  std::uint64_t bits = stream;
  for (const std::string_view text : {kind, attributes}) {
    for (const char letter : text)
      bits = mixed_bits(bits * 0x9e3779b97f4a7c15ULL + static_cast<unsigned char>(letter) + 1);
    bits = mixed_bits(bits + 1);
  }
  return bits;
}

Ring OpValues::coefficient(std::size_t output, std::size_t place) const {
  return constant_of(random_bits(seed_, output, place));
}

Ring OpValues::linear(std::size_t output, std::span<const Ring> inputs) const {
  if (inputs.empty()) return coefficient(output, shift_place);
  Ring sum;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    sum += coefficient(output, i) * inputs[i];
  return sum;
}

void OpValues::evaluate(std::span<const Ring> inputs, Ring draw, std::span<Ring> outputs) const {
  for (std::size_t j = outputs.size(); j-- > 1;)
    outputs[j] = linear(j, inputs) + draw;
  if (outputs.empty()) return;
  if (kind_->form == ValueForm::from_output) {
    outputs[0] = coefficient(0, scale_place) * power(linear(0, inputs), output_power) +
                 coefficient(0, shift_place);
    return;
  }
  if (kind_->value.empty()) {
    outputs[0] = linear(0, inputs) + draw;
    return;
  }
  Ring sum;
  for (std::size_t m = 0; m < kind_->value.size(); ++m) {
    Ring product = coefficient(0, m);
    const Monomial& monomial = kind_->value[m];
    for (std::size_t f = 0; f < monomial.n_factors; ++f) {
      const std::uint8_t factor = monomial.factors[f];
      const std::size_t output = factor - std::size_t{Monomial::first_output};
      if (is_output(factor)) {
        if (output < outputs.size()) product *= outputs[output];
      } else if (factor < inputs.size()) {
        product *= inputs[factor];
      }
    }
    sum += product;
  }
  outputs[0] = sum;
}

std::optional<Ring> OpValues::monomial_derivative(const Monomial& monomial, std::size_t input,
                                                  std::size_t n_inputs, const Saved& saved) const {
  Ring sum;
  for (std::size_t p = 0; p < monomial.n_factors; ++p) {
    if (monomial.factors[p] != input) continue;
    Ring product(1);
    for (std::size_t q = 0; q < monomial.n_factors; ++q) {
      const std::uint8_t factor = monomial.factors[q];
      if (q == p || (!is_output(factor) && factor >= n_inputs)) continue;
      const auto value = saved(factor);
      if (!value) return std::nullopt;
      product *= *value;
    }
    sum += product;
  }
  return sum;
}

std::optional<Ring> OpValues::derivative(std::size_t output, std::size_t input,
                                         std::size_t n_inputs, const Saved& saved) const {
  if (output != 0) return kind_->outputs_are_parts ? coefficient(output, input) : Ring();
  if (kind_->form == ValueForm::from_output) {
    const auto value = saved(Monomial::first_output);
    if (!value) return std::nullopt;
    const Ring power_of_l =
        (*value - coefficient(0, shift_place)) * inverse(coefficient(0, scale_place));
    const Ring l = power(power_of_l, output_root);
    return Ring(output_power) * coefficient(0, scale_place) * power(l, output_power - 1) *
           coefficient(0, input);
  }
  if (kind_->value.empty()) return coefficient(0, input);
  Ring sum;
  for (std::size_t m = 0; m < kind_->value.size(); ++m) {
    const auto part = monomial_derivative(kind_->value[m], input, n_inputs, saved);
    if (!part) return std::nullopt;
    sum += coefficient(0, m) * *part;
  }
  return sum;
}

}  // namespace remat
