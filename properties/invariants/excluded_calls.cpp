#include "properties/invariants/excluded_calls.hpp"

#include <algorithm>
#include <utility>

#include "properties/invariants/ended_by.hpp"

namespace remat {
namespace {

bool is_at(const OpenCall& call, const EventView& event) {
  return agrees(call.rank, event.integer(Field::rank)) &&
         agrees(call.thread, event.integer(Field::thread));
}

void insert_sorted(std::vector<std::int64_t>& leaves, std::int64_t leaf) {
  const auto at = std::lower_bound(leaves.begin(), leaves.end(), leaf);
  if (at == leaves.end() || *at != leaf) leaves.insert(at, leaf);
}

}  // namespace

bool ExcludedCalls::Wrapper::has_entries() const {
  return std::any_of(forward.begin(), forward.end(),
                     [](const ForwardCall& call) { return call.entry.has_value(); });
}

ExcludedCalls::Progress& ExcludedCalls::Wrapper::in(std::int64_t scope) {
  for (Progress& progress : replays)
    if (progress.scope == scope) return progress;
  replays.push_back({scope, 0, 0});
  return replays.back();
}

const OpenCall* ExcludedCalls::of(const EventView& event, std::optional<std::int64_t> frame) const {
  const auto wrapper = event.name(Field::wrapper);
  const auto number = event.integer(Field::call);
  for (std::size_t i = open_.size(); i-- > 0;) {
    const OpenCall& call = open_[i];
    if (call.wrapper == wrapper && agrees(call.frame, frame) && agrees(call.number, number) &&
        is_at(call, event))
      return &call;
  }
  return nullptr;
}

OpenCall* ExcludedCalls::find_open(const EventView& event, std::optional<std::int64_t> frame) {
  return const_cast<OpenCall*>(std::as_const(*this).of(event, frame));
}

const OpenCall* ExcludedCalls::around(const EventView& event) const {
  for (std::size_t i = open_.size(); i-- > 0;)
    if (is_at(open_[i], event)) return &open_[i];
  return nullptr;
}

const ExcludedCalls::Wrapper* ExcludedCalls::find(std::int64_t frame, NameId name) const {
  const auto found = frames_.find(frame);
  if (found == frames_.end()) return nullptr;
  for (const Wrapper& wrapper : found->second)
    if (wrapper.name == name) return &wrapper;
  return nullptr;
}

ExcludedCalls::Wrapper& ExcludedCalls::wrapper(std::int64_t frame, NameId name) {
  std::vector<Wrapper>& wrappers = frames_[frame];
  for (Wrapper& wrapper : wrappers)
    if (wrapper.name == name) return wrapper;
  wrappers.push_back({name, {}, {}});
  return wrappers.back();
}

const ForwardCall* ExcludedCalls::forward(std::int64_t frame, NameId name,
                                          std::size_t place) const {
  const Wrapper* of_wrapper = find(frame, name);
  return of_wrapper != nullptr && place < of_wrapper->forward.size() ? &of_wrapper->forward[place]
                                                                     : nullptr;
}

const ForwardCall* ExcludedCalls::forward(const OpenCall& call) const {
  return call.frame && call.forward ? forward(*call.frame, call.wrapper, *call.forward) : nullptr;
}

ForwardCall* ExcludedCalls::forward_of(const OpenCall& call) {
  return const_cast<ForwardCall*>(std::as_const(*this).forward(call));
}

void ExcludedCalls::enter(const EventView& event, std::optional<std::int64_t> frame,
                          bool is_replayed, std::int64_t scope) {
  const auto name = event.name(Field::wrapper);
  if (!name) return;
  OpenCall call;
  call.frame = frame;
  call.wrapper = *name;
  call.number = event.integer(Field::call);
  call.is_replayed = is_replayed;
  call.is_skipped = event.is_true(Field::skipped);
  call.rank = event.integer(Field::rank);
  call.thread = event.integer(Field::thread);
  call.enter_seq = event.seq();
  call.scope = scope;
  if (event.has(Field::inputs))
    call.n_inputs = static_cast<std::int64_t>(event.list_size(Field::inputs));
  if (frame && !is_replayed) {
    std::vector<ForwardCall>& calls = wrapper(*frame, *name).forward;
    call.forward = calls.size();
    ForwardCall& forward = calls.emplace_back();
    forward.number = call.number;
    forward.enter_seq = event.seq();
    forward.n_inputs = call.n_inputs;
  } else if (frame && find(*frame, *name) != nullptr) {
    // The entry that it takes tells which call it goes over; without entries their order does.
    Wrapper& of_wrapper = wrapper(*frame, *name);
    std::size_t& at = of_wrapper.in(scope).n_calls;
    while (at < of_wrapper.forward.size() && of_wrapper.forward[at].raised)
      ++at;
    if (!of_wrapper.has_entries() && at < of_wrapper.forward.size()) call.forward = at;
    ++at;
  }
  open_.push_back(std::move(call));
}

void ExcludedCalls::pass_boundary(const EventView& event, std::optional<std::int64_t> frame) {
  const auto leaf = event.integer(Field::leaf);
  OpenCall* call = find_open(event, frame);
  if (!leaf || call == nullptr) return;
  insert_sorted(call->boundaries, *leaf);
}

void ExcludedCalls::exit(const EventView& event, std::optional<std::int64_t> frame) {
  const OpenCall* call = find_open(event, frame);
  if (call == nullptr) return;
  if (!call->is_replayed) {
    if (ForwardCall* forward = forward_of(*call)) {
      forward->boundaries = call->boundaries;
      forward->rng_crc = event.integer(Field::rng_crc);
      forward->raised = !event.text(Field::ended_by).empty() && !returned(event) && !forward->entry;
    }
  }
  // With what it left open itself, not with what another rank is at meanwhile.
  const auto first = open_.begin() + (call - open_.data());
  open_.erase(
      std::remove_if(first, open_.end(), [&](const OpenCall& open) { return is_at(open, event); }),
      open_.end());
}

void ExcludedCalls::put(const EventView& event, std::int64_t frame,
                        std::vector<KeptOutput> outputs) {
  const auto name = event.name(Field::wrapper);
  if (!name) return;
  entries_are_recorded_ = true;
  const OpenCall* call = find_open(event, frame);
  std::vector<ForwardCall>& calls = wrapper(frame, *name).forward;
  const bool of_the_open_call = call != nullptr && !call->is_replayed && call->forward;
  if (!of_the_open_call) calls.emplace_back().number = event.integer(Field::call);
  ForwardEntry entry;
  entry.put_seq = event.seq();
  entry.rank = event.integer(Field::rank);
  entry.leaves = event.integer(Field::leaves);
  entry.keeps_output = event.boolean(Field::kept);
  entry.outputs = std::move(outputs);
  (of_the_open_call ? calls[*call->forward] : calls.back()).entry = std::move(entry);
}

AskedEntry ExcludedCalls::asked(const EventView& event, std::int64_t frame,
                                std::int64_t scope) const {
  AskedEntry asked;
  const auto name = event.name(Field::wrapper);
  const Wrapper* of_wrapper = name ? find(frame, *name) : nullptr;
  if (of_wrapper == nullptr) return asked;
  for (const Progress& progress : of_wrapper->replays)
    if (progress.scope == scope) asked.nth = progress.n_pops;
  const auto named = event.integer(Field::entry_call);
  for (std::size_t i = 0; i < of_wrapper->forward.size(); ++i) {
    const ForwardCall& call = of_wrapper->forward[i];
    if (!call.entry) continue;
    if (asked.n_entries++ == asked.nth) asked.nth_call = i;
    if (named && call.number == named) asked.named_call = i;
  }
  return asked;
}

void ExcludedCalls::pop(const EventView& event, std::int64_t frame, std::int64_t scope,
                        const AskedEntry& asked) {
  const auto name = event.name(Field::wrapper);
  if (!name) return;
  Wrapper& of_wrapper = wrapper(frame, *name);
  ++of_wrapper.in(scope).n_pops;
  const auto place = asked.named_call ? asked.named_call : asked.nth_call;
  if (OpenCall* call = find_open(event, frame)) call->forward = place;
  if (!place || event.boolean(Field::ok) == false) return;
  ForwardEntry& entry = *of_wrapper.forward[*place].entry;
  if (!entry.is_there()) return;
  entry.left_seq = event.seq();
  entry.left_in_scope = scope;
}

void ExcludedCalls::clear(const EventView& event, std::int64_t frame, std::int64_t scope) {
  const auto found = frames_.find(frame);
  if (found == frames_.end()) return;
  const auto only = event.name(Field::wrapper);
  for (Wrapper& of_wrapper : found->second) {
    if (only && of_wrapper.name != *only) continue;
    for (ForwardCall& call : of_wrapper.forward) {
      if (!call.entry || !call.entry->is_there()) continue;
      call.entry->left_seq = event.seq();
      call.entry->left_in_scope = scope;
    }
  }
}

void ExcludedCalls::end_calls_since(const EventView& event, std::int64_t seq) {
  std::erase_if(open_,
                [&](const OpenCall& call) { return call.enter_seq > seq && is_at(call, event); });
}

}  // namespace remat
