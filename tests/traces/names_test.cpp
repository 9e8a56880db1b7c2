#include "traces/names.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace remat {

TEST_CASE("NameTable gives ids in the order of first use, one a spelling", "[traces]") {
  NameTable names;
  CHECK(names.intern("pack").index() == 0);
  CHECK(names.intern("unpack").index() == 1);
  CHECK(names.intern("pack").index() == 0);
  CHECK(names.size() == 2);
  CHECK(names[NameId(1)] == "unpack");
}

TEST_CASE("NameTable finds only what was interned", "[traces]") {
  NameTable names;
  const NameId pack = names.intern("pack");
  CHECK(names.find("pack") == pack);
  CHECK_FALSE(names.find("pac"));
  CHECK_FALSE(names.find(""));
  CHECK(names.size() == 1);
}

TEST_CASE("NameTable tells spellings apart that differ in length or in a zero byte", "[traces]") {
  NameTable names;
  const std::vector<std::string> spellings = {"",
                                              std::string(1, '\0'),
                                              std::string(8, '\0'),
                                              std::string(9, '\0'),
                                              "12345678",
                                              "123456780",
                                              "12345678123456",
                                              std::string("a\0b", 3),
                                              "a",
                                              "A",
                                              "é",
                                              std::string(100, 'x')};
  for (const std::string& spelling : spellings)
    names.intern(spelling);
  REQUIRE(names.size() == spellings.size());
  for (std::size_t i = 0; i < spellings.size(); ++i)
    CHECK(names[NameId(static_cast<std::uint32_t>(i))] == spellings[i]);
}

TEST_CASE("NameTable keeps its spellings where they are while it grows", "[traces]") {
  NameTable names;
  constexpr int n = 20000;
  const auto spelling = [](int i) { return "slot " + std::to_string(i); };
  const std::string_view first = names[names.intern(spelling(0))];
  const char* const place = first.data();
  for (int i = 0; i < n; ++i)
    names.intern(spelling(i));
  CHECK(names.size() == n);
  CHECK(first == "slot 0");
  CHECK(names[NameId(0)].data() == place);
  for (int i = 0; i < n; i += 97)
    CHECK(names.find(spelling(i)) == NameId(static_cast<std::uint32_t>(i)));
}

TEST_CASE("NameTable takes a name longer than its blocks", "[traces]") {
  NameTable names;
  const std::string giant(100000, 'y');
  names.intern("before");
  const NameId id = names.intern(giant);
  names.intern("behind");
  CHECK(names[id] == giant);
  CHECK(names.find("behind") == NameId(2));
  CHECK(names.bytes_in_memory() > giant.size());
}

}  // namespace remat
