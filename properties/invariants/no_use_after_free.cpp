#include "properties/invariants/no_use_after_free.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "properties/invariants/wording.hpp"

namespace remat {
namespace {

constexpr std::string_view invariant_name = "no_use_after_free";

std::string reader_of(const EventView& event, const Facts& facts, ReadKind kind) {
  const Slot* slot = facts.slot();
  switch (kind) {
    case ReadKind::op_input:
      return fmt::format("read by {}", event.text(Field::name));
    case ReadKind::slot:
      return slot == nullptr ? "read" : fmt::format("read through {}", shown(*slot, event.trace()));
    case ReadKind::fill:
      return slot == nullptr ? "put in a slot"
                             : fmt::format("put in {}", shown(*slot, event.trace()));
    case ReadKind::cache_hit:
      return fmt::format("served from the cache in place of {}", event.text(Field::op));
    case ReadKind::served:
      return fmt::format("served as an output of region {}", event.text(Field::region));
    case ReadKind::region_input:
      return "handed to a replay as a region's input";
    case ReadKind::kept_output:
      return fmt::format("handed to a replay as a kept output of {}",
                         shown_excluded_call(event, facts));
  }
  return {};
}

std::string shown(const ReleaseMoment& release) {
  return fmt::format("{} event {}", release.is_exact ? "at" : "before", release.seq);
}

std::vector<std::int64_t> proof(const ReleaseMoment& release, const EventView& event) {
  if (!release.is_exact) return {event.seq()};
  return {release.seq, event.seq()};
}

class NoUseAfterFree : public Invariant {
 public:
  void observe(const EventView& event, const Facts& facts, Report& report) override {
    switch (event.kind()) {
      case Kind::storage_free:
        any_death_ = true;
        observe_release(event, facts, report);
        break;
      case Kind::holder_free:
        any_death_ = true;
        break;
      case Kind::unpack_begin:
      case Kind::unpack:
        observe_request(event, facts, report);
        observe_reads(event, facts, report);
        break;
      case Kind::unpack_error:
        observe_request(event, facts, report);
        // A refusal that has been explained is no read.
        if (!report.found_since(facts.asked_seq())) observe_reads(event, facts, report);
        break;
      default:
        observe_reads(event, facts, report);
        break;
    }
  }

  void finish(const Facts& facts, Report& report) override {
    if (!facts.header().storages_have_lifetimes) {
      report.not_checked(
          invariant_name,
          "storage_alloc and storage_free events, which the header says are not recorded");
    } else if (!any_death_) {
      report.not_checked(invariant_name, "storage_free or holder_free events");
    }
  }

 private:
  void observe_release(const EventView& event, const Facts& facts, Report& report) {
    const auto number = event.integer(Field::storage);
    const auto storage = number ? facts.storages().find(*number) : std::nullopt;
    if (!storage) return;
    told_.erase(storage->number());
    const auto before = facts.storages().released(*storage);
    if (!before || !facts.header().storages_have_lifetimes) return;
    report.found(
        invariant_name, event.seq(),
        fmt::format("{} is released {} a second time, the first was {}; a storage is released "
                    "once, by its owner",
                    shown(*storage, facts, event.trace()), where(event, facts), shown(*before)),
        proof(*before, event));
  }

  // U5
  static void observe_request(const EventView& event, const Facts& facts, Report& report) {
    const auto name = event.name(Field::slot);
    const auto released = name ? facts.slots().released(*name) : std::nullopt;
    if (!released || report.found_since(invariant_name, released->seq)) return;
    report.found(
        invariant_name, event.seq(),
        fmt::format(
            "{} is asked for {}, but its owner released it {}; expected the read before the "
            "release",
            facts.slot() != nullptr ? shown(*facts.slot(), event.trace())
                                    : fmt::format("slot {}", event.text(Field::slot)),
            where(event, facts), shown(*released)),
        proof(*released, event));
  }

  void observe_reads(const EventView& event, const Facts& facts, Report& report) {
    if (!facts.header().storages_have_lifetimes) return;
    for (const Read& read : facts.reads()) {
      if (!facts.storages().is_released(read.storage)) continue;
      if (event.kind() == Kind::op && is_set_anew(event, read)) continue;
      // O1: a slot's read of what is offloaded is offload_lifecycle's.
      const bool is_offloaded = facts.copies().absence(read.storage).has_value();
      if (is_offloaded && read.kind == ReadKind::slot) continue;
      if (told_.contains(read.storage.number())) continue;  // the first read tells the fault
      told_.insert(read.storage.number());
      const ReleaseMoment released = *facts.storages().released(read.storage);
      report.found(
          invariant_name, event.seq(),
          fmt::format("{} is {} {}, but it was released {}; expected the release after "
                      "its last reader",
                      shown(read.storage, facts, event.trace()), reader_of(event, facts, read.kind),
                      where(event, facts), shown(released)),
          proof(released, event));
    }
  }

  // U3: `set_` gives a tensor another storage, it does not read the old one.
  static bool is_set_anew(const EventView& event, const Read& read) {
    if (!read.tensor) return false;
    for (std::size_t i = 0; i < event.list_size(Field::outputs); ++i) {
      const TensorView output = event.tensor_item(Field::outputs, i);
      if (output.tensor == read.tensor && output.storage &&
          *output.storage != read.storage.number())
        return true;
    }
    return false;
  }

  IdSet told_;  // storages whose late reader was told since their last release
  bool any_death_ = false;
};

}  // namespace

std::unique_ptr<Invariant> no_use_after_free() {
  return std::make_unique<NoUseAfterFree>();
}

}  // namespace remat
