#include "sim/event_queue.hpp"

#include <rapidcheck/catch.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

#include "model/random_bits.hpp"

namespace remat {
namespace {

/// The order as it is said, key after key.
bool is_earlier(const Event& a, const Event& b) {
  return std::tuple(a.when, a.rank, a.stream, a.sequence) <
         std::tuple(b.when, b.rank, b.stream, b.sequence);
}

/// Few values of each key, those at the ends of its range among them, so that all keys tie often.
rc::Gen<Event> event() {
  return rc::gen::map(
      rc::gen::tuple(
          rc::gen::element<std::int64_t>(INT64_MIN, -1, 0, 1, 1'000'000'000'000, INT64_MAX),
          rc::gen::element<std::uint32_t>(0, 1, 0x7fffffff, 0x80000000, UINT32_MAX),
          rc::gen::element<std::uint32_t>(0, 1, 0x80000000, UINT32_MAX),
          rc::gen::arbitrary<std::uint64_t>()),
      [](const std::tuple<std::int64_t, std::uint32_t, std::uint32_t, std::uint64_t>& keys) {
        const auto& [when, rank, stream, payload] = keys;
        return Event{{when}, rank, stream, 0, payload};
      });
}

/// An event to push, or none to pop.
rc::Gen<std::vector<rc::Maybe<Event>>> steps() {
  return rc::gen::scale(5,
                        rc::gen::container<std::vector<rc::Maybe<Event>>>(rc::gen::maybe(event())));
}

std::vector<Event> popped(EventQueue& queue) {
  std::vector<Event> events;
  while (!queue.empty())
    events.push_back(queue.pop());
  return events;
}

}  // namespace

TEST_CASE("EventQueue orders by time, then rank, then stream, then sequence", "[sim]") {
  // Each differs from the one before in one key, and all keys behind that one say the contrary.
  const std::vector<Event> in_order = {{{-5}, 9, 9, 9, 0}, {{1}, 2, 9, 9, 0}, {{1}, 3, 1, 9, 0},
                                       {{1}, 3, 2, 4, 0},  {{1}, 3, 2, 5, 0}, {{7}, 0, 0, 0, 0},
                                       {{7}, 0, 0, 1, 0}};
  std::vector<Event> any_order = in_order;
  std::sort(any_order.begin(), any_order.end(), [](const Event& a, const Event& b) {
    return mixed_bits(a.sequence ^ a.rank << 8U) < mixed_bits(b.sequence ^ b.rank << 8U);
  });
  REQUIRE(any_order != in_order);
  EventQueue queue;
  for (const Event& event : any_order)
    queue.push(event);
  CHECK(queue.size() == in_order.size());
  CHECK(queue.top() == in_order.front());
  CHECK(popped(queue) == in_order);
}

TEST_CASE("comes_before is the order of the four keys", "[sim]") {
  rc::prop("for any two events", [] {
    Event a = *event();
    Event b = *event();
    a.sequence = *rc::gen::inRange<std::uint64_t>(0, 3);
    b.sequence = *rc::gen::inRange<std::uint64_t>(0, 3);
    RC_ASSERT(comes_before(a, b) == is_earlier(a, b));
    RC_ASSERT(comes_before(b, a) == is_earlier(b, a));
    RC_ASSERT(!comes_before(a, a));
  });
}

TEST_CASE("EventQueue gives events of one time and stream in the order of their sequence",
          "[sim]") {
  EventQueue queue;
  for (std::uint64_t i = 0; i < 1000; ++i)
    queue.push({{3}, 1, 2, i, 1000 - i});
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const Event event = queue.pop();
    REQUIRE(event.sequence == i);
    REQUIRE(event.payload == 1000 - i);
  }
  CHECK(queue.empty());
}

TEST_CASE("EventQueue does what a sorted list does", "[sim]") {
  rc::prop("after any pushes and pops", [] {
    EventQueue queue;
    std::vector<Event> oracle;
    std::uint64_t sequence = 0;
    for (const rc::Maybe<Event>& step : *steps()) {
      if (step) {
        Event event = *step;
        event.sequence = sequence++;
        queue.push(event);
        oracle.insert(std::upper_bound(oracle.begin(), oracle.end(), event, is_earlier), event);
      } else if (!oracle.empty()) {
        RC_ASSERT(queue.pop() == oracle.front());
        oracle.erase(oracle.begin());
      }
      RC_ASSERT(queue.size() == oracle.size());
      RC_ASSERT(queue.empty() == oracle.empty());
      if (!queue.empty()) RC_ASSERT(queue.top() == oracle.front());
    }
    RC_ASSERT(popped(queue) == oracle);
  });
}

TEST_CASE("EventQueue sorts as many events as fill whole rows and as one more or fewer", "[sim]") {
  // Rows of the heap hold 1, 4, 16, 64, 256 … events: 1, 5, 21, 85, 341 up to the end of each.
  for (const std::uint64_t full : {1U, 5U, 21U, 85U, 341U, 1365U}) {
    for (std::uint64_t size = full - 1; size <= full + 5; ++size) {
      EventQueue queue;
      std::vector<Event> oracle;
      for (std::uint64_t i = 0; i < size; ++i) {
        const auto when = static_cast<std::int64_t>(random_bits(size, 0, i) % size);
        oracle.push_back({{when}, static_cast<std::uint32_t>(i % 3), 0, i, i});
        queue.push(oracle.back());
      }
      std::sort(oracle.begin(), oracle.end(), is_earlier);
      REQUIRE(popped(queue) == oracle);
    }
  }
}

TEST_CASE("EventQueue refuses to give what it does not hold", "[sim]") {
  EventQueue queue;
  CHECK_THROWS_AS(queue.top(), InternalError);
  CHECK_THROWS_AS(queue.pop(), InternalError);
}

}  // namespace remat
