#include "properties/interleaving.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "model/random_bits.hpp"

namespace remat {
namespace {

using Order = std::vector<std::size_t>;

Order order_of(ChoiceTape& tape, Strategy strategy, const std::vector<std::uint32_t>& lengths) {
  Order order;
  Interleaving interleaving(tape, strategy, lengths);
  while (!interleaving.is_done())
    order.push_back(interleaving.next());
  return order;
}

/// Of `n` drawn orders, the share that has the pattern.
double share(Strategy strategy, const std::vector<std::uint32_t>& lengths,
             const std::function<bool(const Order&)>& has_pattern, int n) {
  int hits = 0;
  for (int i = 0; i < n; ++i) {
    ChoiceTape tape = ChoiceTape::from_seed(random_bits(3, 17, static_cast<std::uint64_t>(i)));
    hits += has_pattern(order_of(tape, strategy, lengths)) ? 1 : 0;
  }
  return static_cast<double>(hits) / n;
}

/// Where the k-th step of a sequence stands.
std::size_t place(const Order& order, std::size_t sequence, std::size_t k) {
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i] == sequence && k-- == 0) return i;
  return order.size();
}

constexpr std::uint32_t steps = 16;
const std::vector<std::uint32_t> four_by_sixteen(4, steps);

// Patterns of the paper's kind: d constraints on the order.
bool first_runs_before_second(const Order& order) {  // d = 1
  return place(order, 0, steps - 1) < place(order, 1, 0);
}
bool second_runs_inside_one_window(const Order& order) {  // d = 2
  return place(order, 0, 7) < place(order, 1, 0) && place(order, 1, steps - 1) < place(order, 0, 8);
}

}  // namespace

TEST_CASE("an interleaving takes every step of every sequence, in any strategy", "[properties]") {
  for (std::size_t s = 0; s < strategy_count; ++s) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      ChoiceTape tape = ChoiceTape::from_seed(seed);
      const Order order = order_of(tape, static_cast<Strategy>(s), {3, 0, 1, 5});
      std::map<std::size_t, int> taken;
      for (const std::size_t sequence : order)
        ++taken[sequence];
      CHECK(taken == std::map<std::size_t, int>{{0, 3}, {2, 1}, {3, 5}});
    }
  }
}

TEST_CASE("an empty tape takes the sequences one after the other", "[properties]") {
  ChoiceTape tape(std::vector<std::uint64_t>{});
  CHECK(order_of(tape, Strategy::random, {2, 2}) == Order{0, 0, 1, 1});
  CHECK(order_of(tape, Strategy::remaining_work, {2, 2}) == Order{0, 0, 1, 1});
}

TEST_CASE("remaining work makes every order equally likely, a random walk does not",
          "[properties]") {
  // Of the six orders of 2 + 2 steps each comes one time in six; the walk takes 0011 in a quarter.
  const auto is_in_turn = [](const Order& order) { return order == Order{0, 0, 1, 1}; };
  CHECK(share(Strategy::remaining_work, {2, 2}, is_in_turn, 6000) == Approx(1.0 / 6).margin(0.02));
  CHECK(share(Strategy::random, {2, 2}, is_in_turn, 6000) == Approx(1.0 / 4).margin(0.02));
}

TEST_CASE("PCT meets an order of depth d at least once in n k^(d-1) runs", "[properties]") {
  // Burckhardt et al., ASPLOS 2010, theorem 9: n sequences, k steps in all.
  constexpr double n = 4;
  constexpr double k = 4 * steps;
  CHECK(share(Strategy::pct2, four_by_sixteen, first_runs_before_second, 2000) >= 0.8 / n);
  CHECK(share(Strategy::pct2, four_by_sixteen, second_runs_inside_one_window, 20000) >=
        0.8 / (n * k));
  CHECK(share(Strategy::pct3, four_by_sixteen, second_runs_inside_one_window, 20000) >=
        0.8 / (n * k));
  // What the strategy is for: a walk finds neither.
  CHECK(share(Strategy::random, four_by_sixteen, second_runs_inside_one_window, 20000) == 0);
}

}  // namespace remat
