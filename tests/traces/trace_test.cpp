#include "traces/trace.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "tests/traces/shared_traces.hpp"
#include "tests/traces/trace_difference.hpp"
#include "tests/traces/trace_text.hpp"
#include "traces/reader.hpp"

namespace remat {
namespace {

Trace one_pack(std::string_view slot) {
  Trace trace;
  trace.begin_event();
  trace.add_name(Field::slot, slot);
  trace.add(Field::view, true);
  trace.add(Field::idx, std::int64_t{3});
  trace.end_event(Kind::pack, Phase::forward, 5);
  return trace;
}

Layout layout_of(std::vector<std::int64_t> shape) {
  Layout layout;
  layout.shape = std::move(shape);
  layout.has_shape = true;
  return layout;
}

/// The document of the format, line by line.
std::vector<std::string> document_lines() {
  std::ifstream in(std::string(REMATSIM_SOURCE_DIR) + "/docs/trace-format.md");
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

/// The row of the document's tables whose first cell names `word`.
std::string row_of(std::string_view word) {
  const std::string quoted = "`" + std::string(word) + "`";
  for (const std::string& line : document_lines()) {
    if (line.starts_with("| `") && line.substr(0, line.find(" | ")).find(quoted) != line.npos)
      return line;
  }
  return {};
}

}  // namespace

TEST_CASE("an event gives what was added, and nothing for what was not", "[traces]") {
  const Trace trace = one_pack("p1");
  const EventView event = trace[0];
  CHECK(event.seq() == 5);
  CHECK(event.integer(Field::seq) == 5);
  CHECK(event.kind() == Kind::pack);
  CHECK(event.kind_name() == "pack");
  CHECK(event.phase() == Phase::forward);
  CHECK(event.text(Field::slot) == "p1");
  CHECK(event.is_true(Field::view));
  CHECK(event.integer(Field::idx) == 3);
  CHECK_FALSE(event.given(Field::frame));
  CHECK_FALSE(event.integer(Field::frame));
  CHECK_FALSE(event.boolean(Field::boundary));
}

TEST_CASE("a value asked for as another type than its own is none", "[traces]") {
  const Trace trace = one_pack("p1");
  const EventView event = trace[0];
  CHECK_FALSE(event.integer(Field::slot));
  CHECK_FALSE(event.boolean(Field::idx));
  CHECK_FALSE(event.name(Field::view));
  CHECK_FALSE(event.tensor(Field::slot));
  CHECK_FALSE(event.session(Field::slot));
  CHECK_FALSE(event.node(Field::slot));
  CHECK(event.text(Field::idx).empty());
  CHECK(event.list_size(Field::slot) == 0);
  CHECK_FALSE(event.lists_tensors(Field::slot));
}

TEST_CASE("an event that is not ended is forgotten by the next", "[traces]") {
  Trace trace;
  trace.begin_event();
  trace.add_name(Field::slot, "half");
  trace.begin_event();
  trace.add(Field::idx, std::int64_t{1});
  trace.end_event(Kind::pack, Phase::none, 0);
  CHECK(trace.size() == 1);
  CHECK_FALSE(trace[0].given(Field::slot));
  CHECK(trace[0].integer(Field::idx) == 1);
}

TEST_CASE("integers of every size come back", "[traces]") {
  for (const std::int64_t value :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{INT32_MAX}, std::int64_t{INT32_MIN},
        std::int64_t{INT32_MAX} + 1, std::int64_t{INT32_MIN} - 1, INT64_MAX, INT64_MIN}) {
    Trace trace;
    trace.begin_event();
    trace.add(Field::ts_ns, value);
    trace.add_list(Field::prefire, std::vector<std::int64_t>{1, value});
    trace.end_event(Kind::phase_begin, Phase::none, 0);
    CHECK(trace[0].integer(Field::ts_ns) == value);
    CHECK(trace[0].list_size(Field::prefire) == 2);
    CHECK(trace[0].list_item(Field::prefire, 1) == value);
  }
}

TEST_CASE("equal layouts and sessions share a row, unequal ones do not", "[traces]") {
  Trace trace;
  const LayoutId id = trace.intern(layout_of({2, 3}));
  CHECK(trace.intern(layout_of({2, 3})) == id);
  CHECK(trace.intern(layout_of({3, 2})) != id);
  CHECK(trace.intern(Layout{}) != trace.intern(layout_of({})));
  Layout elsewhere = layout_of({2, 3});
  elsewhere.device = trace.names().intern("cuda:0");
  CHECK(trace.intern(elsewhere) != id);
  const NameId group = trace.names().intern("group");
  const SessionId first = trace.intern(SessionName{group, 1, {}});
  CHECK(trace.intern(SessionName{group, 1, {}}) == first);
  CHECK(trace.intern(SessionName{group, 2, {}}) != first);
  CHECK(trace.intern(SessionName{group, {}, group}) != first);
}

TEST_CASE("dropping the events keeps the names and what they are made of", "[traces]") {
  Trace trace = one_pack("p1");
  const NameId slot = *trace[0].name(Field::slot);
  const LayoutId layout = trace.intern(layout_of({4}));
  trace.drop_events();
  CHECK(trace.empty());
  CHECK(trace.names()[slot] == "p1");
  CHECK(trace.layout(layout).shape == std::vector<std::int64_t>{4});
  trace.begin_event();
  trace.add_name(Field::slot, "p1");
  trace.end_event(Kind::unpack, Phase::none, 6);
  CHECK(trace[0].name(Field::slot) == slot);
}

TEST_CASE("two traces differ where any of their values does", "[traces]") {
  CHECK(first_difference(one_pack("p1"), one_pack("p1")) == std::nullopt);
  CHECK(first_difference(one_pack("p1"), one_pack("p2")) == "event 0: slot");
  CHECK(first_difference(one_pack("p1"), Trace{}) == "the number of events");
  const auto difference = [](const std::string& a, const std::string& b) {
    return first_difference(trace_in(with_header(a)), trace_in(with_header(b)));
  };
  CHECK(difference(R"({"seq":1,"kind":"note"})", R"({"seq":2,"kind":"note"})") == "event 1: seq");
  CHECK(difference(R"({"seq":1,"kind":"note"})", R"({"seq":1,"kind":"op"})") == "event 1: kind");
  CHECK(difference(R"({"seq":1,"kind":"note"})", R"({"seq":1,"kind":"note","rank":null})") ==
        "event 1: rank");
  CHECK(difference(R"({"seq":1,"kind":"note","x":1})", R"({"seq":1,"kind":"note","x":2})") ==
        "event 1: unknown fields");
  CHECK(difference(R"({"seq":1,"kind":"op","outputs":[{"t":1,"off":0}]})",
                   R"({"seq":1,"kind":"op","outputs":[{"t":1}]})") == "event 1: outputs");
}

TEST_CASE("an event takes at most 96 bytes on average", "[traces]") {
  Trace trace;
  constexpr std::size_t events_min = 100000;
  while (trace.size() < events_min) {
    const std::size_t before = trace.size();
    for (const std::string& path : traces_of_others()) {
      if (path.find("/recorded/") == std::string::npos) continue;
      TraceReader reader(path);
      while (reader.read(trace, std::numeric_limits<std::size_t>::max()) > 0) {
      }
    }
    REQUIRE(trace.size() > before);
  }
  trace.shrink_to_fit();
  CHECK(trace.bytes_in_memory() <= 96 * trace.size());
}

TEST_CASE("the document of the format names every kind with its fields", "[traces]") {
  std::vector<std::string> missing;
  const auto look_for = [&](Field field, const std::string& row, std::string_view where) {
    if (row.find("`" + std::string(name_of(field)) + "`") == row.npos)
      missing.push_back(std::string(where) + "." + std::string(name_of(field)));
  };
  for (const KindRow& row : kind_rows()) {
    const std::string text = row_of(row.name);
    if (text.empty()) missing.emplace_back(row.name);
    for (const FieldRow& field : row.fields)
      look_for(field.field, text, row.name);
  }
  for (const FieldRow& field : context_fields())
    look_for(field.field, row_of(name_of(field.field)), "any event");
  for (const FieldRow& field : tensor_fields())
    look_for(field.field, row_of(name_of(field.field)), "tensor");
  for (std::size_t phase = 1; phase < phase_count; ++phase) {
    if (row_of("phase").find("`" + std::string(name_of(static_cast<Phase>(phase))) + "`") ==
        std::string::npos)
      missing.push_back("phase " + std::string(name_of(static_cast<Phase>(phase))));
  }
  CAPTURE(missing);
  CHECK(missing.empty());
}

TEST_CASE("the document's small trace is one", "[traces]") {
  const std::vector<std::string> lines = document_lines();
  auto line = std::find(lines.begin(), lines.end(), "```json");
  REQUIRE(line != lines.end());
  std::string text;
  while (*++line != "```")
    text += *line + "\n";
  CHECK(fault_in(text).empty());
  CHECK(trace_in(text).size() == 4);
}

TEST_CASE("a field of every kind means the same in all of them", "[traces]") {
  for (const KindRow& row : kind_rows()) {
    for (const FieldRow& common : context_fields())
      CHECK(field_type(row.kind, common.field) == common.type);
  }
}

TEST_CASE("names and ids of the vocabulary lead to each other", "[traces]") {
  for (const KindRow& row : kind_rows()) {
    CHECK(name_of(row.kind) == row.name);
    CHECK(kind_named(row.name) == row.kind);
  }
  for (std::size_t field = 0; field < field_count; ++field)
    CHECK(field_named(name_of(static_cast<Field>(field))) == static_cast<Field>(field));
  CHECK_FALSE(kind_named("unknown"));
  CHECK_FALSE(phase_named("none"));
  CHECK_FALSE(field_named("case_"));
  CHECK_FALSE(field_type(Kind::note, Field::slot));
}

}  // namespace remat
