#include "model/flat_map.hpp"

#include <rapidcheck/catch.h>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace remat {
namespace {

/// One step against both maps: what is done to which key.
enum class Deed : std::uint8_t { put, erase, find };
using Step = std::pair<Deed, std::int64_t>;

/// Few keys, near each other and near the ends of their range, so that they meet.
rc::Gen<std::int64_t> key() {
  return rc::gen::oneOf(
      rc::gen::inRange<std::int64_t>(-20, 20),
      rc::gen::element<std::int64_t>(INT64_MIN, INT64_MIN + 1, INT64_MAX),
      rc::gen::map(rc::gen::inRange<std::int64_t>(0, 8), [](std::int64_t i) { return i << 40; }));
}

rc::Gen<std::vector<Step>> steps() {
  return rc::gen::scale(
      5, rc::gen::container<std::vector<Step>>(rc::gen::pair(
             rc::gen::element(Deed::put, Deed::put, Deed::erase, Deed::find), key())));
}

}  // namespace

TEST_CASE("FlatMap holds nothing at first", "[model]") {
  FlatMap<int> map;
  CHECK(map.empty());
  CHECK(map.find(0) == nullptr);
  map.erase(0);
  CHECK(map.size() == 0);
}

TEST_CASE("FlatMap makes a value by default where a key is new, and keeps it", "[model]") {
  FlatMap<int> map;
  CHECK(map[7] == 0);
  map[7] = 3;
  CHECK(map[7] == 3);
  CHECK(map.size() == 1);
  CHECK(std::as_const(map).contains(7));
  map.clear();
  CHECK_FALSE(map.contains(7));
}

TEST_CASE("FlatMap forgets the value of an erased key", "[model]") {
  FlatMap<int> map;
  map[7] = 3;
  map.erase(7);
  CHECK_FALSE(map.contains(7));
  CHECK(map[7] == 0);
}

TEST_CASE("FlatMap does not grow while keys come and go", "[model]") {
  FlatMap<std::int64_t> map;
  for (std::int64_t key = 0; key < 100000; ++key) {
    map[key] = key;
    map.erase(key - 10);
  }
  CHECK(map.size() == 10);
  for (std::int64_t key = 99990; key < 100000; ++key)
    CHECK(*map.find(key) == key);
}

TEST_CASE("FlatMap does what std::map does", "[model]") {
  rc::prop("after any puts, erasures and searches", [] {
    FlatMap<int> map;
    std::map<std::int64_t, int> oracle;
    int value = 0;
    for (const auto& [deed, at] : *steps()) {
      if (deed == Deed::put) map[at] = oracle[at] = ++value;
      if (deed == Deed::erase) {
        map.erase(at);
        oracle.erase(at);
      }
      const auto expected = oracle.find(at);
      RC_ASSERT((map.find(at) != nullptr) == (expected != oracle.end()));
      RC_ASSERT(map.size() == oracle.size());
    }
    for (const auto& [at, expected] : oracle) {
      RC_ASSERT(map.find(at) != nullptr);
      RC_ASSERT(*map.find(at) == expected);
    }
  });
}

TEST_CASE("IdSet does what std::set does", "[model]") {
  rc::prop("after any insertions and erasures", [] {
    IdSet set;
    std::set<std::int64_t> oracle;
    for (const auto& [deed, at] : *steps()) {
      if (deed == Deed::put) {
        set.insert(at);
        oracle.insert(at);
      }
      if (deed == Deed::erase) {
        set.erase(at);
        oracle.erase(at);
      }
      for (const std::int64_t near : {at, at ^ 1, at ^ 64})
        RC_ASSERT(set.contains(near) == (oracle.count(near) == 1));
    }
  });
}

}  // namespace remat
