#include "properties/invariants/stream_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "properties/invariants/wording.hpp"

namespace remat {
namespace {

constexpr std::string_view invariant_name = "stream_order";

/// How much of every stream's work is known to be done: one entry a stream, by its number.
using VectorClock = std::vector<std::int64_t>;

void join(VectorClock& into, const VectorClock& other) {
  if (into.size() < other.size()) into.resize(other.size(), 0);
  for (std::size_t i = 0; i < other.size(); ++i)
    into[i] = std::max(into[i], other[i]);
}

/// The last access of one kind by one stream: earlier ones of that stream come before it.
struct Access {
  std::size_t stream = 0;
  bool write = false;
  std::int64_t clock = 0;
  std::int64_t seq = 0;
};

class StreamOrder : public Invariant {
 public:
  void observe(const EventView& event, const Facts& facts, Report& report) override {
    const auto stream = event.name(Field::stream);
    if (!stream) return;
    const std::int64_t rank = event.integer(Field::rank).value_or(-1);
    const std::size_t at = stream_number(rank, *stream);
    switch (event.kind()) {
      case Kind::launch:
        observe_launch(event, facts, at, report);
        break;
      case Kind::record:
        if (const auto name = event.name(Field::event))
          recorded_[{rank, name->index()}] = clocks_[at];
        break;
      case Kind::wait: {
        const auto name = event.name(Field::event);
        const auto found = name ? recorded_.find({rank, name->index()}) : recorded_.end();
        if (found != recorded_.end()) join(clocks_[at], found->second);
        break;
      }
      default:
        break;
    }
  }

  void finish(const Facts&, Report& report) override {
    if (clocks_.size() < 2)
      report.not_checked(invariant_name, "launch events on two or more streams");
  }

 private:
  using Place = std::pair<std::int64_t, std::uint32_t>;  // rank and name

  std::size_t stream_number(std::int64_t rank, NameId name) {
    const auto [entry, is_new] = streams_.try_emplace({rank, name.index()}, clocks_.size());
    if (is_new) {
      clocks_.emplace_back();
      names_.push_back(name);
      ranks_.push_back(rank);
    }
    return entry->second;
  }

  void observe_launch(const EventView& event, const Facts& facts, std::size_t stream,
                      Report& report) {
    VectorClock& clock = clocks_[stream];
    if (clock.size() <= stream) clock.resize(stream + 1, 0);
    ++clock[stream];
    for (std::size_t i = 0; i < event.list_size(Field::reads); ++i)
      access(event, facts, stream, event.list_item(Field::reads, i), false, report);
    for (std::size_t i = 0; i < event.list_size(Field::writes); ++i)
      access(event, facts, stream, event.list_item(Field::writes, i), true, report);
  }

  void access(const EventView& event, const Facts& facts, std::size_t stream, std::int64_t storage,
              bool write, Report& report) {
    std::vector<Access>& before = accesses_[storage];
    const VectorClock& clock = clocks_[stream];
    for (const Access& earlier : before) {
      if (earlier.stream == stream || !(write || earlier.write)) continue;
      if (ranks_[earlier.stream] != ranks_[stream]) continue;  // another device's memory
      const std::int64_t known = earlier.stream < clock.size() ? clock[earlier.stream] : 0;
      if (earlier.clock <= known) continue;
      const std::string_view name = event.trace().names()[names_[earlier.stream]];
      report.found(
          invariant_name, event.seq(),
          fmt::format(
              "{} on stream {} {} {} {}, which stream {} {} at event {}, and no event orders the "
              "two; "
              "expected a record on {} and a wait for it on {}",
              event.has(Field::name) ? fmt::format("'{}'", event.text(Field::name)) : "work",
              event.text(Field::stream), where(event, facts), write ? "writes" : "reads",
              shown_storage(storage, facts, event.trace()), name,
              earlier.write ? "writes" : "reads", earlier.seq, name, event.text(Field::stream)),
          {earlier.seq, event.seq()});
      break;  // one finding for one access
    }
    const auto same = [&](const Access& other) {
      return other.stream == stream && other.write == write;
    };
    const auto found = std::find_if(before.begin(), before.end(), same);
    const Access now{stream, write, clock[stream], event.seq()};
    if (found == before.end()) {
      before.push_back(now);
    } else {
      *found = now;
    }
  }

  static std::string shown_storage(std::int64_t number, const Facts& facts, const Trace& trace) {
    const auto storage = facts.storages().find(number);
    return storage ? shown(*storage, facts, trace) : fmt::format("storage {}", number);
  }

  std::map<Place, std::size_t> streams_;
  std::vector<NameId> names_;        // of the streams
  std::vector<std::int64_t> ranks_;  // likewise
  std::vector<VectorClock> clocks_;
  std::map<Place, VectorClock> recorded_;
  FlatMap<std::vector<Access>> accesses_;  // storage → the last accesses of each stream
};

}  // namespace

std::unique_ptr<Invariant> stream_order() {
  return std::make_unique<StreamOrder>();
}

}  // namespace remat
