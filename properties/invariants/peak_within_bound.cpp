#include "properties/invariants/peak_within_bound.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>

#include "model/units.hpp"
#include "properties/invariants/excluded_bytes.hpp"
#include "properties/invariants/expectations.hpp"
#include "properties/invariants/wording.hpp"

namespace remat {
namespace {

constexpr std::string_view invariant_name = "peak_within_bound";

std::string are_bytes(std::int64_t n) {
  return counted(n, "byte") + (n == 1 ? " is" : " are");
}

/// Whose bytes they are, as far as excluded regions go.
std::string of_excluded_regions(std::int64_t kept, std::int64_t rederived) {
  if (kept == 0 && rederived == 0) return {};
  return fmt::format("; excluded regions hold {} kept by forward and {} rederived by replays",
                     counted(kept, "byte"), counted(rederived, "byte"));
}

class PeakWithinBound : public Invariant {
 public:
  void observe(const EventView& event, const Facts& facts, Report& report) override {
    switch (event.kind()) {
      case Kind::header:
        peak_max_ = expected_peak_bytes(facts.header());
        resident_max_ = expected_resident_bytes(facts.header());
        break;
      case Kind::storage_alloc:
      case Kind::op:
        observe_births(event, facts, report);
        break;
      case Kind::phase_begin:
        raised_.erase(rank_of(event));
        break;
      case Kind::error:
        raised_.insert(rank_of(event));
        break;
      case Kind::phase_end:
        if (raised_.erase(rank_of(event)) == 0 && event.phase() == Phase::forward)
          observe_end_of_forward(event, facts);
        break;
      case Kind::step_end:
        if (!facts.ends_the_step()) break;
        judge_resident(facts, report);
        peak_told_ = false;
        break;
      default:
        break;
    }
  }

  void finish(const Facts& facts, Report& report) override {
    judge_resident(facts, report);
    if (!peak_max_ && !resident_max_) {
      report.not_checked(invariant_name,
                         "expect.peak_bytes or expect.resident_bytes in the header");
    } else if (!facts.header().storages_have_lifetimes) {
      report.not_checked(
          invariant_name,
          "storage_alloc and storage_free events, which the header says are not recorded");
    } else if (resident_max_ && !any_forward_) {
      report.not_checked(invariant_name,
                         "the end of a forward phase (phase_end): bytes resident after it");
    }
  }

 private:
  static std::string shown_holdings(const Facts& facts) {
    const ExcludedHoldings held = excluded_holdings(facts);
    return of_excluded_regions(live_bytes_of(held.kept, facts),
                               live_bytes_of(held.rederived, facts));
  }

  static constexpr std::int64_t no_rank = -1;
  static std::int64_t rank_of(const EventView& event) {
    return event.integer(Field::rank).value_or(no_rank);
  }

  void observe_end_of_forward(const EventView& event, const Facts& facts) {
    if (!facts.header().storages_have_lifetimes) return;
    AfterForward& after = after_forward_[rank_of(event)];
    after = {event.seq(),
             facts.storages().live_bytes(event.integer(Field::rank)),
             event.integer(Field::microbatch),
             {}};
    if (resident_max_ && after.bytes > *resident_max_)
      after.of_excluded_regions = shown_holdings(facts);
  }

  void observe_births(const EventView& event, const Facts& facts, Report& report) {
    if (facts.births().empty() || !peak_max_ || peak_told_ ||
        !facts.header().storages_have_lifetimes)
      return;
    if (is_outside(role_named(event.text(Field::role)))) return;
    // The bound is that of each device.
    std::int64_t live = facts.storages().live_bytes(event.integer(Field::rank));
    for (const Facts::Birth& birth : facts.births()) {
      live = saturated_sum(live, birth.bytes);
      if (live <= *peak_max_) continue;
      peak_told_ = true;
      report.found(
          invariant_name, event.seq(),
          fmt::format("{} alive {} once {} ({}) is there; the bound is {}{}", are_bytes(live),
                      where(event, facts), shown(birth.storage, facts, event.trace()),
                      counted(birth.bytes, "byte"), counted(*peak_max_, "byte"),
                      shown_holdings(facts)),
          {event.seq()});
      return;
    }
  }

  // Of the last forward of a step: the earlier ones of a pipeline hold less.
  // A forward that raised was not over: what it holds then is nobody's bound.
  void judge_resident(const Facts& facts, Report& report) {
    for (const auto& [rank, after] : after_forward_) {
      if (facts.stopped_at() && *facts.stopped_at() < after.seq) continue;
      any_forward_ = true;
      if (!resident_max_ || after.bytes <= *resident_max_) continue;
      const std::string microbatch =
          after.microbatch ? fmt::format(" (micro-batch {})", *after.microbatch) : "";
      report.found(
          invariant_name, after.seq,
          fmt::format("{} alive at the end of the step's last forward{}{}; the bound is {}{}",
                      are_bytes(after.bytes), microbatch,
                      rank == no_rank ? "" : fmt::format(" on rank {}", rank),
                      counted(*resident_max_, "byte"), after.of_excluded_regions),
          {after.seq});
    }
    after_forward_.clear();
  }

  struct AfterForward {
    std::int64_t seq = 0;
    std::int64_t bytes = 0;
    std::optional<std::int64_t> microbatch;
    std::string of_excluded_regions;  // only where the bound is broken
  };

  std::optional<std::int64_t> peak_max_;
  std::optional<std::int64_t> resident_max_;
  std::map<std::int64_t, AfterForward> after_forward_;  // by rank
  std::set<std::int64_t> raised_;                       // ranks: in the phase that runs
  bool peak_told_ = false;
  bool any_forward_ = false;
};

}  // namespace

std::unique_ptr<Invariant> peak_within_bound() {
  return std::make_unique<PeakWithinBound>();
}

}  // namespace remat
