#include "sim/offloader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/uses.hpp"

namespace remat {

Offloader::Offloader(const Program& program, const OffloadPolicy& policy, const LinkRates& links,
                     Ledger& ledger, EventLog& log)
    : program_(&program), policy_(policy), links_(links), ledger_(&ledger), log_(&log) {
  for (const Forward& forward : program.forwards)
    plans_.push_back(plan_of(program, forward));
}

/// Where the groups lie, and which statement reads each buffer last.
Offloader::Plan Offloader::plan_of(const Program& program, const Forward& forward) {
  Plan plan;
  const auto read_at = [&](std::size_t at) {
    return [&plan, &program, at](ValueId value, Use) {
      plan.last_reader[program.values[value].buffer.index()] = at + 1;
    };
  };
  const std::size_t end = forward.statements.size();
  for (std::size_t at = 0; at < end; ++at) {
    each_use(forward, at, read_at(at));
    if (const auto* group = std::get_if<OffloadBegin>(&forward.statements[at]))
      plan.groups.push_back({group->name, group->level, at, group->end});
  }
  if (forward.root) read_at(end)(*forward.root, Use::read);
  for (const ValueId root : forward.other_roots)
    read_at(end)(root, Use::read);
  return plan;
}

OffloadGroup Offloader::group_at(std::size_t forward, std::size_t statement) const {
  const std::vector<Group>& groups = plans_[forward].groups;
  const auto found =
      std::lower_bound(groups.begin(), groups.end(), statement,
                       [](const Group& group, std::size_t at) { return group.begin < at; });
  return static_cast<OffloadGroup>(found - groups.begin());
}

void Offloader::begin_forward(MicrobatchKey microbatch, std::size_t forward) {
  drop(microbatch);
  Microbatch& made = microbatches_[microbatch];
  made.forward = forward;
  const std::size_t n_groups = plans_[forward].groups.size();
  made.leaving.resize(n_groups);
  made.sent_behind.resize(n_groups);
  made.kept_by.resize(n_groups);
  current_ = &made;
}

void Offloader::resume(MicrobatchKey microbatch) {
  const auto found = microbatches_.find(microbatch);
  if (found != microbatches_.end()) current_ = &found->second;
}

void Offloader::keep_on_device(std::uint32_t storage) {
  if (current_ != nullptr) current_->stays.insert(ledger_->number(storage));
}

void Offloader::keep(KeptAs as, const Tensor& tensor, std::optional<OffloadGroup> group) {
  const std::uint32_t storage = tensor.hold.storage();
  if (!group || !policy_.takes(as)) return keep_on_device(storage);
  if (current_ == nullptr) return;
  Microbatch& of = *current_;
  const Kept kept{storage, ledger_->number(storage), tensor.value, ledger_->version(storage)};
  Keepers& keepers = of.keepers[kept.number];
  if (keepers.groups.empty() || keepers.groups.back() != *group) keepers.groups.push_back(*group);
  if (!keepers.leaves_behind)
    keepers.leaves_behind = leaves_behind(of, storage, tensor.value, *group);
  if (!keepers.leaves_behind) return;
  std::vector<Kept>& leaving = of.leaving[*keepers.leaves_behind];
  if (keepers.place && *keepers.place < leaving.size()) {
    leaving[*keepers.place] = kept;
  } else {
    keepers.place = leaving.size();
    leaving.push_back(kept);
  }
}

/// All that is told of it but whether forward reads it again.
OffloadCandidate Offloader::candidate(const Microbatch& of, std::uint32_t storage,
                                      ValueId value) const {
  const BufferRole role = program_->buffers[program_->values[value].buffer].role;
  const bool is_parameters = role == BufferRole::param || role == BufferRole::buffer;
  return {.bytes = ledger_->bytes(storage),
          .is_parameters = is_parameters,
          .is_callers = role != BufferRole::none && !is_parameters,
          .is_read_later = false,
          .has_other_owner = of.stays.contains(ledger_->number(storage))};
}

/// The group that its last reader lies in or comes before, and no earlier than the one that keeps
/// it; none: it never leaves.
std::optional<OffloadGroup> Offloader::leaves_behind(const Microbatch& of, std::uint32_t storage,
                                                     ValueId value, OffloadGroup group) const {
  const std::vector<Group>& groups = plan(of).groups;
  OffloadCandidate asked = candidate(of, storage, value);
  if (!policy_.may_leave(asked)) return std::nullopt;
  const std::size_t* const last = plan(of).last_reader.find(program_->values[value].buffer.index());
  OffloadGroup behind = group;
  while (last != nullptr && behind < groups.size() && *last > groups[behind].end)
    ++behind;
  asked.is_read_later = behind != group;
  if (policy_.may_leave(asked)) return group;
  if (behind == groups.size()) return std::nullopt;
  return behind;
}

bool Offloader::may_leave(const Microbatch& of, const Kept& kept) const {
  return ledger_->is_alive(kept.storage, kept.number) && ledger_->is_kept(kept.storage) &&
         policy_.may_leave(candidate(of, kept.storage, kept.value));
}

std::optional<Offloader::Written> Offloader::leave(OffloadGroup group) {
  Microbatch& of = *current_;
  const OffloadMoves moves = policy_.after_forward(group, plan(of).groups.size());
  if (moves.begin) {
    std::vector<Kept>& leaving = of.leaving[*moves.begin];
    std::erase_if(leaving, [&](const Kept& kept) { return !may_leave(of, kept); });
    for (const Kept& kept : leaving) {
      const OffloadGroup keeper = of.keepers.find(kept.number)->groups.back();
      if (ledger_->version(kept.storage) != kept.version)
        return Written{kept.value, plan(of).groups[keeper].name};
    }
    send(of, *moves.begin);
  }
  if (moves.wait) await(of, of.sent_behind[*moves.wait], true);
  return std::nullopt;
}

/// What the group's copies are to wait for: all that the compute stream was given.
void Offloader::begin_batch(std::string_view stream) {
  const std::string event = fmt::format("c{}", n_events_++);
  log_->stream_event(Kind::record, compute_stream, event);
  log_->stream_event(Kind::wait, stream, event);
}

/// Who waits for the event finds the copies done.
std::string Offloader::end_batch(std::string_view stream) {
  std::string event = fmt::format("{}{}", stream, n_events_++);
  log_->stream_event(Kind::record, stream, event);
  return event;
}

/// A link carries one copy after the other.
Instant Offloader::copied_by(std::int64_t bytes, MemoryLevel level, bool is_out) {
  const auto at = static_cast<std::size_t>(level);
  Instant& free_at = free_at_[at][is_out ? 1 : 0];
  const std::int64_t begin = std::max(free_at.ns, log_->now().ns);
  free_at = {saturated_sum(begin, copy_time(bytes, links_[at]).ns)};
  return free_at;
}

/// Each storage goes where the last group that keeps something on it says; one batch a level.
void Offloader::send(Microbatch& of, OffloadGroup group) {
  const std::vector<Kept> leaving = std::move(of.leaving[group]);
  of.leaving[group].clear();
  for (std::size_t level = 0; level < memory_level_count; ++level) {
    std::vector<Kept> going;
    for (const Kept& kept : leaving) {
      const OffloadGroup keeper = of.keepers.find(kept.number)->groups.back();
      if (static_cast<std::size_t>(plan(of).groups[keeper].level) == level) going.push_back(kept);
    }
    if (!going.empty()) begin_copies_out(of, group, static_cast<MemoryLevel>(level), going);
  }
}

void Offloader::begin_copies_out(Microbatch& of, OffloadGroup behind, MemoryLevel level,
                                 std::span<const Kept> going) {
  const std::string_view stream = copy_stream(level, true);
  begin_batch(stream);
  const std::size_t first = of.sent.size();
  for (const Kept& kept : going) {
    ledger_->begin_copy_out(kept.storage, level);
    log_->launch(stream, "d2h", {&kept.number, 1}, {});
    for (const OffloadGroup keeper : of.keepers.find(kept.number)->groups)
      of.kept_by[keeper].push_back(of.sent.size());
    of.sent_behind[behind].push_back(of.sent.size());
    of.sent.push_back({.storage = kept.storage,
                       .number = kept.number,
                       .level = level,
                       .ready = copied_by(ledger_->bytes(kept.storage), level, true),
                       .event = {}});
  }
  const std::string event = end_batch(stream);
  for (std::size_t i = first; i < of.sent.size(); ++i)
    of.sent[i].event = event;
}

bool Offloader::is_in(const Sent& sent, Residence residence) const {
  return ledger_->is_alive(sent.storage, sent.number) &&
         ledger_->residence(sent.storage) == residence;
}

void Offloader::await(Microbatch& of, std::span<const std::size_t> places, bool is_out) {
  const Residence on_the_way = is_out ? Residence::on_the_way_out : Residence::on_the_way_in;
  const std::string* waited = nullptr;
  for (const std::size_t place : places) {
    const Sent& sent = of.sent[place];
    if (!is_in(sent, on_the_way)) continue;
    const bool is_new = waited == nullptr || *waited != sent.event;
    if (is_new && (is_out || !drops_waits_))
      log_->stream_event(Kind::wait, compute_stream, sent.event);
    waited = &sent.event;
    const std::int64_t left = sent.ready.ns - log_->now().ns;
    if (left > 0) {
      log_->spend({left});
      waited_.ns = saturated_sum(waited_.ns, left);
    }
    is_out ? ledger_->end_copy_out(sent.storage) : ledger_->end_copy_in(sent.storage);
  }
}

void Offloader::bring(Microbatch& of, OffloadGroup group) {
  for (std::size_t level = 0; level < memory_level_count; ++level) {
    std::vector<std::size_t> coming;
    for (const std::size_t place : of.kept_by[group]) {
      const Sent& sent = of.sent[place];
      if (static_cast<std::size_t>(sent.level) == level && is_in(sent, Residence::away))
        coming.push_back(place);
    }
    if (!coming.empty()) begin_copies_in(of, static_cast<MemoryLevel>(level), coming);
  }
}

void Offloader::begin_copies_in(Microbatch& of, MemoryLevel level,
                                std::span<const std::size_t> coming) {
  const std::string_view stream = copy_stream(level, false);
  begin_batch(stream);
  for (const std::size_t place : coming) {
    Sent& sent = of.sent[place];
    ledger_->begin_copy_in(sent.storage);
    log_->launch(stream, "h2d", {}, {&sent.number, 1});
    sent.ready = copied_by(ledger_->bytes(sent.storage), level, false);
  }
  const std::string event = end_batch(stream);
  for (const std::size_t place : coming)
    of.sent[place].event = event;
}

void Offloader::enter_backward(MicrobatchKey microbatch, OffloadGroup group) {
  const auto found = microbatches_.find(microbatch);
  if (found == microbatches_.end() || found->second.in_backward_of == group) return;
  Microbatch& of = found->second;
  of.in_backward_of = group;
  const OffloadMoves moves = policy_.before_backward(group, plan(of).groups.size());
  // A backward that left groups out has not begun to bring this one's.
  if (moves.wait) bring(of, *moves.wait);
  if (moves.begin) bring(of, *moves.begin);
  if (moves.wait) await(of, of.kept_by[*moves.wait], false);
}

/// What died with the graph gave its copy up; what did not, for whatever reason, comes to its end.
void Offloader::drop(MicrobatchKey microbatch) {
  const auto found = microbatches_.find(microbatch);
  if (found == microbatches_.end()) return;
  Microbatch& of = found->second;
  for (const std::vector<std::size_t>& places : of.sent_behind) {
    await(of, places, true);
    await(of, places, false);
  }
  if (current_ == &of) current_ = nullptr;
  microbatches_.erase(found);
}

void Offloader::end_step() {
  while (!microbatches_.empty())
    drop(microbatches_.begin()->first);
  n_events_ = 0;
}

}  // namespace remat
