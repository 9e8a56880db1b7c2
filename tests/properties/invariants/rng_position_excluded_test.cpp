#include <catch2/catch.hpp>
#include <string>

#include "properties/invariants/rng_position.hpp"
#include "tests/properties/invariants/checked_trace.hpp"
#include "tests/properties/invariants/excluded_region.hpp"

using namespace remat;

namespace {

/// A draw behind the wrapper, in forward (event 11) and then in the replay (event 20).
const std::string draws_behind =
    excluded_forward +
    R"({"kind":"op","phase":"forward","unit":"A","name":"bernoulli_","inputs":[],"outputs":[]})" +
    with(excluded_replay, R"(  {"kind":"unit_end")",
         R"(  {"kind":"op","phase":"replay","unit":"A","name":"bernoulli_","inputs":[],"outputs":[]}
  {"kind":"unit_end")");

/// The trace where the body of forward drew, and the replay left it out.
std::string body_drew(const std::string& text) {
  return with(text, R"("exec":"replay","ended_by":"return","outputs":[2],"rng_crc":5)",
              R"("exec":"replay","ended_by":"return","outputs":[2],"rng_crc":4)");
}

}  // namespace

TEST_CASE("rng_position names a draw behind a skipped body that drew",
          "[invariants][rng_position]") {
  CHECK(checked(draws_behind).findings == no_findings);
  CHECK(checked(body_drew(draws_behind)).findings ==
        Findings{{"rng_position",
                  20,
                  "bernoulli_ draws in the replay of A#0 for session g, but since wrapper w#0 the "
                  "random state is not forward's: its body, which drew in forward, was skipped; "
                  "expected the generator to be put to where that left it",
                  {3, 19, 20}}});
}

TEST_CASE("rng_position finds nothing where no draw follows a skipped body that drew",
          "[invariants][rng_position]") {
  SECTION("nothing follows") {
    CHECK(checked(body_drew(excluded_forward + excluded_replay + excluded_reads)).findings ==
          no_findings);
  }
  SECTION("what follows does not draw") {
    const std::string other = body_drew(draws_behind);
    CHECK(checked(with(with(other, R"("forward","unit":"A","name":"bernoulli_")",
                            R"("forward","unit":"A","name":"relu")"),
                       R"("replay","unit":"A","name":"bernoulli_")",
                       R"("replay","unit":"A","name":"relu")"))
              .findings == no_findings);
  }
  SECTION("what draws is a hook's, or behind the replay") {
    CHECK(checked(with(body_drew(draws_behind), R"("replay","unit":"A","name":"bernoulli_")",
                       R"("replay","unit":"A","internal":"repack","name":"bernoulli_")"))
              .findings == no_findings);
    CHECK(checked(body_drew(excluded_forward + excluded_replay) +
                  R"({"kind":"op","phase":"backward","name":"rand_like","inputs":[],"outputs":[]})")
              .findings == no_findings);
  }
  SECTION("another call comes between, and leaves the generator as in forward") {
    const std::string enter =
        R"({"kind":"wrapper_enter","phase":"PHASE","frame":1,"wrapper":"v","call":0,"exec":"PHASE","skipped":SKIP}
  {"kind":"wrapper_exit","phase":"PHASE","frame":1,"wrapper":"v","call":0,"exec":"PHASE","ended_by":"return","rng_crc":9}
  {"kind":"op","phase":"PHASE","unit":"A","name":"bernoulli_")";
    const auto call = [&](const std::string& phase, const std::string& skipped) {
      std::string text = with(enter, "SKIP", skipped);
      while (text.find("PHASE") != std::string::npos)
        text.replace(text.find("PHASE"), 5, phase);
      return text;
    };
    const std::string forward_draw =
        R"({"kind":"op","phase":"forward","unit":"A","name":"bernoulli_")";
    const std::string replay_draw =
        R"({"kind":"op","phase":"replay","unit":"A","name":"bernoulli_")";
    CHECK(checked(with(with(body_drew(draws_behind), forward_draw, call("forward", "false")),
                       replay_draw, call("replay", "true")))
              .findings == no_findings);
  }
  SECTION("the state is not recorded") {
    CHECK(checked(with(draws_behind,
                       R"("exec":"replay","ended_by":"return","outputs":[2],"rng_crc":5)",
                       R"("exec":"replay","ended_by":"return","outputs":[2])"))
              .findings == no_findings);
  }
}

TEST_CASE("rng_position is checked where excluded regions record the random state",
          "[invariants][rng_position]") {
  CHECK(needs(checked(draws_behind), "rng_position").empty());
}
