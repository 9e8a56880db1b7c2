#include "properties/invariants/policy_stable.hpp"

#include <fmt/format.h>

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
    note_for_ranks(event, facts, frame, op->index(), std::ssize(calls) - 1, calls.back());
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

  /// One call of an op in one region's invocation, whatever the rank.
  using CallKey = std::tuple<std::uint32_t, std::int64_t, std::int64_t, std::uint32_t,
                             std::int64_t>;  // unit, invocation, micro-batch, op, call

  void note_for_ranks(const EventView& event, const Facts& facts, std::int64_t frame,
                      std::uint32_t op, std::int64_t call, const Decision& decision) {
    const auto rank = event.integer(Field::rank);
    const Frame* of = facts.scopes().frame(frame);
    if (!rank || of == nullptr || !of->unit) return;
    const CallKey key = {of->unit->index(), of->invocation.value_or(0), of->microbatch.value_or(0),
                         op, call};
    std::map<std::int64_t, Decision>& by_rank = by_rank_[key];
    for (const auto& [other, theirs] : by_rank) {
      if (theirs.is_kept == decision.is_kept) continue;
      differences_.push_back(
          {other, *rank, theirs, decision,
           fmt::format("call {} of {} in {} is {} on rank {}, and {} on rank {} (event {}); "
                       "expected one decision on all ranks of a group",
                       call, event.text(Field::op), shown(*of, event.trace()),
                       decision.is_kept ? "kept" : "not kept", *rank,
                       theirs.is_kept ? "kept" : "not kept", other, theirs.seq)});
    }
    by_rank.emplace(*rank, decision);
  }

  /// Which ranks belong together shows in their collectives, at the latest by the step's end.
  void end_step(Report& report) {
    std::set<std::int64_t> told;  // one finding for a decision, whoever else decided otherwise
    for (const Difference& difference : differences_) {
      const std::set<std::uint32_t>& theirs = groups_[difference.other];
      bool shares_a_group = false;
      for (const std::uint32_t group : groups_[difference.rank])
        shares_a_group |= theirs.count(group) != 0;
      if (!shares_a_group || !told.insert(difference.decision.seq).second) continue;
      report.found(invariant_name, difference.decision.seq, difference.message,
                   {difference.theirs.seq, difference.decision.seq});
    }
    differences_.clear();
    by_rank_.clear();
    replays_.clear();
  }

  struct Difference {
    std::int64_t other = 0;
    std::int64_t rank = 0;
    Decision theirs;
    Decision decision;
    std::string message;
  };

  FlatMap<std::map<std::uint32_t, std::vector<Decision>>> calls_;  // frame → op → its calls
  FlatMap<std::map<std::uint32_t, std::int64_t>> replays_;         // scope → op → calls so far
  std::map<CallKey, std::map<std::int64_t, Decision>> by_rank_;    // of this step
  std::map<std::int64_t, std::set<std::uint32_t>> groups_;         // rank → groups
  std::vector<Difference> differences_;                            // of this step
  bool any_decision_ = false;
};

}  // namespace

std::unique_ptr<Invariant> policy_stable() {
  return std::make_unique<PolicyStable>();
}

}  // namespace remat
