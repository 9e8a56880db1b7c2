#include "properties/invariants/op_counts.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "tests/properties/invariants/checked_trace.hpp"
#include "tests/properties/invariants/excluded_region.hpp"

using namespace remat;

namespace {

/// mm runs once in forward and once in replays; relu may not run in forward.
const std::string header = R"(
  {"kind":"header","format":"ckpt-trace","version":1,"expect":{"op_counts":{"mm":2,"mm:replay":1,"aten::relu:forward":0}}}
)";
const std::string forward_mm = R"(
  {"kind":"op","phase":"forward","unit":"A","microbatch":0,"name":"mm","inputs":[],"outputs":[]}
)";
const std::string begun = R"(
  {"kind":"unit_begin","phase":"replay","unit":"A","microbatch":0,"exec":"replay","gid":["graph_task",9]}
)";
const std::string replayed_mm = R"(
  {"kind":"op","phase":"replay","unit":"A","microbatch":0,"name":"mm","inputs":[],"outputs":[]}
)";
const std::string ended = R"(
  {"kind":"unit_end","phase":"replay","unit":"A","microbatch":0,"exec":"replay","ended_by":"return"}
)";
const std::string closing = R"(
  {"kind":"step_end"}
)";

/// Forward of region bn counts a batch and writes statistics that live outside it: events 1 to 6.
const std::string forward_with_effects = R"(
  {"kind":"storage_alloc","phase":"setup","storage":1,"bytes":8,"role":"external","name":"mean"}
  {"kind":"tensor","phase":"setup","t":1,"s":1}
  {"kind":"unit_begin","phase":"forward","unit":"bn","inv":0,"frame":1,"exec":"forward"}
  {"kind":"side_effect","phase":"forward","unit":"bn","name":"batches_tracked"}
  {"kind":"mutate","phase":"forward","unit":"bn","tensor":1,"storage":1,"name":"lerp_"}
  {"kind":"unit_end","phase":"forward","unit":"bn","frame":1,"exec":"forward","ended_by":"return"}
)";
const std::string replay_begins = R"(
  {"kind":"unit_begin","phase":"replay","unit":"bn","inv":0,"frame":1,"exec":"replay","gid":["graph_task",9]}
)";
const std::string replay_ends = R"(
  {"kind":"unit_end","phase":"replay","unit":"bn","frame":1,"exec":"replay","ended_by":"return"}
)";
const std::string effect_again = R"(
  {"kind":"side_effect","phase":"replay","unit":"bn","name":"batches_tracked"}
)";
const std::string write_again = R"(
  {"kind":"mutate","phase":"replay","unit":"bn","tensor":1,"storage":1,"name":"lerp_"}
)";

}  // namespace

TEST_CASE("op_counts names an op at the event that exceeds its count", "[invariants][op_counts]") {
  SECTION("in all phases together") {
    CHECK(checked(header + forward_mm + forward_mm + forward_mm).findings ==
          Findings{{"op_counts",
                    3,
                    "mm runs in forward of A (micro-batch 0) for the 3rd time in the step; the "
                    "policy allows 2",
                    {3}}});
  }
  SECTION("in one phase") {
    CHECK(checked(header + begun + replayed_mm + ended + begun + replayed_mm).findings ==
          Findings{{"op_counts",
                    5,
                    "mm runs in the replay of A for graph task 9 for the 2nd time in the step's "
                    "replay phase; the policy allows 1",
                    {5}}});
  }
  SECTION("that must not run, only at its first run; its own name has colons") {
    const std::string relu = R"(
      {"kind":"op","phase":"forward","unit":"A","microbatch":0,"name":"aten::relu","inputs":[],"outputs":[]}
    )";
    CHECK(checked(header + relu + relu + relu).findings ==
          Findings{{"op_counts",
                    1,
                    "aten::relu runs in forward of A (micro-batch 0) for the 1st time in the "
                    "step's forward phase; the policy allows 0",
                    {1}}});
  }
  SECTION("and counts effects like ops") {
    CHECK(
        checked(
            R"({"kind":"header","format":"ckpt-trace","version":1,"expect":{"op_counts":{"log":2}}})" +
            std::string(R"(
      {"kind":"side_effect","phase":"forward","name":"log"}
      {"kind":"side_effect","phase":"backward","name":"log"}
      {"kind":"side_effect","phase":"optimizer","name":"log"}
    )"))
            .findings ==
        Findings{{"op_counts",
                  3,
                  "log runs in optimizer for the 3rd time in the step; the policy allows 2",
                  {3}}});
  }
}

TEST_CASE("op_counts names an op that ran too rarely at the step's end",
          "[invariants][op_counts]") {
  CHECK(checked(header + forward_mm + closing).findings ==
        Findings{{"op_counts", 2, "mm ran 1 time in the step; the policy asks for 2", {2}},
                 {"op_counts",
                  2,
                  "mm ran 0 times in the step's replay phase; the policy asks for 1",
                  {2}}});
}

TEST_CASE("op_counts writes ordinals as people do", "[invariants][op_counts]") {
  const auto ordinal = [](int count) {
    std::string trace =
        R"({"kind":"header","format":"ckpt-trace","version":1,"expect":{"op_counts":{"f":)" +
        std::to_string(count) + "}}}\n";
    for (int i = 0; i <= count; ++i)
      trace += "{\"kind\":\"op\",\"name\":\"f\",\"inputs\":[],\"outputs\":[]}\n";
    const Verdict verdict = checked(trace);
    REQUIRE(verdict.findings.size() == 1);
    const std::string message = verdict.findings.front().message;
    const std::size_t begin = message.find("for the ") + 8;
    return message.substr(begin, message.find(" time") - begin);
  };
  CHECK(ordinal(0) == "1st");
  CHECK(ordinal(1) == "2nd");
  CHECK(ordinal(2) == "3rd");
  CHECK(ordinal(3) == "4th");
  CHECK(ordinal(10) == "11th");
  CHECK(ordinal(11) == "12th");
  CHECK(ordinal(12) == "13th");
  CHECK(ordinal(20) == "21st");
  CHECK(ordinal(110) == "111th");
}

TEST_CASE("op_counts counts each step anew, and what hooks run not at all",
          "[invariants][op_counts]") {
  const std::string step = forward_mm + R"(
    {"kind":"op","phase":"forward","internal":"pack","name":"mm","inputs":[],"outputs":[]}
  )" + begun + replayed_mm +
                           ended;
  CHECK(checked(header + step + closing + step + closing).findings.empty());
}

TEST_CASE("op_counts expects nothing of a step that stopped with an error",
          "[invariants][op_counts]") {
  CHECK(checked(header + forward_mm + R"({"kind":"error","phase":"backward"})" + closing)
            .findings.empty());
}

TEST_CASE("op_counts names an effect of forward that runs again in a replay",
          "[invariants][op_counts]") {
  CHECK(checked(forward_with_effects + replay_begins + effect_again + effect_again).findings ==
        Findings{{"op_counts",
                  8,
                  "the side effect batches_tracked of forward runs again in the replay of bn#0 for "
                  "graph task 9; expected it once, in forward",
                  {7, 8}}});
  SECTION("in every replay") {
    CHECK(checked(forward_with_effects + replay_begins + effect_again + replay_ends +
                  replay_begins + effect_again)
              .findings.size() == 2);
  }
}

TEST_CASE("op_counts names a write to outside that forward made and a replay makes again",
          "[invariants][op_counts]") {
  CHECK(
      checked(forward_with_effects + replay_begins + write_again + write_again).findings ==
      Findings{
          {"op_counts",
           8,
           "storage 1 'mean', from outside bn#0, was written in place by its forward and is "
           "written again in the replay of bn#0 for graph task 9 by lerp_; expected the write once",
           {7, 8}}});
  SECTION("by the op before it, where the write does not say") {
    CHECK(checked(forward_with_effects + replay_begins + R"(
      {"kind":"op","phase":"replay","unit":"bn","name":"add_","inputs":[1],"outputs":[]}
      {"kind":"mutate","phase":"replay","unit":"bn","tensor":1,"storage":1}
    )")
              .findings == Findings{{"op_counts",
                                     9,
                                     "storage 1 'mean', from outside bn#0, was written in place by "
                                     "its forward and is written again in the replay of bn#0 for "
                                     "graph task 9 by add_; expected the write once",
                                     {7, 9}}});
  }
}

TEST_CASE("op_counts lets effects be that a replay may have", "[invariants][op_counts]") {
  SECTION("one that forward did not have") {
    CHECK(checked(forward_with_effects + replay_begins + R"(
      {"kind":"side_effect","phase":"replay","unit":"bn","name":"replays_counted"}
      {"kind":"tensor","t":2,"s":2}
      {"kind":"mutate","phase":"replay","unit":"bn","tensor":2,"storage":2,"name":"copy_"}
    )")
              .findings.empty());
  }
  SECTION("one that is expected in replays") {
    CHECK(
        checked(
            R"({"kind":"header","format":"ckpt-trace","version":1,"expect":{"op_counts":{"batches_tracked":2,"lerp_":0}}})" +
            forward_with_effects + replay_begins + effect_again + write_again)
            .findings.empty());
  }
  SECTION("a write to what the region itself makes, also where its storage comes again") {
    const auto run = [](const std::string& exec) {
      return R"({"kind":"unit_begin","phase":")" + exec +
             R"(","unit":"A","inv":0,"frame":1,"exec":")" + exec + "\"}\n" +
             R"({"kind":"op","phase":")" + exec +
             R"(","name":"mm","inputs":[],"outputs":[{"t":1,"s":1,"bytes":8}]})" + "\n" +
             R"({"kind":"mutate","phase":")" + exec +
             R"(","tensor":1,"storage":1,"name":"relu_"})" + "\n" +
             R"({"kind":"storage_free","phase":")" + exec + R"(","storage":1})" + "\n" +
             R"({"kind":"unit_end","phase":")" + exec + R"(","unit":"A","frame":1,"exec":")" +
             exec + "\"}\n";
    };
    CHECK(checked(run("forward") + run("replay")).findings.empty());
  }
  SECTION("another micro-batch's forward between a replay's events") {
    CHECK(checked(R"(
      {"kind":"side_effect","phase":"forward","microbatch":0,"unit":"A","name":"log"}
      {"kind":"unit_begin","phase":"replay","microbatch":0,"unit":"A","exec":"replay","gid":["session","b0"]}
      {"kind":"side_effect","phase":"forward","microbatch":1,"unit":"A","name":"log"}
      {"kind":"unit_begin","phase":"replay","microbatch":1,"unit":"A","exec":"replay","gid":["session","b1"]}
    )")
              .findings.empty());
  }
  SECTION("a new forward inside a replay") {
    CHECK(checked(R"(
      {"kind":"unit_begin","phase":"forward","unit":"outer","frame":1,"exec":"forward"}
      {"kind":"unit_end","phase":"forward","unit":"outer","frame":1,"exec":"forward","ended_by":"return"}
      {"kind":"unit_begin","phase":"replay","unit":"outer","frame":1,"exec":"replay","gid":["graph_task",1]}
      {"kind":"unit_begin","phase":"replay","unit":"inner","frame":2,"exec":"forward"}
      {"kind":"side_effect","phase":"replay","unit":"inner","name":"log"}
      {"kind":"unit_end","phase":"replay","unit":"inner","frame":2,"exec":"forward","ended_by":"return"}
    )")
              .findings.empty());
  }
}

TEST_CASE("op_counts forgets a call's effects with the call", "[invariants][op_counts]") {
  CHECK(checked(forward_with_effects + R"(
    {"kind":"frame_free","frame":1}
    {"kind":"unit_begin","phase":"forward","unit":"bn","inv":1,"frame":1,"exec":"forward"}
    {"kind":"unit_end","phase":"forward","unit":"bn","inv":1,"frame":1,"exec":"forward","ended_by":"return"}
  )" + replay_begins +
                effect_again + write_again)
            .findings.empty());
}

TEST_CASE("op_counts names an op of an excluded region that a replay goes over",
          "[invariants][op_counts]") {
  const auto replayed = [](const std::string& op) {
    return excluded_forward +
           with(excluded_replay, R"(  {"kind":"boundary")", op + "\n" + R"(  {"kind":"boundary")");
  };
  const std::string square =
      R"({"kind":"op","phase":"replay","unit":"A","name":"square","inputs":[11],"outputs":[]})";
  const std::string message =
      "square runs in the replay of A#0 for session g, inside wrapper w#0; expected the body of an "
      "excluded region to run once, in forward";
  SECTION("its body is skipped") {
    CHECK(checked(replayed(square)).findings == Findings{{"op_counts", 16, message, {13, 16}}});
    CHECK(checked(replayed(square + "\n" + square)).findings.size() == 1);
  }
  SECTION("its body runs again") {
    CHECK(checked(with(replayed(square), R"("skipped":true)", R"("skipped":false)")).findings ==
          Findings{{"op_counts", 16, message, {13, 16}}});
  }
  SECTION("what a hook does there is none of it, nor what comes behind") {
    CHECK(checked(replayed(with(square, R"("name")", R"("internal":"slot_fill","name")")))
              .findings.empty());
    CHECK(checked(excluded_forward + with(excluded_replay, R"(  {"kind":"unit_end")",
                                          square + "\n" + R"(  {"kind":"unit_end")"))
              .findings.empty());
  }
  SECTION("a region inside the replay is a forward of its own, and so is its excluded region") {
    CHECK(checked(excluded_forward + with(excluded_replay, R"(  {"kind":"unit_end")", R"(
      {"kind":"unit_begin","phase":"replay","unit":"B","inv":0,"frame":2,"exec":"forward"}
      {"kind":"wrapper_enter","phase":"replay","frame":2,"wrapper":"w","call":0,"exec":"forward","skipped":false}
      {"kind":"op","phase":"replay","unit":"B","name":"square","inputs":[11],"outputs":[]}
      {"kind":"wrapper_exit","phase":"replay","frame":2,"wrapper":"w","call":0,"exec":"forward","ended_by":"return"}
      {"kind":"unit_end","phase":"replay","unit":"B","frame":2,"exec":"forward"}
      {"kind":"unit_end")"))
              .findings.empty());
  }
}

TEST_CASE("op_counts says what it lacks", "[invariants][op_counts]") {
  CHECK(needs(checked(forward_mm), "op_counts") ==
        "expect.op_counts in the header, or side_effect or mutate events");
  CHECK(needs(checked(header + forward_mm), "op_counts") ==
        "a step_end event: what runs too rarely shows there");
  CHECK(needs(checked(forward_with_effects), "op_counts").empty());
}

TEST_CASE("op_counts judges a step when every rank has ended it", "[invariants][op_counts]") {
  const std::string expecting =
      R"({"kind":"header","format":"ckpt-trace","version":1,"expect":{"op_counts":{"mm":2},"gradients":{"w":["a","b"]}}}
)";
  const std::string ranks = R"(
    {"kind":"op","rank":0,"name":"mm"}
    {"kind":"grad","rank":0,"param":"w","value":"a"}
    {"kind":"op","rank":1,"name":"mm"}
    {"kind":"grad","rank":1,"param":"w","value":"b"}
    {"kind":"step_end","rank":0}
  )";
  CHECK(checked(expecting + ranks + R"({"kind":"step_end","rank":1})").findings.empty());
  const Verdict twice = checked(expecting + ranks + R"(
    {"kind":"op","rank":1,"name":"mm"}
    {"kind":"step_end","rank":1}
  )");
  REQUIRE(twice.findings.size() == 1);
  CHECK(twice.findings[0].invariant == "op_counts");
}
