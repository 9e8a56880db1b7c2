#include "properties/invariants/saved_lists_match.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "properties/invariants/ended_by.hpp"
#include "properties/invariants/layouts_agree.hpp"
#include "properties/invariants/told_handles.hpp"
#include "properties/invariants/wording.hpp"

namespace remat {
namespace {

constexpr std::string_view invariant_name = "saved_lists_match";

std::int64_t storage_bytes(const Facts& facts, StorageId storage) {
  if (const LiveStorage* live = facts.storages().live(storage)) return live->bytes;
  for (const Facts::Birth& birth : facts.births())
    if (birth.storage == storage) return birth.bytes;
  return 0;
}

/// F4: the op has an output on a storage that is not an input's and is larger than 0.
bool makes_new_bytes(const EventView& event, const Facts& facts) {
  for (std::size_t i = 0; i < event.list_size(Field::outputs); ++i) {
    const TensorView output = event.tensor_item(Field::outputs, i);
    const auto storage = output.storage ? facts.storages().find(*output.storage) : std::nullopt;
    if (!storage || storage_bytes(facts, *storage) <= 0) continue;
    const bool is_an_input = std::any_of(facts.reads().begin(), facts.reads().end(),
                                         [&](const Read& read) { return read.storage == storage; });
    if (!is_an_input) return true;
  }
  return false;
}

class SavedListsMatch : public Invariant {
 public:
  void observe(const EventView& event, const Facts& facts, Report& report) override {
    switch (event.kind()) {
      case Kind::repack:
        any_fill_ = true;
        observe_repack(event, facts, report);
        break;
      case Kind::slot_fill:
        any_fill_ = true;
        observe_excluded_fill(event, facts, report);
        break;
      case Kind::unpack:
        observe_unpack(event, facts, report);
        break;
      case Kind::op:
        observe_op(event, facts, report);
        break;
      case Kind::unit_end:
        observe_end(event, facts, report);
        break;
      case Kind::frame_free:
      case Kind::step_end:
        forget(facts);
        break;
      default:
        break;
    }
  }

  void finish(const Facts&, Report& report) override {
    if (!any_fill_) report.not_checked(invariant_name, "repack events: what replays save");
    if (n_unknown_bodies_ > 0) {
      report.not_checked(
          invariant_name,
          fmt::format("the ops of forward for {}: a unit_begin or ops with the unit's name "
                      "(their op paths were not compared, their slots were)",
                      counted(n_unknown_bodies_, "replayed call")));
    }
  }

 private:
  struct Replay {
    std::size_t cursor = 0;  // how much of forward's path is matched
    std::int64_t next_index = 0;
    bool path_broken = false;  // not compared any more
    bool is_told = false;      // it takes another path
    bool index_broken = false;
  };

  void observe_repack(const EventView& event, const Facts& facts, Report& report) {
    const Slot* slot = facts.slot();
    if (slot == nullptr) return observe_surplus(event, facts, report);
    observe_gap(event, facts, *slot, report);
    observe_fill(event, facts, slot->is_brought ? CompareOffset::no : CompareOffset::yes, report);
  }

  // F3: forward saved no such thing.
  static void observe_surplus(const EventView& event, const Facts& facts, Report& report) {
    const auto index = event.integer(Field::idx);
    const Frame* frame = facts.frame() ? facts.scopes().frame(*facts.frame()) : nullptr;
    const bool by_index = index && event.has(Field::frame);
    if (by_index && (frame == nullptr || frame->forward_open)) return;
    if (!by_index && !event.has(Field::slot)) return;
    const std::string what =
        by_index ? fmt::format("save {} of {}", *index, shown(*frame, event.trace()))
                 : fmt::format("slot {}", event.text(Field::slot));
    const std::string saved =
        by_index ? fmt::format("forward saved {}", counted(std::ssize(frame->saves), "tensor"))
                 : std::string("forward saved nothing under that name");
    report.found(invariant_name, event.seq(),
                 fmt::format("{} is filled {}, but {}; the replay saves more than forward did",
                             what, where(event, facts), saved),
                 {event.seq()});
  }

  // S8: a replay goes over a frame from its start.
  void observe_gap(const EventView& event, const Facts& facts, const Slot& slot, Report& report) {
    const auto index = event.integer(Field::idx);
    const Scope* scope = facts.replay();
    if (!index || scope == nullptr || scope->frame != event.integer(Field::frame)) return;
    Replay& replay = replays_[scope->id];
    const std::int64_t expected = std::exchange(replay.next_index, *index + 1);
    if (*index == expected || replay.index_broken) return;
    replay.index_broken = true;
    report.found(invariant_name, event.seq(),
                 fmt::format("{} is filled {} as save {}, where save {} was due; a replay saves "
                             "from the start on, without "
                             "a gap",
                             shown(slot, event.trace()), where(event, facts), *index, expected),
                 {scope->begin_seq, event.seq()});
  }

  /// Tells a layout that is not the packed one.
  bool observe_fill(const EventView& event, const Facts& facts, CompareOffset offset,
                    Report& report) {
    const Slot* slot = facts.slot();
    const auto tensor = event.tensor(Field::tensor);
    if (slot == nullptr || !tensor || !slot->packed.layout) return false;
    const Trace& trace = event.trace();
    const Layout& packed = trace.layout(*slot->packed.layout);
    const Layout& filled = trace.layout(tensor->layout);
    if (layouts_agree(packed, filled, offset)) return false;
    told_[slot->name.index()] = event.seq();
    report.found(
        invariant_name, event.seq(),
        fmt::format(
            "{} was packed as {} and is filled {} with {}; expected the layout that forward saved",
            shown(*slot, trace), shown(packed, trace), where(event, facts), shown(filled, trace)),
        {slot->packed_seq, event.seq()});
    return true;
  }

  // X5, X7: the layout that forward packed, and made by the same op.
  void observe_excluded_fill(const EventView& event, const Facts& facts, Report& report) {
    const Slot* slot = facts.slot();
    const auto tensor = event.tensor(Field::tensor);
    if (slot == nullptr || slot->released_seq || !tensor || told_handles_.contains(*slot)) return;
    if (observe_fill(event, facts, CompareOffset::no, report)) return told_handles_.insert(*slot);
    const KeptTensor filled = facts.kept(*tensor);
    if (!slot->packed.maker || !filled.maker || slot->packed.maker == filled.maker) return;
    if (has_left_the_path(facts)) return;  // R1
    told_handles_.insert(*slot);
    const NameTable& names = event.trace().names();
    report.found(invariant_name, event.seq(),
                 fmt::format("{} was packed with what {} made and is filled {} with what {} made; "
                             "expected the value that forward saved",
                             shown(*slot, event.trace()), names[*slot->packed.maker],
                             where(event, facts), names[*filled.maker]),
                 {slot->packed_seq, event.seq()});
  }

  /// The replay has been told to go another way than forward.
  bool has_left_the_path(const Facts& facts) const {
    const Replay* replay = facts.in_replay() ? replays_.find(facts.replay()->id) : nullptr;
    return replay != nullptr && (replay->is_told || replay->index_broken);
  }

  // F2: again at the read, for what was filled in and for what was kept.
  void observe_unpack(const EventView& event, const Facts& facts, Report& report) {
    const Slot* slot = facts.slot();
    const auto tensor = event.tensor(Field::tensor);
    if (slot == nullptr || !tensor || slot->released_seq) return;
    const Fill* fill = slot->fill_for(facts.session());
    if (fill == nullptr && slot->held != Held::saved) return;
    const KeptTensor& given = fill != nullptr ? fill->what : slot->packed;
    if (!given.layout) return;
    if (const std::int64_t* told = told_.find(slot->name.index());
        told != nullptr && *told >= slot->packed_seq)
      return;
    const Trace& trace = event.trace();
    const Layout& layout = trace.layout(*given.layout);
    const Layout& read = trace.layout(tensor->layout);
    if (layouts_agree(layout, read, CompareOffset::yes)) return;
    // R1: what a second request gets, or what is handed out from elsewhere, has been told.
    if (report.found_since("slot_used_once", facts.asked_seq())) return;
    const std::string_view how = fill != nullptr ? "filled" : "kept";
    report.found(
        invariant_name, event.seq(),
        fmt::format("{} was {} as {} and is read {} as {}; expected the layout that was {}{}",
                    shown(*slot, trace), how, shown(layout, trace), where(event, facts),
                    shown(read, trace), how, fill != nullptr ? " in" : ""),
        {fill != nullptr ? fill->seq : slot->packed_seq, event.seq()});
  }

  // F4: a subsequence of forward's path by name; ops that were kept do not run and so leave no
  // trace.
  void observe_op(const EventView& event, const Facts& facts, Report& report) {
    const auto name = event.name(Field::name);
    if (facts.bodies().empty() || !name) return;
    const bool new_bytes = makes_new_bytes(event, facts);
    // R4: of an op of forward whose outputs were not recorded nobody knows that it made none.
    const bool may_make_new_bytes = new_bytes || event.list_size(Field::outputs) == 0;
    for (const Body& body : facts.bodies()) {
      if (!body.replay && may_make_new_bytes) paths_[body.frame].push_back(*name);
      if (body.replay && new_bytes) follow(event, facts, body, *name, report);
    }
  }

  void follow(const EventView& event, const Facts& facts, const Body& body, NameId name,
              Report& report) {
    Replay& replay = replays_[body.scope];
    const Frame* frame = facts.scopes().frame(body.frame);
    if (frame == nullptr || !frame->forward_known || frame->forward_open) {
      if (!std::exchange(replay.path_broken, true) && (frame == nullptr || !frame->forward_known))
        ++n_unknown_bodies_;
      return;
    }
    if (replay.path_broken) return;
    const std::vector<NameId>* path = paths_.find(body.frame);
    const std::size_t size = path == nullptr ? 0 : path->size();
    std::size_t at = replay.cursor;
    while (at < size && (*path)[at] != name)
      ++at;
    if (at < size) {
      replay.cursor = at + 1;
      return;
    }
    replay.path_broken = replay.is_told = true;
    const std::string reached =
        replay.cursor == 0
            ? std::string()
            : fmt::format(" after {}", event.trace().names()[(*path)[replay.cursor - 1]]);
    report.found(invariant_name, event.seq(),
                 fmt::format("{} runs {}, but forward of {} has no such op{}: the replay takes "
                             "another path; expected "
                             "forward's ops in forward's order",
                             event.text(Field::name), where(event, facts),
                             shown(*frame, event.trace()), reached),
                 {frame->forward_seq, body.begin_seq, event.seq()});
  }

  // F3: what returned has saved everything that somebody still holds.
  void observe_end(const EventView& event, const Facts& facts, Report& report) {
    const auto& scope = facts.ended_scope();
    if (!scope || !scope->replay) return;
    replays_.erase(scope->id);
    const Frame* frame = facts.scopes().frame(scope->frame);
    if (!returned(event) || frame == nullptr || frame->forward_open) return;
    std::string missing;
    std::int64_t n_missing = 0;
    std::vector<std::int64_t> proof = {scope->begin_seq, event.seq()};
    for (const NameId save : frame->saves) {
      const Slot* slot = facts.slots().find(save);
      if (slot == nullptr || slot->released_seq || slot->held != Held::placeholder) continue;
      if (slot->fill_for(scope->session) != nullptr) continue;
      if (++n_missing <= 3) {
        missing += fmt::format("{}{}", missing.empty() ? "" : ", ", event.trace().names()[save]);
        proof.push_back(slot->packed_seq);
      }
    }
    if (n_missing == 0) return;
    if (n_missing > 3) missing += ", …";
    report.found(
        invariant_name, event.seq(),
        fmt::format("the replay of {}{} has returned without filling {} ({}); expected it to save "
                    "all that forward saved",
                    shown(*frame, event.trace()),
                    scope->session ? " for " + shown(scope->session, event.trace()) : std::string(),
                    counted(n_missing, "slot"), missing),
        std::move(proof));
  }

  void forget(const Facts& facts) {
    for (const std::int64_t frame : facts.frames_gone())
      paths_.erase(frame);
    if (facts.ends_the_step()) replays_.clear();
  }

  FlatMap<std::vector<NameId>> paths_;  // frame → forward's ops that make new bytes
  FlatMap<Replay> replays_;             // scope → how far it is
  ToldHandles told_handles_;
  FlatMap<std::int64_t> told_;  // slot → event at which a wrong layout was told
  std::int64_t n_unknown_bodies_ = 0;
  bool any_fill_ = false;
};

}  // namespace

std::unique_ptr<Invariant> saved_lists_match() {
  return std::make_unique<SavedListsMatch>();
}

}  // namespace remat
