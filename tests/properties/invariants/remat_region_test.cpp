#include "tests/properties/invariants/remat_region.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "tests/properties/invariants/checked_trace.hpp"
#include "tests/properties/invariants/excluded_region.hpp"

// What each invariant says of regions of torch_remat in traces of our own kind, where a repack
// tells what fills a saved region's slot.

using namespace remat;

namespace {

const std::string fill = R"("kind":"repack","phase":"replay","slot":"A.r")";
const std::string in_session_g = R"("gid":["session","g"])";
const std::string read_again =
    R"(  {"kind":"unpack","phase":"backward","slot":"A.r","gid":["session","g"],"from":"rederived","tensor":{"t":12,"s":11}}
)";

std::string mutate(int storage, const std::string& phase) {
  return R"(  {"kind":"mutate","phase":")" + phase + R"(","storage":)" + std::to_string(storage) +
         R"(,"name":"mul_"})" + "\n";
}
/// The line in which `part` is, which is one.
std::string line_of(const std::string& text, const std::string& part) {
  const std::size_t at = text.find(part);
  const std::size_t begin = text.rfind('\n', at) + 1;
  return text.substr(begin, text.find('\n', at) + 1 - begin);
}
/// With `added` before, or behind, the line in which `part` is.
std::string before_line(const std::string& text, const std::string& part,
                        const std::string& added) {
  const std::string line = line_of(text, part);
  return with(text, line, added + line);
}
std::string behind_line(const std::string& text, const std::string& part,
                        const std::string& added) {
  const std::string line = line_of(text, part);
  return with(text, line, line + added);
}
/// The line in which `part` is, changed.
std::string in_line(const std::string& text, const std::string& part, const std::string& from,
                    const std::string& to) {
  const std::string line = line_of(text, part);
  return with(text, line, with(line, from, to));
}
/// Of another session, which makes everything anew: its tensors and storages have another ten.
std::string by_session_h(std::string text) {
  const auto all = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  all(R"(["session","g"])", R"(["session","h"])");
  for (const char* tensor : {"11", "12", "15", "16"})
    all(std::string(R"("t":)") + tensor, std::string(R"("t":2)") + tensor[1]);
  for (const char* storage : {"11", "16"})
    all(std::string(R"("s":)") + storage, std::string(R"("s":2)") + storage[1]);
  all("[15]", "[25]");
  return text;
}

Findings found_in(const std::string& text) {
  return checked(text).findings;
}
/// In a replay, or the reads, that are otherwise than they should be.
Findings found_in_replay(const std::string& replay) {
  return found_in(remat_forward + replay + remat_reads);
}
Findings found_in_reads(const std::string& reads) {
  return found_in(remat_forward + remat_replay + reads);
}

}  // namespace

TEST_CASE("no invariant has a word to say of regions that are replayed as they ran",
          "[invariants]") {
  CHECK(found_in(remat_forward + remat_replay + remat_reads) == no_findings);
  // Under a kept graph a second backward replays, fills and reads everything anew.
  CHECK(found_in(remat_forward + remat_replay + remat_reads + by_session_h(remat_replay) +
                 by_session_h(remat_reads)) == no_findings);
}

TEST_CASE("unpack_follows_replay holds a saved region's slot to its fill in the session",
          "[invariants][unpack_follows_replay]") {
  const std::string expected =
      "; expected a replay or a reload of the same session before the read";
  const std::string unfilled = without_line(without_line(remat_replay, fill), "remat_rederive");
  SECTION("nothing filled it") {
    CHECK(found_in_replay(unfilled) ==
          Findings{{"unpack_follows_replay",
                    29,
                    "slot A.r of A#0 is read in backward by session g, but nothing has filled it: "
                    "since its pack it holds a placeholder" +
                        expected,
                    {4, 29}}});
  }
  SECTION("another session did, whatever was brought for this one") {
    const Findings findings{{"unpack_follows_replay",
                             31,
                             "slot A.r of A#0 is read in backward by session g, but only session h "
                             "has filled it: since its pack it holds a placeholder" +
                                 expected,
                             {4, 20, 31}}};
    const std::string by_h = in_line(remat_replay, fill, in_session_g, R"("gid":["session","h"])");
    CHECK(found_in_replay(by_h) == findings);
    CHECK(found_in_replay(in_line(by_h, "remat_rederive", in_session_g,
                                  R"("gid":["session","h"])")) == findings);
  }
  SECTION("what one session filled another one reads") {
    CHECK(found_in_reads(remat_reads + by_session_h(read_again)) ==
          Findings{{"unpack_follows_replay",
                    32,
                    "slot A.r of A#0 is read in backward by session h, but only session g has "
                    "filled it: since its pack it holds a placeholder" +
                        expected,
                    {4, 20, 32}}});
  }
  SECTION("a recording tells the region's recipes alone") {
    CHECK(found_in_replay(without_line(remat_replay, fill)) == no_findings);
  }
}

TEST_CASE("unpack_follows_replay looks at why a saved region's slot was refused",
          "[invariants][unpack_follows_replay]") {
  const auto refused = [](const std::string& code) {
    return R"(
  {"kind":"unpack_begin","phase":"backward_weight","slot":"A.r","gid":["session","h"]}
  {"kind":"unpack_error","phase":"backward_weight","slot":"A.r","gid":["session","h"],"code":")" +
           code + "\"}\n";
  };
  CHECK(found_in_reads(remat_reads + refused("E-SLOT-EMPTY")) ==
        Findings{{"unpack_follows_replay",
                  33,
                  "slot A.r of A#0 is asked for in backward_weight by session h and refused: "
                  "nothing has filled it since its pack, it holds a placeholder; expected a replay "
                  "or a reload of the same session before the read",
                  {4, 32, 33}}});
  // Its tensor went to the first session, as it had to.
  CHECK(found_in_reads(remat_reads + refused("E-TWICE")) == no_findings);
}

TEST_CASE("slot_used_once holds a saved region's slot to one fill and one read a session",
          "[invariants][slot_used_once]") {
  CHECK(found_in_replay(behind_line(remat_replay, fill, line_of(remat_replay, fill))) ==
        Findings{{"slot_used_once",
                  21,
                  "slot A.r of A#0 is filled in the replay of A#0 for session g, but session g "
                  "filled it before, at event 20; expected one fill for each session",
                  {20, 21}}});
  CHECK(found_in_reads(remat_reads + read_again) ==
        Findings{{"slot_used_once",
                  32,
                  "slot A.r of A#0 is asked for in backward by session g again, after event 31; a "
                  "session that does not retain gets a slot once",
                  {31, 32}}});
  CHECK(found_in_reads(in_line(remat_reads, "A.r", R"("s":11)", R"("s":16)")) ==
        Findings{{"slot_used_once",
                  31,
                  "slot A.r of A#0 hands out storage 16 in backward, but storage 11 was filled in "
                  "at event 20; expected that value",
                  {20, 31}}});
}

TEST_CASE("slot_used_once lets what a saved region keeps be read again",
          "[invariants][slot_used_once]") {
  CHECK(found_in_reads(remat_reads + line_of(remat_reads, R"("slot":"r0")")) == no_findings);
}

TEST_CASE("version_unchanged holds a saved region's slot to the version of its fill",
          "[invariants][version_unchanged]") {
  CHECK(found_in_replay(behind_line(remat_replay, fill, mutate(11, "replay"))) ==
        Findings{{"version_unchanged",
                  32,
                  "slot A.r of A#0 is read in backward, but storage 11, filled in at event 20, was "
                  "written since, at event 21 (version 0 then, 1 now); expected no write before "
                  "the read",
                  {20, 21, 32}}});
  CHECK(found_in_replay(before_line(remat_replay, "remat_rederive", mutate(11, "replay"))) ==
        no_findings);
  // Forward's own tensor is not what is read.
  CHECK(found_in(remat_forward + mutate(1, "forward") + remat_replay + remat_reads) == no_findings);
}

TEST_CASE("version_unchanged holds what a saved region keeps to the version at which it was kept",
          "[invariants][version_unchanged]") {
  SECTION("for backward") {
    CHECK(found_in_reads(before_line(remat_reads, "A.1", mutate(3, "backward"))) ==
          Findings{{"version_unchanged",
                    31,
                    "slot r0 of A#0 is read in backward, but storage 3, kept at event 6, was "
                    "written since, at event 28 (version 0 then, 1 now); expected no write before "
                    "the read",
                    {6, 28, 31}}});
    CHECK(found_in(before_line(remat_forward, R"("slot":"r0")", mutate(3, "forward")) +
                   remat_replay + remat_reads) == no_findings);
  }
  SECTION("for a replay") {
    const Findings findings =
        found_in(remat_forward + mutate(4, "forward") + remat_replay + remat_reads);
    REQUIRE_FALSE(findings.empty());
    CHECK(findings.front() ==
          Finding{"version_unchanged",
                  22,
                  "the kept output of region r is served in the replay of A#0 for session g, but "
                  "storage 4, kept at event 10, was written since, at event 16 (version 0 then, 1 "
                  "now); expected no write while it is kept",
                  {10, 16, 22}});
    CHECK(found_in(before_line(remat_forward, "remat_persist", mutate(4, "forward")) +
                   remat_replay + remat_reads) == no_findings);
  }
}

TEST_CASE("saved_lists_match holds a saved region's slot to the layout that was packed",
          "[invariants][saved_lists_match]") {
  const auto filled_as = [](const std::string& from, const std::string& to,
                            const std::string& layout) {
    CHECK(found_in_replay(in_line(remat_replay, fill, from, to)) ==
          Findings{{"saved_lists_match",
                    20,
                    "slot A.r of A#0 was packed as f32 [2] stride [1] offset 2 and is filled in "
                    "the replay of A#0 for session g with " +
                        layout + "; expected the layout that forward saved",
                    {4, 20}}});
  };
  filled_as(R"("shape":[2])", R"("shape":[1])", "f32 [1] stride [1] offset 2");
  filled_as(R"("dtype":"f32")", R"("dtype":"bf16")", "bf16 [2] stride [1] offset 2");
  CHECK(found_in_reads(in_line(remat_reads, "A.r", R"("shape":[2])", R"("shape":[1])")) ==
        Findings{{"saved_lists_match",
                  31,
                  "slot A.r of A#0 was filled as f32 [2] stride [1] offset 2 and is read in "
                  "backward as f32 [1] stride [1] offset 2; expected the layout that was filled in",
                  {20, 31}}});
}

TEST_CASE("saved_lists_match lets a saved region's argument lie elsewhere in a replay",
          "[invariants][saved_lists_match]") {
  CHECK(found_in(remat_forward + in_line(remat_replay, fill, R"("off":2)", R"("off":1)") +
                 in_line(remat_reads, "A.r", R"("off":2)", R"("off":1)")) == no_findings);
}

TEST_CASE("saved_lists_match names a fill of a saved region's slot that forward does not have",
          "[invariants][saved_lists_match]") {
  CHECK(found_in(remat_forward + in_line(remat_replay, fill, "A.r", "A.q") +
                 without_line(remat_reads, "A.r")) ==
        Findings{{"saved_lists_match",
                  20,
                  "slot A.q is filled in the replay of A#0 for session g, but forward saved "
                  "nothing under that name; the replay saves more than forward did",
                  {20}}});
}

TEST_CASE("gradients_equal_plain compares what a saved region's slot is filled with, and read as",
          "[invariants][gradients_equal_plain]") {
  const std::string eight = R"("value":8)";
  const std::string seven = R"("value":7)";
  const Findings at_fill{{"gradients_equal_plain",
                          20,
                          "slot A.r of A#0 was packed with value 7 and is filled in the replay of "
                          "A#0 for session g with 8; expected the value that forward saved",
                          {4, 20}}};
  const std::string filled = in_line(remat_replay, fill, seven, eight);
  const std::string read = in_line(remat_reads, "A.r", seven, eight);
  CHECK(found_in(remat_forward + filled + read) == at_fill);
  // Elsewhere in its storage it is the same value still.
  CHECK(found_in(remat_forward + in_line(filled, fill, R"("off":2)", R"("off":1)") +
                 in_line(read, "A.r", R"("off":2)", R"("off":1)")) == at_fill);
  CHECK(found_in_reads(read) ==
        Findings{{"gradients_equal_plain",
                  31,
                  "slot A.r of A#0 is read in backward with value 8, but it was given 7 at event "
                  "20",
                  {20, 31}}});
}

namespace {

/// The replay has a placeholder (event 21) where r's output was served, and c does not read it.
std::string unserved() {
  const std::string placeholder =
      R"(  {"kind":"remat_placeholder","phase":"replay","unit":"A","frame":1,"region":"r","output":0,"declared_bytes":8,"tensor":{"t":13,"s":13,"dtype":"f32","shape":[2],"stride":[1],"off":0}}
)";
  return with(remat_replay, line_of(remat_replay, "remat_serve"), placeholder);
}
const std::string saves_c = R"("idx":0)";
const std::string view_of_it =
    R"(  {"kind":"op","phase":"replay","unit":"A","name":"view","inputs":[13],"outputs":[{"t":14,"s":13,"shape":[1,2]}]}
)";
const std::string held_no_data =
    " the placeholder of region r, output 0 (event 21), which holds no data; expected the output "
    "to "
    "be kept for the replay, or its consumer to be excluded too";

}  // namespace

TEST_CASE("boundaries_match leaves placeholders of saved regions to who does not read them",
          "[invariants][boundaries_match]") {
  CHECK(found_in_replay(unserved()) == no_findings);
  CHECK(found_in_replay(before_line(unserved(), saves_c, view_of_it)) == no_findings);
}

TEST_CASE("boundaries_match names who reads a saved region's placeholder, or a view of it",
          "[invariants][boundaries_match]") {
  const std::string in_replay = "in the replay of A#0 for session g";
  SECTION("an op") {
    const std::string reads =
        R"(  {"kind":"op","phase":"replay","unit":"A","name":"exp","inputs":[14],"outputs":[{"t":17,"s":17,"bytes":8}]}
)";
    CHECK(found_in_replay(before_line(unserved(), saves_c, view_of_it + reads)).front() ==
          Finding{"boundaries_match", 25, "exp " + in_replay + " reads" + held_no_data, {21, 25}});
  }
  SECTION("one that raised") {
    const std::string raised =
        R"(  {"kind":"op_error","phase":"replay","unit":"A","name":"add","type":"RuntimeError","inputs":[14]}
)";
    CHECK(
        found_in_replay(before_line(unserved(), saves_c, view_of_it + raised)) ==
        Findings{
            {"boundaries_match", 25, "add " + in_replay + " raises on" + held_no_data, {21, 25}}});
  }
  SECTION("a save of the frame") {
    const std::string saved = in_line(unserved(), saves_c, R"("t":15,"s":4)", R"("t":15,"s":13)");
    const std::string read = in_line(remat_reads, "A.0", R"("s":4)", R"("s":13)");
    CHECK(found_in(remat_forward + saved + read).front() ==
          Finding{"boundaries_match",
                  24,
                  "slot A.0 of A#0 is filled " + in_replay + " from" + held_no_data,
                  {21, 24}});
  }
  SECTION("another saved region's slot") {
    const std::string first = with(unserved(), line_of(unserved(), fill), "");
    const std::string later =
        behind_line(first, "remat_placeholder",
                    with(line_of(remat_replay, fill), R"("t":12,"s":11)", R"("t":12,"s":13)"));
    const std::string read = in_line(remat_reads, "A.r", R"("s":11)", R"("s":13)");
    const std::string at_20 = with(held_no_data, "event 21", "event 20");
    CHECK(found_in(remat_forward + later + read) ==
          Findings{{"boundaries_match",
                    21,
                    "slot A.r of A#0 is filled " + in_replay + " from" + at_20,
                    {20, 21}}});
  }
}

TEST_CASE("boundaries_match wants the trigger of a checkpointed region in its replay",
          "[invariants][boundaries_match]") {
  CHECK(found_in_replay(with(remat_replay, R"(,"boundary":true)", "")) ==
        Findings{{"boundaries_match",
                  26,
                  "slot A.1 of A#0 is a boundary's save, but is filled in the replay of A#0 for "
                  "session g with that of an op; expected a boundary in both or in neither",
                  {14, 26}}});
}
