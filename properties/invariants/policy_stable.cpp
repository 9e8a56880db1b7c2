#include "properties/invariants/policy_stable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "properties/invariants/wording.hpp"

namespace remat {
namespace {

constexpr std::string_view invariant_name = "policy_stable";

struct Decision {
  bool is_kept = false;
  std::int64_t seq = 0;
};

class PolicyStable : public Invariant {
 public:
  void observe(const EventView& event, const Facts& facts, Report& report) override {
    switch (event.kind()) {
      case Kind::sac_decide:
        any_decision_ = true;
        observe_decision(event, facts);
        break;
      case Kind::sac_hit:
      case Kind::op:
        if (any_decision_) observe_call(event, facts, report);
        break;
      case Kind::collective:
        if (const auto group = event.name(Field::group))
          groups_[event.integer(Field::rank).value_or(no_rank)].insert(group->index());
        break;
      case Kind::unit_end:
        if (facts.ended_scope()) replays_.erase(facts.ended_scope()->id);
        break;
      case Kind::frame_free:
      case Kind::step_end:
        for (const std::int64_t frame : facts.frames_gone())
          calls_.erase(frame);
        if (facts.ends_the_step()) end_step(report);
        break;
      default:
        break;
    }
  }

  void finish(const Facts&, Report& report) override {
    end_step(report);  // a trace may end without its step
    if (!any_decision_) report.not_checked(invariant_name, "sac_decide events");
  }

 private:
  static constexpr std::int64_t no_rank = -1;

  /// The region that the event itself belongs to, not one around that (R3).
  static const Body* own_body(const Facts& facts) {
    return facts.bodies().empty() ? nullptr : &facts.bodies().front();
  }

  void observe_decision(const EventView& event, const Facts& facts) {
    const auto op = event.name(Field::op);
    const auto is_kept = event.boolean(Field::saved);
    const Body* body = own_body(facts);
    const std::int64_t around = body != nullptr ? body->frame : no_frame;
    const std::int64_t frame = event.integer(Field::frame).value_or(around);
    if (!op || !is_kept || frame == no_frame) return;
    std::vector<Decision>& calls = calls_[frame][op->index()];
    calls.push_back({*is_kept, event.seq()});
    note_for_ranks(event, facts, frame, op->index(), calls.back());
  }

  // C3: the k-th call of an op in a replay is served exactly when forward's decision kept it.
  void observe_call(const EventView& event, const Facts& facts, Report& report) {
    const Body* body = own_body(facts);
    if (body == nullptr || !body->replay || event.is_true(Field::compiled)) return;
    const bool is_served = event.kind() == Kind::sac_hit;
    const auto op = event.name(is_served ? Field::op : Field::name);
    const auto* decided = calls_.find(body->frame);
    if (!op || decided == nullptr) return;
    const auto known = decided->find(op->index());
    if (known == decided->end()) return;  // an op that the policy was never asked about
    const auto k = static_cast<std::size_t>(replays_[body->scope][op->index()]++);
    if (k >= known->second.size()) return;
    const Decision& decision = known->second[k];
    if (decision.is_kept == is_served) return;
    report.found(
        invariant_name, event.seq(),
        fmt::format("call {} of {} {} {}, but forward's policy {} it (event {}); expected the same "
                    "decision in both",
                    k, event.trace().names()[*op], is_served ? "is served" : "runs",
                    where(event, facts), decision.is_kept ? "kept" : "did not keep", decision.seq),
        {decision.seq, event.seq()});
  }

  /// An op's calls in one region's invocation, whatever the rank.
  using CallsKey =
      std::tuple<std::uint32_t, std::int64_t, std::int64_t, std::uint32_t>;  // unit, invocation,
                                                                             // micro-batch, op
  /// What one rank decided of them.
  struct RankDecisions {
    std::vector<Decision> calls;
    std::string where;
  };

  void note_for_ranks(const EventView& event, const Facts& facts, std::int64_t frame,
                      std::uint32_t op, const Decision& decision) {
    const auto rank = event.integer(Field::rank);
    const Frame* of = facts.scopes().frame(frame);
    if (!rank || of == nullptr || !of->unit) return;
    const CallsKey key = {of->unit->index(), of->invocation.value_or(0), of->microbatch.value_or(0),
                          op};
    RankDecisions& of_rank = by_rank_[key][*rank];
    if (of_rank.calls.empty())
      of_rank.where = fmt::format("{} in {}", event.text(Field::op), shown(*of, event.trace()));
    of_rank.calls.push_back(decision);
  }

  /// Two ranks that called the op equally often decided alike, if they share a group: one that
  /// calls it more often runs code of its own.
  void compare_ranks(std::int64_t one, const RankDecisions& of_one, std::int64_t other,
                     const RankDecisions& of_other, std::set<std::int64_t>& told, Report& report) {
    if (of_one.calls.size() != of_other.calls.size() || !share_a_group(one, other)) return;
    for (std::size_t call = 0; call < of_one.calls.size(); ++call) {
      const bool is_later = of_one.calls[call].seq > of_other.calls[call].seq;
      const Decision& late = (is_later ? of_one : of_other).calls[call];
      const Decision& early = (is_later ? of_other : of_one).calls[call];
      // One finding for a decision, whoever else decided otherwise.
      if (late.is_kept == early.is_kept || !told.insert(late.seq).second) continue;
      report.found(invariant_name, late.seq,
                   fmt::format("call {} of {} is {} on rank {}, and {} on rank {} (event {}); "
                               "expected one decision on all ranks of a group",
                               call, of_one.where, late.is_kept ? "kept" : "not kept",
                               is_later ? one : other, early.is_kept ? "kept" : "not kept",
                               is_later ? other : one, early.seq),
                   {early.seq, late.seq});
    }
  }

  bool share_a_group(std::int64_t one, std::int64_t other) {
    const std::set<std::uint32_t>& theirs = groups_[other];
    const std::set<std::uint32_t>& ours = groups_[one];
    return std::any_of(ours.begin(), ours.end(),
                       [&](std::uint32_t group) { return theirs.count(group) != 0; });
  }

  /// Which ranks belong together shows in their collectives, at the latest by the step's end.
  void end_step(Report& report) {
    std::set<std::int64_t> told;
    for (const auto& [key, ranks] : by_rank_) {
      for (auto one = ranks.begin(); one != ranks.end(); ++one) {
        for (auto other = ranks.begin(); other != one; ++other)
          compare_ranks(one->first, one->second, other->first, other->second, told, report);
      }
    }
    by_rank_.clear();
    replays_.clear();
  }

  FlatMap<std::map<std::uint32_t, std::vector<Decision>>> calls_;  // frame → op → its calls
  FlatMap<std::map<std::uint32_t, std::int64_t>> replays_;         // scope → op → calls so far
  std::map<CallsKey, std::map<std::int64_t, RankDecisions>> by_rank_;  // of this step
  std::map<std::int64_t, std::set<std::uint32_t>> groups_;             // rank → groups
  bool any_decision_ = false;
};

}  // namespace

std::unique_ptr<Invariant> policy_stable() {
  return std::make_unique<PolicyStable>();
}

}  // namespace remat
