#pragma once

#include <cstdint>

namespace remat {

/// An element of the integers modulo 2^61 − 1, a prime: sums, products and inverses are exact, so
/// "the gradients are right" is an equality, never a tolerance.
class Ring {
 public:
  static constexpr std::uint64_t modulus = (1ULL << 61U) - 1;

  constexpr Ring() = default;
  /// The element that `value` is congruent to.
  constexpr explicit Ring(std::uint64_t value) : value_(folded(value)) {}

  constexpr std::uint64_t value() const { return value_; }
  friend constexpr bool operator==(Ring, Ring) = default;

  friend constexpr Ring operator+(Ring a, Ring b) {
    const std::uint64_t sum = a.value_ + b.value_;
    return from_reduced(sum >= modulus ? sum - modulus : sum);
  }
  friend constexpr Ring operator-(Ring a, Ring b) {
    return from_reduced(a.value_ >= b.value_ ? a.value_ - b.value_ : a.value_ + modulus - b.value_);
  }
  friend constexpr Ring operator*(Ring a, Ring b) {
    const Wide product = static_cast<Wide>(a.value_) * b.value_;
    const auto low = static_cast<std::uint64_t>(product) & modulus;
    const auto high = static_cast<std::uint64_t>(product >> 61U);
    const std::uint64_t sum = low + high;
    return from_reduced(sum >= modulus ? sum - modulus : sum);
  }
  constexpr Ring& operator+=(Ring other) { return *this = *this + other; }
  constexpr Ring& operator*=(Ring other) { return *this = *this * other; }

 private:
  __extension__ using Wide = unsigned __int128;
  static constexpr std::uint64_t folded(std::uint64_t value) {
    const std::uint64_t sum = (value & modulus) + (value >> 61U);
    return sum >= modulus ? sum - modulus : sum;
  }
  static constexpr Ring from_reduced(std::uint64_t value) {
    Ring element;
    element.value_ = value;
    return element;
  }

  std::uint64_t value_ = 0;
};

/// base to the power of `exponent`; 0 to the power of 0 is 1.
constexpr Ring power(Ring base, std::uint64_t exponent) {
  Ring result(1);
  for (; exponent != 0; exponent >>= 1U) {
    if ((exponent & 1U) != 0) result *= base;
    base *= base;
  }
  return result;
}

/// The element whose product with `element` is 1; 0 for 0. Source: Fermat's little theorem.
constexpr Ring inverse(Ring element) {
  return power(element, Ring::modulus - 2);
}

/// A non-zero constant out of 64 random bits.
constexpr Ring constant_of(std::uint64_t bits) {
  return Ring(bits % (Ring::modulus - 1) + 1);
}

}  // namespace remat
