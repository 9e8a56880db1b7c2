#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/sim/scenario_run.hpp"

// What an excluded region saves: which of it waits for a replay (protocols.md P4, the fallback
// table row by row).

namespace remat {
namespace {

std::string excluded(const std::string& name, const std::string& arguments,
                     const std::string& body) {
  return R"({"exclude":")" + name + R"(",)" + arguments + R"(,"body":[)" + body + "]}";
}

/// How forward holds each save of excluded regions, in their order: `slot` or `saved`.
std::vector<std::string> held_of(const ScenarioRun& run) {
  std::vector<std::string> held;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const EventView event = run.trace[i];
    if (event.kind() == Kind::pack && event.text(Field::role).starts_with("excl_"))
      held.emplace_back(event.text(Field::held));
  }
  return held;
}

struct Row {
  const char* what;
  std::string body;  // of a checkpointed region that makes `y`
  std::vector<std::string> held;
};

const std::string in_a = R"("in":["a"])";
const std::string make_a = op("tanh", {"x"}, {"a"}) + ",";

std::string view(const std::string& kind, const std::string& layout) {
  return R"({"view":")" + kind + R"(","in":["a"],"out":["v"],)" + layout + "},";
}
/// A region of which the body saves a view of its argument.
std::string saves_view(const std::string& kind, const std::string& layout) {
  return make_a + excluded("w", in_a, view(kind, layout) + op("sin", {"v"}, {"y"}));
}

void check_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const ScenarioRun run =
        run_stage(checkpoint("r", row.body) + "," + loss_of("y"), "exclude-rederive");
    CHECK(run.code() == "none");
    CHECK(held_of(run) == row.held);
    CHECK(run.result.gradients_match == true);
    CHECK(run.broken().empty());
  }
}

}  // namespace

TEST_CASE("P4: an input that a replay makes again waits for it, wherever it lies", "[sim]") {
  check_rows({
      {"the argument itself", make_a + excluded("w", in_a, op("sin", {"a"}, {"y"})), {"slot"}},
      {"the region's own argument",
       excluded("w", R"("in":["x"])", op("sin", {"x"}, {"y"})),
       {"slot"}},
      {"by keyword, in a dict, in a list",
       make_a + excluded("w", R"("kwargs":{"m":{"k":["a"]}})", op("sin", {"a"}, {"y"})),
       {"slot"}},
      {"handed in twice",
       make_a + excluded("w", R"("in":["a","a"])", op("mul", {"a", "a"}, {"y"})),
       {"slot", "slot"}},
      {"another shape of it", saves_view("view", R"("shape":[32],"stride":[1])"), {"slot"}},
      {"two rows of it",
       saves_view("slice", R"("shape":[2,8],"stride":[8,1],"offset":8)"),
       {"slot"}},
      {"itself, though it has holes",
       R"({"op":"tanh","in":["x"],"out":["a"],"stride":[16,1]},)" +
           excluded("w", in_a, op("sin", {"a"}, {"y"})),
       {"slot"}},
  });
}

TEST_CASE("P4: what a replay cannot be trusted to make again is kept", "[sim]") {
  check_rows({
      {"made in the body",
       make_a + excluded("w", in_a, op("scale", {"a"}, {"h"}) + "," + op("sin", {"h"}, {"y"})),
       {"saved"}},
      {"a parameter, handed in beside an input",
       make_a + excluded("w", R"("in":["a","w0"])", op("mm", {"a", "w0"}, {"y"})),
       {"saved", "slot"}},
      {"written in the body before it is saved",
       op("cos", {"x"}, {"a"}) + "," +
           excluded("w", in_a, R"({"in_place":"scale","in":["a"]},)" + op("sin", {"a"}, {"y"})),
       {"saved"}},
      {"returned by another excluded region of the call",
       make_a + excluded("w", in_a, op("sin", {"a"}, {"h"})) + "," +
           excluded("v", R"("in":["h"])", op("sin", {"h"}, {"y"})),
       {"slot", "saved"}},
      {"a view of what another excluded region of the call returned",
       op("cos", {"x"}, {"h"}) + "," + excluded("w", R"("in":["h"])", op("sin", {"h"}, {"a"})) +
           "," + view("view", R"("shape":[32],"stride":[1])") +
           excluded("v", R"("in":["v"])", op("sin", {"v"}, {"y"})),
       {"slot", "saved"}},
      {"a view that shows every element more than once",
       saves_view("expand", R"("shape":[3,4,8],"stride":[0,8,1])"),
       {"saved"}},
      {"a view that reaches into its argument's holes",
       R"({"op":"tanh","in":["x"],"out":["a"],"stride":[16,1]},)" +
           excluded(
               "w", in_a,
               view("as_strided", R"("shape":[4,8],"stride":[8,1])") + op("sin", {"v"}, {"y"})),
       {"saved"}},
      {"saved by a region that returns nothing with a gradient",
       make_a + excluded("w", in_a, op("sin", {"a"}, {"h"}) + "," + op("detach", {"h"}, {"d"})) +
           "," + op("add", {"a", "d"}, {"y"}),
       {"saved"}},
  });
}

TEST_CASE("P4: of what an excluded region returns, the leaves with a gradient pass a boundary",
          "[sim]") {
  const std::string body = op("sin", {"a"}, {"b"}) + "," + op("detach", {"b"}, {"m"});
  const ScenarioRun run =
      run_stage(checkpoint("r", make_a + excluded("w", R"("in":["a"],"out":["b","m"])", body) +
                                    "," + op("mul", {"b", "m"}, {"y"})) +
                    "," + loss_of("y"),
                "exclude-rederive");
  std::vector<std::int64_t> leaves;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    if (run.trace[i].kind() == Kind::boundary)
      leaves.push_back(run.trace[i].integer(Field::leaf).value_or(-1));
  }
  CHECK(leaves == std::vector<std::int64_t>{0, 0});  // in forward, and in the replay
  CHECK(run.result.gradients_match == true);
  CHECK(run.broken().empty());
}

TEST_CASE("P4: what an excluded region of an earlier call returned is an input like any other",
          "[sim]") {
  const std::string first =
      checkpoint("first", excluded("w", R"("in":["x"])", op("sin", {"x"}, {"h"})));
  const std::string second =
      checkpoint("second", excluded("w", R"("in":["h"])", op("sin", {"h"}, {"y"})));
  const ScenarioRun run = run_stage(first + "," + second + "," + loss_of("y"), "exclude-rederive");
  CHECK(held_of(run) == std::vector<std::string>{"slot", "slot"});
  CHECK(run.result.gradients_match == true);
  CHECK(run.broken().empty());
}

}  // namespace remat
