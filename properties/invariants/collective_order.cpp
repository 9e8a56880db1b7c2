#include "properties/invariants/collective_order.hpp"

#include <fmt/format.h>

#include <map>
#include <string>

#include "properties/invariants/collective_book.hpp"
#include "properties/invariants/wording.hpp"

namespace remat {
namespace {

constexpr std::string_view invariant_name = "collective_order";

std::string shown_call(const CollectiveCall& call, const Trace& trace) {
  std::string text =
      call.name ? std::string(trace.names()[*call.name]) : std::string("a collective");
  if (call.tag) text += fmt::format(" '{}'", trace.names()[*call.tag]);
  if (call.n) text += fmt::format(" of {}", *call.n);
  return text;
}

class CollectiveOrder : public Invariant {
 public:
  void observe(const EventView& event, const Facts& facts, Report& report) override {
    if (event.kind() == Kind::step_end) {
      if (facts.ends_the_step()) end_step();
      return;
    }
    const auto group = event.name(Field::group);
    const CollectiveCall call = collective_call(event);
    CollectiveGroup& of_group = groups_[group ? group->index() : 0xffffffff];
    const auto first = of_group.issue(call);
    if (!first) return;
    const std::int64_t number = of_group.issued().at(call.rank);
    report.found(
        invariant_name, event.seq(),
        fmt::format(
            "call {} of {} is {} {}, but rank {} issued {} as that call, at event {}; expected the "
            "same collectives in the same order on every rank",
            number,
            group ? fmt::format("group {}", event.text(Field::group)) : "the group without a name",
            shown_call(call, event.trace()), where(event, facts), first->rank,
            shown_call(*first, event.trace()), first->seq),
        {first->seq, event.seq()});
  }

  void finish(const Facts&, Report& report) override {
    for (const auto& [group, calls] : groups_)
      if (calls.issued().size() > 1) return;
    report.not_checked(invariant_name, "collective events of two or more ranks");
  }

 private:
  // R1: ranks that end a step after unequal numbers of calls are no_deadlock's, and from there on
  // their numbers mean nothing.
  void end_step() {
    for (auto& [group, calls] : groups_)
      calls.part_if_uneven();
  }

  std::map<std::uint32_t, CollectiveGroup> groups_;
};

}  // namespace

std::unique_ptr<Invariant> collective_order() {
  return std::make_unique<CollectiveOrder>();
}

}  // namespace remat
