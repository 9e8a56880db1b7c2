#include "traces/summary.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "model/flat_map.hpp"

namespace remat {
namespace {

constexpr std::string_view detach_name = "aten.detach.default";

/// Counts by a number that stands for a name; the name is spelled when first met.
class Tally {
 public:
  template <typename Spell>
  void add(std::int64_t key, Spell spell) {
    std::uint32_t& row = rows_[key];
    if (row == 0) {
      counts_.push_back({spell(), 0});
      row = static_cast<std::uint32_t>(counts_.size());
    }
    ++counts_[row - 1].second;
  }
  Counts counts() const {
    Counts sums;
    for (const auto& [name, n] : counts_)
      sums[name] += n;
    return sums;
  }
  bool empty() const { return counts_.empty(); }

 private:
  FlatMap<std::uint32_t> rows_;  // the row's number plus one
  std::vector<std::pair<std::string, std::int64_t>> counts_;
};

std::int64_t key_of(std::optional<NameId> name) {
  return name ? 1 + std::int64_t{name->index()} : 0;
}
std::int64_t key_of(std::optional<NameId> a, std::optional<NameId> b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(key_of(a)) << 32U) | key_of(b);
}

std::string spelling(const EventView& event, Field field) {
  return event.name(field) ? std::string(event.text(field)) : "None";
}

std::optional<std::string> optional_text(const EventView& event, Field field) {
  if (!event.has(field)) return std::nullopt;
  return std::string(event.text(field));
}

using PhaseTallies = std::array<Tally, phase_count>;

std::map<Phase, Counts> counts_by_phase(const PhaseTallies& tallies) {
  std::map<Phase, Counts> counts;
  for (std::size_t phase = 0; phase < phase_count; ++phase)
    if (!tallies[phase].empty()) counts[static_cast<Phase>(phase)] = tallies[phase].counts();
  return counts;
}

/// The rows of units, found by (unit, micro-batch); neighbouring events mostly mean the same row.
class UnitRows {
 public:
  UnitSummary& row(const EventView& event, NameId unit) { return rows_[index(event, unit)]; }
  std::size_t index(const EventView& event, NameId unit) {
    const Key key{unit, event.integer(Field::microbatch)};
    if (last_ && last_->first == key) return last_->second;
    const auto [found, is_new] = index_.try_emplace(key, rows_.size());
    if (is_new) {
      rows_.emplace_back();
      rows_.back().unit = event.trace().names()[unit];
      rows_.back().microbatch = key.second;
    }
    last_ = {key, found->second};
    return found->second;
  }
  UnitSummary& operator[](std::size_t index) { return rows_[index]; }
  const std::vector<UnitSummary>& rows() const { return rows_; }

 private:
  using Key = std::pair<NameId, std::optional<std::int64_t>>;
  std::map<Key, std::size_t> index_;
  std::optional<std::pair<Key, std::size_t>> last_;
  std::vector<UnitSummary> rows_;
};

ReplayBegin replay_begin(const EventView& event) {
  ReplayBegin begin{.seq = event.seq(),
                    .unit = spelling(event, Field::unit),
                    .inv = event.integer(Field::inv),
                    .microbatch = event.integer(Field::microbatch),
                    .frame = event.integer(Field::frame),
                    .session_kind = {},
                    .graph_task = event.integer(Field::graph_task),
                    .node = {},
                    .nested_in = std::string(event.text(Field::nested_in))};
  const NameTable& names = event.trace().names();
  if (const auto session = event.session(Field::gid))
    begin.session_kind = names[event.trace().session(*session).kind];
  if (const auto node = event.node(Field::node)) begin.node = names[node->name];
  return begin;
}

}  // namespace

class SummaryBuilder::Impl {
 public:
  void observe(const EventView& event);
  TraceSummary finish();

 private:
  void observe_op(const EventView& event);
  void observe_unit_begin(const EventView& event);
  void observe_early_stop(const EventView& event);
  void observe_pack(const EventView& event);
  void observe_unpack(const EventView& event);
  void observe_forward_end(const EventView& event);
  void observe_error(const EventView& event);

  TraceSummary summary_;
  LiveBytes bytes_;
  std::int64_t steps_begun_ = 0;
  std::int64_t steps_ended_ = 0;
  PhaseTallies ops_;
  PhaseTallies hook_ops_;
  Tally packs_by_unit_;
  Tally packs_by_held_;
  Tally unpacks_;
  std::optional<NameId> detach_;
  FlatMap<std::size_t> slot_rows_;  // slot, while its holder lives → row of the unit that packed it
  UnitRows units_;
};

void SummaryBuilder::Impl::observe(const EventView& event) {
  ++summary_.events;
  bytes_.observe(event);
  switch (event.kind()) {
    case Kind::op:
      return observe_op(event);
    case Kind::pack:
      return observe_pack(event);
    case Kind::unpack:
      return observe_unpack(event);
    case Kind::unit_begin:
      return observe_unit_begin(event);
    case Kind::early_stop:
      return observe_early_stop(event);
    case Kind::phase_end:
      return observe_forward_end(event);
    case Kind::error:
    case Kind::no_error:
      return observe_error(event);
    case Kind::holder_free:
      if (const auto slot = event.name(Field::slot)) slot_rows_.erase(slot->index());
      return;
    case Kind::step_begin:
      ++steps_begun_;
      return;
    case Kind::step_end:
      ++steps_ended_;
      return;
    case Kind::sac_decide:
      summary_.sac_saved += event.is_true(Field::saved) ? 1 : 0;
      return;
    case Kind::sac_hit:
      ++summary_.sac_hits;
      return;
    default:
      return;  // the other kinds are in the total only
  }
}

void SummaryBuilder::Impl::observe_op(const EventView& event) {
  const auto name = event.name(Field::name);
  const auto phase = static_cast<std::size_t>(event.phase());
  const auto spell = [&] { return spelling(event, Field::name); };
  if (event.has(Field::internal)) return hook_ops_[phase].add(key_of(name), spell);
  if (name && !detach_ && event.text(Field::name) == detach_name) detach_ = name;
  if (name && name == detach_) {
    ++summary_.detaches[event.phase()];
    return;
  }
  ops_[phase].add(key_of(name), spell);
  const auto unit = event.name(Field::unit);
  if (!unit) return;
  if (event.phase() == Phase::replay) ++units_.row(event, *unit).ops_replay;
  // Hand-made traces may give no phase, and then they show forward.
  const bool forward = event.phase() == Phase::forward || event.phase() == Phase::none;
  if (forward) ++units_.row(event, *unit).ops_forward;
}

void SummaryBuilder::Impl::observe_unit_begin(const EventView& event) {
  const auto unit = event.name(Field::unit);
  const bool replay = event.text(Field::exec) == "replay";
  if (unit) units_.row(event, *unit).replays += replay ? 1 : 0;
  if (!replay) return;
  summary_.replay_order.push_back(replay_begin(event));
  const ReplayBegin& begin = summary_.replay_order.back();
  ++summary_.replays[begin.inv ? begin.unit + "#" + std::to_string(*begin.inv) : begin.unit];
}

void SummaryBuilder::Impl::observe_early_stop(const EventView& event) {
  summary_.early_stops.push_back({.seq = event.seq(),
                                  .unit = spelling(event, Field::unit),
                                  .inv = event.integer(Field::inv),
                                  .after_packs = event.integer(Field::after_packs),
                                  .of = event.integer(Field::of),
                                  .after_ops = event.integer(Field::after_ops)});
}

void SummaryBuilder::Impl::observe_pack(const EventView& event) {
  const auto unit = event.name(Field::unit);
  std::optional<NameId> region;
  if (event.text(Field::role).starts_with("remat")) region = event.name(Field::region);
  packs_by_unit_.add(key_of(unit, region), [&] {
    const std::string suffix = region ? ":" + spelling(event, Field::region) : "";
    return spelling(event, Field::unit) + suffix;
  });
  packs_by_held_.add(key_of(event.name(Field::held), event.name(Field::role)), [&] {
    return spelling(event, Field::held) + ":" + spelling(event, Field::role);
  });
  if (unit) ++units_.row(event, *unit).packs;
  const auto slot = event.name(Field::slot);
  if (!slot) return;
  slot_rows_.erase(slot->index());
  if (unit) slot_rows_[slot->index()] = units_.index(event, *unit);
}

void SummaryBuilder::Impl::observe_unpack(const EventView& event) {
  const auto from = event.name(Field::from);
  unpacks_.add(key_of(from), [&] { return spelling(event, Field::from); });
  const auto slot = event.name(Field::slot);
  if (!slot) return;
  if (const std::size_t* row = slot_rows_.find(slot->index())) ++units_[*row].unpacks;
}

void SummaryBuilder::Impl::observe_forward_end(const EventView& event) {
  if (event.phase() != Phase::forward) return;
  summary_.resident.push_back(
      {.microbatch = event.integer(Field::microbatch), .bytes = bytes_.now().all});
}

void SummaryBuilder::Impl::observe_error(const EventView& event) {
  WatchedError error{
      .seq = event.seq(), .type = {}, .label = std::string(event.text(Field::label))};
  if (event.kind() == Kind::error) error.type = optional_text(event, Field::type).value_or("None");
  summary_.errors.push_back(std::move(error));
}

TraceSummary SummaryBuilder::Impl::finish() {
  summary_.steps = std::max(steps_begun_, steps_ended_);  // hand-made traces only end them
  summary_.ops = counts_by_phase(ops_);
  summary_.hook_ops = counts_by_phase(hook_ops_);
  summary_.packs_by_unit = packs_by_unit_.counts();
  summary_.packs_by_held = packs_by_held_.counts();
  summary_.unpacks = unpacks_.counts();
  summary_.units = units_.rows();
  summary_.bytes_recorded = bytes_.recorded();
  if (!summary_.bytes_recorded) {
    summary_.resident.clear();
    return summary_;
  }
  summary_.live_at_end = bytes_.now().all;
  summary_.peak_by_phase = bytes_.peaks();
  for (const auto& [phase, most] : summary_.peak_by_phase) {
    if (phase == Phase::setup) continue;
    summary_.peak.all = std::max(summary_.peak.all, most.all);
    summary_.peak.without_gradients =
        std::max(summary_.peak.without_gradients, most.without_gradients);
  }
  return summary_;
}

SummaryBuilder::SummaryBuilder() : impl_(std::make_unique<Impl>()) {}
SummaryBuilder::SummaryBuilder(SummaryBuilder&&) noexcept = default;
SummaryBuilder& SummaryBuilder::operator=(SummaryBuilder&&) noexcept = default;
SummaryBuilder::~SummaryBuilder() = default;

void SummaryBuilder::observe(const EventView& event) {
  impl_->observe(event);
}
TraceSummary SummaryBuilder::finish() {
  return impl_->finish();
}

}  // namespace remat
