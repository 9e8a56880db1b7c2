#include <algorithm>

#include "tests/properties/invariants/planted_faults.hpp"

namespace remat {
namespace {

using Json = nlohmann::json;
using Result = std::optional<Planted>;

template <typename Item, typename Fits>
std::vector<Item> those(const std::vector<Item>& items, Fits fits) {
  std::vector<Item> fitting;
  std::copy_if(items.begin(), items.end(), std::back_inserter(fitting), fits);
  return fitting;
}

bool dies_between(const Recording& of, std::int64_t storage, std::size_t first, std::size_t last) {
  return std::any_of(of.lives.begin(), of.lives.end(), [&](const Life& life) {
    return life.storage == storage && first < life.death && life.death < last;
  });
}

/// An in-place write between the two events, outside of every replay.
bool write_between(const Recording& of, ChangedTrace& trace, Choices& choices, const Kept& kept) {
  std::vector<std::size_t> places;
  for (std::size_t at = kept.kept + 1; at <= kept.looked_at; ++at)
    if (!of.in_a_replay(at) && !of.in_a_replay(at - 1)) places.push_back(at);
  if (places.empty() || dies_between(of, kept.storage, kept.kept, kept.looked_at)) return false;
  trace.insert_before(choices.one_of(places),
                      {{"kind", "mutate"}, {"storage", kept.storage}, {"tensor", 0}});
  return true;
}

Result written_while_kept(const Recording& of, ChangedTrace& trace, Choices& choices,
                          const std::vector<Kept>& all, bool is_the_first_to_look) {
  if (all.empty()) return std::nullopt;
  const Kept& kept = choices.one_of(all);
  if (!write_between(of, trace, choices, kept)) return std::nullopt;
  return Planted{"version_unchanged",
                 is_the_first_to_look ? std::optional(kept.looked_at) : std::nullopt};
}

Result kept_slot_written(const Recording& of, ChangedTrace& trace, Choices& choices) {
  return written_while_kept(of, trace, choices, of.kept_slots, false);
}

Result filled_slot_written(const Recording& of, ChangedTrace& trace, Choices& choices) {
  std::vector<Kept> filled;
  for (const FilledRead& slot : of.filled_reads) {
    filled.push_back(
        {of.events[slot.fill]["tensor"]["s"].get<std::int64_t>(), slot.fill, slot.read});
  }
  return written_while_kept(of, trace, choices, filled, false);
}

Result region_input_written(const Recording& of, ChangedTrace& trace, Choices& choices) {
  return written_while_kept(of, trace, choices, of.region_inputs, false);
}

Result cached_output_written(const Recording& of, ChangedTrace& trace, Choices& choices) {
  std::vector<Kept> after_forward;
  for (Kept kept : of.cached_outputs) {
    for (const auto& [frame, forward] : of.forwards)
      if (forward.first < kept.kept && kept.kept < forward.second) kept.kept = forward.second;
    after_forward.push_back(kept);
  }
  return written_while_kept(of, trace, choices, after_forward, true);
}

Result reread_storage_written(const Recording& of, ChangedTrace& trace, Choices& choices) {
  return written_while_kept(of, trace, choices, of.reread, false);
}

/// Lives that begin in the step's own work, not in the harness.
std::vector<Life> lives_of_the_step(const Recording& of) {
  return those(of.lives, [&](const Life& life) {
    return life.birth > of.step_begin && of.text(life.birth, "phase") != "setup";
  });
}

Result released_before_a_reader(const Recording& of, ChangedTrace& trace, Choices& choices) {
  const auto lives =
      those(lives_of_the_step(of), [](const Life& life) { return !life.reads.empty(); });
  if (lives.empty()) return std::nullopt;
  const Life& life = choices.one_of(lives);
  const std::size_t reader = choices.one_of(life.reads);
  std::size_t earliest = life.birth;  // behind the op that made it, and behind earlier readers
  while (of.text(earliest, "kind") != "op")
    ++earliest;
  for (const std::size_t read : life.reads)
    if (read < reader) earliest = std::max(earliest, read);
  if (earliest >= reader) return std::nullopt;
  trace.move_before(life.death, choices.between(earliest + 1, reader));
  return Planted{"no_use_after_free", std::nullopt};
}

Result released_twice(const Recording& of, ChangedTrace& trace, Choices& choices) {
  if (of.lives.empty()) return std::nullopt;
  const Life& life = choices.one_of(of.lives);
  return Planted{"no_use_after_free", trace.insert_after(life.death, of.events[life.death])};
}

Result storage_leaks(const Recording& of, ChangedTrace& trace, Choices& choices) {
  if (!of.step_end) return std::nullopt;
  const auto lives = those(lives_of_the_step(of), [&](const Life& life) {
    const bool by_forward_or_replay =
        of.text(life.birth, "phase") == "forward" || of.in_a_replay(life.birth);
    return life.death < *of.step_end && (by_forward_or_replay || life.held_by_slot);
  });
  if (lives.empty()) return std::nullopt;
  trace.drop(choices.one_of(lives).death);
  return Planted{"no_leak_at_step_end", *of.step_end};
}

Result holder_leaks(const Recording& of, ChangedTrace& trace, Choices& choices) {
  std::vector<std::size_t> deaths;
  for (const auto& [slot, death] : of.holder_deaths)
    if (of.step_end && death < *of.step_end) deaths.push_back(death);
  if (deaths.size() < 2) return std::nullopt;
  trace.drop(choices.one_of(deaths));
  return Planted{"no_leak_at_step_end", *of.step_end};
}

/// Live bytes as P1 counts them, after each event.
std::vector<std::int64_t> live_bytes(const Recording& of) {
  std::vector<std::int64_t> levels;
  std::map<std::int64_t, std::int64_t> alive;
  std::map<std::int64_t, bool> counts;
  std::int64_t now = 0;
  for (std::size_t at = 0; at < of.events.size(); ++at) {
    const std::string kind = of.text(at, "kind");
    if (kind == "storage_alloc" || kind == "storage_free" || kind == "role") {
      const auto storage = of.events[at]["storage"].get<std::int64_t>();
      const bool was_alive = alive.count(storage) > 0;
      if (was_alive && counts[storage]) now -= alive[storage];
      if (kind == "storage_free") alive.erase(storage);
      if (kind == "storage_alloc") alive[storage] = of.events[at]["bytes"].get<std::int64_t>();
      if (kind == "storage_alloc") counts[storage] = true;
      if (kind == "role") counts[storage] = false;
      if (alive.count(storage) > 0 && counts[storage]) now += alive[storage];
    }
    levels.push_back(now);
  }
  return levels;
}

Result peak_over_the_bound(const Recording& of, ChangedTrace& trace, Choices&) {
  const auto levels = live_bytes(of);
  const auto most = std::max_element(levels.begin(), levels.end());
  trace[0]["expect"]["peak_bytes"] = *most - 1;
  return Planted{"peak_within_bound", static_cast<std::size_t>(most - levels.begin())};
}

Result resident_over_the_bound(const Recording& of, ChangedTrace& trace, Choices&) {
  const auto levels = live_bytes(of);
  std::optional<std::size_t> last;
  for (std::size_t at = 0; at < of.events.size(); ++at)
    if (of.text(at, "kind") == "phase_end" && of.text(at, "phase") == "forward") last = at;
  if (!last || levels[*last] == 0) return std::nullopt;
  trace[0]["expect"]["resident_bytes"] = levels[*last] - 1;
  return Planted{"peak_within_bound", *last};
}

}  // namespace

std::vector<FaultKind> faults_in_memory() {
  return {{"kept_slot_written", kept_slot_written},
          {"filled_slot_written", filled_slot_written},
          {"region_input_written", region_input_written},
          {"cached_output_written", cached_output_written},
          {"reread_storage_written", reread_storage_written},
          {"released_before_a_reader", released_before_a_reader},
          {"released_twice", released_twice},
          {"storage_leaks", storage_leaks},
          {"holder_leaks", holder_leaks},
          {"peak_over_the_bound", peak_over_the_bound},
          {"resident_over_the_bound", resident_over_the_bound}};
}

}  // namespace remat
