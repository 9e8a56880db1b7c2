#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "model/op_kinds.hpp"
#include "model/ring.hpp"

namespace remat {

/// What stands for a kind and its attributes in the constants of its values.
std::uint64_t op_seed(std::string_view kind, std::string_view attributes);

/// The value rule of one op: its kind with the constants that belong to it. Constants are a pure
/// function of (kind, attributes, place), so two kinds never agree by chance.
class OpValues {
 public:
  /// `seed` stands for the kind and the attributes.
  OpValues(const OpKind& kind, std::uint64_t seed) : kind_(&kind), seed_(seed) {}

  /// The j-th output's value; those after the first are linear in the inputs, the first may use
  /// them. `draw` is what a random kind drew.
  void evaluate(std::span<const Ring> inputs, Ring draw, std::span<Ring> outputs) const;

  /// A saved value by factor (Monomial): none where backward does not have it.
  using Saved = std::function<std::optional<Ring>(std::uint8_t factor)>;
  /// ∂ output `output` / ∂ input `input`, out of what is saved: none where something is missing.
  /// `n_inputs` is how many tensors the op had.
  std::optional<Ring> derivative(std::size_t output, std::size_t input, std::size_t n_inputs,
                                 const Saved& saved) const;

 private:
  Ring coefficient(std::size_t output, std::size_t place) const;
  Ring linear(std::size_t output, std::span<const Ring> inputs) const;
  std::optional<Ring> monomial_derivative(const Monomial& monomial, std::size_t input,
                                          std::size_t n_inputs, const Saved& saved) const;

  const OpKind* kind_;
  std::uint64_t seed_;
};

}  // namespace remat
