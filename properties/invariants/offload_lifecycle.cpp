#include "properties/invariants/offload_lifecycle.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "properties/invariants/copies.hpp"
#include "properties/invariants/wording.hpp"

namespace remat {
namespace {

constexpr std::string_view invariant_name = "offload_lifecycle";

std::string shown(const CopyStep& step) {
  return fmt::format("a copy {} {}", step.is_out ? "to the host" : "back to the device",
                     step.begins ? "begins" : "ends");
}

std::vector<std::int64_t> proof(const std::optional<Absence>& absent, const EventView& event) {
  if (!absent || !absent->since.is_exact) return {event.seq()};
  return {absent->since.seq, event.seq()};
}

class OffloadLifecycle : public Invariant {
 public:
  void observe(const EventView& event, const Facts& facts, Report& report) override {
    if (const auto step = copy_step(event)) {
      any_copy_ = true;
      told_.erase(step->storage.number());
      observe_copy(*step, event, facts, report);
      return;
    }
    for (const Read& read : facts.reads())
      if (read.kind == ReadKind::slot) observe_slot_read(read, event, facts, report);
  }

  void finish(const Facts&, Report& report) override {
    if (!any_copy_) report.not_checked(invariant_name, "copy_begin and copy_end events");
  }

 private:
  static void observe_copy(const CopyStep& step, const EventView& event, const Facts& facts,
                           Report& report) {
    const std::optional<Absence> absent = facts.copies().absence(step.storage);
    const Whereabouts whereabouts = facts.copies().whereabouts(step.storage);
    if (whereabouts != step.before()) {
      report.found(invariant_name, event.seq(),
                   fmt::format("{} of {} {}, which is {}; expected it {}", shown(step),
                               shown(step.storage, facts, event.trace()), where(event, facts),
                               name_of(whereabouts), name_of(step.before())),
                   proof(absent, event));
      return;
    }
    if (!step.begins || !absent || !facts.in_replay()) return;
    report.found(invariant_name, event.seq(),
                 fmt::format("{} of {} {}, though it is {}; expected a replay to leave what is "
                             "offloaded alone",
                             shown(step), shown(step.storage, facts, event.trace()),
                             where(event, facts), name_of(whereabouts)),
                 proof(absent, event));
  }

  void observe_slot_read(const Read& read, const EventView& event, const Facts& facts,
                         Report& report) {
    const std::optional<Absence> absent = facts.copies().absence(read.storage);
    if (!absent || told_.contains(read.storage.number())) return;
    told_.insert(read.storage.number());
    const Slot* slot = facts.slot();
    report.found(
        invariant_name, event.seq(),
        fmt::format("{} is read {} while {} is {}, since {}event {}; expected the copy back to the "
                    "device to end before the read",
                    slot == nullptr ? std::string("a slot") : shown(*slot, event.trace()),
                    where(event, facts), shown(read.storage, facts, event.trace()),
                    name_of(absent->whereabouts), absent->since.is_exact ? "" : "before ",
                    absent->since.seq),
        proof(absent, event));
  }

  IdSet told_;  // storages whose early read was told since their last copy
  bool any_copy_ = false;
};

}  // namespace

std::unique_ptr<Invariant> offload_lifecycle() {
  return std::make_unique<OffloadLifecycle>();
}

}  // namespace remat
