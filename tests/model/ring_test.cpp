#include "model/ring.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "model/random_bits.hpp"

namespace remat {
namespace {

constexpr std::uint64_t p = Ring::modulus;

/// The corners of the field and 200 elements from all over it.
std::vector<Ring> elements() {
  std::vector<Ring> all = {Ring(0), Ring(1), Ring(2), Ring(p - 1), Ring(p - 2), Ring((p + 1) / 2)};
  for (std::uint64_t i = 0; i < 200; ++i)
    all.push_back(Ring(random_bits(1, 2, i)));
  return all;
}

/// base^exponent by one multiplication after another.
Ring slow_power(Ring base, std::uint64_t exponent) {
  Ring result(1);
  for (std::uint64_t i = 0; i < exponent; ++i)
    result *= base;
  return result;
}

}  // namespace

TEST_CASE("a ring element is what 64 bits leave modulo 2^61 - 1", "[model]") {
  CHECK(p == 2305843009213693951ULL);
  CHECK(Ring().value() == 0);
  CHECK(Ring(p).value() == 0);
  CHECK(Ring(p + 1).value() == 1);
  CHECK(Ring(2 * p).value() == 0);
  CHECK(Ring(UINT64_MAX).value() == UINT64_MAX % p);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t bits = random_bits(3, 4, i);
    CHECK(Ring(bits).value() == bits % p);
  }
}

TEST_CASE("ring addition and multiplication are those of integers modulo the prime", "[model]") {
  __extension__ using Wide = unsigned __int128;
  const std::vector<Ring> all = elements();
  for (const Ring a : all) {
    for (const Ring b : all) {
      const Wide x = a.value();
      const Wide y = b.value();
      REQUIRE((a + b).value() == static_cast<std::uint64_t>((x + y) % p));
      REQUIRE((a - b).value() == static_cast<std::uint64_t>((x + p - y) % p));
      REQUIRE((a * b).value() == static_cast<std::uint64_t>(x * y % p));
    }
  }
}

TEST_CASE("the ring is a field", "[model]") {
  const std::vector<Ring> all = elements();
  for (std::size_t i = 0; i + 2 < all.size(); ++i) {
    const Ring a = all[i];
    const Ring b = all[i + 1];
    const Ring c = all[i + 2];
    CHECK(a + b == b + a);
    CHECK(a * b == b * a);
    CHECK((a + b) + c == a + (b + c));
    CHECK((a * b) * c == a * (b * c));
    CHECK(a * (b + c) == a * b + a * c);
    CHECK(a + Ring(0) == a);
    CHECK(a * Ring(1) == a);
    CHECK(a * Ring(0) == Ring(0));
    CHECK(a - a == Ring(0));
    CHECK((a - b) + b == a);
    CHECK(Ring(0) - a + a == Ring(0));
  }
}

TEST_CASE("compound assignment of ring elements is the plain operation", "[model]") {
  Ring a(random_bits(5, 6, 7));
  const Ring before = a;
  a += Ring(41);
  CHECK(a == before + Ring(41));
  a *= Ring(43);
  CHECK(a == (before + Ring(41)) * Ring(43));
}

TEST_CASE("the product of a ring element and its inverse is 1, and 0 has 0", "[model]") {
  CHECK(inverse(Ring(0)) == Ring(0));
  CHECK(inverse(Ring(1)) == Ring(1));
  CHECK(inverse(Ring(2)) == Ring((p + 1) / 2));
  CHECK(inverse(Ring(p - 1)) == Ring(p - 1));
  for (const Ring a : elements()) {
    if (a == Ring(0)) continue;
    CHECK(a * inverse(a) == Ring(1));
    CHECK(inverse(inverse(a)) == a);
  }
}

TEST_CASE("power is repeated multiplication", "[model]") {
  CHECK(power(Ring(0), 0) == Ring(1));
  CHECK(power(Ring(0), 5) == Ring(0));
  CHECK(power(Ring(2), 61) == Ring(1));  // 2^61 ≡ 1 (mod 2^61 − 1)
  CHECK(power(Ring(3), 4) == Ring(81));
  for (const Ring a : elements()) {
    for (const std::uint64_t exponent : {0U, 1U, 2U, 3U, 7U, 16U, 17U, 64U})
      CHECK(power(a, exponent) == slow_power(a, exponent));
    CHECK(power(a, 123456789) * power(a, 987654321) == power(a, 1111111110));
  }
}

TEST_CASE("every ring element but 0 to the power of p - 1 is 1", "[model]") {
  for (const Ring a : elements())
    CHECK(power(a, p - 1) == (a == Ring(0) ? Ring(0) : Ring(1)));
}

TEST_CASE("a constant is never 0, whatever the bits", "[model]") {
  for (const std::uint64_t bits : {std::uint64_t{0}, std::uint64_t{1}, p - 2, p - 1, p, p + 1,
                                   2 * (p - 1), 2 * p, UINT64_MAX - 1, UINT64_MAX})
    CHECK(constant_of(bits) != Ring(0));
  CHECK(constant_of(0) == Ring(1));
  CHECK(constant_of(p - 2) == Ring(p - 1));
  CHECK(constant_of(p - 1) == Ring(1));
  for (std::uint64_t i = 0; i < 10000; ++i)
    REQUIRE(constant_of(random_bits(8, 9, i)) != Ring(0));
}

}  // namespace remat
