#include "traces/diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/flat_map.hpp"

namespace remat {
namespace {

constexpr std::string_view detach = "aten.detach.default";
constexpr std::array remat_bookkeeping = {
    std::string_view("aten.view.default"), std::string_view("aten.empty.memory_format"),
    std::string_view("aten.set_.source_Storage_storage_offset"),
    std::string_view("aten.as_strided.default")};

/// What of the whole trace decides whether an event counts.
struct Context {
  bool has_remat_regions = false;
  IdSet excluded_slots;  // names of slots of excluded regions
};

Context context_of(const Trace& trace) {
  Context context;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const EventView event = trace[i];
    context.has_remat_regions |= event.kind() == Kind::region_begin;
    if (event.kind() != Kind::pack) continue;
    const std::string_view role = event.text(Field::role);
    const auto slot = event.name(Field::slot);
    if (slot && (role == "excl_saved" || role == "excl_input"))
      context.excluded_slots.insert(slot->index());
  }
  return context;
}

bool counts(const EventView& op, const Context& context) {
  if (op.phase() != Phase::replay || op.has(Field::internal)) return false;
  const std::string_view name = op.text(Field::name);
  if (name == detach) return false;
  return !context.has_remat_regions || std::find(remat_bookkeeping.begin(), remat_bookkeeping.end(),
                                                 name) == remat_bookkeeping.end();
}

std::string number_or_none(std::optional<std::int64_t> number) {
  return number ? std::to_string(*number) : "None";
}

std::optional<std::string> comparable(const EventView& event, const Context& context) {
  const bool is_replay = event.text(Field::exec) == "replay";
  switch (event.kind()) {
    case Kind::unit_begin:
      if (!is_replay) return std::nullopt;
      return fmt::format("replay {}#{}", event.text(Field::unit),
                         number_or_none(event.integer(Field::inv)));
    case Kind::unit_end:
      return is_replay ? std::optional<std::string>("end") : std::nullopt;
    case Kind::op:
      if (!counts(event, context)) return std::nullopt;
      return fmt::format("op {}", event.text(Field::name));
    case Kind::repack:
      // By its slot alone: an input of a region of torch_remat, which no recorder shows.
      if (event.has(Field::slot) && !event.has(Field::frame)) return std::nullopt;
      return fmt::format("save f{}.{}", number_or_none(event.integer(Field::frame)),
                         number_or_none(event.integer(Field::idx)));
    case Kind::cache_pop:
      if (event.phase() != Phase::replay || !event.is_true(Field::ok)) return std::nullopt;
      return fmt::format("skip {}#{}", event.text(Field::wrapper),
                         number_or_none(event.integer(Field::entry_call)));
    case Kind::slot_fill:
      return fmt::format("fill {}", event.text(Field::slot));
    case Kind::early_stop:
      return "stop";
    case Kind::unpack: {
      const auto slot = event.name(Field::slot);
      const bool is_excluded = slot && context.excluded_slots.contains(slot->index());
      if (!event.has(Field::frame) && event.text(Field::from) != "rederived" && !is_excluded)
        return std::nullopt;
      return fmt::format("unpack {}", event.text(Field::slot));
    }
    case Kind::error:
      return fmt::format("error {}", event.text(Field::type));
    default:
      return std::nullopt;
  }
}

}  // namespace

std::vector<std::string> comparable_events(const Trace& trace) {
  const Context context = context_of(trace);
  std::vector<std::string> events;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    if (auto event = comparable(trace[i], context)) events.push_back(std::move(*event));
    if (trace[i].kind() == Kind::error) break;
  }
  return events;
}

std::optional<FirstDifference> first_difference(const std::vector<std::string>& predicted,
                                                const std::vector<std::string>& recorded) {
  const std::size_t n = std::min(predicted.size(), recorded.size());
  for (std::size_t i = 0; i < n; ++i)
    if (predicted[i] != recorded[i]) return FirstDifference{i, predicted[i], recorded[i]};
  if (predicted.size() == recorded.size()) return std::nullopt;
  FirstDifference difference{n, std::nullopt, std::nullopt};
  if (n < predicted.size()) difference.predicted = predicted[n];
  if (n < recorded.size()) difference.recorded = recorded[n];
  return difference;
}

}  // namespace remat
