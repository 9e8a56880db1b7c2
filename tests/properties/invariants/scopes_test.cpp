#include "properties/invariants/scopes.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/properties/invariants/checked_trace.hpp"

using namespace remat;

namespace {

/// Begins and ends the scopes of a trace's events, as Facts does, up to event `until`.
ScopeBook book_after(const Trace& trace, std::size_t until) {
  ScopeBook book;
  for (std::size_t i = 0; i <= until; ++i) {
    const EventView event = trace[i];
    if (event.kind() == Kind::unit_begin) book.begin(event, std::nullopt);
    if (event.kind() == Kind::unit_end) book.end(event);
    if (event.kind() == Kind::early_stop) book.early_stop(event);
  }
  return book;
}

/// The frames of the bodies that the last event lies in, innermost first, a replay's with a minus.
std::vector<std::int64_t> bodies_at_the_end(const std::string& lines) {
  const Trace trace = hand_made(lines);
  ScopeBook book = book_after(trace, trace.size() - 2);
  std::vector<Body> bodies;
  book.bodies(trace[trace.size() - 1], bodies);
  std::vector<std::int64_t> frames;
  frames.reserve(bodies.size());
  for (const Body& body : bodies)
    frames.push_back(body.replay ? -body.frame : body.frame);
  return frames;
}

/// The replay's frame that the last event lies in.
std::optional<std::int64_t> replay_at_the_end(const std::string& lines) {
  const Trace trace = hand_made(lines);
  ScopeBook book = book_after(trace, trace.size() - 2);
  const Scope* replay = book.replay(trace[trace.size() - 1]);
  if (replay == nullptr) return std::nullopt;
  return replay->frame;
}

const std::string outer_forward =
    R"({"kind":"unit_begin","phase":"forward","unit":"outer","frame":1,"exec":"forward"})"
    "\n";
const std::string inner_forward =
    R"({"kind":"unit_begin","unit":"inner","frame":2,"exec":"forward"})"
    "\n";
const std::string inner_ends = R"({"kind":"unit_end","unit":"inner","frame":2,"exec":"forward"})"
                               "\n";
const std::string outer_replay =
    R"({"kind":"unit_begin","phase":"replay","unit":"outer","frame":1,"exec":"replay"})"
    "\n";
const std::string outer_replay_ends =
    R"({"kind":"unit_end","phase":"replay","unit":"outer","frame":1,"exec":"replay"})"
    "\n";
const std::string op = R"({"kind":"op","name":"mm"})"
                       "\n";

}  // namespace

TEST_CASE("an event lies in the bodies of all regions around it", "[invariants]") {
  CHECK(bodies_at_the_end(op).empty());
  CHECK(bodies_at_the_end(outer_forward + op) == std::vector<std::int64_t>{1});
  CHECK(bodies_at_the_end(outer_forward + inner_forward + op) == std::vector<std::int64_t>{2, 1});
  CHECK(bodies_at_the_end(outer_forward + inner_forward + inner_ends + op) ==
        std::vector<std::int64_t>{1});
}

TEST_CASE("an event of a region inside a replay lies in its forward and in the replay",
          "[invariants]") {
  CHECK(bodies_at_the_end(outer_replay + inner_forward + op) == std::vector<std::int64_t>{2, -1});
  CHECK(replay_at_the_end(outer_replay + inner_forward + op) == 1);
  CHECK(bodies_at_the_end(outer_replay + inner_forward + inner_ends + op) ==
        std::vector<std::int64_t>{-1});
}

TEST_CASE("a replay ends with its unit_end, or with an early stop", "[invariants]") {
  CHECK(replay_at_the_end(outer_replay + op) == 1);
  CHECK_FALSE(replay_at_the_end(outer_replay + outer_replay_ends + op).has_value());
  CHECK_FALSE(replay_at_the_end(outer_replay +
                                R"({"kind":"early_stop","unit":"outer","frame":1})"
                                "\n" +
                                op)
                  .has_value());
  // Of another region's early stop it takes no notice.
  CHECK(replay_at_the_end(outer_replay +
                          R"({"kind":"early_stop","unit":"other","frame":9})"
                          "\n" +
                          op) == 1);
}

TEST_CASE("a region that ends takes what ran inside it along", "[invariants]") {
  CHECK(bodies_at_the_end(outer_forward + outer_replay + inner_forward + outer_replay_ends + op) ==
        std::vector<std::int64_t>{1});
}

TEST_CASE("an event that says it is of another phase is outside of a replay that nothing ended",
          "[invariants]") {
  CHECK(replay_at_the_end(outer_replay + R"({"kind":"op","phase":"replay","name":"mm"})") == 1);
  CHECK_FALSE(replay_at_the_end(outer_replay + R"({"kind":"op","phase":"backward","name":"mm"})")
                  .has_value());
  CHECK_FALSE(replay_at_the_end(R"({"kind":"op","phase":"replay","name":"mm"})")
                  .has_value());  // the phase alone does not say so
}

TEST_CASE("a second replay of a region ends the one before it", "[invariants]") {
  const Trace trace = hand_made(outer_replay + outer_replay + op);
  ScopeBook book = book_after(trace, trace.size() - 1);
  CHECK(book.stack(trace[3]).size() == 1);
}

TEST_CASE("threads and ranks have regions of their own, as far as the trace tells them",
          "[invariants]") {
  const std::string on_rank_0 =
      R"({"kind":"unit_begin","rank":0,"thread":0,"unit":"A","frame":1,"exec":"forward"})"
      "\n";
  CHECK(bodies_at_the_end(on_rank_0 + R"({"kind":"op","rank":0,"thread":0,"name":"mm"})") ==
        std::vector<std::int64_t>{1});
  CHECK(bodies_at_the_end(on_rank_0 + R"({"kind":"op","rank":1,"thread":0,"name":"mm"})").empty());
  CHECK(bodies_at_the_end(on_rank_0 + R"({"kind":"op","rank":0,"thread":1,"name":"mm"})").empty());
  // What was not recorded may be that rank and that thread.
  CHECK(bodies_at_the_end(on_rank_0 + R"({"kind":"op","rank":0,"name":"mm"})") ==
        std::vector<std::int64_t>{1});
  CHECK(bodies_at_the_end(on_rank_0 + R"({"kind":"op","name":"mm"})") ==
        std::vector<std::int64_t>{1});
}

TEST_CASE("an event of an unknown rank lies in the region that began last", "[invariants]") {
  const std::string both = R"({"kind":"unit_begin","rank":0,"unit":"A","frame":1,"exec":"forward"})"
                           "\n"
                           R"({"kind":"unit_begin","rank":1,"unit":"A","frame":2,"exec":"forward"})"
                           "\n";
  CHECK(bodies_at_the_end(both + op) == std::vector<std::int64_t>{2});
  CHECK(bodies_at_the_end(both + R"({"kind":"op","rank":0,"name":"mm"})") ==
        std::vector<std::int64_t>{1});
}

TEST_CASE("an event of a replay inside a replay counts for the inner one alone", "[invariants]") {
  CHECK(bodies_at_the_end(outer_replay +
                          R"({"kind":"unit_begin","unit":"inner","frame":2,"exec":"replay"})"
                          "\n" +
                          op) == std::vector<std::int64_t>{-2});
}

TEST_CASE("a region that is only a name is nobody's body", "[invariants]") {
  CHECK(bodies_at_the_end(
            R"({"kind":"unit_begin","unit":"block","exec":"forward","checkpointed":false})"
            "\n" +
            op)
            .empty());
}

TEST_CASE("a region without a frame goes by rank, name, invocation and micro-batch",
          "[invariants]") {
  const Trace trace = hand_made(R"(
    {"kind":"unit_begin","unit":"A","exec":"forward"}
    {"kind":"unit_begin","unit":"A","exec":"replay"}
    {"kind":"unit_begin","unit":"A","inv":1,"exec":"forward"}
    {"kind":"unit_begin","unit":"A","microbatch":1,"exec":"forward"}
    {"kind":"unit_begin","unit":"A","rank":1,"exec":"forward"}
    {"kind":"unit_begin","unit":"B","exec":"forward"}
    {"kind":"unit_begin","unit":"A","frame":7,"exec":"forward"}
    {"kind":"note"}
  )");
  ScopeBook book;
  const auto first = book.frame_of(trace[1]);
  REQUIRE(first.has_value());
  CHECK(*first < 0);
  CHECK(book.frame_of(trace[2]) == first);
  for (const std::size_t other : {3U, 4U, 5U, 6U})
    CHECK(book.frame_of(trace[other]) != first);
  CHECK(book.frame_of(trace[7]) == 7);
  CHECK_FALSE(book.frame_of(trace[8]).has_value());
}

TEST_CASE("ops that carry a region's name are its forward where no scope tells of it",
          "[invariants]") {
  const Trace trace = hand_made(R"(
    {"kind":"op","phase":"forward","unit":"A","microbatch":2,"name":"mm"}
    {"kind":"op","phase":"forward","unit":"A","microbatch":2,"name":"gelu"}
  )");
  ScopeBook book;
  std::vector<Body> bodies;
  book.bodies(trace[1], bodies);
  REQUIRE(bodies.size() == 1);
  CHECK_FALSE(bodies.front().replay);
  CHECK_FALSE(bodies.front().scoped);
  book.bodies(trace[2], bodies);
  REQUIRE(bodies.size() == 1);
  const Frame* frame = book.frame(bodies.front().frame);
  REQUIRE(frame != nullptr);
  CHECK(frame->forward_known);
  CHECK(frame->forward_seq == 1);
  CHECK(frame->microbatch == 2);
}

TEST_CASE("an end that nothing began ends nothing", "[invariants]") {
  const Trace trace = hand_made(outer_forward + outer_replay_ends +
                                R"({"kind":"unit_end","unit":"other","exec":"forward"})");
  ScopeBook book = book_after(trace, 1);
  CHECK_FALSE(book.end(trace[2]).has_value());
  CHECK_FALSE(book.end(trace[3]).has_value());
  CHECK(book.stack(trace[1]).size() == 1);
}

TEST_CASE("a step's end forgets the calls without a frame, of the rank or of all", "[invariants]") {
  const Trace trace = hand_made(R"(
    {"kind":"unit_begin","rank":0,"unit":"A","exec":"forward"}
    {"kind":"unit_begin","rank":1,"unit":"A","exec":"forward"}
    {"kind":"unit_begin","rank":1,"unit":"B","frame":5,"exec":"forward"}
  )");
  ScopeBook book = book_after(trace, 3);
  const std::int64_t on_0 = *book.frame_of(trace[1]);
  const std::int64_t on_1 = *book.frame_of(trace[2]);
  CHECK(book.end_step(0) == std::vector<std::int64_t>{on_0});
  CHECK(book.frame(on_0) == nullptr);
  CHECK(book.frame(on_1) != nullptr);
  CHECK(book.stack(trace[1]).empty());
  CHECK_FALSE(book.stack(trace[2]).empty());
  CHECK(book.end_step(std::nullopt) == std::vector<std::int64_t>{on_1});
  CHECK(book.frame(5) != nullptr);  // that lives until its frame_free
}

TEST_CASE("calls without a frame that were not replayed come in the order in which they began",
          "[invariants]") {
  const Trace trace = hand_made(R"(
    {"kind":"unit_begin","unit":"Z","exec":"forward"}
    {"kind":"unit_end","unit":"Z","exec":"forward"}
    {"kind":"unit_begin","unit":"A","exec":"forward"}
    {"kind":"unit_end","unit":"A","exec":"forward"}
    {"kind":"unit_begin","unit":"M","exec":"forward"}
    {"kind":"unit_end","unit":"M","exec":"forward"}
    {"kind":"unit_begin","unit":"A","exec":"replay"}
  )");
  ScopeBook book = book_after(trace, 7);
  CHECK(book.stand_ins_not_replayed() ==
        std::vector<std::int64_t>{*book.frame_of(trace[1]), *book.frame_of(trace[5])});
}
