#include "sim/chooser.hpp"

#include <rapidcheck/catch.h>
#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "model/errors.hpp"

namespace remat {
namespace {

/// One candidate on each of so many streams of rank 5.
std::vector<Candidate> candidates(std::uint32_t n) {
  std::vector<Candidate> all(n);
  for (std::uint32_t stream = 0; stream < n; ++stream)
    all[stream].event = {{10}, 5, stream, 100 - stream, 0};
  return all;
}

std::vector<std::size_t> choices_of(Chooser& chooser, const std::vector<std::uint32_t>& sizes) {
  std::vector<std::size_t> chosen;
  chosen.reserve(sizes.size());
  for (const std::uint32_t n : sizes)
    chosen.push_back(chooser.choose(candidates(n)));
  return chosen;
}

/// Two to five candidates at each of many turns.
std::vector<std::uint32_t> many_sizes() {
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t turn = 0; turn < 4000; ++turn)
    sizes.push_back(2 + turn % 4);
  return sizes;
}

/// Chooses what is not there.
class OffTheEnd : public Chooser {
  std::size_t pick(std::span<const Candidate> among) override { return among.size(); }
};

Footprint footprint(std::vector<Touch> storages, std::vector<Touch> slots = {},
                    std::vector<Touch> channels = {}) {
  return {std::move(storages), std::move(slots), std::move(channels)};
}

constexpr Touch read_of(std::uint64_t number) {
  return {number, false};
}
constexpr Touch write_of(std::uint64_t number) {
  return {number, true};
}

bool are_independent(const Footprint& a, const Footprint& b) {
  const bool independent = a.is_independent_of(b);
  CHECK(b.is_independent_of(a) == independent);
  return independent;
}

}  // namespace

TEST_CASE("ByOrder takes the first, and needs to be asked only where somebody records", "[sim]") {
  ByOrder chooser;
  CHECK_FALSE(chooser.needs_candidates());
  CHECK(choices_of(chooser, {2, 3, 7}) == std::vector<std::size_t>{0, 0, 0});
  CHECK(chooser.recorded().empty());
  chooser.record();
  CHECK(chooser.needs_candidates());
  choices_of(chooser, {4, 2});
  CHECK(chooser.recorded() == std::vector<Choice>{{5, 0, 4}, {5, 0, 2}});
}

TEST_CASE("SeededRandom chooses the same for one seed and otherwise for another", "[sim]") {
  SeededRandom chooser(1);
  SeededRandom again(1);
  SeededRandom other(2);
  const std::vector<std::size_t> chosen = choices_of(chooser, many_sizes());
  CHECK(choices_of(again, many_sizes()) == chosen);
  CHECK(choices_of(other, many_sizes()) != chosen);
}

TEST_CASE("SeededRandom takes each candidate about equally often", "[sim]") {
  SeededRandom chooser(3);
  std::vector<int> taken(5);
  for (int turn = 0; turn < 10000; ++turn)
    ++taken[chooser.choose(candidates(5))];
  // 2000 each on average, with a standard deviation of 40.
  for (const int n : taken) {
    CHECK(n > 1800);
    CHECK(n < 2200);
  }
}

TEST_CASE("SeededRandom chooses the same in every build and version", "[sim]") {
  // Worked out by a second implementation of SplitMix64, in Python.
  SeededRandom chooser(1);
  CHECK(choices_of(chooser, {2, 2, 2, 2, 2, 2, 2, 2, 10, 10, 10, 10}) ==
        std::vector<std::size_t>{1, 0, 0, 0, 1, 0, 0, 1, 5, 1, 6, 8});
}

TEST_CASE("a chooser must choose one of two candidates or more", "[sim]") {
  ByOrder chooser;
  CHECK_THROWS_AS(chooser.choose(candidates(0)), InternalError);
  CHECK_THROWS_AS(chooser.choose(candidates(1)), InternalError);
  OffTheEnd wrong;
  CHECK_THROWS_AS(wrong.choose(candidates(2)), InternalError);
}

TEST_CASE("RecordedChoices repeats what another chooser recorded", "[sim]") {
  SeededRandom random(9);
  random.record();
  const std::vector<std::size_t> chosen = choices_of(random, many_sizes());
  RecordedChoices replay(random.recorded());
  replay.record();
  CHECK(choices_of(replay, many_sizes()) == chosen);
  CHECK(replay.recorded() == random.recorded());
  CHECK(replay.misfit_at_end() == std::nullopt);
}

TEST_CASE("RecordedChoices says where the list does not fit, and goes on by order", "[sim]") {
  const std::vector<Choice> list = {{5, 1, 2}, {5, 2, 3}, {5, 3, 4}};
  RecordedChoices replay(list);
  SECTION("because there are fewer candidates") {
    CHECK(choices_of(replay, {2, 2, 4}) == std::vector<std::size_t>{1, 0, 0});
    CHECK(replay.misfit() == ChoiceMisfit{1, Choice{5, 2, 3}, 2});
  }
  SECTION("because there are more candidates") {
    CHECK(choices_of(replay, {2, 3, 5}) == std::vector<std::size_t>{1, 2, 0});
    CHECK(replay.misfit() == ChoiceMisfit{2, Choice{5, 3, 4}, 5});
  }
  SECTION("because the candidates are on other streams") {
    std::vector<Candidate> others = candidates(2);
    others[0].event.rank = 4;
    others[1].event.rank = 4;
    CHECK(replay.choose(others) == 0);
    CHECK(replay.misfit() == ChoiceMisfit{0, Choice{5, 1, 2}, 2});
  }
  SECTION("because it is too short") {
    CHECK(choices_of(replay, {2, 3, 4, 2}) == std::vector<std::size_t>{1, 2, 3, 0});
    CHECK(replay.misfit() == ChoiceMisfit{3, std::nullopt, 2});
  }
  SECTION("because it is too long") {
    CHECK(choices_of(replay, {2}) == std::vector<std::size_t>{1});
    CHECK(replay.misfit() == std::nullopt);
    CHECK(replay.misfit_at_end() == ChoiceMisfit{1, Choice{5, 2, 3}, 0});
  }
}

TEST_CASE("ExhaustiveChoices takes every sequence of choices once, depth first", "[sim]") {
  // The second turn has as many candidates as the first choice says, two or more.
  ExhaustiveChoices choices;
  std::vector<std::vector<std::size_t>> sequences;
  while (choices.next_run()) {
    const std::size_t first = choices.choose(candidates(3));
    std::vector<std::size_t> sequence = {first};
    if (first > 0)
      sequence.push_back(choices.choose(candidates(static_cast<std::uint32_t>(first) + 1)));
    sequences.push_back(sequence);
  }
  CHECK(sequences ==
        std::vector<std::vector<std::size_t>>{{0}, {1, 0}, {1, 1}, {2, 0}, {2, 1}, {2, 2}});
  CHECK(choices.n_runs() == 6);
  CHECK_FALSE(choices.next_run());
}

TEST_CASE("ExhaustiveChoices has one run where there is no choice", "[sim]") {
  ExhaustiveChoices choices;
  CHECK(choices.next_run());
  CHECK_FALSE(choices.next_run());
  CHECK(choices.n_runs() == 1);
}

TEST_CASE("ExhaustiveChoices takes as many sequences as the product of the turns' candidates",
          "[sim]") {
  rc::prop("for any turns", [] {
    const auto sizes = *rc::gen::resize(
        5, rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(2, 5)));
    std::uint64_t product = 1;
    for (const std::uint32_t n : sizes)
      product *= n;
    ExhaustiveChoices choices;
    std::set<std::vector<std::size_t>> sequences;
    while (choices.next_run())
      sequences.insert(choices_of(choices, sizes));
    RC_ASSERT(choices.n_runs() == product);
    RC_ASSERT(sequences.size() == product);
  });
}

TEST_CASE("ExhaustiveChoices refuses runs that differ in more than the choices", "[sim]") {
  ExhaustiveChoices choices;
  SECTION("in the number of candidates") {
    REQUIRE(choices.next_run());
    choices_of(choices, {2, 2});
    REQUIRE(choices.next_run());
    CHECK_THROWS_AS(choices.choose(candidates(3)), InternalError);
  }
  SECTION("in the number of turns") {
    REQUIRE(choices.next_run());
    choices_of(choices, {2, 2});
    REQUIRE(choices.next_run());
    choices_of(choices, {2});
    CHECK_THROWS_AS(choices.next_run(), InternalError);
  }
  SECTION("in that one comes before next_run") {
    CHECK_THROWS_AS(choices.choose(candidates(2)), InternalError);
  }
}

TEST_CASE("footprints are independent unless one writes what the other touches", "[sim]") {
  CHECK(are_independent({}, {}));
  CHECK(are_independent(footprint({write_of(1)}), {}));
  CHECK(are_independent(footprint({read_of(1)}), footprint({read_of(1)})));
  CHECK(are_independent(footprint({write_of(1)}), footprint({write_of(2), read_of(3)})));
  CHECK_FALSE(are_independent(footprint({write_of(1)}), footprint({read_of(1)})));
  CHECK_FALSE(are_independent(footprint({write_of(1)}), footprint({write_of(1)})));
  CHECK_FALSE(
      are_independent(footprint({read_of(1), read_of(2)}), footprint({read_of(1), write_of(2)})));
}

TEST_CASE("footprints keep storages, slots and channels of one number apart", "[sim]") {
  const Footprint storage = footprint({write_of(1)});
  const Footprint slot = footprint({}, {write_of(1)});
  const Footprint channel = footprint({}, {}, {write_of(1)});
  CHECK(are_independent(storage, slot));
  CHECK(are_independent(storage, channel));
  CHECK(are_independent(slot, channel));
  CHECK_FALSE(are_independent(slot, slot));
  CHECK_FALSE(are_independent(channel, channel));
}

TEST_CASE("a cleared footprint touches nothing", "[sim]") {
  Footprint all = footprint({write_of(1)}, {write_of(2)}, {write_of(3)});
  CHECK_FALSE(are_independent(all, all));
  all.clear();
  CHECK(are_independent(all, all));
}

}  // namespace remat
