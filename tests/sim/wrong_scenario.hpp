#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "model/errors.hpp"
#include "sim/scenario.hpp"

// A scenario that cannot be, and all that is said of it.

namespace remat {

struct WrongScenario {
  std::string part;     // the part of it that is wrong
  std::string message;  // what follows "s.json:"
};

inline std::string message_of(const std::string& text) {
  try {
    parse_scenario("s.json", text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

inline void check(const std::vector<WrongScenario>& rows, const std::string& before,
                  const std::string& after) {
  for (const WrongScenario& row : rows) {
    CAPTURE(row.part);
    std::string text = before;
    text += row.part;
    text += after;
    CHECK(message_of(text) == "s.json:" + row.message);
  }
}

}  // namespace remat
