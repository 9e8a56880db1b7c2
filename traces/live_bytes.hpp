#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "model/flat_map.hpp"
#include "model/units.hpp"
#include "traces/trace.hpp"

namespace remat {

/// Bytes at one instant, of all storages that count and of those among them that are no gradients;
/// more than fit into 64 bits are told as the largest number.
struct ByteCount {
  std::int64_t all = 0;
  std::int64_t without_gradients = 0;
  friend bool operator==(ByteCount, ByteCount) = default;
};

/// How many bytes a step's tensors occupy, from the life and the roles of their storages. What
/// counts is a storage that an op made (or a gradient) until its release, at its full size however
/// many views it has; parameters, buffers, inputs, gradients that come from outside and external
/// storages are left out, gradients are counted. All ranks together.
///
/// Recordings say what a storage is for only after it was made: a parameter begins as the output of
/// an op, a gradient is marked at the end. A peak speaks of what a storage *is*, so a role holds
/// from the storage's birth on, as if it had been known then. Memory: one row for each live storage
/// (or each that has a role without having been made), a few words for each phase.
class LiveBytes {
 public:
  LiveBytes();
  void observe(const EventView& event);

  /// Whether the trace tells of storages being made at all; without that, bytes are not known.
  bool recorded() const { return recorded_; }
  /// By the roles that are known so far.
  ByteCount now() const { return told(now_); }
  /// The most that lived at any event of each phase, by the roles known now; phases without an
  /// event are left out.
  std::map<Phase, ByteCount> peaks() const;

 private:
  enum class Part : std::uint8_t { counts, counts_as_gradient, left_out };
  // Traces may claim anything of a storage, so sums and differences need more than 64 bits.
  struct Level {
    WideInteger all = 0;
    WideInteger without_gradients = 0;
  };
  using PhaseMaxima = std::array<WideInteger, phase_count>;
  struct Storage {
    std::int64_t bytes = 0;
    std::uint32_t stretch = 0;  // 0 where it was not made by an op: it never counts
    Part part = Part::counts;
    bool role_given = false;
  };
  // The events from the birth of one live storage to that of the next: whatever becomes of a live
  // storage changes all events of a stretch alike, so one maximum stands for them.
  struct Stretch {
    std::uint32_t before = 0;
    std::uint32_t after = 0;
    Level shift;        // to add to this stretch and all after it
    PhaseMaxima all{};  // maxima less the shifts
    PhaseMaxima without_gradients{};
  };

  static Part part_of(std::string_view role);
  static ByteCount told(const Level& level);
  static void add(Level& sum, const Level& change);
  static void subtract(Level& sum, const Level& change);
  static Level share(const Storage& storage);
  void allocate(const EventView& event, std::int64_t id);
  void release(std::int64_t id);
  void set_role(const EventView& event, std::int64_t id);
  std::uint32_t append_stretch();
  void merge_into_previous(std::uint32_t at);
  void note_level(Phase phase);

  FlatMap<Storage> storages_;
  std::vector<Stretch> stretches_;  // a list from row 0, the trace's begin, to `last_`
  std::vector<std::uint32_t> unused_;
  std::uint32_t last_ = 0;
  Level now_;
  Level shifts_;  // the sum over the list
  bool recorded_ = false;
};

}  // namespace remat
