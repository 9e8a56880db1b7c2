#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "properties/choice_tape.hpp"

namespace remat {

/// How the order of several sequences of actions is drawn. None finds all orders best, so a
/// campaign uses all of them (fuzzing.md §2).
enum class Strategy : std::uint8_t {
  random,          // each sequence that can go on with equal chance
  remaining_work,  // with a chance as large as what is left of it: every order equally likely
  pct2,            // priorities that change at d - 1 places. Source: Burckhardt et al., "A
  pct3,            // Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS
  pct5             // 2010, §3: an order that d constraints tell is met once in n·k^(d-1) runs
};
inline constexpr std::size_t strategy_count = 5;
std::string_view name_of(Strategy strategy);

/// Which of several sequences takes its next step, until none is left. Every decision is the
/// tape's.
class Interleaving {
 public:
  /// `lengths`: the steps of each sequence.
  Interleaving(ChoiceTape& tape, Strategy strategy, std::vector<std::uint32_t> lengths);

  bool is_done() const { return n_left_ == 0; }
  /// The sequence that takes a step.
  std::size_t next();

 private:
  std::size_t at_random();
  std::size_t by_remaining_work();
  std::size_t by_priority();
  void draw_priorities(std::size_t depth);

  ChoiceTape* tape_;
  Strategy strategy_;
  std::vector<std::uint32_t> left_;
  std::uint64_t n_left_ = 0;
  std::uint64_t n_taken_ = 0;
  std::vector<std::size_t> priorities_;       // by sequence; the highest goes first
  std::vector<std::uint64_t> change_points_;  // steps after which the running one goes last
};

}  // namespace remat
