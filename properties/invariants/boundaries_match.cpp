#include "properties/invariants/boundaries_match.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "properties/invariants/ended_by.hpp"
#include "properties/invariants/wording.hpp"

namespace remat {
namespace {

constexpr std::string_view invariant_name = "boundaries_match";

/// A tensor without data: who made it, and in place of which output.
struct Placeholder {
  std::optional<NameId> wrapper;
  std::optional<NameId> region;  // of torch_remat
  std::optional<std::int64_t> call;
  std::optional<std::int64_t> frame;
  std::optional<std::int64_t> output;
  std::optional<std::int64_t> made_seq;
  std::int64_t storage_born_seq = 0;  // another life of the storage is no placeholder
  bool is_told = false;               // the first that reads it tells the fault
};

std::string listed(const std::vector<std::int64_t>& leaves) {
  if (leaves.empty()) return "no output";
  std::string text = leaves.size() == 1 ? "output " : "outputs ";
  for (std::size_t i = 0; i < leaves.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(leaves[i]);
  return text;
}

class BoundariesMatch : public Invariant {
 public:
  void observe(const EventView& event, const Facts& facts, Report& report) override {
    switch (event.kind()) {
      case Kind::cache_pop:
        any_call_ = true;
        observe_pop(event, facts, report);
        break;
      case Kind::wrapper_exit:
        any_call_ = true;
        observe_exit(event, facts, report);
        break;
      case Kind::repack:
        observe_repack(event, facts, report);
        break;
      case Kind::slot_fill:
        observe_fill(event, facts, report);
        break;
      case Kind::placeholder:
      case Kind::remat_placeholder:
        any_call_ = true;
        if (const auto tensor = event.tensor(Field::tensor))
          remember(made_by(event, facts), facts.storage_of(*tensor), tensor->tensor, facts);
        break;
      case Kind::placeholder_read:
        any_call_ = true;
        observe_placeholder_read(event, facts, report);
        break;
      case Kind::op:
        if (!placeholders_.empty()) observe_op(event, facts, report);
        break;
      case Kind::op_error:
        if (!placeholders_.empty()) observe_op_error(event, facts, report);
        break;
      case Kind::step_end:
        if (facts.ends_the_step()) forget();
        break;
      default:
        break;
    }
  }

  void finish(const Facts&, Report& report) override {
    if (!any_call_) {
      report.not_checked(
          invariant_name,
          "wrapper_exit, cache_pop or placeholder events: calls of excluded regions");
    }
  }

 private:
  // X9, X13
  static void observe_pop(const EventView& event, const Facts& facts, Report& report) {
    const auto& asked = facts.asked_entry();
    const auto wrapper = event.name(Field::wrapper);
    if (!asked || !wrapper) return;
    if (!asked->nth_call) {
      report.found(invariant_name, event.seq(),
                   fmt::format("{} asks {} for the {} entry, but forward left {} there; expected "
                               "no more calls in a replay than in forward",
                               shown_excluded_call(event, facts), where(event, facts),
                               ordinal(asked->nth + 1),
                               asked->n_entries == 0 ? "none" : std::to_string(asked->n_entries)),
                   {event.seq()});
      return;
    }
    const ForwardCall& forward = *facts.excluded_calls().forward(
        *facts.frame(), *wrapper, asked->named_call.value_or(*asked->nth_call));
    if (!forward.entry->is_there()) return;  // told as an entry used twice
    const OpenCall* call = facts.excluded_call();
    if (call != nullptr && call->n_inputs && forward.n_inputs &&
        call->n_inputs != forward.n_inputs) {
      report.found(
          invariant_name, event.seq(),
          fmt::format("{} gets {} {}, but got {} in forward (event {}); expected as many",
                      shown_excluded_call(event, facts), counted(*call->n_inputs, "tensor"),
                      where(event, facts), *forward.n_inputs, forward.enter_seq),
          {forward.enter_seq, call->enter_seq, event.seq()});
    }
    const auto leaves = event.integer(Field::leaves);
    if (leaves && forward.entry->leaves && leaves != forward.entry->leaves) {
      report.found(
          invariant_name, event.seq(),
          fmt::format("{} takes an entry of {} {}, but {} were put there at event {}; expected "
                      "as many",
                      shown_excluded_call(event, facts), counted(*leaves, "output"),
                      where(event, facts), *forward.entry->leaves, forward.entry->put_seq),
          {forward.entry->put_seq, event.seq()});
    }
  }

  void observe_exit(const EventView& event, const Facts& facts, Report& report) {
    const OpenCall* call = facts.excluded_call();
    if (call == nullptr || !call->is_replayed) return;
    const ForwardCall* forward = facts.excluded_calls().forward(*call);
    if (forward == nullptr) return;
    if (returned(event)) compare_boundaries(event, facts, *call, *forward, report);
    if (forward->entry && forward->entry->keeps_output == false) remember_outputs(event, facts);
  }

  // X12
  static void compare_boundaries(const EventView& event, const Facts& facts, const OpenCall& call,
                                 const ForwardCall& forward, Report& report) {
    if (call.boundaries == forward.boundaries) return;
    report.found(invariant_name, event.seq(),
                 fmt::format("{} has boundaries on {} {}, but had them on {} in forward (event "
                             "{}); expected the same outputs in both",
                             shown_excluded_call(event, facts), listed(call.boundaries),
                             where(event, facts), listed(forward.boundaries), forward.enter_seq),
                 {forward.enter_seq, call.enter_seq, event.seq()});
  }

  void remember_outputs(const EventView& event, const Facts& facts) {
    Placeholder made = made_by(event, facts);
    for (std::size_t i = 0; i < event.list_size(Field::outputs); ++i) {
      const std::int64_t tensor = event.list_item(Field::outputs, i);
      made.output = static_cast<std::int64_t>(i);
      remember(made, facts.storages().of_tensor(tensor), tensor, facts);
    }
  }

  static Placeholder made_by(const EventView& event, const Facts& facts) {
    Placeholder made;
    made.wrapper = event.name(Field::wrapper);
    made.region = event.name(Field::region);
    made.call = event.integer(Field::call);
    made.frame = facts.frame();
    made.output =
        event.has(Field::leaf) ? event.integer(Field::leaf) : event.integer(Field::output);
    made.made_seq = event.seq();
    return made;
  }

  void remember(Placeholder made, std::optional<StorageId> storage,
                std::optional<std::int64_t> tensor, const Facts& facts) {
    if (!storage) return;
    made.storage_born_seq = born_seq(facts, *storage);
    const auto row = static_cast<std::uint32_t>(placeholders_.size());
    placeholders_.push_back(made);
    by_storage_[storage->number()] = row;
    if (tensor) by_tensor_[*tensor] = row;
  }

  static std::int64_t born_seq(const Facts& facts, StorageId storage) {
    const LiveStorage* live = facts.storages().live(storage);
    return live == nullptr ? -1 : live->born_seq;
  }

  /// What the tensor stands for, if its storage is a placeholder's: of the object itself where it
  /// is known, for one storage may serve them all.
  Placeholder* found(const Facts& facts, std::optional<StorageId> storage,
                     std::optional<std::int64_t> tensor) {
    const std::uint32_t* row = storage ? by_storage_.find(storage->number()) : nullptr;
    if (row == nullptr || placeholders_[*row].storage_born_seq != born_seq(facts, *storage))
      return nullptr;
    const std::uint32_t* own_row = tensor ? by_tensor_.find(*tensor) : nullptr;
    return &placeholders_[own_row != nullptr ? *own_row : *row];
  }

  static std::string shown(const Placeholder& placeholder, const Facts& facts, const Trace& trace) {
    std::string text = "the placeholder";
    if (placeholder.wrapper)
      text += " of " + shown_wrapper(*placeholder.wrapper, placeholder.call, trace);
    if (placeholder.region)
      text += fmt::format(" of region {}", trace.names()[*placeholder.region]);
    if (placeholder.output) text += fmt::format(", output {}", *placeholder.output);
    if (placeholder.frame) {
      text += placeholder.output ? ", of " : " of ";
      text += shown_call(*placeholder.frame, facts, trace);
    }
    if (placeholder.made_seq) text += fmt::format(" (event {})", *placeholder.made_seq);
    return text;
  }

  /// `before` and `after`: what is said around the placeholder's name.
  static void tell(const EventView& event, const Facts& facts, Placeholder& read,
                   const std::string& before, const std::string& after, Report& report) {
    if (std::exchange(read.is_told, true)) return;
    report.found(invariant_name, event.seq(),
                 fmt::format("{}{}{}; expected the output to be kept for the replay, or its "
                             "consumer to be excluded too",
                             before, shown(read, facts, event.trace()), after),
                 {read.made_seq.value_or(event.seq()), event.seq()});
  }

  // X15
  void observe_op(const EventView& event, const Facts& facts, Report& report) {
    if (event.has(Field::internal)) return;
    for (const Read& read : facts.reads()) {
      Placeholder* placeholder = found(facts, read.storage, read.tensor);
      if (placeholder == nullptr || is_view_of(event, read.storage)) continue;
      return tell(event, facts, *placeholder,
                  fmt::format("{} {} reads ", event.text(Field::name), where(event, facts)),
                  ", which holds no data", report);
    }
  }

  /// All that the op gives lies on the storage itself.
  static bool is_view_of(const EventView& event, StorageId storage) {
    const std::size_t n_outputs = event.list_size(Field::outputs);
    for (std::size_t i = 0; i < n_outputs; ++i)
      if (event.tensor_item(Field::outputs, i).storage != storage.number()) return false;
    return n_outputs > 0;
  }

  void observe_op_error(const EventView& event, const Facts& facts, Report& report) {
    for (std::size_t i = 0; i < event.list_size(Field::inputs); ++i) {
      const std::int64_t tensor = event.list_item(Field::inputs, i);
      Placeholder* placeholder = found(facts, facts.storages().of_tensor(tensor), tensor);
      if (placeholder == nullptr) continue;
      return tell(event, facts, *placeholder,
                  fmt::format("{} {} raises on ", event.text(Field::name), where(event, facts)),
                  ", which holds no data", report);
    }
  }

  void observe_placeholder_read(const EventView& event, const Facts& facts, Report& report) {
    const auto tensor = event.tensor(Field::tensor);
    Placeholder* known = tensor ? found(facts, facts.storage_of(*tensor), tensor->tensor) : nullptr;
    Placeholder unknown = made_by(event, facts);
    unknown.made_seq.reset();
    tell(event, facts, known != nullptr ? *known : unknown, "",
         fmt::format(" is read {} as data", where(event, facts)), report);
  }

  // X14
  void observe_repack(const EventView& event, const Facts& facts, Report& report) {
    const Slot* slot = facts.slot();
    if (slot == nullptr) return;
    const bool is_boundary = event.is_true(Field::boundary);
    if (slot->is_boundary != is_boundary) {
      report.found(
          invariant_name, event.seq(),
          fmt::format("{} {} a boundary's save, but is filled {} with {}; expected a boundary in "
                      "both or in neither",
                      remat::shown(*slot, event.trace()), slot->is_boundary ? "is" : "is not",
                      where(event, facts), is_boundary ? "that of a boundary" : "that of an op"),
          {slot->packed_seq, event.seq()});
    }
    if (!is_boundary && !slot->is_boundary) observe_fill(event, facts, report);
  }

  // X15
  void observe_fill(const EventView& event, const Facts& facts, Report& report) {
    const auto tensor = event.tensor(Field::tensor);
    const Slot* slot = facts.slot();
    if (slot == nullptr || !tensor || placeholders_.empty()) return;
    Placeholder* read = found(facts, facts.storage_of(*tensor), tensor->tensor);
    if (read == nullptr) return;
    tell(event, facts, *read,
         fmt::format("{} is filled {} from ", remat::shown(*slot, event.trace()),
                     where(event, facts)),
         ", which holds no data", report);
  }

  void forget() {
    placeholders_.clear();
    by_storage_.clear();
    by_tensor_.clear();
  }

  std::vector<Placeholder> placeholders_;  // of this step
  FlatMap<std::uint32_t> by_storage_;      // storage → the last one on it
  FlatMap<std::uint32_t> by_tensor_;
  bool any_call_ = false;
};

}  // namespace

std::unique_ptr<Invariant> boundaries_match() {
  return std::make_unique<BoundariesMatch>();
}

}  // namespace remat
