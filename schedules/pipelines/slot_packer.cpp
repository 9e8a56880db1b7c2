#include "schedules/pipelines/slot_packer.hpp"

#include <algorithm>
#include <optional>

namespace remat {
namespace {

std::size_t index(std::int32_t number) {
  return static_cast<std::size_t>(number);
}

/// Activations that a rank holds ahead of a slot, and DX's whose DW is still to come.
struct Held {
  std::int32_t activations = 0;
  std::int32_t pending = 0;
  friend bool operator==(const Held&, const Held&) = default;
};

/// The slots of one rank: what is in each, and what is held ahead of each.
class RankSlots {
 public:
  RankSlots(const RankSlotPlan& plan, std::int32_t n_slots, Packed packed)
      : packed_(packed), steps_(index(n_slots)), held_(index(n_slots) + 1) {
    for (std::size_t step = 0; step < v_step_count; ++step) {
      for (const std::int32_t slot : plan.slots[step])
        steps_[index(slot)] = static_cast<VStep>(step);
    }
    for (std::size_t slot = 0; slot < steps_.size(); ++slot)
      held_[slot + 1] = after(held_[slot], steps_[slot]);
  }

  bool is_free(std::int32_t slot) const { return !steps_[index(slot)]; }
  std::int32_t peak() const {
    return std::max_element(
               held_.begin(), held_.end(),
               [](const Held& a, const Held& b) { return a.activations < b.activations; })
        ->activations;
  }

  /// Moves what is at `from` to the earlier `to`, unless more than `most` would then be held.
  bool move(std::int32_t from, std::int32_t to, std::int32_t most) {
    std::swap(steps_[index(from)], steps_[index(to)]);
    changed_.clear();
    Held held = held_[index(to)];
    for (std::size_t slot = index(to); slot < steps_.size(); ++slot) {
      held = after(held, steps_[slot]);
      if (slot >= index(from) && held == held_[slot + 1]) break;
      if (held.activations > most) {
        std::swap(steps_[index(from)], steps_[index(to)]);
        return false;
      }
      changed_.push_back(held);
    }
    std::copy(changed_.begin(), changed_.end(), held_.begin() + to + 1);
    return true;
  }

 private:
  Held after(Held held, const std::optional<VStep>& step) const {
    if (!step) {
      if (held.pending > 0) {
        --held.pending;
        --held.activations;
      }
    } else if (*step == VStep::forward_down || *step == VStep::forward_up) {
      ++held.activations;
    } else if (*step == VStep::dw) {
      --held.activations;
    } else if (packed_ == Packed::end) {
      ++held.pending;  // a gap will take its DW
    }
    return held;
  }

  Packed packed_;
  std::vector<std::optional<VStep>> steps_;
  std::vector<Held> held_;     // one more than there are slots
  std::vector<Held> changed_;  // of the move under way
};

class Packer {
 public:
  Packer(SlotPlan& plan, Packed packed) : plan_(plan), packed_(packed), dx_slots_(plan.size()) {
    std::int32_t n_slots = 0;
    for (const RankSlotPlan& rank : plan_) {
      for (const std::vector<std::int32_t>& slots : rank.slots) {
        if (!slots.empty()) n_slots = std::max(n_slots, slots.back() + 1);
      }
    }
    for (const RankSlotPlan& rank : plan_) {
      slots_.emplace_back(rank, n_slots, packed);
      most_ = std::max(most_, slots_.back().peak());
    }
  }

  void pack() {
    for (const PlannedStep& step : in_order(plan_)) {
      if (may_move(step)) move(step);
      if (step.step == VStep::dx_up || step.step == VStep::dx_down) note_dx(step);
    }
  }

 private:
  enum class Phase : std::uint8_t { warm_up, steady, cool_down };

  /// Steady is from rank 0's first DX of its first chunk to its last forward of that chunk.
  bool may_move(const PlannedStep& at) {
    if (phase_ == Phase::warm_up && at.step == VStep::dx_down && at.rank == 0)
      phase_ = Phase::steady;
    if (phase_ == Phase::steady) {
      const std::size_t microbatches = plan_[0][VStep::forward_down].size();
      if (at.step == VStep::forward_down && index(at.microbatch) + 1 == microbatches)
        phase_ = Phase::cool_down;
      return false;
    }
    return phase_ == Phase::cool_down || packed_ == Packed::both_ends;
  }

  void move(const PlannedStep& at) {
    RankSlots& slots = slots_[index(at.rank)];
    for (std::int32_t to = earliest(at); to < at.slot; ++to) {
      if (!slots.is_free(to) || !slots.move(at.slot, to, most_)) continue;
      plan_[index(at.rank)][at.step][index(at.microbatch)] = to;
      return;
    }
  }

  /// The slot behind all that the step needs, as moved so far.
  std::int32_t earliest(const PlannedStep& at) const {
    const RankSlotPlan& own = plan_[index(at.rank)];
    std::int32_t last = -1;
    const auto needs = [&](const RankSlotPlan& rank, VStep step, std::int32_t microbatch) {
      last = std::max(last, rank[step][index(microbatch)]);
    };
    if (at.microbatch > 0) needs(own, at.step, at.microbatch - 1);
    if (at.step == VStep::dw)
      return std::max(last, dx_slots_[index(at.rank)][index(at.microbatch)]) + 1;
    if (at.step != VStep::forward_down)
      needs(own, static_cast<VStep>(static_cast<int>(at.step) - 1), at.microbatch);
    const bool goes_down = at.step == VStep::forward_down || at.step == VStep::dx_up;
    if (goes_down && at.rank > 0) needs(plan_[index(at.rank - 1)], at.step, at.microbatch);
    if (!goes_down && index(at.rank) + 1 < plan_.size())
      needs(plan_[index(at.rank + 1)], at.step, at.microbatch);
    return last + 1;
  }

  /// A rank's n-th DW needs its n-th DX.
  void note_dx(const PlannedStep& at) {
    std::vector<std::int32_t>& noted = dx_slots_[index(at.rank)];
    const std::int32_t slot = plan_[index(at.rank)][at.step][index(at.microbatch)];
    noted.insert(std::upper_bound(noted.begin(), noted.end(), slot), slot);
  }

  SlotPlan& plan_;
  Packed packed_;
  Phase phase_ = Phase::warm_up;
  std::vector<RankSlots> slots_;
  std::vector<std::vector<std::int32_t>> dx_slots_;  // those passed, for each rank, rising
  std::int32_t most_ = 0;                            // activations that a rank may hold
};

}  // namespace

void pack(SlotPlan& plan, Packed packed) {
  Packer(plan, packed).pack();
}

}  // namespace remat
