#include "properties/invariants/rng_position.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "tests/properties/invariants/checked_trace.hpp"

using namespace remat;

namespace {

/// Forward of region A, micro-batch 0, draws twice: events 1 to 4. The generator stands at 2.
const std::string forward = R"(
  {"kind":"unit_begin","phase":"forward","unit":"A","inv":0,"microbatch":0,"frame":1,"exec":"forward"}
  {"kind":"rng","phase":"forward","unit":"A","generator":"cuda","tag":"dropout"}
  {"kind":"rng","phase":"forward","unit":"A","generator":"cuda","tag":"noise"}
  {"kind":"unit_end","phase":"forward","unit":"A","frame":1,"exec":"forward","ended_by":"return"}
)";
const std::string begun = R"(
  {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"microbatch":0,"frame":1,"exec":"replay","gid":["graph_task",9]}
)";
const std::string ended = R"(
  {"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay","ended_by":"return"}
)";
const std::string drawn = R"(
  {"kind":"rng","phase":"replay","unit":"A","generator":"cuda","tag":"dropout"}
)";

/// `cuda` is put to a position, by whoever keeps random states.
std::string put_to(int position) {
  return R"({"kind":"rng_set","phase":"replay","generator":"cuda","to":)" +
         std::to_string(position) + "}\n";
}

/// A frame's events with the recorder's checksum of the random state.
std::string body(const std::string& exec, int crc) {
  return R"({"kind":"body_begin","phase":")" + exec + R"(","unit":"A","inv":0,"frame":1,"exec":")" +
         exec + R"(","rng_crc":)" + std::to_string(crc) + "}\n";
}
std::string unit(const std::string& kind, const std::string& exec, int crc) {
  return R"({"kind":"unit_)" + kind + R"(","phase":")" + exec +
         R"(","unit":"A","inv":0,"frame":1,"exec":")" + exec + R"(","rng_crc":)" +
         std::to_string(crc) + "}\n";
}

}  // namespace

TEST_CASE("rng_position names a replay that draws elsewhere than forward",
          "[invariants][rng_position]") {
  SECTION("because nobody put the generator back") {
    CHECK(checked(forward + begun + drawn).findings ==
          Findings{{"rng_position",
                    6,
                    "cuda draws for dropout at position 2 in the replay of A#0 (micro-batch 0) for "
                    "graph task 9, but forward drew at position 0 (event 2); expected the "
                    "generator to be put back to where it stood in forward",
                    {2, 6}}});
  }
  SECTION("from its second draw on") {
    CHECK(checked(forward + begun + put_to(0) + drawn + put_to(5) + drawn).findings ==
          Findings{{"rng_position",
                    9,
                    "cuda draws for dropout at position 5 in the replay of A#0 (micro-batch 0) for "
                    "graph task 9, but forward drew at position 1 (event 3); expected the "
                    "generator to be put back to where it stood in forward",
                    {3, 9}}});
  }
  SECTION("told once a replay") {
    CHECK(checked(forward + begun + drawn + drawn + ended).findings.size() == 1);
  }
}

TEST_CASE("rng_position names a replay that leaves the generator elsewhere",
          "[invariants][rng_position]") {
  const std::string replay = forward + begun + put_to(0) + drawn;
  const std::string next_draw = R"(
    {"kind":"rng","phase":"forward","microbatch":1,"unit":"A","generator":"cuda","tag":"dropout"}
  )";
  CHECK(checked(replay + ended + next_draw).findings ==
        Findings{{"rng_position",
                  9,
                  "cuda draws for dropout at position 1 in forward of A (micro-batch 1), but the "
                  "replay that began at event 5 found it at position 2 and did not put it back",
                  {5, 8, 9}}});
  SECTION("nobody draws from it") {
    CHECK(checked(replay + ended).findings.empty());
  }
  SECTION("put back in the replay") {
    CHECK(checked(replay + put_to(2) + ended + next_draw).findings.empty());
  }
  SECTION("put back after the replay") {
    CHECK(checked(replay + ended + put_to(2) + next_draw).findings.empty());
  }
  SECTION("a replay that already drew elsewhere is told once") {
    CHECK(checked(forward + begun + drawn + ended + next_draw).findings.size() == 1);
  }
}

TEST_CASE("rng_position follows each generator of each rank by itself",
          "[invariants][rng_position]") {
  CHECK(checked(forward + R"(
    {"kind":"rng","phase":"forward","generator":"cpu"}
    {"kind":"rng","rank":1,"phase":"forward","generator":"cuda"}
  )" + begun + put_to(0) +
                drawn + drawn + ended + R"(
    {"kind":"rng","phase":"backward","generator":"cpu"}
    {"kind":"rng","phase":"backward","generator":"cuda"}
  )")
            .findings.empty());
}

TEST_CASE("rng_position lets a replay draw from where forward did, as often as it is replayed",
          "[invariants][rng_position]") {
  const std::string replay = begun + put_to(0) + drawn + drawn + put_to(2) + ended;
  CHECK(checked(forward + replay + replay).findings.empty());
  SECTION("from another generator than forward used") {
    CHECK(
        checked(forward + begun + R"({"kind":"rng","phase":"replay","unit":"A","generator":"cpu"})")
            .findings.empty());
  }
  SECTION("an early stop skips a draw") {
    CHECK(checked(forward + begun + put_to(0) + drawn + put_to(2) + ended).findings.empty());
  }
  SECTION("a draw that forward did not make says nothing about forward") {
    CHECK(checked(forward + begun + put_to(0) + drawn + drawn + drawn + put_to(2) + ended)
              .findings.empty());
  }
}

TEST_CASE("rng_position leaves out of forward's list what a replay skips",
          "[invariants][rng_position]") {
  const std::string opened = R"(
    {"kind":"unit_begin","phase":"forward","unit":"A","inv":0,"microbatch":0,"frame":1,"exec":"forward"}
  )";
  const std::string closed = R"(
    {"kind":"rng","phase":"forward","unit":"A","generator":"cuda","tag":"dropout"}
    {"kind":"unit_end","phase":"forward","unit":"A","frame":1,"exec":"forward","ended_by":"return"}
  )";
  SECTION("an excluded region's body") {
    const std::string with_wrapper = opened + R"(
      {"kind":"wrapper_enter","phase":"forward","frame":1,"wrapper":"w","call":0,"exec":"forward","skipped":false}
      {"kind":"rng","phase":"forward","unit":"A","generator":"cuda","tag":"inside"}
      {"kind":"wrapper_exit","phase":"forward","frame":1,"wrapper":"w","call":0,"exec":"forward","ended_by":"return"}
    )" + closed;
    const std::string skipped = R"(
      {"kind":"wrapper_enter","phase":"replay","frame":1,"wrapper":"w","call":0,"exec":"replay","skipped":true}
      {"kind":"wrapper_exit","phase":"replay","frame":1,"wrapper":"w","call":0,"exec":"replay","ended_by":"return"}
    )";
    CHECK(checked(with_wrapper + begun + skipped + put_to(1) + drawn + put_to(2) + ended)
              .findings.empty());
    CHECK(checked(with_wrapper + begun + put_to(0) + skipped + drawn).findings ==
          Findings{{"rng_position",
                    11,
                    "cuda draws for dropout at position 0 in the replay of A#0 (micro-batch 0) for "
                    "graph task 9, but forward drew at position 1 (event 5); expected the "
                    "generator to be put back to where it stood in forward",
                    {5, 11}}});
  }
  SECTION("a region's body, and not what comes behind it") {
    const std::string with_region = opened + R"(
      {"kind":"region_begin","phase":"forward","region":"R","policy":"save","body":"run"}
      {"kind":"rng","phase":"forward","unit":"A","generator":"cuda","tag":"inside"}
      {"kind":"region_end","phase":"forward","region":"R","policy":"save","body":"run"}
    )" + closed + begun + R"(
      {"kind":"region_begin","phase":"replay","region":"R","policy":"save","body":"skipped"}
      {"kind":"region_end","phase":"replay","region":"R","policy":"save","body":"skipped"}
    )";
    CHECK(checked(with_region + put_to(1) + drawn + put_to(2) + ended).findings.empty());
    CHECK(checked(with_region + put_to(0) + drawn).findings.size() == 1);
  }
  SECTION("not the draws of another op than the one that is served") {
    CHECK(checked(opened + R"(
      {"kind":"rng","phase":"forward","unit":"A","generator":"cuda","tag":"inside"}
      {"kind":"op","phase":"forward","unit":"A","name":"native_dropout","inputs":[],"outputs":[]}
      {"kind":"op","phase":"forward","unit":"A","name":"mm","inputs":[],"outputs":[]}
      {"kind":"sac_decide","phase":"forward","op":"mm","idx":0,"saved":true}
    )" + closed + begun +
                  R"(
      {"kind":"sac_hit","phase":"replay","op":"mm","idx":0}
    )" + put_to(1) +
                  drawn)
              .findings.size() == 1);
  }
  SECTION("an op that is served from a cache") {
    CHECK(checked(opened + R"(
      {"kind":"rng","phase":"forward","unit":"A","generator":"cuda","tag":"inside"}
      {"kind":"op","phase":"forward","unit":"A","name":"native_dropout","inputs":[],"outputs":[]}
      {"kind":"op","phase":"forward","unit":"A","name":"view","inputs":[],"outputs":[]}
      {"kind":"sac_decide","phase":"forward","op":"native_dropout","idx":0,"saved":true}
    )" + closed + begun +
                  R"(
      {"kind":"sac_hit","phase":"replay","op":"native_dropout","idx":0}
    )" + put_to(1) +
                  drawn + put_to(2) + ended)
              .findings.empty());
  }
}

TEST_CASE("rng_position does not take a nested region's kept draw for one of the region around it",
          "[invariants][rng_position]") {
  // Forward of A draws 0, served later; B in it draws 1, kept by B's own policy; A draws 2.
  const auto draws = [](const std::string& phase, const std::string& unit,
                        const std::string& kept) {
    const std::string where = R"("phase":")" + phase + R"(","unit":")" + unit + R"(")";
    std::string text = R"({"kind":"rng",)" + where + R"(,"generator":"cpu"})" + "\n" +
                       R"({"kind":"op",)" + where +
                       R"(,"name":"dropout","inputs":[],"outputs":[]})" + "\n";
    if (!kept.empty()) {
      text +=
          R"({"kind":"sac_decide",)" + where + R"(,"op":"dropout","idx":0,"saved":)" + kept + "}\n";
    }
    return text;
  };
  const auto unit = [](const std::string& kind, const std::string& phase, const std::string& name,
                       int frame, const std::string& exec) {
    return R"({"kind":"unit_)" + kind + R"(","phase":")" + phase + R"(","unit":")" + name +
           R"(","frame":)" + std::to_string(frame) + R"(,"exec":")" + exec + "\"}\n";
  };
  const std::string with_nested =
      unit("begin", "forward", "A", 1, "forward") + draws("forward", "A", "true") +
      unit("begin", "forward", "B", 2, "forward") + draws("forward", "B", "true") +
      unit("end", "forward", "B", 2, "forward") + draws("forward", "A", "") +
      unit("end", "forward", "A", 1, "forward");
  const std::string replay =
      unit("begin", "replay", "A", 1, "replay") +
      R"({"kind":"sac_hit","phase":"replay","unit":"A","op":"dropout","idx":0})"
      "\n" +
      R"({"kind":"rng_set","phase":"replay","generator":"cpu","to":1})"
      "\n" +
      unit("begin", "replay", "B", 3, "forward") + draws("replay", "B", "true") +
      unit("end", "replay", "B", 3, "forward") + draws("replay", "A", "");
  CHECK(checked(with_nested + replay).findings.empty());
}

TEST_CASE("rng_position matches the n-th run of what is skipped with forward's n-th run",
          "[invariants][rng_position]") {
  const auto run = [](const std::string& exec, int call, const std::string& inside) {
    const std::string fields = R"("phase":")" + exec + R"(","frame":1,"wrapper":"w","call":)" +
                               std::to_string(call) + R"(,"exec":")" + exec + "\"";
    return R"({"kind":"wrapper_enter",)" + fields + R"(,"skipped":)" +
           (inside.empty() ? "true" : "false") + "}\n" + inside + R"({"kind":"wrapper_exit",)" +
           fields + "}\n";
  };
  const std::string draw = R"({"kind":"rng","phase":"forward","generator":"cuda"})"
                           "\n";
  const std::string opens =
      R"({"kind":"unit_begin","phase":"forward","unit":"A","inv":0,"frame":1,"exec":"forward"})"
      "\n";
  const std::string closes =
      R"({"kind":"unit_end","phase":"forward","unit":"A","frame":1,"exec":"forward"})"
      "\n";
  const std::string twice =
      opens + run("forward", 0, draw) + draw + run("forward", 1, draw) + draw + closes;
  // The trace's own numbers of calls go on over the replays of a frame.
  const auto replay = [&](int call) {
    return begun + run("replay", call, "") + put_to(1) + drawn + run("replay", call + 1, "") +
           put_to(3) + drawn + put_to(4) + ended;
  };
  CHECK(checked(twice + replay(0) + replay(2)).findings.empty());
  SECTION("and a draw behind a region inside a wrapper with the wrapper") {
    const std::string region =
        R"({"kind":"region_begin","phase":"forward","region":"R","body":"run"})"
        "\n" +
        draw +
        R"({"kind":"region_end","phase":"forward","region":"R"})"
        "\n";
    const std::string nested =
        opens + run("forward", 0, region + draw) + draw + closes + begun + run("replay", 0, "");
    CHECK(checked(nested + put_to(1) + drawn).findings.size() == 1);
  }
}

TEST_CASE("rng_position compares checksums at the beginning of a body that draws",
          "[invariants][rng_position]") {
  const std::string drawing =
      unit("begin", "forward", 11) + body("forward", 11) + unit("end", "forward", 12);
  CHECK(checked(drawing + unit("begin", "replay", 12) + body("replay", 11) +
                unit("end", "replay", 12))
            .findings.empty());
  CHECK(checked(drawing + unit("begin", "replay", 12) + body("replay", 12)).findings ==
        Findings{{"rng_position",
                  5,
                  "the random state at the beginning of the body (crc 12) in the replay of A#0 is "
                  "not forward's (crc 11, event 2), and the body draws from it",
                  {2, 5}}});
  SECTION("one that does not draw may begin anywhere") {
    const std::string quiet =
        unit("begin", "forward", 11) + body("forward", 11) + unit("end", "forward", 11);
    CHECK(checked(quiet + unit("begin", "replay", 12) + body("replay", 12) +
                  unit("end", "replay", 12))
              .findings.empty());
  }
}

TEST_CASE("rng_position compares checksums at the two ends of a replay",
          "[invariants][rng_position]") {
  CHECK(checked(unit("begin", "replay", 12) + body("replay", 11) + unit("end", "replay", 13))
            .findings == Findings{{"rng_position",
                                   3,
                                   "the replay of frame 1 leaves the random state changed (crc 13, "
                                   "at its beginning 12); expected it to be put back",
                                   {1, 3}}});
  SECTION("of a frame: a reentrant region's events lie inside of what restores the state") {
    CHECK(checked(R"(
      {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"exec":"replay","reentrant":true,"rng_crc":12}
      {"kind":"unit_end","phase":"replay","unit":"A","inv":0,"exec":"replay","rng_crc":13}
    )")
              .findings.empty());
  }
  SECTION("where both were recorded") {
    CHECK(checked(unit("begin", "replay", 12) + ended).findings.empty());
  }
}

TEST_CASE("rng_position forgets a call's draws with the call", "[invariants][rng_position]") {
  const std::string next_call = R"(
    {"kind":"frame_free","frame":1}
    {"kind":"unit_begin","phase":"forward","unit":"A","inv":1,"frame":1,"exec":"forward"}
    {"kind":"rng","phase":"forward","unit":"A","generator":"cuda","tag":"dropout"}
    {"kind":"unit_end","phase":"forward","unit":"A","inv":1,"frame":1,"exec":"forward","ended_by":"return"}
  )";
  CHECK(checked(forward + next_call + begun + put_to(2) + drawn + put_to(3) + ended)
            .findings.empty());
}

TEST_CASE("rng_position says that it needs draws or checksums", "[invariants][rng_position]") {
  CHECK(needs(checked(begun), "rng_position") ==
        "rng events, or rng_crc on body_begin and unit_end");
  CHECK(needs(checked(forward), "rng_position").empty());
  CHECK(needs(checked(body("forward", 1)), "rng_position").empty());
}

TEST_CASE("rng_position leaves out what a skipped wrapper drew, in each replay and around another",
          "[invariants][rng_position]") {
  const std::string wrapped = R"(
    {"kind":"unit_begin","phase":"forward","unit":"A","frame":1,"exec":"forward"}
    {"kind":"wrapper_enter","phase":"forward","wrapper":"w","call":0,"exec":"forward","skipped":false}
    {"kind":"wrapper_enter","phase":"forward","wrapper":"v","call":0,"exec":"forward","skipped":false}
    {"kind":"wrapper_exit","phase":"forward","wrapper":"v","call":0,"exec":"forward"}
    {"kind":"rng","phase":"forward","unit":"A","generator":"cuda"}
    {"kind":"wrapper_exit","phase":"forward","wrapper":"w","call":0,"exec":"forward"}
    {"kind":"rng","phase":"forward","unit":"A","generator":"cuda"}
    {"kind":"unit_end","phase":"forward","unit":"A","frame":1,"exec":"forward"}
  )";
  const auto replay = [](int call, int position) {
    const std::string number = std::to_string(call);
    return R"(
      {"kind":"unit_begin","phase":"replay","unit":"A","frame":1,"exec":"replay","gid":["graph_task",)" +
           number + R"(]}
      {"kind":"wrapper_enter","phase":"replay","wrapper":"w","call":)" +
           number +
           R"(,"exec":"replay","skipped":true}
      {"kind":"wrapper_exit","phase":"replay","wrapper":"w","call":)" +
           number +
           R"(,"exec":"replay","skipped":true}
      {"kind":"rng_set","phase":"replay","generator":"cuda","to":)" +
           std::to_string(position) +
           R"(}
      {"kind":"rng","phase":"replay","unit":"A","generator":"cuda"}
      {"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay","ended_by":"return"}
    )";
  };
  CHECK(checked(wrapped + replay(0, 1) + replay(1, 1)).findings.empty());
  CHECK(checked(wrapped + replay(0, 1) + replay(1, 0)).findings.size() == 1);
}

TEST_CASE("rng_position judges a replay by the generators of its own rank",
          "[invariants][rng_position]") {
  const std::string on_rank_1 = R"(
    {"kind":"unit_begin","phase":"forward","rank":1,"unit":"A","frame":1,"exec":"forward"}
    {"kind":"rng","phase":"forward","rank":1,"unit":"A","generator":"cpu"}
    {"kind":"unit_end","phase":"forward","rank":1,"unit":"A","frame":1,"exec":"forward"}
  )";
  const auto replay_of = [](int rank_of_the_draw) {
    return R"(
      {"kind":"unit_begin","phase":"replay","rank":1,"unit":"A","frame":1,"exec":"replay","gid":["graph_task",0]}
      {"kind":"rng","phase":"forward","rank":)" +
           std::to_string(rank_of_the_draw) +
           R"(,"generator":"cpu"}
      {"kind":"unit_end","phase":"replay","rank":1,"unit":"A","frame":1,"exec":"replay","ended_by":"return"}
      {"kind":"rng","phase":"forward","rank":)" +
           std::to_string(rank_of_the_draw) +
           R"(,"generator":"cpu"}
    )";
  };
  CHECK(checked(on_rank_1 + replay_of(0)).findings.empty());
  CHECK_FALSE(checked(on_rank_1 + replay_of(1)).findings.empty());
}
