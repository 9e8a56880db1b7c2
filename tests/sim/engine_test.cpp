#include "sim/engine.hpp"

#include <rapidcheck/catch.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <new>
#include <set>
#include <utility>
#include <vector>

#include "model/random_bits.hpp"

#if defined(__has_feature)  // clang's way of saying it
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define REMATSIM_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define REMATSIM_SANITIZED
#endif

#ifndef REMATSIM_SANITIZED
static std::uint64_t n_allocations = 0;  // by all of the test program
// libstdc++'s own delete frees what comes from malloc. One of ours, inlined, would make g++ 12 warn
// of a mismatch wherever it sees only one of the two.
void* operator new(std::size_t size) {
  ++n_allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
#endif

namespace remat {
namespace {

constexpr std::uint64_t plenty = 1'000'000;

/// Remembers what it was handed, and does with it what the test says.
class Recorder : public EventHandler {
 public:
  explicit Recorder(std::function<void(Engine&, const Event&)> deed = {})
      : deed_(std::move(deed)) {}

  void handle(Engine& engine, const Event& event) override {
    CHECK(engine.now() == event.when);
    events.push_back(event);
    if (deed_) deed_(engine, event);
  }
  void footprint(const Event& event, Footprint& footprint) const override {
    footprint.storages.push_back({event.payload, true});
    ++n_footprints;
  }
  std::vector<std::uint64_t> payloads() const {
    std::vector<std::uint64_t> all;
    for (const Event& event : events)
      all.push_back(event.payload);
    return all;
  }

  std::vector<Event> events;
  mutable int n_footprints = 0;

 private:
  std::function<void(Engine&, const Event&)> deed_;
};

/// Takes the last candidate, and remembers what it was asked.
class Last : public Chooser {
 public:
  explicit Last(bool needs_footprints = false) : needs_footprints_(needs_footprints) {}
  bool needs_footprints() const override { return needs_footprints_; }
  std::vector<std::vector<std::uint64_t>> payloads_asked;
  std::vector<Footprint> footprints;

 private:
  std::size_t pick(std::span<const Candidate> candidates) override {
    payloads_asked.emplace_back();
    for (const Candidate& candidate : candidates) {
      payloads_asked.back().push_back(candidate.event.payload);
      footprints.push_back(candidate.footprint);
    }
    return candidates.size() - 1;
  }
  bool needs_footprints_;
};

/// By order, but asked each time, and with footprints.
class FirstAsked : public Chooser {
 public:
  bool needs_footprints() const override { return true; }

 private:
  std::size_t pick(std::span<const Candidate>) override { return 0; }
};

/// Must never be asked.
class Unasked : public Chooser {
 public:
  bool needs_candidates() const override { return false; }

 private:
  std::size_t pick(std::span<const Candidate>) override {
    FAIL("asked");
    return 0;
  }
};

/// Each event schedules up to two more, at the same instant or soon after, on few streams: a pure
/// function of the event's payload.
void branch(Engine& engine, const Event& event) {
  for (std::uint64_t child = 1; child <= random_bits(4, 0, event.payload) % 3; ++child) {
    const std::uint64_t payload = 3 * event.payload + child;
    if (payload > 3'000) continue;
    const std::uint64_t bits = random_bits(5, 0, payload);
    engine.schedule(event.when + Duration{static_cast<std::int64_t>(bits % 3)},
                    static_cast<std::uint32_t>(bits / 4 % 3),
                    static_cast<std::uint32_t>(bits / 16 % 2), payload);
  }
}

std::vector<Event> branching_run(Chooser& chooser) {
  Recorder recorder(branch);
  Engine engine(recorder, chooser);
  for (std::uint64_t payload = 0; payload < 100; ++payload)
    engine.schedule({0}, static_cast<std::uint32_t>(payload % 4), 0, payload);
  CHECK(engine.run(plenty) == RunOutcome::done);
  CHECK(engine.n_handled() == recorder.events.size());
  return recorder.events;
}

/// What came of two ranks with so many events at one instant, over every sequence of choices.
std::pair<std::uint64_t, std::set<std::vector<std::uint64_t>>> interleavings(std::uint64_t n,
                                                                             std::uint64_t m) {
  ExhaustiveChoices choices;
  std::set<std::vector<std::uint64_t>> orders;
  while (choices.next_run()) {
    Recorder recorder;
    Engine engine(recorder, choices);
    for (std::uint64_t i = 0; i < n; ++i)
      engine.schedule({7}, 0, 0, i);
    for (std::uint64_t i = 0; i < m; ++i)
      engine.schedule({7}, 1, 0, 100 + i);
    CHECK(engine.run(plenty) == RunOutcome::done);
    orders.insert(recorder.payloads());
  }
  return std::pair(choices.n_runs(), orders);
}

std::uint64_t binomial(std::uint64_t n, std::uint64_t k) {
  std::uint64_t value = 1;
  for (std::uint64_t i = 1; i <= k; ++i)
    value = value * (n - k + i) / i;
  return value;
}

}  // namespace

TEST_CASE("Engine hands events over by time, rank, stream and order of scheduling", "[sim]") {
  Recorder recorder;
  ByOrder by_order;
  Engine engine(recorder, by_order);
  engine.schedule({9}, 0, 0, 6);
  engine.schedule({3}, 1, 1, 3);
  engine.schedule({3}, 1, 1, 4);
  engine.schedule({3}, 1, 0, 2);
  engine.schedule({3}, 2, 0, 5);
  engine.schedule({3}, 0, 9, 1);
  CHECK(engine.n_pending() == 6);
  CHECK(engine.now() == Instant{0});
  CHECK(engine.run(plenty) == RunOutcome::done);
  CHECK(recorder.payloads() == std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6});
  CHECK(engine.now() == Instant{9});
  CHECK(engine.n_handled() == 6);
  CHECK(engine.n_pending() == 0);
}

TEST_CASE("Engine hands over in the same instant what handlers schedule for now", "[sim]") {
  Recorder recorder([](Engine& engine, const Event& event) {
    if (event.payload == 1) engine.schedule(engine.now(), 0, 0, 2);
  });
  ByOrder by_order;
  Engine engine(recorder, by_order);
  engine.schedule({5}, 1, 0, 1);
  engine.schedule({5}, 2, 0, 3);
  engine.schedule({6}, 0, 0, 4);
  CHECK(engine.run(plenty) == RunOutcome::done);
  CHECK(recorder.payloads() == std::vector<std::uint64_t>{1, 2, 3, 4});
}

TEST_CASE("Engine refuses an event in the past", "[sim]") {
  Recorder recorder([](Engine& engine, const Event& event) {
    if (event.payload == 1) engine.schedule({event.when.ns - 1}, 0, 0, 2);
  });
  ByOrder by_order;
  Engine engine(recorder, by_order);
  CHECK_THROWS_AS(engine.schedule({-1}, 0, 0, 0), InternalError);
  engine.schedule({5}, 0, 0, 1);
  CHECK_THROWS_AS(engine.run(plenty), InternalError);
}

TEST_CASE("Engine stops after as many events as it may hand over, and can go on", "[sim]") {
  Recorder recorder;
  ByOrder by_order;
  SeededRandom random(1);
  const bool is_by_order = GENERATE(true, false);
  Engine engine(recorder, is_by_order ? static_cast<Chooser&>(by_order) : random);
  for (std::uint32_t rank = 0; rank < 10; ++rank)
    engine.schedule({1}, rank, 0, rank);
  CHECK(engine.run(0) == RunOutcome::events_max_reached);
  CHECK(engine.n_handled() == 0);
  CHECK(engine.run(4) == RunOutcome::events_max_reached);
  CHECK(engine.n_handled() == 4);
  CHECK(engine.n_pending() == 6);
  CHECK(engine.run(6) == RunOutcome::done);
  CHECK(engine.run(0) == RunOutcome::done);
  std::vector<std::uint64_t> payloads = recorder.payloads();
  CHECK(std::is_sorted(payloads.begin(), payloads.end()) == is_by_order);
  std::sort(payloads.begin(), payloads.end());
  CHECK(payloads == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("Engine stops a run without end", "[sim]") {
  Recorder recorder([](Engine& engine, const Event&) { engine.schedule(engine.now(), 0, 0, 0); });
  ByOrder by_order;
  Engine engine(recorder, by_order);
  engine.schedule({0}, 0, 0, 0);
  CHECK(engine.run(1000) == RunOutcome::events_max_reached);
  CHECK(engine.n_handled() == 1000);
}

TEST_CASE("Engine does not ask a chooser that always takes the first", "[sim]") {
  Unasked unasked;
  FirstAsked asked;
  const std::vector<Event> events = branching_run(unasked);
  CHECK(events.size() > 200);
  CHECK(branching_run(asked) == events);
  ByOrder recording;
  recording.record();
  CHECK(branching_run(recording) == events);
  CHECK(recording.recorded().size() > 100);
}

TEST_CASE("Engine goes on in the middle of an instant with what was scheduled between runs",
          "[sim]") {
  Recorder recorder;
  Last last;
  Engine engine(recorder, last);
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    engine.schedule({1}, rank, 0, rank);
  CHECK(engine.run(1) == RunOutcome::events_max_reached);
  engine.schedule({1}, 9, 0, 9);
  CHECK(engine.run(plenty) == RunOutcome::done);
  CHECK(recorder.payloads() == std::vector<std::uint64_t>{3, 9, 2, 1, 0});
}

TEST_CASE("Engine asks among the first event of each stream at the earliest time", "[sim]") {
  Recorder recorder([](Engine& engine, const Event& event) {
    if (event.payload == 31) engine.schedule(engine.now(), 2, 0, 20);
  });
  Last last;
  Engine engine(recorder, last);
  engine.schedule({4}, 3, 0, 30);
  engine.schedule({4}, 3, 1, 31);
  engine.schedule({4}, 1, 0, 10);
  engine.schedule({4}, 1, 0, 11);
  engine.schedule({5}, 0, 0, 50);
  CHECK(engine.run(plenty) == RunOutcome::done);
  // With one candidate left (11 behind 10, and 50 later), there is nothing to ask.
  CHECK(last.payloads_asked ==
        std::vector<std::vector<std::uint64_t>>{{10, 30, 31}, {10, 20, 30}, {10, 20}});
  CHECK(recorder.payloads() == std::vector<std::uint64_t>{31, 30, 20, 10, 11, 50});
  CHECK(recorder.n_footprints == 0);
}

TEST_CASE("Engine gives each candidate its footprint where the chooser needs it", "[sim]") {
  Recorder recorder;
  Last last(true);
  Engine engine(recorder, last);
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    engine.schedule({1}, rank, 0, 10 + rank);
  CHECK(engine.run(plenty) == RunOutcome::done);
  std::vector<std::uint64_t> written;
  for (const Footprint& footprint : last.footprints) {
    REQUIRE(footprint.storages.size() == 1);
    written.push_back(footprint.storages[0].number);
  }
  CHECK(written == std::vector<std::uint64_t>{10, 11, 12, 10, 11});
  CHECK(last.footprints[0].is_independent_of(last.footprints[1]));
  CHECK_FALSE(last.footprints[0].is_independent_of(last.footprints[3]));
}

TEST_CASE("Engine runs alike with one seed and otherwise with another", "[sim]") {
  SeededRandom random(1);
  SeededRandom again(1);
  SeededRandom other(2);
  const std::vector<Event> events = branching_run(random);
  CHECK(branching_run(again) == events);
  CHECK(branching_run(other) != events);
}

TEST_CASE("Engine keeps time and each stream's order whatever is chosen", "[sim]") {
  rc::prop("for any seed", [] {
    SeededRandom random(*rc::gen::arbitrary<std::uint64_t>());
    const std::vector<Event> events = branching_run(random);
    std::vector<std::uint64_t> sequences;
    for (std::size_t i = 0; i < events.size(); ++i) {
      sequences.push_back(events[i].sequence);
      for (std::size_t j = 0; j < i; ++j) {
        RC_ASSERT(events[j].when <= events[i].when);
        if (events[j].when == events[i].when && is_same_stream(events[j], events[i])) {
          RC_ASSERT(events[j].sequence < events[i].sequence);
        }
      }
    }
    std::sort(sequences.begin(), sequences.end());
    for (std::size_t i = 0; i < sequences.size(); ++i)
      RC_ASSERT(sequences[i] == i);
  });
}

TEST_CASE("recorded choices replay a random run exactly", "[sim]") {
  rc::prop("for any seed", [] {
    SeededRandom random(*rc::gen::arbitrary<std::uint64_t>());
    random.record();
    const std::vector<Event> events = branching_run(random);
    RC_ASSERT(random.recorded().size() > 100U);
    RecordedChoices replay(random.recorded());
    RC_ASSERT(branching_run(replay) == events);
    RC_ASSERT(!replay.misfit_at_end());
  });
}

TEST_CASE("exhaustive choices run each interleaving of two ranks once", "[sim]") {
  for (std::uint64_t n = 0; n <= 5; ++n) {
    for (std::uint64_t m = 0; m <= 5; ++m) {
      CAPTURE(n, m);
      const auto [n_runs, orders] = interleavings(n, m);
      CHECK(n_runs == binomial(n + m, n));
      CHECK(orders.size() == n_runs);
    }
  }
}

TEST_CASE("exhaustive choices do not interleave events of different times", "[sim]") {
  ExhaustiveChoices choices;
  while (choices.next_run()) {
    Recorder recorder;
    Engine engine(recorder, choices);
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      engine.schedule({1}, rank, 0, 0);
      engine.schedule({2}, rank, 0, 0);
    }
    CHECK(engine.run(plenty) == RunOutcome::done);
  }
  CHECK(choices.n_runs() == 36);  // 3! orders of the first instant times 3! of the second
}

TEST_CASE("Engine does not allocate while no more events are pending than before", "[sim]") {
#ifndef REMATSIM_SANITIZED
  class Repeat : public EventHandler {
   public:
    void handle(Engine& engine, const Event& event) override {
      const auto delay = static_cast<std::int64_t>(random_bits(1, 0, event.sequence) % 4);
      engine.schedule(event.when + Duration{delay}, event.rank, event.stream, event.payload);
    }
    void footprint(const Event& event, Footprint& footprint) const override {
      footprint.storages.push_back({event.payload, true});
    }
  };
  Repeat repeat;
  ByOrder by_order;
  FirstAsked first;
  SeededRandom random(1);
  for (Chooser* chooser : std::initializer_list<Chooser*>{&by_order, &first, &random}) {
    Engine engine(repeat, *chooser);
    engine.reserve(64);
    for (std::uint32_t rank = 0; rank < 64; ++rank)
      engine.schedule({0}, rank, 0, rank);
    // All 64 are ready at time 0, so no list gets longer later on.
    engine.run(1);
    std::uint64_t before = n_allocations;
    const RunOutcome outcome = engine.run(100'000);
    const std::uint64_t in_run = n_allocations - before;
    CHECK(outcome == RunOutcome::events_max_reached);
    CHECK(in_run == 0);
    before = n_allocations;
    engine.reserve(1000);
    CHECK(n_allocations == before + 1);  // or the count would not count
  }
#else
  WARN("skipped: sanitizers have an allocator of their own");
#endif
}

}  // namespace remat
