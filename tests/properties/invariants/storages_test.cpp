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
  CHECK(book.number(storage) == 40);
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
  CHECK(book.released_seq(storage) == 3);
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
