#include "properties/invariants/storages.hpp"

#include <catch2/catch.hpp>

#include "model/errors.hpp"

using namespace remat;

TEST_CASE("StorageBook knows a storage by the trace's number and by the tensors on it",
          "[invariants]") {
  StorageBook book;
  CHECK_FALSE(book.find(40).has_value());
  const StorageId storage = book.at(40);
  CHECK(book.at(40) == storage);
  CHECK(book.find(40) == storage);
  CHECK(storage.number() == 40);
  book.lies_on(7, storage);
  CHECK(book.of_tensor(7) == storage);
  CHECK_FALSE(book.of_tensor(8).has_value());
  book.lies_on(7, book.at(41));  // set_ gave the tensor another storage
  CHECK(book.of_tensor(7) == book.at(41));
}

TEST_CASE("StorageBook counts the bytes of what is alive and nobody outside owns", "[invariants]") {
  StorageBook book;
  const StorageId a = book.at(1);
  const StorageId b = book.at(2);
  book.allocate(a, 8, 1);
  book.allocate(b, 4, 2);
  CHECK(book.live_bytes() == 12);
  book.set_role(a, Role::param);
  CHECK(book.live_bytes() == 4);
  book.set_role(a, Role::input);
  CHECK(book.live_bytes() == 4);
  book.set_role(a, Role::none);
  CHECK(book.live_bytes() == 12);
  book.set_role(b, Role::grad);
  book.release(b, 3);
  CHECK(book.live_bytes() == 8);
  book.release(a, 4);
  CHECK(book.live_bytes() == 0);
  CHECK(book.all_live().empty());
}

TEST_CASE("StorageBook keeps the rest in place when one is released", "[invariants]") {
  StorageBook book;
  for (std::int64_t number = 0; number < 5; ++number)
    book.allocate(book.at(number), number, 10 + number);
  book.release(book.at(1), 20);
  book.release(book.at(4), 21);
  for (const std::int64_t number : {0, 2, 3}) {
    const LiveStorage* live = book.live(book.at(number));
    REQUIRE(live != nullptr);
    CHECK(live->id == book.at(number));
    CHECK(live->bytes == number);
    CHECK(live->born_seq == 10 + number);
  }
  CHECK(book.live(book.at(1)) == nullptr);
  CHECK(book.all_live().size() == 3);
}

TEST_CASE("StorageBook goes on counting writes when a storage is made again", "[invariants]") {
  StorageBook book;
  const StorageId storage = book.at(1);
  CHECK_FALSE(book.written_seq(storage).has_value());
  book.allocate(storage, 8, 1);
  book.write(storage, 2);
  book.release(storage, 3);
  CHECK(book.is_released(storage));
  CHECK(book.released(storage)->seq == 3);
  book.allocate(storage, 8, 4);
  CHECK_FALSE(book.is_released(storage));
  book.write(storage, 5);
  CHECK(book.version(storage) == 2);
  CHECK(book.written_seq(storage) == 5);
}

TEST_CASE("StorageBook tells a storage that never lived from one that is gone", "[invariants]") {
  StorageBook book;
  const StorageId storage = book.at(1);
  CHECK_FALSE(book.is_released(storage));
  CHECK(book.live(storage) == nullptr);
  book.release(storage, 3);  // the release of something from before the trace
  CHECK(book.is_released(storage));
}

TEST_CASE("StorageBook keeps a name past the release, and does not lose it to a nameless life",
          "[invariants]") {
  StorageBook book;
  const StorageId storage = book.at(1);
  CHECK_FALSE(book.name(storage).has_value());
  book.allocate(storage, 8, 1);
  book.set_name(storage, NameId(3));
  book.release(storage, 2);
  book.allocate(storage, 8, 3);
  book.set_name(storage, std::nullopt);
  CHECK(book.name(storage) == NameId(3));
}

TEST_CASE("StorageBook does not allocate what is alive", "[invariants]") {
  StorageBook book;
  book.allocate(book.at(1), 8, 1);
  CHECK_THROWS_AS(book.allocate(book.at(1), 8, 2), InternalError);
}

TEST_CASE("a role that the format does not know is an ordinary storage's", "[invariants]") {
  CHECK(role_named("param") == Role::param);
  CHECK(role_named("buffer") == Role::buffer);
  CHECK(role_named("input") == Role::input);
  CHECK(role_named("grad") == Role::grad);
  CHECK(role_named("grad_output") == Role::grad_output);
  CHECK(role_named("external") == Role::external);
  CHECK(role_named("op") == Role::none);
  CHECK(role_named("") == Role::none);
  CHECK_FALSE(is_outside(Role::none));
  CHECK(is_outside(Role::external));
}

TEST_CASE("StorageBook keeps of those released long ago that they are, and how often written",
          "[invariants]") {
  StorageBook book;
  for (std::int64_t number = 0; number <= 1; ++number) {
    book.allocate(book.at(number), 8, number);
    book.set_name(book.at(number), NameId(3));
    book.lies_on(100 + number, book.at(number));
  }
  book.write(book.at(1), 2);
  book.release(book.at(0), 3);
  book.release(book.at(1), 3);
  const auto n = static_cast<std::int64_t>(ReleaseLog::n_remembered);
  for (std::int64_t number = 2; number < n + 2; ++number) {
    book.allocate(book.at(number), 8, number + 2);
    book.release(book.at(number), number + 2);
  }
  CHECK(book.is_released(StorageId(0)));
  CHECK_FALSE(book.released(StorageId(0))->is_exact);
  CHECK_FALSE(book.name(StorageId(0)).has_value());
  CHECK(book.of_tensor(101) == StorageId(1));
  CHECK(book.find(1) == StorageId(1));
  CHECK(book.version(StorageId(1)) == 1);
  CHECK(book.released(StorageId(2))->is_exact);
  book.write(StorageId(1), n + 9);  // a late write
  book.allocate(book.at(1), 8, n + 10);
  CHECK(book.version(StorageId(1)) == 2);
  CHECK_FALSE(book.is_released(StorageId(1)));
}
