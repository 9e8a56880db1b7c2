#include "properties/invariants/registry.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

using namespace remat;

TEST_CASE("the registry lists the invariants in the order in which findings are sorted",
          "[invariants]") {
  const std::vector<std::string> expected = {
      "unpack_follows_replay", "slot_used_once",      "saved_lists_match",     "version_unchanged",
      "no_use_after_free",     "no_leak_at_step_end", "gradients_equal_plain", "op_counts",
      "rng_position",          "collective_order",    "no_deadlock",           "stream_order",
      "peak_within_bound",     "offload_lifecycle",   "boundaries_match",      "policy_stable",
      "diagnostics_sound"};
  std::vector<std::string> names;
  for (const InvariantRow& row : invariants())
    names.emplace_back(row.name);
  CHECK(names == expected);
}

TEST_CASE("each invariant is found by its name, at its place", "[invariants]") {
  std::size_t place = 0;
  for (const InvariantRow& row : invariants()) {
    CHECK(invariant_named(row.name) == &row);
    CHECK(invariant_place(row.name) == place++);
  }
  CHECK(invariant_named("") == nullptr);
  CHECK(invariant_named("unpack_follows_repla") == nullptr);
  CHECK(invariant_place("unknown") == invariants().size());
}

TEST_CASE("each invariant says in two lines what holds and what it has caught", "[invariants]") {
  std::set<std::string_view> texts;
  for (const InvariantRow& row : invariants()) {
    for (const std::string_view line : {row.holds_when, row.example}) {
      INFO(row.name << ": " << line);
      CHECK(line.size() <= 120);
      CHECK(line.back() == '.');
      CHECK(line.find('\n') == std::string_view::npos);
      CHECK(texts.insert(line).second);
    }
    CHECK(row.example.substr(0, 8) == "Caught: ");
  }
}

TEST_CASE("each invariant wants events, and makes a new judge for each trace", "[invariants]") {
  for (const InvariantRow& row : invariants()) {
    INFO(row.name);
    CHECK(std::find(row.kinds.begin(), row.kinds.end(), true) != row.kinds.end());
    CHECK_FALSE(row.kinds[static_cast<std::size_t>(Kind::unknown)]);
    const auto first = row.make();
    const auto second = row.make();
    REQUIRE(first != nullptr);
    CHECK(first != second);
  }
}
