#include "properties/invariants/excluded_versions.hpp"

#include <fmt/format.h>

#include <vector>

#include "properties/invariants/wording.hpp"
#include "properties/invariants/writes_since.hpp"

namespace remat {
namespace {

constexpr std::string_view invariant_name = "version_unchanged";

}  // namespace

// X6: a body may write its input before it saves it, or after; the replay does neither.
void ExcludedVersions::observe_fill(const EventView& event, const Facts& facts, const Slot& slot,
                                    bool any_write, Report& report) {
  const KeptTensor& packed = slot.packed;
  const KeptTensor filled = facts.kept(*event.tensor(Field::tensor));
  if (!packed.storage || !filled.storage || told_.contains(slot)) return;
  if (!any_write && !facts.header().storages_have_lifetimes) {  // M2
    if (packed.recorded_version && filled.recorded_version)
      compare(event, facts, slot, *packed.recorded_version, *filled.recorded_version, report);
  } else if (packed.storage == filled.storage) {
    // K6: one storage has one count of writes, over all its lives.
    compare(event, facts, slot, packed.version, filled.version, report);
  } else if (packed.writes && filled.writes) {
    compare(event, facts, slot, *packed.writes, *filled.writes, report);
  }
}

void ExcludedVersions::compare(const EventView& event, const Facts& facts, const Slot& slot,
                               std::int64_t at_pack, std::int64_t at_fill, Report& report) {
  if (at_pack == at_fill) return;
  // R1: another value than forward's was told, and has its own count of writes.
  const std::int64_t since = facts.in_replay() ? facts.replay()->begin_seq : event.seq();
  if (report.found_since("saved_lists_match", since)) return;
  told_.insert(slot);
  std::vector<std::int64_t> proof = {slot.packed_seq, event.seq()};
  for (const auto& storage :
       {slot.packed.storage, facts.storage_of(*event.tensor(Field::tensor))}) {
    if (const auto written = facts.storages().written_seq(*storage)) proof.push_back(*written);
  }
  report.found(
      invariant_name, event.seq(),
      fmt::format("{} is filled {} with a value after {}, but was packed after {} (event {}); "
                  "expected the value that forward saved",
                  shown(slot, event.trace()), where(event, facts), counted(at_fill, "write"),
                  counted(at_pack, "write"), slot.packed_seq),
      std::move(proof));
}

// X10
void ExcludedVersions::observe_pop(const EventView& event, const Facts& facts, Report& report) {
  const auto& asked = facts.asked_entry();
  const auto wrapper = event.name(Field::wrapper);
  if (!asked || !asked->nth_call || !wrapper) return;
  const ForwardEntry& entry =
      *facts.excluded_calls().forward(*facts.frame(), *wrapper, *asked->nth_call)->entry;
  if (!entry.is_there()) return;  // told as an entry used twice
  for (const KeptOutput& output : entry.outputs) {
    if (facts.storages().version(output.storage) == output.version) continue;
    report.found(invariant_name, event.seq(),
                 fmt::format("{} takes its kept output {}, but {}, kept at event {}, was {}; "
                             "expected no write while it is kept",
                             shown_excluded_call(event, facts), where(event, facts),
                             shown(output.storage, facts, event.trace()), entry.put_seq,
                             writes_since(facts, output.storage, output.version)),
                 proof_of_write(facts, output.storage, entry.put_seq, event.seq()));
    return;
  }
}

}  // namespace remat
