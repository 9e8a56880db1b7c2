#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "model/listed.hpp"

TEST_CASE("names are listed with commas between them", "[model]") {
  struct Row {
    std::string name;
  };
  using remat::listed;
  CHECK(listed(std::vector<std::string>{}).empty());
  CHECK(listed(std::vector<std::string>{"a"}) == "a");
  CHECK(listed(std::vector<Row>{{"a"}, {"b"}, {"c"}}, &Row::name) == "a, b, c");
}
