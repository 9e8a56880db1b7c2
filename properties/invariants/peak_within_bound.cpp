#include "properties/invariants/peak_within_bound.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

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
        has_raised_ = false;
        break;
      case Kind::error:
        has_raised_ = true;
        break;
      case Kind::phase_end:
        if (event.phase() == Phase::forward && !std::exchange(has_raised_, false) &&
            facts.header().storages_have_lifetimes) {
          after_forward_ = {
              event.seq(), facts.storages().live_bytes(), event.integer(Field::microbatch), {}};
          if (resident_max_ && after_forward_->bytes > *resident_max_)
            after_forward_->of_excluded_regions = shown_holdings(facts);
        }
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

  void observe_births(const EventView& event, const Facts& facts, Report& report) {
    if (facts.births().empty() || !peak_max_ || peak_told_ ||
        !facts.header().storages_have_lifetimes)
      return;
    if (is_outside(role_named(event.text(Field::role)))) return;
    std::int64_t live = facts.storages().live_bytes();
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
    const auto after = std::exchange(after_forward_, std::nullopt);
    if (!after || (facts.stopped_at() && *facts.stopped_at() < after->seq)) return;
    any_forward_ = true;
    if (!resident_max_ || after->bytes <= *resident_max_) return;
    report.found(
        invariant_name, after->seq,
        fmt::format("{} alive at the end of the step's last forward{}; the bound is {}{}",
                    are_bytes(after->bytes),
                    after->microbatch ? fmt::format(" (micro-batch {})", *after->microbatch)
                                      : std::string(),
                    counted(*resident_max_, "byte"), after->of_excluded_regions),
        {after->seq});
  }

  struct AfterForward {
    std::int64_t seq = 0;
    std::int64_t bytes = 0;
    std::optional<std::int64_t> microbatch;
    std::string of_excluded_regions;  // only where the bound is broken
  };

  std::optional<std::int64_t> peak_max_;
  std::optional<std::int64_t> resident_max_;
  std::optional<AfterForward> after_forward_;
  bool has_raised_ = false;  // the phase that runs
  bool peak_told_ = false;
  bool any_forward_ = false;
};

}  // namespace

std::unique_ptr<Invariant> peak_within_bound() {
  return std::make_unique<PeakWithinBound>();
}

}  // namespace remat
