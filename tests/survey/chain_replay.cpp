#include "tests/survey/chain_replay.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "model/units.hpp"

namespace remat {
namespace {

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

}  // namespace

std::int64_t binomial(std::int64_t n, std::int64_t k) {
  WideInteger result = 1;
  for (std::int64_t i = 1; i <= k; ++i) {
    result = result * (n - k + i) / i;
    if (result > INT64_MAX) return INT64_MAX;
  }
  return static_cast<std::int64_t>(result);
}

std::int64_t reach(std::int64_t s, std::int64_t r) {
  return binomial(s + r, s);
}

std::int64_t repetitions(std::int64_t n, std::int64_t s) {
  std::int64_t r = 0;
  while (reach(s, r) < n)
    ++r;
  return r;
}

std::int64_t fewest_advances(std::int64_t n, std::int64_t s) {
  const std::int64_t r = repetitions(n, s);
  return r * n - binomial(s + r, s + 1);
}

std::int64_t bisection_advances(std::int64_t n) {
  return n == 1 ? 0 : n / 2 + 2 * bisection_advances(n / 2);
}

TriedAll try_all(std::int64_t n_max, std::int64_t s_max) {
  TriedAll tried;
  tried.advances.assign(at(s_max + 1), std::vector<std::int64_t>(at(n_max + 1), 0));
  for (std::int64_t s = 1; s <= s_max; ++s) {
    for (std::int64_t n = 2; n <= n_max; ++n) {
      std::int64_t& best = tried.advances[at(s)][at(n)];
      best = n * (n - 1) / 2;  // from the first state every time
      for (std::int64_t next = 1; s > 1 && next < n; ++next) {
        ++tried.splits;
        best = std::min(
            best, next + tried.advances[at(s - 1)][at(n - next)] + tried.advances[at(s)][at(next)]);
      }
    }
  }
  return tried;
}

UnequalChain try_all(const std::vector<std::int64_t>& costs_ns, std::int64_t s) {
  const std::size_t n = costs_ns.size();
  std::vector<std::int64_t> before(n + 1, 0);  // cost of all steps before this one
  std::partial_sum(costs_ns.begin(), costs_ns.end(), before.begin() + 1);
  UnequalChain tried;
  // Of the stretch from `from` to `to` with one state less; then with one more.
  using Table = std::vector<std::vector<std::int64_t>>;
  Table fewer;
  for (std::int64_t states = 1; states <= s; ++states) {
    Table best(n + 1, std::vector<std::int64_t>(n + 1, 0));
    for (std::size_t length = 2; length <= n; ++length) {
      for (std::size_t from = 0; from + length <= n; ++from) {
        const std::size_t to = from + length;
        std::int64_t& least = best[from][to];
        for (std::size_t turn = from + 1; turn < to; ++turn)
          least += before[turn] - before[from];
        for (std::size_t next = from + 1; states > 1 && next < to; ++next) {
          ++tried.splits;
          least = std::min(least, before[next] - before[from] + fewer[next][to] + best[from][next]);
        }
      }
    }
    fewer = std::move(best);
  }
  tried.cost_ns = fewer[0][n];
  return tried;
}

}  // namespace remat
