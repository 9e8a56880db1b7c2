#include "properties/invariants/slots.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "tests/properties/invariants/checked_trace.hpp"

using namespace remat;

namespace {

Slot slot_named(std::uint32_t name, std::int64_t packed_seq) {
  Slot slot;
  slot.name = NameId(name);
  slot.held = Held::placeholder;
  slot.packed_seq = packed_seq;
  return slot;
}

Slot save_of(std::int64_t frame, std::int64_t index, std::uint32_t name, std::int64_t packed_seq) {
  Slot slot = slot_named(name, packed_seq);
  slot.frame = frame;
  slot.index = index;
  return slot;
}

Fill fill_by(std::optional<SessionKey> session, std::int64_t seq) {
  Fill fill;
  fill.session = session;
  fill.seq = seq;
  return fill;
}

const SessionKey task_1 = SessionKey::of_graph_task(1);
const SessionKey task_2 = SessionKey::of_graph_task(2);

std::vector<std::uint32_t> alive(const SlotBook& book) {
  std::vector<std::uint32_t> names;
  book.each_alive([&](const Slot& slot) { names.push_back(slot.name.index()); });
  return names;
}

}  // namespace

TEST_CASE("a slot's fill is the last of the session that reads it", "[invariants]") {
  Slot slot = slot_named(1, 1);
  CHECK(slot.fill_for(task_1) == nullptr);
  slot.fills = {fill_by(task_1, 2), fill_by(task_2, 3), fill_by(task_1, 4)};
  CHECK(slot.fill_for(task_1)->seq == 4);
  CHECK(slot.fill_for(task_2)->seq == 3);
  CHECK(slot.fill_for(SessionKey::of_graph_task(3)) == nullptr);
}

TEST_CASE("a fill or a read whose session is not recorded may be any session's", "[invariants]") {
  Slot slot = slot_named(1, 1);
  slot.fills = {fill_by(task_1, 2)};
  CHECK(slot.fill_for(std::nullopt)->seq == 2);
  slot.fills = {fill_by(std::nullopt, 3)};
  CHECK(slot.fill_for(task_2)->seq == 3);
}

TEST_CASE("an excluded region's slot serves every session from one fill", "[invariants]") {
  Slot slot = slot_named(1, 1);
  slot.held = Held::slot;
  slot.fills = {fill_by(task_1, 2)};
  CHECK(slot.fill_for(task_2)->seq == 2);
}

TEST_CASE("a slot's open request is the last that waits and that the session answers",
          "[invariants]") {
  Slot slot = slot_named(1, 1);
  CHECK(slot.open_request(task_1) == nullptr);
  slot.requests = {{task_1, 2, true, false}, {task_2, 3, true, false}, {task_2, 4, false, false}};
  CHECK(slot.open_request(task_1)->seq == 2);
  CHECK(slot.open_request(task_2)->seq == 3);
  CHECK(slot.open_request(std::nullopt)->seq == 3);
  slot.requests = {{std::nullopt, 5, true, false}};
  CHECK(slot.open_request(task_1)->seq == 5);
}

TEST_CASE("SlotBook finds a slot by its name, or by frame and index", "[invariants]") {
  const Trace named = hand_made(R"(
    {"kind":"pack","slot":"a","frame":1,"idx":4}
    {"kind":"repack","slot":"a"}
    {"kind":"repack","frame":1,"idx":4}
    {"kind":"repack","frame":1,"idx":5}
    {"kind":"repack","idx":4}
    {"kind":"repack","slot":"b","frame":1,"idx":4}
  )");
  SlotBook book;
  book.pack(save_of(1, 4, named[1].name(Field::slot)->index(), 1));
  const Slot* packed = book.find(*named[1].name(Field::slot));
  REQUIRE(packed != nullptr);
  CHECK(book.of(named[2]) == packed);
  CHECK(book.of(named[3]) == packed);
  CHECK(book.of(named[4]) == nullptr);
  CHECK(book.of(named[5]) == nullptr);
  CHECK(book.of(named[6]) == nullptr);  // the name comes first
}

TEST_CASE("SlotBook visits what is alive in the order of the packs", "[invariants]") {
  SlotBook book;
  book.pack(slot_named(5, 1));
  book.pack(slot_named(3, 2));
  book.pack(slot_named(4, 3));
  CHECK(alive(book) == std::vector<std::uint32_t>{5, 3, 4});
  CHECK_FALSE(book.deaths_are_recorded());
  book.release(NameId(3), 4);
  CHECK(alive(book) == std::vector<std::uint32_t>{5, 4});
  CHECK(book.deaths_are_recorded());
}

TEST_CASE("SlotBook forgets the slot of a name that is packed anew", "[invariants]") {
  SlotBook book;
  Slot& first = book.pack(save_of(1, 0, 5, 1));
  first.fills = {fill_by(task_1, 2)};
  book.pack(save_of(2, 0, 5, 3));
  CHECK(alive(book) == std::vector<std::uint32_t>{5});
  CHECK(book.find(NameId(5))->frame == 2);
  CHECK(book.find(NameId(5))->fills.empty());
}

TEST_CASE("SlotBook remembers when a released slot was released", "[invariants]") {
  SlotBook book;
  book.pack(slot_named(5, 1));
  CHECK_FALSE(book.released(NameId(5)).has_value());
  book.release(NameId(5), 2);
  CHECK(book.find(NameId(5)) == nullptr);
  CHECK(book.released(NameId(5))->seq == 2);
  book.release(NameId(5), 3);  // a second release changes nothing
  CHECK(book.released(NameId(5))->seq == 2);
  book.pack(slot_named(5, 4));
  CHECK_FALSE(book.released(NameId(5)).has_value());
}

TEST_CASE("SlotBook keeps a released save until its frame is gone: a replay still fills it",
          "[invariants]") {
  SlotBook book;
  book.pack(save_of(1, 0, 5, 1));
  book.pack(save_of(1, 1, 6, 2));
  book.release(NameId(5), 3);
  REQUIRE(book.find(NameId(5)) != nullptr);
  CHECK(book.find(NameId(5))->released_seq == 3);
  book.free_frame({NameId(5), NameId(6)});
  CHECK(book.find(NameId(5)) == nullptr);
  CHECK(book.released(NameId(5))->seq == 3);
  // Whoever holds the other save holds it on.
  CHECK(book.find(NameId(6)) != nullptr);
  book.release(NameId(6), 4);
  CHECK(book.find(NameId(6)) == nullptr);
}

TEST_CASE("SlotBook ends a session by dropping its fills and requests, and nobody else's",
          "[invariants]") {
  SlotBook book;
  Slot& slot = book.pack(slot_named(5, 1));
  slot.fills = {fill_by(task_1, 2), fill_by(task_2, 3)};
  slot.requests = {{task_1, 4, false, false}, {task_2, 5, false, false}};
  book.clear_session(task_1);
  const Slot* left = book.find(NameId(5));
  REQUIRE(left->fills.size() == 1);
  REQUIRE(left->requests.size() == 1);
  CHECK(left->fills.front().seq == 3);
  CHECK(left->requests.front().seq == 5);
}

TEST_CASE("how a slot holds its tensor is told by a word, or unknown", "[invariants]") {
  CHECK(held_named("saved") == Held::saved);
  CHECK(held_named("placeholder") == Held::placeholder);
  CHECK(held_named("offloaded") == Held::offloaded);
  CHECK(held_named("slot") == Held::slot);
  CHECK(held_named("") == Held::unknown);
  CHECK(held_named("compressed") == Held::unknown);
}
