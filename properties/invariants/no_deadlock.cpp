#include "properties/invariants/no_deadlock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "properties/invariants/collective_book.hpp"
#include "properties/invariants/wait_cycle.hpp"
#include "properties/invariants/wording.hpp"

namespace remat {
namespace {

constexpr std::string_view invariant_name = "no_deadlock";

class NoDeadlock : public Invariant {
 public:
  void observe(const EventView& event, const Facts& facts, Report& report) override {
    trace_ = &event.trace();
    switch (event.kind()) {
      case Kind::collective:
        observe_collective(event);
        break;
      case Kind::send:
      case Kind::recv:
        observe_message(event);
        break;
      case Kind::step_end:
        observe_end(event, facts, report);
        break;
      default:
        break;
    }
  }

  void finish(const Facts& facts, Report& report) override {
    judge_ranks_that_never_ended(facts, report);
    if (groups_.empty() && channels_.empty()) {
      report.not_checked(invariant_name, "collective, send or recv events of two or more ranks");
    } else if (!any_end_) {
      report.not_checked(invariant_name, "a step_end event: who still waits shows there");
    }
  }

 private:
  struct Messages {
    std::int64_t sent = 0;
    std::int64_t received = 0;
    std::int64_t recv_seq = 0;  // of the last receive
  };
  /// A rank's first step end, and what it had issued by then in each group.
  struct Ended {
    std::int64_t seq = 0;
    std::map<std::uint32_t, std::int64_t> issued;
  };

  void observe_collective(const EventView& event) {
    const auto group = event.name(Field::group);
    const CollectiveCall call = collective_call(event);
    ranks_.insert(call.rank);
    const std::uint32_t of = group ? group->index() : 0xffffffff;
    groups_[of].issue(call);
    waits_.collective(of, call);
  }

  void observe_message(const EventView& event) {
    const auto rank = event.integer(Field::rank);
    const auto peer = event.integer(Field::peer);
    if (!rank || !peer) return;
    ranks_.insert(*rank);
    const auto tag = event.name(Field::tag);
    const bool is_send = event.kind() == Kind::send;
    const Channel channel{is_send ? *rank : *peer, is_send ? *peer : *rank,
                          tag ? tag->index() : 0xffffffff};
    Messages& messages = channels_[channel];
    ++(is_send ? messages.sent : messages.received);
    if (!is_send) messages.recv_seq = event.seq();
    waits_.message(channel, is_send, event.seq());
  }

  // D3: an end without a rank speaks for all of them.
  void observe_end(const EventView& event, const Facts& facts, Report& report) {
    any_end_ = true;
    const auto rank = event.integer(Field::rank);
    if (!rank) {
      for (auto& [group, calls] : groups_)
        judge_all(event, group, calls, report);
      judge_messages(event.seq(), report);
      judge_order(event.seq(), report);
      return;
    }
    ranks_.insert(*rank);
    Ended ended{event.seq(), {}};
    for (const auto& [group, calls] : groups_) {
      const auto issued = calls.issued().find(*rank);
      ended.issued[group] = issued == calls.issued().end() ? 0 : issued->second;
    }
    ended_[*rank].push_back(std::move(ended));
    judge_ended_step(ended_[*rank].size() - 1, report);
    if (facts.ends_the_step()) judge_order(event.seq(), report);
  }

  void judge_all(const EventView& event, std::uint32_t group, const CollectiveGroup& calls,
                 Report& report) {
    if (calls.is_mismatched() || calls.issued().size() < 2 || told_.count(group) > 0) return;
    const auto most = std::max_element(calls.issued().begin(), calls.issued().end(), by_number);
    const auto least = std::min_element(calls.issued().begin(), calls.issued().end(), by_number);
    if (most->second == least->second) return;
    tell(group, event.seq(), most->first, least->first, least->second, report);
  }

  /// All ranks that ended that step of theirs have issued the same number of calls by then.
  void judge_ended_step(std::size_t step, Report& report) {
    for (const auto& [group, calls] : groups_) {
      if (calls.is_mismatched() || told_.count(group) > 0) continue;
      std::optional<std::int64_t> first_rank;
      for (const auto& [rank, ends] : ended_) {
        if (ends.size() <= step || calls.issued().count(rank) == 0) continue;
        if (!first_rank || ends[step].seq < ended_.at(*first_rank)[step].seq) first_rank = rank;
      }
      if (!first_rank) continue;
      const Ended& first = ended_.at(*first_rank)[step];
      for (const auto& [rank, ends] : ended_) {
        if (ends.size() > step && calls.issued().count(rank) > 0) {
          compare(group, first.seq, *first_rank, issued_by(first, group), rank,
                  issued_by(ends[step], group), report);
        }
      }
    }
  }

  /// Ranks that the trace leaves inside a step which others have ended.
  void judge_ranks_that_never_ended(const Facts&, Report& report) {
    if (ended_.empty()) return;
    for (const auto& [group, calls] : groups_) {
      if (calls.is_mismatched() || told_.count(group) > 0) continue;
      for (const auto& [rank, issued] : calls.issued()) {
        const std::size_t steps = ended_.count(rank) > 0 ? ended_.at(rank).size() : 0;
        for (const auto& [other, ends] : ended_) {
          if (ends.size() <= steps || calls.issued().count(other) == 0) continue;
          compare(group, ends[steps].seq, other, issued_by(ends[steps], group), rank, issued,
                  report);
        }
      }
    }
    std::int64_t last = 0;
    for (const auto& [rank, ends] : ended_)
      last = std::max(last, ends.back().seq);
    judge_messages(last, report);
  }

  static std::int64_t issued_by(const Ended& ended, std::uint32_t group) {
    const auto found = ended.issued.find(group);
    return found == ended.issued.end() ? 0 : found->second;
  }

  void compare(std::uint32_t group, std::int64_t seq, std::int64_t rank, std::int64_t n,
               std::int64_t other, std::int64_t n_other, Report& report) {
    if (n == n_other || told_.count(group) > 0) return;
    if (n > n_other) {
      tell(group, seq, rank, other, n_other, report);
    } else {
      tell(group, seq, other, rank, n, report);
    }
  }

  static bool by_number(const std::pair<const std::int64_t, std::int64_t>& a,
                        const std::pair<const std::int64_t, std::int64_t>& b) {
    return a.second < b.second;
  }

  void tell(std::uint32_t group, std::int64_t seq, std::int64_t waits, std::int64_t ended,
            std::int64_t n_ended, Report& report) {
    told_.insert(group);
    const auto call = groups_.at(group).call(n_ended);
    const std::string name = group == 0xffffffff
                                 ? std::string("the group without a name")
                                 : fmt::format("group {}", trace_->names()[NameId(group)]);
    std::string what = "a collective";
    if (call && call->name) what = trace_->names()[*call->name];
    if (call && call->tag) what += fmt::format(" '{}'", trace_->names()[*call->tag]);
    std::vector<std::int64_t> proof = {seq};
    if (call) proof.push_back(call->seq);
    report.found(invariant_name, seq,
                 fmt::format("rank {} waits in call {} of {} ({}), but rank {} ends the step after "
                             "{}: nobody will join "
                             "it",
                             waits, n_ended + 1, name, what, ended, counted(n_ended, "call")),
                 std::move(proof));
  }

  // Everything is answered by number; but ranks that each wait in another call never get there.
  void judge_order(std::int64_t seq, Report& report) {
    const bool have_parted = std::any_of(groups_.begin(), groups_.end(), [](const auto& entry) {
      return entry.second.is_mismatched();
    });
    if (!have_parted && !report.found_since(invariant_name, 0)) {
      const std::vector<WaitCycle::Wait> circle = waits_.find();
      if (!circle.empty()) tell_circle(circle, seq, report);
    }
    waits_.begin_step();
  }

  void tell_circle(const std::vector<WaitCycle::Wait>& circle, std::int64_t seq, Report& report) {
    std::string text;
    std::vector<std::int64_t> proof = {seq};
    for (const WaitCycle::Wait& wait : circle) {
      const std::string_view what =
          wait.what ? trace_->names()[*wait.what] : std::string_view("a receive");
      text += fmt::format("{}rank {} waits in {} (event {}) for rank {}", text.empty() ? "" : ", ",
                          wait.rank, what, wait.seq, wait.for_rank);
      proof.push_back(wait.seq);
    }
    report.found(
        invariant_name, seq,
        text + ": none of them can go on; expected an order in which all calls are answered",
        std::move(proof));
  }

  // A receive that nobody has sent for; a peer that is not in the trace may have.
  void judge_messages(std::int64_t seq, Report& report) {
    for (auto& [channel, messages] : channels_) {
      const auto& [from, to, tag] = channel;
      if (messages.received <= messages.sent || ranks_.count(from) == 0) continue;
      report.found(
          invariant_name, seq,
          fmt::format("rank {} waits since event {} for a message{} from rank {}, which sends {} "
                      "where rank {} "
                      "receives {}",
                      to, messages.recv_seq,
                      tag == 0xffffffff ? std::string()
                                        : fmt::format(" '{}'", trace_->names()[NameId(tag)]),
                      from, messages.sent, to, messages.received),
          {messages.recv_seq, seq});
      messages.received = messages.sent;
    }
  }

  std::map<std::uint32_t, CollectiveGroup> groups_;
  std::map<Channel, Messages> channels_;
  std::map<std::int64_t, std::vector<Ended>> ended_;  // rank → its steps that ended
  WaitCycle waits_;                                   // of the step that runs
  std::set<std::int64_t> ranks_;
  std::set<std::uint32_t> told_;  // groups whose ranks have parted: later numbers follow from that
  const Trace* trace_ = nullptr;
  bool any_end_ = false;
};

}  // namespace

std::unique_ptr<Invariant> no_deadlock() {
  return std::make_unique<NoDeadlock>();
}

}  // namespace remat
