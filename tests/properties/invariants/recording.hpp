#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace remat {

// What a recording holds, by the places of its events, as a planter of faults has to know it. It is
// found without the invariants and their facts: a mistake there must not hide here.

/// A replay of a call: from its unit_begin to its unit_end.
struct RecordedReplay {
  std::size_t begin = 0;
  std::size_t end = 0;  // its early_stop, where there is one
  std::size_t closed = 0;
  std::optional<std::int64_t> frame;
  bool returned = false;
  std::vector<std::size_t> fills;
  std::vector<std::size_t> ops;  // the model's own, directly in it
};

/// A slot that was filled, and the read that the fill was for.
struct FilledRead {
  std::string slot;
  std::size_t fill = 0;
  std::size_t read = 0;
  std::size_t asked = 0;   // its unpack_begin, or the read itself
  std::size_t replay = 0;  // which one filled it
};

/// A kept tensor, from where it was kept to where it is looked at again.
struct Kept {
  std::int64_t storage = 0;
  std::size_t kept = 0;
  std::size_t looked_at = 0;
};

/// One life of a storage.
struct Life {
  std::int64_t storage = 0;
  std::size_t birth = 0;
  std::size_t death = 0;
  std::vector<std::size_t> reads;
  bool held_by_slot = false;
};

struct Recording {
  std::string name;
  std::vector<nlohmann::json> events;  // without `seq`: the place is the number

  std::vector<RecordedReplay> replays;
  std::map<std::int64_t, std::pair<std::size_t, std::size_t>> forwards;  // frame → begin and end
  std::vector<FilledRead> filled_reads;
  std::vector<Kept> kept_slots;
  std::vector<Kept> region_inputs;
  std::vector<Kept> cached_outputs;  // of selective checkpointing, and persisted ones of a region
  std::vector<Kept> reread;          // what forward and a replay read: from forward's end on
  std::vector<Life> lives;           // that end before the trace does
  std::map<std::string, std::size_t> holder_deaths;
  std::size_t step_begin = 1;
  std::optional<std::size_t> step_end;
  std::int64_t unused_id = 1000000;  // of a tensor or a storage

  std::string text(std::size_t at, const char* field) const;
  bool in_a_replay(std::size_t at) const;
};

/// The recordings of one step that are sound and did not stop: those of $REMATSIM_SHARED
/// (../shared where that is not set); where there are none, those under traces/recorded, with a
/// line that says so.
std::vector<Recording> sound_recordings();

}  // namespace remat
