#pragma once

#include <cstdint>
#include <vector>

namespace remat {

/// Replay of a chain of n equal steps with room for s states, the first included: how many steps
/// are advanced so that each step's input is there once in reverse order. The step whose turn it is
/// then runs once more; that is not counted. Griewank and Walther 2000, "Algorithm 799: revolve".

/// C(n, k), or INT64_MAX where that is larger.
std::int64_t binomial(std::int64_t n, std::int64_t k);
/// Steps that s states and r repetitions reach: C(s + r, s).
std::int64_t reach(std::int64_t s, std::int64_t r);
/// The smallest r that reaches n steps with s states.
std::int64_t repetitions(std::int64_t n, std::int64_t s);
/// The fewest advances: r·n − C(s + r, s + 1), r as above.
std::int64_t fewest_advances(std::int64_t n, std::int64_t s);
/// Advances where each half is halved again: T(n) = n/2 + 2·T(n/2). `n` is a power of two.
std::int64_t bisection_advances(std::int64_t n);

/// The same optimum, by trying all places of the next state, with the splits that were looked at.
struct TriedAll {
  std::vector<std::vector<std::int64_t>> advances;  // [s][n]
  std::int64_t splits = 0;
};
TriedAll try_all(std::int64_t n_max, std::int64_t s_max);

/// The fewest nanoseconds of advances of a chain whose steps have these costs: all stretches with
/// all places of the next state.
struct UnequalChain {
  std::int64_t cost_ns = 0;
  std::int64_t splits = 0;
};
UnequalChain try_all(const std::vector<std::int64_t>& costs_ns, std::int64_t s);

}  // namespace remat
