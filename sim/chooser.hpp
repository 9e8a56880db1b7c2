#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/event_queue.hpp"

namespace remat {

/// One thing that an event touches: the number of a storage, slot or channel, whichever list it is
/// in.
struct Touch {
  std::uint64_t number = 0;
  bool is_write = false;
};

/// All that handling an event would read and write. Sending to a channel, and scheduling on a
/// stream other than one's own, are writes: who does it first shows.
struct Footprint {
  std::vector<Touch> storages;
  std::vector<Touch> slots;
  std::vector<Touch> channels;

  /// Nothing that one of them writes does the other touch: handled in either order, they leave the
  /// same state. Of two events of one stream this says nothing, their order is fixed.
  bool is_independent_of(const Footprint& other) const;
  /// Empties the lists, and keeps their memory for the next event.
  void clear();
};

/// An event that could come next.
struct Candidate {
  Event event;
  Footprint footprint;  // empty unless the chooser needs footprints
};

/// What a chooser answered: the stream of the candidate that it took, which names it whatever else
/// there was to choose from.
struct Choice {
  std::uint32_t rank = 0;
  std::uint32_t stream = 0;
  std::uint32_t n_candidates = 0;
  friend constexpr bool operator==(const Choice&, const Choice&) = default;
};

/// Decides which event comes next where the simulated time leaves that open.
class Chooser {
 public:
  virtual ~Chooser() = default;

  /// The index of the candidate that comes next. There are at least two, all of one instant, no
  /// two of one stream, in order of rank and stream.
  std::size_t choose(std::span<const Candidate> candidates);

  /// From now on `recorded` gets what is chosen: the answers to RecordedChoices in a later run.
  void record() { is_recording_ = true; }
  const std::vector<Choice>& recorded() const { return recorded_; }

  /// False where the answer is the first candidate, whatever the others are, and nobody records it:
  /// then `choose` need not be called at all.
  virtual bool needs_candidates() const { return true; }
  /// True where candidates must come with their footprints.
  virtual bool needs_footprints() const { return false; }

 protected:
  bool is_recording() const { return is_recording_; }

 private:
  virtual std::size_t pick(std::span<const Candidate> candidates) = 0;

  bool is_recording_ = false;
  std::vector<Choice> recorded_;
};

/// Always the first: by rank, then stream.
class ByOrder : public Chooser {
 public:
  bool needs_candidates() const override { return is_recording(); }

 private:
  std::size_t pick(std::span<const Candidate>) override { return 0; }
};

/// Each with equal chance, a pure function of the seed and of how many choices came before.
class SeededRandom : public Chooser {
 public:
  explicit SeededRandom(std::uint64_t seed) : seed_(seed) {}

 private:
  std::size_t pick(std::span<const Candidate> candidates) override;

  std::uint64_t seed_;
  std::uint64_t n_chosen_ = 0;
};

/// Where a recorded list of choices parts from the run that it is played to.
struct ChoiceMisfit {
  std::size_t position = 0;        // in the list
  std::optional<Choice> recorded;  // none: the list ends before the run does
  std::uint32_t n_candidates = 0;  // of the run; 0: the run ends before the list does
  friend constexpr bool operator==(const ChoiceMisfit&, const ChoiceMisfit&) = default;
};

/// Plays recorded choices. From the first that does not fit on, it chooses by order, so that a run
/// always ends.
class RecordedChoices : public Chooser {
 public:
  explicit RecordedChoices(std::vector<Choice> choices) : choices_(std::move(choices)) {}

  /// Where the list does not fit the run so far: other candidates, or too few choices.
  const std::optional<ChoiceMisfit>& misfit() const { return misfit_; }
  /// The same once the run is over: choices that are left over do not fit either.
  std::optional<ChoiceMisfit> misfit_at_end() const;

 private:
  std::size_t pick(std::span<const Candidate> candidates) override;

  std::vector<Choice> choices_;
  std::size_t position_ = 0;
  std::optional<ChoiceMisfit> misfit_;
};

/// Every sequence of choices once, over as many runs, depth first:
///   while (choices.next_run()) run from the start;
/// The runs must differ in nothing but the choices.
class ExhaustiveChoices : public Chooser {
 public:
  /// False where every sequence has had its run.
  bool next_run();
  /// Runs begun so far.
  std::uint64_t n_runs() const { return n_runs_; }

 private:
  struct Turn {
    std::size_t chosen = 0;
    std::size_t n_candidates = 0;
  };
  std::size_t pick(std::span<const Candidate> candidates) override;

  std::vector<Turn> turns_;  // of this run; behind depth_: those it is still to take
  std::size_t depth_ = 0;
  std::uint64_t n_runs_ = 0;
};

}  // namespace remat
