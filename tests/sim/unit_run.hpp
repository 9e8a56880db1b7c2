#pragma once

#include <string>
#include <vector>

#include "tests/sim/scenario_run.hpp"

// What a run says of its save units.

namespace remat {

using Texts = std::vector<std::string>;
inline const Texts no_texts;  // compared with, so that a failure prints what there is

/// What the policy said of each op it was asked about, in order: "mm T", "tanh F".
inline Texts decisions(const ScenarioRun& run) {
  Texts said;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const EventView event = run.trace[i];
    if (event.kind() != Kind::sac_decide) continue;
    said.push_back(std::string(event.text(Field::op)) +
                   (event.is_true(Field::saved) ? " T" : " F"));
  }
  return said;
}

/// Its warnings in order: code, model and unit, and the op where it is about one.
inline Texts warnings(const ScenarioRun& run) {
  Texts told;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const EventView event = run.trace[i];
    if (event.kind() != Kind::warning) continue;
    std::string text(event.text(Field::code));
    for (const Field field : {Field::owner, Field::unit, Field::op})
      if (!event.text(field).empty()) text += " " + std::string(event.text(field));
    told.push_back(text);
  }
  return told;
}

inline std::string mark(const std::string& name) {
  return R"({"mark":")" + name + "\"}";
}
inline std::string callable(const std::string& name, const std::string& body) {
  return R"({"unit":")" + name + R"(","body":[)" + body + "]}";
}
inline std::string compiled(const std::string& body) {
  return R"({"compiled":[)" + body + "]}";
}
inline std::string in_place(const std::string& kind, const std::string& value) {
  return R"({"in_place":")" + kind + R"(","in":[")" + value + "\"]}";
}

/// The options of a protocol whose only unit, `u`, is selected.
inline std::string unit(const std::string& stands_for, const std::string& more = "") {
  return R"("units":{"u":{)" + stands_for + R"(}},"select":true)" + (more.empty() ? "" : ",") +
         more;
}

}  // namespace remat
