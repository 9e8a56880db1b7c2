#include "properties/invariants/version_unchanged.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "properties/invariants/ended_by.hpp"
#include "properties/invariants/excluded_versions.hpp"
#include "properties/invariants/relied_on.hpp"
#include "properties/invariants/told_handles.hpp"
#include "properties/invariants/wording.hpp"
#include "properties/invariants/writes_since.hpp"

namespace remat {
namespace {

constexpr std::string_view invariant_name = "version_unchanged";

/// What one replay has done so far.
struct Replay {
  IdSet reads;
  IdSet writes;
  bool body_is_unknown = false;  // of its forward
};

class VersionUnchanged : public Invariant {
 public:
  void observe(const EventView& event, const Facts& facts, Report& report) override {
    switch (event.kind()) {
      case Kind::mutate:
        observe_write(event, facts);
        break;
      case Kind::op:
        observe_op(event, facts, report);
        break;
      case Kind::pack:
        any_version_ = any_version_ || has_version(event);
        break;
      case Kind::unpack:
        observe_unpack(event, facts, report);
        break;
      case Kind::repack:
        observe_repack(event, facts, report);
        break;
      case Kind::slot_fill:
        observe_excluded_fill(event, facts, report);
        break;
      case Kind::cache_pop:
        ExcludedVersions::observe_pop(event, facts, report);
        break;
      case Kind::inputs_save:
        calls_.keep_inputs(event, facts);
        break;
      case Kind::inputs_unpack_begin:
        check_inputs(event, facts, report);
        break;
      case Kind::sac_decide:
        if (event.is_true(Field::saved)) calls_.keep_cached(event, facts);
        break;
      case Kind::sac_hit:
        check_kept(event, facts, ReliedOnBook::cache_key(event), report);
        break;
      case Kind::remat_persist:
        calls_.keep_output(event, facts);
        break;
      case Kind::remat_serve:
        check_kept(event, facts, ReliedOnBook::output_key(event), report);
        break;
      case Kind::phase_begin:
        in_question_.reset();
        break;
      case Kind::unit_end:
        observe_end(event, facts);
        break;
      case Kind::unpack_error:
        // K5: the read was refused, and nobody has told why.
        if (!report.found_since(facts.asked_seq())) observe_unpack(event, facts, report);
        observe_error(event, facts, report);
        break;
      case Kind::error:
        observe_error(event, facts, report);
        break;
      case Kind::frame_free:
      case Kind::step_end:
        for (const std::int64_t frame : facts.frames_gone())
          calls_.forget(frame);
        if (facts.ends_the_step()) replays_.clear();
        break;
      default:
        break;
    }
  }

  void finish(const Facts&, Report& report) override {
    if (!any_write_ && !any_version_)
      report.not_checked(invariant_name, "mutate events, or the version v of what is packed");
    if (n_unknown_bodies_ > 0) {
      report.not_checked(
          invariant_name,
          fmt::format("the reads of forward for {}: a unit_begin or ops with the unit's name (what "
                      "their replays read was not compared, their slots and inputs were)",
                      counted(n_unknown_bodies_, "replayed call")));
    }
  }

 private:
  static bool has_version(const EventView& event) {
    const auto tensor = event.tensor(Field::tensor);
    return tensor && tensor->version.has_value();
  }
  void observe_write(const EventView& event, const Facts& facts) {
    any_write_ = true;
    const auto number = event.integer(Field::storage);
    if (!number) return;
    const auto storage = facts.storages().find(*number);
    if (!storage) return;
    for (const Body& body : facts.bodies()) {
      if (body.replay) {
        replays_[body.scope].writes.insert(storage->number());
      } else {
        calls_.of(body.frame).writes.insert(storage->number());
      }
    }
  }

  // K4: forward's first read of what it did not make, against the replay's.
  void observe_op(const EventView& event, const Facts& facts, Report& report) {
    for (const Body& body : facts.bodies()) {
      for (const Read& read : facts.reads()) {
        if (body.replay) {
          check_read(event, facts, body, read.storage, report);
        } else if (!facts.made_by(body, read.storage)) {
          calls_.remember_read(event, facts, body.frame, read.storage);
        }
      }
    }
  }

  void check_read(const EventView& event, const Facts& facts, const Body& body, StorageId storage,
                  Report& report) {
    Replay& replay = replays_[body.scope];
    if (replay.reads.contains(storage.number())) return;
    replay.reads.insert(storage.number());
    const Frame* frame = facts.scopes().frame(body.frame);
    if (frame == nullptr || !frame->forward_known) {  // R2
      if (!std::exchange(replay.body_is_unknown, true)) ++n_unknown_bodies_;
      return;
    }
    const ReliedOn* call = calls_.find(body.frame);
    const Snapshot* first = call == nullptr ? nullptr : call->reads.find(storage.number());
    if (first == nullptr || replay.writes.contains(storage.number()) || is_external(facts, storage))
      return;
    if (facts.storages().version(storage) == first->version) return;
    if (told_at_inputs(facts, storage, body.frame, report)) return;
    report.found(
        invariant_name, event.seq(),
        fmt::format("{}, which forward read at event {}, is read by {} {}, but was {}; the replay "
                    "computes from "
                    "another value",
                    shown(storage, facts, event.trace()), first->seq, event.text(Field::name),
                    where(event, facts), writes_since(facts, storage, first->version)),
        proof_of_write(facts, storage, first->seq, event.seq()));
  }

  /// The same write was told when the region's inputs were fetched.
  bool told_at_inputs(const Facts& facts, StorageId storage, std::int64_t frame,
                      const Report& report) const {
    if (!last_inputs_seq_ || !report.found_since(invariant_name, *last_inputs_seq_)) return false;
    const ReliedOn* call = calls_.find(frame);
    if (call == nullptr) return false;
    for (const Snapshot& input : call->inputs) {
      if (input.storage == storage && facts.storages().version(storage) != input.version)
        return true;
    }
    return false;
  }

  // K2: kept tensors and filled slots.
  void observe_unpack(const EventView& event, const Facts& facts, Report& report) {
    const Slot* slot = facts.slot();
    if (slot == nullptr || slot->released_seq) return;
    const Fill* fill = slot->fill_for(facts.session());
    if (fill == nullptr && slot->held != Held::saved) return;
    const KeptTensor& kept = fill != nullptr ? fill->what : slot->packed;
    const std::int64_t since = fill != nullptr ? fill->seq : slot->packed_seq;
    if (!kept.storage) return;
    const std::string_view how = fill != nullptr ? "filled in" : "kept";
    if (!any_write_ && !facts.header().storages_have_lifetimes)
      return check_recorded_version(event, facts, *slot, kept, since, report);
    if (facts.storages().version(*kept.storage) == kept.version) return;
    if (in_question_ && told_at_inputs(facts, *kept.storage, *in_question_, report)) return;
    if (slot->held == Held::slot) {  // one input of a call may be saved several times
      if (told_.contains(*slot)) return;
      told_.insert(*slot);
    }
    report.found(
        invariant_name, event.seq(),
        fmt::format(
            "{} is read {}, but {}, {} at event {}, was {}; expected no write before the read",
            shown(*slot, event.trace()), where(event, facts),
            shown(*kept.storage, facts, event.trace()), how, since,
            writes_since(facts, *kept.storage, kept.version)),
        proof_of_write(facts, *kept.storage, since, event.seq()));
  }

  // M2: a recorder that sees no writes still knows the versions of what it packs.
  static void check_recorded_version(const EventView& event, const Facts& facts, const Slot& slot,
                                     const KeptTensor& kept, std::int64_t since, Report& report) {
    const auto tensor = event.tensor(Field::tensor);
    if (!tensor || !tensor->version || !kept.recorded_version ||
        *tensor->version == *kept.recorded_version)
      return;
    report.found(
        invariant_name, event.seq(),
        fmt::format(
            "{} is read {} at version {}, but it was kept or filled at version {} (event {})",
            shown(slot, event.trace()), where(event, facts), *tensor->version,
            *kept.recorded_version, since),
        {since, event.seq()});
  }

  // A slot refilled from the very storage that was packed: as K4.
  void observe_repack(const EventView& event, const Facts& facts, Report& report) {
    any_version_ = any_version_ || has_version(event);
    const Slot* slot = facts.slot();
    const Scope* scope = facts.replay();
    if (slot == nullptr || facts.reads().empty() ||
        slot->packed.storage != facts.reads().front().storage)
      return;
    const StorageId storage = facts.reads().front().storage;
    if (is_external(facts, storage) || facts.storages().version(storage) == slot->packed.version)
      return;
    if (scope != nullptr) {
      Replay& replay = replays_[scope->id];
      if (replay.writes.contains(storage.number()) || replay.reads.contains(storage.number()))
        return;
      replay.reads.insert(storage.number());
      if (told_at_inputs(facts, storage, scope->frame, report)) return;
    }
    report.found(invariant_name, event.seq(),
                 fmt::format("{} is filled {} from {}, the one packed at event {}, but that was "
                             "{}; the replay saves "
                             "another value",
                             shown(*slot, event.trace()), where(event, facts),
                             shown(storage, facts, event.trace()), slot->packed_seq,
                             writes_since(facts, storage, slot->packed.version)),
                 proof_of_write(facts, storage, slot->packed_seq, event.seq()));
  }

  void observe_excluded_fill(const EventView& event, const Facts& facts, Report& report) {
    any_version_ = any_version_ || has_version(event);
    const Slot* slot = facts.slot();
    const auto tensor = event.tensor(Field::tensor);
    const auto storage = tensor ? facts.storage_of(*tensor) : std::nullopt;
    if (slot == nullptr || slot->released_seq || !storage) return;
    if (slot->packed.storage == storage && is_told_as_read(facts, *storage, report)) return;
    excluded_.observe_fill(event, facts, *slot, any_write_, report);
  }

  /// As K4: the replay's own read of the storage is what tells the write, or excuses it.
  bool is_told_as_read(const Facts& facts, StorageId storage, const Report& report) const {
    if (is_external(facts, storage)) return true;
    const Scope* scope = facts.replay();
    if (scope == nullptr) return false;
    const Replay* replay = replays_.find(scope->id);
    if (replay != nullptr && replay->writes.contains(storage.number())) return true;
    const ReliedOn* call = calls_.find(scope->frame);
    const Snapshot* first = call == nullptr ? nullptr : call->reads.find(storage.number());
    const bool is_told = replay != nullptr && replay->reads.contains(storage.number()) &&
                         first != nullptr && first->version != facts.storages().version(storage);
    return is_told || told_at_inputs(facts, storage, scope->frame, report);
  }

  // K3: the real system stops right after it asks.
  void check_inputs(const EventView& event, const Facts& facts, Report& report) {
    last_inputs_seq_ = event.seq();
    in_question_ = facts.frame();
    const ReliedOn* call = facts.frame() ? calls_.find(*facts.frame()) : nullptr;
    if (call == nullptr) return;
    for (const Snapshot& input : call->inputs) {
      if (facts.storages().version(input.storage) == input.version) continue;
      report.found(invariant_name, event.seq(),
                   fmt::format("the inputs of {} are fetched {}, but {}, kept at event {}, was {}; "
                               "expected no write "
                               "before its replays",
                               shown_call(*facts.frame(), facts, event.trace()),
                               where(event, facts), shown(input.storage, facts, event.trace()),
                               input.seq, writes_since(facts, input.storage, input.version)),
                   proof_of_write(facts, input.storage, input.seq, event.seq()));
    }
  }

  void check_kept(const EventView& event, const Facts& facts, const KeptKey& key, Report& report) {
    const auto frame = facts.enclosing_frame();
    const ReliedOn* call = frame ? calls_.find(*frame) : nullptr;
    if (call == nullptr) return;
    const auto found = call->kept.find(key);
    if (found == call->kept.end()) return;
    for (const Snapshot& kept : found->second) {
      if (facts.storages().version(kept.storage) == kept.version) continue;
      const std::string what = event.kind() == Kind::sac_hit
                                   ? std::string(event.text(Field::op))
                                   : fmt::format("region {}", event.text(Field::region));
      report.found(invariant_name, event.seq(),
                   fmt::format("the kept output of {} is served {}, but {}, kept at event {}, was "
                               "{}; expected no write "
                               "while it is kept",
                               what, where(event, facts), shown(kept.storage, facts, event.trace()),
                               kept.seq, writes_since(facts, kept.storage, kept.version)),
                   proof_of_write(facts, kept.storage, kept.seq, event.seq()));
      return;
    }
  }

  void observe_end(const EventView& event, const Facts& facts) {
    const auto& scope = facts.ended_scope();
    if (!scope || !scope->replay) return;
    replays_.erase(scope->id);
    if (raised(event)) in_question_ = scope->frame;
    if (!raised(event) && in_question_ == scope->frame) in_question_.reset();
  }

  // K5: the run stops while something that the call in question relies on has been written since.
  void observe_error(const EventView& event, const Facts& facts, Report& report) {
    const Phase phase = event.phase();
    if (phase == Phase::setup || phase == Phase::forward || phase == Phase::optimizer) return;
    if (report.found_since(invariant_name, facts.step_begin_seq(event.integer(Field::rank)) + 1))
      return;
    std::optional<std::int64_t> frame = in_question_;
    if (const Slot* slot = facts.slot(); slot != nullptr && slot->frame) frame = slot->frame;
    if (frame) {
      accuse(event, facts, *frame, report);
      return;
    }
    if (event.kind() != Kind::error) return;
    // Nothing says which call it was: one of those without a frame, which a reentrant replay was
    // about to run.
    for (const std::int64_t stand_in : facts.scopes().stand_ins_not_replayed())
      if (accuse(event, facts, stand_in, report)) return;
  }

  bool accuse(const EventView& event, const Facts& facts, std::int64_t frame,
              Report& report) const {
    const std::optional<Snapshot> cause = calls_.written_since(facts, frame);
    if (!cause) return false;
    report.found(invariant_name, event.seq(),
                 fmt::format("the run stops with {} {}, and {} relies on {}, which it kept or read "
                             "at event {} and which "
                             "was {}",
                             event.has(Field::type) ? event.text(Field::type) : "an error",
                             where(event, facts), shown_call(frame, facts, event.trace()),
                             shown(cause->storage, facts, event.trace()), cause->seq,
                             writes_since(facts, cause->storage, cause->version)),
                 proof_of_write(facts, cause->storage, cause->seq, event.seq()));
    return true;
  }

  ReliedOnBook calls_;
  FlatMap<Replay> replays_;
  ExcludedVersions excluded_;
  ToldHandles told_;  // excluded regions' inputs whose read was told
  std::optional<std::int64_t> last_inputs_seq_;
  std::optional<std::int64_t>
      in_question_;  // the call whose replay raised, or whose inputs were fetched last
  bool any_write_ = false;
  bool any_version_ = false;
  std::int64_t n_unknown_bodies_ = 0;
};

}  // namespace

std::unique_ptr<Invariant> version_unchanged() {
  return std::make_unique<VersionUnchanged>();
}

}  // namespace remat
