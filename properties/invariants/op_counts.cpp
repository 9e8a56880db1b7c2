#include "properties/invariants/op_counts.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "properties/invariants/expectations.hpp"
#include "properties/invariants/wording.hpp"

namespace remat {
namespace {

constexpr std::string_view invariant_name = "op_counts";

/// `the step`, or `the step's replay phase`: what is counted over.
std::string counted_over(const ExpectedCount& expected) {
  if (expected.phase == Phase::none) return "the step";
  return fmt::format("the step's {} phase", name_of(expected.phase));
}

class OpCounts : public Invariant {
 public:
  void observe(const EventView& event, const Facts& facts, Report& report) override {
    switch (event.kind()) {
      case Kind::header: {
        const std::vector<ExpectedCount> expected = expected_op_counts(facts.header());
        for (const ExpectedCount& row : expected)
          counts_.push_back({row, 0});
        break;
      }
      case Kind::op:
        last_op_ = event.name(Field::name);
        observe_excluded_op(event, facts, report);
        if (!event.has(Field::internal)) count(event, facts, report);
        break;
      case Kind::side_effect:
        any_effect_ = true;
        count(event, facts, report);
        observe_effect(event, facts, report);
        break;
      case Kind::mutate:
        any_effect_ = true;
        observe_write(event, facts, report);
        break;
      case Kind::unit_end:
        if (facts.ended_scope()) replays_.erase(facts.ended_scope()->id);
        break;
      case Kind::frame_free:
      case Kind::step_end:
        if (event.kind() == Kind::step_end) observe_end(event, facts, report);
        for (const std::int64_t frame : facts.frames_gone())
          calls_.erase(frame);
        break;
      default:
        break;
    }
  }

  void finish(const Facts&, Report& report) override {
    if (counts_.empty() && !any_effect_) {
      report.not_checked(invariant_name,
                         "expect.op_counts in the header, or side_effect or mutate events");
    } else if (!counts_.empty() && !any_end_) {
      report.not_checked(invariant_name, "a step_end event: what runs too rarely shows there");
    }
  }

 private:
  struct Count {
    ExpectedCount expected;
    std::int64_t got = 0;
  };
  /// The effects of a call's forward, and those that a replay repeated.
  struct Effects {
    IdSet names;
    IdSet writes;
  };

  const std::vector<std::size_t>& expected_rows(NameId name, const Trace& trace) {
    std::vector<std::size_t>* known = rows_of_.find(name.index());
    if (known != nullptr) return *known;
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < counts_.size(); ++i)
      if (counts_[i].expected.name == trace.names()[name]) rows.push_back(i);
    return rows_of_[name.index()] = std::move(rows);
  }

  bool is_expected(std::optional<NameId> name, const Trace& trace) {
    return name && !expected_rows(*name, trace).empty();
  }

  // C1: one too many is certain at the event that exceeds.
  void count(const EventView& event, const Facts& facts, Report& report) {
    const auto name = event.name(Field::name);
    if (!name || counts_.empty()) return;
    for (const std::size_t row : expected_rows(*name, event.trace())) {
      Count& of_name = counts_[row];
      if (of_name.expected.phase != Phase::none && of_name.expected.phase != facts.phase())
        continue;
      if (++of_name.got != of_name.expected.count + 1) continue;
      report.found(invariant_name, event.seq(),
                   fmt::format("{} runs {} for the {} time in {}; the policy allows {}",
                               of_name.expected.name, where(event, facts), ordinal(of_name.got),
                               counted_over(of_name.expected), of_name.expected.count),
                   {event.seq()});
    }
  }

  void observe_end(const EventView& event, const Facts& facts, Report& report) {
    any_end_ = true;
    if (!facts.ends_the_step()) return;
    for (Count& of_name : counts_) {
      if (of_name.got < of_name.expected.count && !facts.stopped_at()) {
        report.found(invariant_name, event.seq(),
                     fmt::format("{} ran {} in {}; the policy asks for {}", of_name.expected.name,
                                 counted(of_name.got, "time"), counted_over(of_name.expected),
                                 of_name.expected.count),
                     {event.seq()});
      }
      of_name.got = 0;
    }
    replays_.clear();
  }

  // X16: what the replay goes over without running its body.
  void observe_excluded_op(const EventView& event, const Facts& facts, Report& report) {
    const OpenCall* call = facts.excluded_call();
    if (call == nullptr || event.has(Field::internal)) return;
    if (!call->is_skipped && !call->is_replayed) return;  // R3: a forward of its own
    if (call->enter_seq == told_call_) return;            // R1: its first op tells
    told_call_ = call->enter_seq;
    report.found(invariant_name, event.seq(),
                 fmt::format("{} runs {}, inside {}; expected the body of an excluded region to "
                             "run once, in forward",
                             event.text(Field::name), where(event, facts),
                             shown_wrapper(call->wrapper, call->number, event.trace())),
                 {call->enter_seq, event.seq()});
  }

  // C2
  void observe_effect(const EventView& event, const Facts& facts, Report& report) {
    const auto name = event.name(Field::name);
    if (!name) return;
    for (const Body& body : facts.bodies()) {
      if (!body.replay) {
        calls_[body.frame].names.insert(name->index());
        continue;
      }
      const Effects* forward = calls_.find(body.frame);
      if (forward == nullptr || !forward->names.contains(name->index()) ||
          is_expected(name, event.trace()))
        continue;
      Effects& repeated = replays_[body.scope];
      if (repeated.names.contains(name->index())) continue;
      repeated.names.insert(name->index());
      report.found(
          invariant_name, event.seq(),
          fmt::format("the side effect {} of forward runs again {}; expected it once, in forward",
                      event.text(Field::name), where(event, facts)),
          {body.begin_seq, event.seq()});
    }
  }

  void observe_write(const EventView& event, const Facts& facts, Report& report) {
    const auto number = event.integer(Field::storage);
    const auto storage = number ? facts.storages().find(*number) : std::nullopt;
    if (!storage) return;
    const auto name = event.has(Field::name) ? event.name(Field::name) : last_op_;
    for (const Body& body : facts.bodies()) {
      if (facts.made_by(body, *storage)) continue;
      if (!body.replay) {
        calls_[body.frame].writes.insert(storage->number());
        continue;
      }
      const Effects* forward = calls_.find(body.frame);
      if (forward == nullptr || !forward->writes.contains(storage->number()) ||
          is_expected(name, event.trace()))
        continue;
      Effects& repeated = replays_[body.scope];
      if (repeated.writes.contains(storage->number())) continue;
      repeated.writes.insert(storage->number());
      report.found(
          invariant_name, event.seq(),
          fmt::format(
              "{}, from outside {}, was written in place by its forward and is written again {}{}; "
              "expected the write once",
              shown_storage(event, facts, *storage), shown_call(body.frame, facts, event.trace()),
              where(event, facts),
              name ? fmt::format(" by {}", event.trace().names()[*name]) : std::string()),
          {body.begin_seq, event.seq()});
    }
  }

  static std::string shown_storage(const EventView& event, const Facts& facts, StorageId storage) {
    return remat::shown(storage, facts, event.trace());
  }

  std::vector<Count> counts_;
  FlatMap<std::vector<std::size_t>> rows_of_;  // name → rows of `counts_`
  FlatMap<Effects> calls_;                     // frame → effects of its forward
  FlatMap<Effects> replays_;                   // scope → effects that it repeated
  std::optional<NameId> last_op_;
  std::int64_t told_call_ = -1;  // the replayed call, by its entry, that was last told to run
  bool any_effect_ = false;
  bool any_end_ = false;
};

}  // namespace

std::unique_ptr<Invariant> op_counts() {
  return std::make_unique<OpCounts>();
}

}  // namespace remat
