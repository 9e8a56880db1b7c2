#include <catch2/catch.hpp>

#include "tests/sim/scenario_run.hpp"

// Code that raises and a caller that catches it; arguments that are handed over; what requires grad
// behind a boundary.

using namespace remat;

namespace {

const std::string ends = op("sum", {"y"}, {"loss"});

std::string caught(const std::string& body) {
  return R"({"catch":[)" + body + "]}";
}
std::string excluded(const std::string& name, const std::string& in, const std::string& out,
                     const std::string& body, const std::string& more = "") {
  return R"({"exclude":")" + name + R"(","in":[)" + in + R"(],"out":[)" + out + R"(],"body":[)" +
         body + "]" + (more.empty() ? "" : "," + more) + "}";
}
const std::string raises = R"({"raise":"builtins.ValueError"})";

bool is_sound(const ScenarioRun& run) {
  CAPTURE(run.broken(), run.code());
  return run.code() == "none" && run.broken().empty() && run.result.gradients_match == true;
}

/// A region whose excluded part fails at its first try, and is tried again.
std::string with_retry() {
  return checkpoint("r",
                    op("sin", {"x"}, {"a"}) + "," +
                        caught(excluded("e", "\"a\"", "", op("sin", {"a"}, {"t"}) + "," + raises)) +
                        "," + excluded("e", "\"a\"", "\"b\"", op("sin", {"a"}, {"b"})) + "," +
                        op("sin", {"b"}, {"y"})) +
         "," + ends;
}

/// The most bytes that ops have made and that are alive at one time of a forward.
std::int64_t most_in_forward(const ScenarioRun& run) {
  std::int64_t live = 0;
  std::int64_t most = 0;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const EventView event = run.trace[i];
    if (event.phase() != Phase::forward) continue;
    const std::int64_t bytes = event.integer(Field::bytes).value_or(0);
    if (event.kind() == Kind::storage_alloc) live += bytes;
    if (event.kind() == Kind::storage_free) live -= bytes;
    most = std::max(most, live);
  }
  return most;
}

}  // namespace

TEST_CASE("what code raises and its caller catches ends there, in forward and in the replay",
          "[sim][errors]") {
  const std::string body = op("sin", {"x"}, {"a"}) + "," +
                           caught(op("sin", {"a"}, {"t"}) + "," + raises) + "," +
                           op("sin", {"a"}, {"y"});
  const ScenarioRun run = run_stage(checkpoint("r", body) + "," + ends);
  CHECK(is_sound(run));
  // Its save has a slot like any other; the tensor that it made is gone at once.
  CHECK(run.ops("sin", Phase::forward) == 3);
  CHECK(run.kinds(Kind::error) == 0);
}

TEST_CASE("an error that nobody catches ends the run as before", "[sim][errors]") {
  const ScenarioRun run = run_stage(checkpoint("r", caught(op("sin", {"x"}, {"a"})) + "," + raises +
                                                        "," + op("sin", {"x"}, {"y"})) +
                                    "," + ends);
  CHECK(run.code() == "E-USER");
}

TEST_CASE("a reentrant region whose code raised has no node, and leaves nothing behind",
          "[sim][errors]") {
  const std::string fails =
      checkpoint("q", op("sin", {"a"}, {"t"}) + "," + raises, R"("reentrant":true)");
  const std::string body =
      op("sin", {"x"}, {"a"}) + "," + caught(fails) + "," + op("sin", {"a"}, {"y"});
  const std::string rest = "," + ends;
  for (const std::string protocol : {"torch", "torch-reentrant", "exclude"}) {
    CAPTURE(protocol);
    CHECK(is_sound(run_stage(body + rest, protocol)));
    CHECK(is_sound(run_stage(checkpoint("r", body) + rest, protocol)));
  }
  // What it had made before it raised is a constant to those who read it all the same.
  const ScenarioRun read = run_stage(op("sin", {"x"}, {"a"}) + "," + caught(fails) + "," +
                                         op("mul", {"a", "t"}, {"y"}) + "," + ends,
                                     "torch");
  CHECK(read.code() == "none");
  CHECK(read.broken() == std::vector<std::string>{"gradients_equal_plain"});
}

TEST_CASE("what a protocol refuses is no error of the program's, and is not caught",
          "[sim][errors]") {
  // An excluded region within another.
  const std::string inner = excluded("f", "\"a\"", "\"t\"", op("sin", {"a"}, {"t"}));
  const ScenarioRun run = run_stage(
      checkpoint("r", op("sin", {"x"}, {"a"}) + "," + caught(excluded("e", "\"a\"", "", inner)) +
                          "," + op("sin", {"a"}, {"y"})) +
          "," + ends,
      "exclude");
  CHECK(run.code() == "E-SESSION");
}

TEST_CASE("a call of an excluded region that raised raises again in the replay, and takes no entry",
          "[sim][errors]") {
  for (const std::string protocol : {"none", "torch", "exclude", "exclude-rederive"}) {
    CAPTURE(protocol);
    const ScenarioRun run = run_stage(with_retry(), protocol);
    CHECK(is_sound(run));
    const bool excludes = protocol.starts_with("exclude");
    CHECK(run.kinds(Kind::cache_put) == (excludes ? 1 : 0));
    CHECK(run.kinds(Kind::cache_pop) == (excludes ? 1 : 0));
    // Body: once failed, once done; the replay runs neither.
    if (excludes) CHECK(run.ops("sin", Phase::replay) == 1);
  }
}

TEST_CASE("after a call that raised, what it had been given is kept where another saves it",
          "[sim][errors]") {
  // The second region reads `a` past its arguments: no replay can bring it.
  const std::string body = op("sin", {"x"}, {"a"}) + "," + op("sin", {"a"}, {"c"}) + "," +
                           caught(excluded("e", "\"a\"", "", raises)) + "," +
                           excluded("f", "\"c\"", "\"b\"", op("mul", {"c", "a"}, {"b"})) + "," +
                           op("sin", {"b"}, {"y"});
  const ScenarioRun run = run_stage(checkpoint("r", body) + "," + ends, "exclude-rederive");
  CHECK(is_sound(run));
  CHECK(run.kinds(Kind::slot_fill) == 1);  // `c` alone
}

TEST_CASE("an argument that is handed over goes with its last reader in the body",
          "[sim][errors]") {
  const auto stage = [](const std::string& more) {
    const std::string body =
        op("tanh", {"a"}, {"t"}) + "," + op("neg", {"t"}, {"u"}) + "," + op("tanh", {"u"}, {"b"});
    return checkpoint("r", op("neg", {"x"}, {"a"}) + "," +
                               excluded("e", "\"a\"", "\"b\"", body, more) + "," +
                               op("sin", {"b"}, {"y"})) +
           "," + ends;
  };
  const ScenarioRun held = run_stage(stage(""), "exclude");
  const ScenarioRun handed = run_stage(stage(R"("hands_over":true)"), "exclude");
  CHECK(is_sound(held));
  CHECK(is_sound(handed));
  // Once b is there: a, t, u and b of 128 bytes each. Without a that is less than what stays to the
  // end: t, b, y and the loss of 4 bytes.
  CHECK(most_in_forward(held) == 512);
  CHECK(most_in_forward(handed) == 388);
  const auto frees_in_body = [](const ScenarioRun& run) {
    bool inside = false;
    std::int64_t n = 0;
    for (std::size_t i = 0; i < run.trace.size(); ++i) {
      if (run.trace[i].kind() == Kind::wrapper_enter) inside = true;
      if (run.trace[i].kind() == Kind::wrapper_exit) inside = false;
      n += inside && run.trace[i].kind() == Kind::storage_free ? 1 : 0;
    }
    return n;
  };
  // In forward within the body, in the replay with the call that leaves it out.
  CHECK(frees_in_body(handed) == frees_in_body(held) + 2);
}

TEST_CASE("compat public: a boundary makes an output require grad, and later ops save more",
          "[sim][errors]") {
  // `m` requires no grad; `b` times `m` saves `m` alone, unless `m` does behind its boundary.
  const std::string body =
      op("sin", {"x"}, {"a"}) + "," +
      excluded("e", "\"a\"", R"("b","m")",
               op("sin", {"a"}, {"b"}) + R"(,{"no_grad":[)" + op("sin", {"a"}, {"m"}) + "]}") +
      "," + op("mul", {"b", "m"}, {"y"});
  const std::string stage = checkpoint("r", body) + "," + ends;
  const auto outer_saves = [&](const std::string& options) {
    const ScenarioRun run = run_stage(stage, "exclude-rederive", options);
    CHECK(is_sound(run));
    std::int64_t n = 0;
    for (std::size_t i = 0; i < run.trace.size(); ++i) {
      n += run.trace[i].kind() == Kind::pack && run.trace[i].text(Field::role) == "checkpointed"
               ? 1
               : 0;
    }
    return n;
  };
  CHECK(outer_saves("") == 3);                      // x's sin, one boundary, m
  CHECK(outer_saves(R"("compat":"public")") == 5);  // two boundaries, m and b
}

TEST_CASE("bytes read as another type are kept, and no gradient goes through them",
          "[sim][errors]") {
  const std::string bits =
      R"({"view":"view_dtype","in":["a"],"out":["v"],"dtype":"i32","shape":[4,8]})";
  const std::string body =
      op("sin", {"x"}, {"a"}) + "," +
      excluded("e", "\"a\"", "\"b\"", bits + "," + op("mul", {"a", "v"}, {"b"})) + "," +
      op("sin", {"b"}, {"y"});
  const ScenarioRun run = run_stage(checkpoint("r", body) + "," + ends, "exclude-rederive");
  CHECK(is_sound(run));
  CHECK(run.kinds(Kind::slot_fill) == 0);
}

TEST_CASE("an argument that lies elsewhere in a replay is brought with its views",
          "[sim][errors]") {
  const std::string view =
      R"({"view":"slice","in":["a"],"out":["v"],"shape":[3,8],"stride":[8,1],"offset":8})";
  const std::string body = op("neg", {"x"}, {"a"}, R"("replay_offset":5)") + "," +
                           excluded("e", "\"a\"", "\"b\"", view + "," + op("sin", {"v"}, {"b"})) +
                           "," + op("sin", {"b"}, {"y"});
  const ScenarioRun run = run_stage(checkpoint("r", body) + "," + ends, "exclude-rederive");
  CHECK(is_sound(run));
  REQUIRE(run.kinds(Kind::slot_fill) == 1);
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    if (run.trace[i].kind() != Kind::slot_fill) continue;
    const auto tensor = run.trace[i].tensor(Field::tensor);
    REQUIRE(tensor);
    CHECK(run.trace.layout(tensor->layout).offset == 13);  // 5, and 8 within the argument
  }
}

TEST_CASE("a call that raised leaves the generator where its draws had put it", "[sim][errors]") {
  const std::string draws = op("dropout", {"a"}, {"d", "m"});
  const std::string body = op("sin", {"x"}, {"a"}) + "," +
                           caught(excluded("e", "\"a\"", "", draws + "," + raises)) + "," +
                           op("dropout", {"a"}, {"y", "n"});
  for (const std::string protocol : {"none", "torch", "exclude", "exclude-rederive"}) {
    CAPTURE(protocol);
    CHECK(is_sound(run_stage(checkpoint("r", body) + "," + ends, protocol)));
  }
}

TEST_CASE("a reentrant region within takes what an excluded region is served", "[sim][errors]") {
  const std::string body = op("sin", {"x"}, {"a"}) + "," +
                           excluded("e", "\"a\"", "\"b\"", op("sin", {"a"}, {"b"})) + "," +
                           checkpoint("q", op("sin", {"b"}, {"y"}), R"("reentrant":true)");
  for (const std::string protocol : {"torch", "exclude", "exclude-rederive"}) {
    CAPTURE(protocol);
    const ScenarioRun run = run_stage(checkpoint("r", body) + "," + ends, protocol);
    CHECK(run.code() == "none");
    CHECK(run.result.gradients_match == true);
  }
}

TEST_CASE("what stands behind an error that is caught does not run, and is not expected to",
          "[sim][errors]") {
  const std::string body =
      op("sin", {"x"}, {"a"}) + "," +
      caught(op("cos", {"a"}, {"t"}) + "," + raises + "," + op("exp", {"a"}, {"u"})) + "," +
      op("sin", {"a"}, {"y"});
  for (const std::string protocol : {"none", "torch", "torch-reentrant", "exclude"}) {
    CAPTURE(protocol);
    const ScenarioRun run = run_stage(checkpoint("r", body) + "," + ends, protocol);
    CHECK(is_sound(run));
    CHECK(run.ops("exp", Phase::forward) == 0);
  }
}
