#include "traces/live_bytes.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/random_bits.hpp"
#include "traces/trace.hpp"

using namespace remat;

namespace {

/// One event about a storage, as the trace and the slow oracle both need it.
struct Step {
  Kind kind;
  Phase phase;
  std::int64_t storage;
  std::int64_t bytes;
  std::string_view role;
};

Trace trace_of(const std::vector<Step>& steps) {
  Trace trace;
  for (const Step& step : steps) {
    trace.begin_event();
    if (step.storage >= 0) trace.add(Field::storage, step.storage);
    if (step.kind == Kind::storage_alloc) trace.add(Field::bytes, step.bytes);
    if (!step.role.empty()) trace.add_name(Field::role, step.role);
    trace.end_event(step.kind, step.phase, static_cast<std::int64_t>(trace.size()));
  }
  return trace;
}

LiveBytes observed(const std::vector<Step>& steps) {
  const Trace trace = trace_of(steps);
  LiveBytes bytes;
  for (std::size_t i = 0; i < trace.size(); ++i)
    bytes.observe(trace[i]);
  return bytes;
}

/// The definition, in two passes: first what each storage turns out to be, then all levels anew.
/// Numbers must not be used twice.
std::map<Phase, ByteCount> peaks_in_two_passes(const std::vector<Step>& steps) {
  std::map<std::int64_t, std::string_view> role;
  for (const Step& step : steps)
    if (step.kind == Kind::role) role[step.storage] = step.role;
  std::map<Phase, ByteCount> peaks;
  std::map<std::int64_t, std::int64_t> live;
  std::set<std::int64_t> left_out;  // by the roles known at the time
  for (const Step& step : steps) {
    if (step.kind == Kind::role && step.role != "grad") left_out.insert(step.storage);
    if (step.kind == Kind::role && step.role == "grad") left_out.erase(step.storage);
    if (step.kind == Kind::storage_alloc && step.role == "op") live[step.storage] = step.bytes;
    if (step.kind == Kind::storage_free) live.erase(step.storage);
    if (left_out.count(step.storage) != 0) continue;
    ByteCount level;
    for (const auto& [storage, bytes] : live) {
      const std::string_view known = role.count(storage) != 0 ? role[storage] : "";
      if (known.empty() || known == "grad") level.all += bytes;
      if (known.empty()) level.without_gradients += bytes;
    }
    ByteCount& peak = peaks[step.phase];
    peak.all = std::max(peak.all, level.all);
    peak.without_gradients = std::max(peak.without_gradients, level.without_gradients);
  }
  return peaks;
}

/// A random life of storages; some get a role while they live, some twice.
std::vector<Step> random_steps(std::uint64_t seed, std::size_t count) {
  std::vector<Step> steps;
  std::vector<std::int64_t> live;
  std::int64_t next = 0;
  constexpr std::string_view roles[] = {"param", "input", "grad", "grad", "external"};
  for (std::size_t i = 0; i < count; ++i) {
    const auto draw = [&](std::uint64_t what, std::uint64_t below) {
      return random_bits(seed, what, i) % below;
    };
    const auto phase = static_cast<Phase>(1 + draw(0, 4));
    const std::uint64_t choice = draw(1, 10);
    if (choice < 4 || live.empty()) {
      live.push_back(next++);
      const auto bytes = static_cast<std::int64_t>(draw(2, 100));
      steps.push_back(
          {Kind::storage_alloc, phase, live.back(), bytes, choice == 0 ? "input" : "op"});
      continue;
    }
    const std::size_t at = draw(3, live.size());
    if (choice < 7) {
      steps.push_back({Kind::storage_free, phase, live[at], 0, ""});
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (choice < 9) {
      steps.push_back({Kind::role, phase, live[at], 0, roles[draw(4, 5)]});
    } else {
      steps.push_back({Kind::note, phase, -1, 0, ""});
    }
  }
  return steps;
}

}  // namespace

TEST_CASE("LiveBytes leaves a parameter out from its birth on", "[traces]") {
  const auto bytes = observed({{Kind::storage_alloc, Phase::setup, 0, 10, "op"},
                               {Kind::storage_alloc, Phase::setup, 1, 100, "op"},  // the parameter
                               {Kind::storage_free, Phase::setup, 0, 0, ""},
                               {Kind::storage_alloc, Phase::setup, 2, 20, "op"},
                               {Kind::role, Phase::setup, 1, 0, "param"}});
  // 10 first, then 20: they never live together, and the 100 between them do not count.
  CHECK(bytes.peaks() == std::map<Phase, ByteCount>{{Phase::setup, {20, 20}}});
  CHECK(bytes.now() == ByteCount{20, 20});
}

TEST_CASE("LiveBytes counts a gradient from its birth on, apart from the rest", "[traces]") {
  const auto bytes = observed({{Kind::storage_alloc, Phase::forward, 0, 50, "op"},
                               {Kind::storage_alloc, Phase::backward, 1, 30, "op"},  // the gradient
                               {Kind::storage_alloc, Phase::backward, 2, 5, "op"},
                               {Kind::storage_free, Phase::backward, 0, 0, ""},
                               {Kind::role, Phase::setup, 1, 0, "grad"}});
  // backward: 50 + 30 + 5, without the gradient 50 + 5; at the end 30 + 5 and 5.
  CHECK(bytes.peaks() == std::map<Phase, ByteCount>{{Phase::setup, {35, 5}},
                                                    {Phase::forward, {50, 50}},
                                                    {Phase::backward, {85, 55}}});
  CHECK(bytes.now() == ByteCount{35, 5});
}

TEST_CASE("LiveBytes counts only what ops make", "[traces]") {
  SECTION("a storage from outside does not count, be it a gradient") {
    const auto bytes = observed({{Kind::storage_alloc, Phase::setup, 0, 64, "external"},
                                 {Kind::role, Phase::setup, 0, 0, "grad"}});
    CHECK(bytes.now() == ByteCount{0, 0});
    CHECK(bytes.recorded());
  }
  SECTION("a storage without a role counts: hand-made traces give none") {
    CHECK(observed({{Kind::storage_alloc, Phase::forward, 0, 64, ""}}).now() == ByteCount{64, 64});
  }
  SECTION("a role may come before the storage is made") {
    const auto bytes = observed({{Kind::role, Phase::setup, 0, 0, "input"},
                                 {Kind::storage_alloc, Phase::setup, 0, 64, "op"}});
    CHECK(bytes.now() == ByteCount{0, 0});
  }
}

TEST_CASE("LiveBytes takes what is released twice, unknown or made again as it comes", "[traces]") {
  const auto bytes = observed({{Kind::storage_free, Phase::forward, 7, 0, ""},
                               {Kind::storage_alloc, Phase::forward, 0, 64, ""},
                               {Kind::storage_free, Phase::forward, 0, 0, ""},
                               {Kind::storage_free, Phase::forward, 0, 0, ""},
                               {Kind::storage_alloc, Phase::forward, 0, 16, ""},
                               {Kind::storage_alloc, Phase::forward, 0, 8, ""}});
  // 64 gone, 16 replaced by 8.
  CHECK(bytes.now() == ByteCount{8, 8});
  CHECK(bytes.peaks() == std::map<Phase, ByteCount>{{Phase::forward, {64, 64}}});
}

TEST_CASE("LiveBytes counts what no machine could hold exactly, and tells the most it can",
          "[traces]") {
  const auto bytes = observed({{Kind::storage_alloc, Phase::forward, 0, INT64_MAX, ""},
                               {Kind::storage_alloc, Phase::forward, 1, INT64_MAX, ""},
                               {Kind::storage_alloc, Phase::forward, 2, INT64_MAX, ""},
                               {Kind::role, Phase::forward, 1, 0, "grad"},
                               {Kind::storage_alloc, Phase::backward, 3, 8, ""},
                               {Kind::storage_free, Phase::backward, 2, 0, ""},
                               {Kind::storage_free, Phase::backward, 0, 0, ""},
                               {Kind::storage_free, Phase::backward, 1, 0, ""}});
  CHECK(bytes.now() == ByteCount{8, 8});
  CHECK(bytes.peaks().at(Phase::forward) == ByteCount{INT64_MAX, INT64_MAX});
}

TEST_CASE("LiveBytes says when a trace does not tell of storages", "[traces]") {
  CHECK_FALSE(observed({{Kind::role, Phase::setup, 0, 0, "param"}}).recorded());
}

TEST_CASE("LiveBytes finds the peaks of the two-pass definition in one pass", "[traces]") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    INFO("seed " << seed);
    const auto steps = random_steps(seed, 10 + seed / 2);
    REQUIRE(observed(steps).peaks() == peaks_in_two_passes(steps));
  }
}
