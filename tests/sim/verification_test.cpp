#include <catch2/catch.hpp>

#include "tests/sim/scenario_file.hpp"

// The mission's ten verification items (protocols.md §4.1), each on a scenario of its own. Sizes
// are worked out by hand: bf16 has 2 bytes an element, a loss is one element.

using namespace remat;

namespace {

using Paths = std::vector<std::string>;
using Counts = std::map<std::string, std::int64_t>;

constexpr std::int64_t loss_bytes = 2;

/// How often the op runs: in forward, in replays.
std::pair<std::int64_t, std::int64_t> runs_of(const ScenarioRun& run, const std::string& op) {
  return {run.ops(op, Phase::forward), run.ops(op, Phase::replay)};
}
using Runs = std::pair<std::int64_t, std::int64_t>;

std::int64_t bytes_of(std::int64_t rows, std::int64_t columns) {
  return rows * columns * 2;
}

/// What the slots were packed with, filled with and read as, one line each: slot, layout, value.
std::vector<std::string> slot_values(const ScenarioRun& run, Kind kind) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < run.trace.size(); ++i) {
    const EventView event = run.trace[i];
    const bool is_slot = event.text(Field::held) == "slot" || event.kind() == Kind::slot_fill ||
                         event.text(Field::from) == "rederived";
    if (event.kind() != kind || !is_slot) continue;
    const ExcludedSave save = excluded_save(run.trace, event);
    std::string line = save.slot + " " + save.value;
    for (std::size_t d = 0; d < save.shape.size(); ++d)
      line += " " + std::to_string(save.shape[d]) + "/" + std::to_string(save.stride[d]);
    lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace

TEST_CASE("verification 1", "[sim][verification]") {
  const std::string name = "verification_01_rmsnorm_gemm";
  const std::int64_t h = bytes_of(128, 64);
  const std::int64_t y = bytes_of(128, 192);
  const ScenarioRun plain = run_file(name, {under("none")});
  const ScenarioRun kept = run_file(name, {under("exclude")});
  const ScenarioRun rederived = run_file(name);
  for (const ScenarioRun* run : {&kept, &rederived}) {
    require_sound(*run, plain);
    CHECK(runs_of(*run, "matmul") == Runs{1, 0});
    CHECK(gradients_of(*run).size() == 3);  // x, g, w
  }
  CHECK(runs_of(rederived, "rmsnorm") == Runs{1, 1});
  CHECK(runs_of(kept, "rmsnorm") == Runs{1, 0});  // its own inputs are the last saves
  // R = Σ A((S_w \ I_w) ∪ O_w): the norm's output is the GEMM's only rederived input.
  CHECK(kept.result.resident_bytes == h + y + loss_bytes);
  CHECK(rederived.result.resident_bytes == y + loss_bytes);
  CHECK(resident(rederived, OwnerClass::excl_saved) == 0);
  CHECK(resident(rederived, OwnerClass::excl_output) == y);
  CHECK(rederived.result.rederived_bytes == h);
  // T: the replay makes h and nothing else. The peak is then: the gradient of y, y, h.
  CHECK(rederived.result.replay_peak_bytes == h);
  CHECK(rederived.result.at_peak.total == y + y + h + loss_bytes);
}

TEST_CASE("verification 2", "[sim][verification]") {
  const std::string name = "verification_02_bare_consumer";
  const ScenarioRun plain = run_file(name, {under("none")});
  for (const std::string protocol : {"exclude", "exclude-rederive"}) {
    CAPTURE(protocol);
    const ScenarioRun run = run_file(name, {under(protocol)});
    require_sound(run, plain);
    CHECK(runs_of(run, "matmul") == Runs{1, 0});
    CHECK(runs_of(run, "sin") == Runs{1, 1});
    CHECK(runs_of(run, "rmsnorm") == Runs{1, 1});
    CHECK(runs_of(run, "gelu") == Runs{1, 0});  // its input is the last save: the replay ends there
    CHECK(run.kinds(Kind::placeholder) == 0);
    CHECK(run.kinds(Kind::placeholder_read) == 0);
    CHECK(resident(run, OwnerClass::excl_output) == bytes_of(128, 192));
  }
}

TEST_CASE("verification 3", "[sim][verification]") {
  const std::string name = "verification_03_inner_tensors";
  const ScenarioRun run = run_file(name);
  require_sound(run, run_file(name, {under("none")}));
  CHECK(rederived_paths(run) == Paths{"mlp arg0"});
  // u, a, v and the copy of h are made inside; the weights are parameters, which no count includes.
  const std::int64_t u = bytes_of(128, 256);
  const std::int64_t v = bytes_of(128, 64);
  CHECK(resident(run, OwnerClass::excl_saved) == u + u + v + v);
  CHECK(resident(run, OwnerClass::excl_output) == v);
  CHECK(run.result.rederived_bytes == bytes_of(128, 64));
}

TEST_CASE("verification 4", "[sim][verification]") {
  const std::string name = "verification_04_inputs_and_outputs";
  const ScenarioRun run = run_file(name);
  require_sound(run, run_file(name, {under("none")}));
  // In the order in which the body saves them; the first is k seen through its transpose.
  CHECK(rederived_paths(run) == Paths{"attention arg1[0]", "attention arg0",
                                      "attention arg1[1].value", "attention kwarg.mask"});
  CHECK(excluded_saves(run).front().shape == std::vector<std::int64_t>{32, 64});
  CHECK(excluded_saves(run).front().stride == std::vector<std::int64_t>{1, 32});
  const std::vector<std::string> packed = slot_values(run, Kind::pack);
  CHECK(packed.size() == 4);
  CHECK(slot_values(run, Kind::slot_fill) == packed);
  CHECK(slot_values(run, Kind::unpack) == packed);
  CHECK(run.result.rederived_bytes == 4 * bytes_of(64, 32));
  // Scores and their product with v are the body's own; o is the other output.
  CHECK(resident(run, OwnerClass::excl_saved) == bytes_of(64, 64) + bytes_of(64, 32));
  CHECK(resident(run, OwnerClass::excl_output) == bytes_of(64, 32));
}

TEST_CASE("verification 5", "[sim][verification]") {
  const std::string name = "verification_05_fallbacks";
  const ScenarioRun plain = run_file(name, {under("none")});
  const ScenarioRun run = run_file(name);
  require_sound(run, plain);
  CHECK(rederived_paths(run) == Paths{"rederived arg0"});
  // Kept: a after its write, the row behind the expanded view, the copy, what `copied` returned.
  const std::int64_t full = bytes_of(64, 32);
  CHECK(resident(run, OwnerClass::excl_saved) == full + bytes_of(1, 32) + full + full);
  CHECK(run.result.rederived_bytes == full);

  // Whoever knows the input by its tensor object alone takes the written one for what came in.
  const ScenarioRun as_published = run_file(name, {with(R"("compat": "public")")});
  CHECK(as_published.code() == "none");
  CHECK(as_published.result.gradients_match == false);
  CHECK(rederived_paths(as_published) == Paths{"written arg0", "written arg0", "rederived arg0"});
  CHECK_FALSE(as_published.broken().empty());
}

TEST_CASE("verification 6", "[sim][verification]") {
  const std::string name = "verification_06_save_origin";
  const ScenarioRun plain = run_file(name, {under("none")});
  const std::int64_t each = bytes_of(128, 64);
  const ScenarioRun chain = run_file(name);
  require_sound(chain, plain);
  // h by itself, then h beside a placeholder; o1, which `gemm` returned, is kept where it is saved.
  CHECK(rederived_paths(chain) == Paths{"gemm arg0", "gate arg0[1]"});
  CHECK(resident(chain, OwnerClass::excl_output) == each);
  CHECK(resident(chain, OwnerClass::excl_saved) == each);
  CHECK(runs_of(chain, "matmul") == Runs{1, 0});
  CHECK(chain.kinds(Kind::placeholder) == 2);  // for o1 and o2

  const ScenarioRun all_kept = run_file(name, {{R"("save_output": false, )", ""}});
  require_sound(all_kept, plain);
  CHECK(rederived_paths(all_kept) == rederived_paths(chain));
  // o1 is saved for backward anyway: its owner is another one, its bytes are the same.
  CHECK(all_kept.result.resident_bytes == chain.result.resident_bytes + each);
  const ScenarioRun original = run_file(name, {under("exclude")});
  require_sound(original, plain);
  CHECK(original.result.resident_bytes == all_kept.result.resident_bytes + each);
}

TEST_CASE("verification 7", "[sim][verification]") {
  const std::string name = "verification_07_boundaries";
  const ScenarioRun run = run_file(name);
  require_sound(run, run_file(name, {under("none")}));
  Counts expected = {{"one", 1}, {"three", 3}, {"nested", 2}, {"twice", 2}, {"masked", 1}};
  CHECK(boundaries_of(run, "forward") == expected);
  CHECK(boundaries_of(run, "replay") == expected);
  // As published, a boundary comes on every leaf that is a tensor, the mask too.
  const ScenarioRun as_published = run_file(name, {with(R"("compat": "public")")});
  expected["masked"] = 2;
  CHECK(boundaries_of(as_published, "forward") == expected);
  CHECK(boundaries_of(as_published, "replay") == expected);
}

TEST_CASE("verification 8", "[sim][verification]") {
  const std::string name = "verification_08_repeated_calls";
  const std::vector<std::string> orders = {R"("F0.0", "F0.1", "B0.0", "B0.1", "UPDATE")",
                                           R"("F0.0", "F0.1", "B0.1", "B0.0", "UPDATE")",
                                           R"("F0.0", "B0.0", "F0.1", "B0.1", "UPDATE")"};
  for (const std::string& order : orders) {
    CAPTURE(order);
    const TextEdit in_order{orders.front(), order};
    const ScenarioRun run = run_file(name, {in_order});
    require_sound(run, run_file(name, {under("none"), in_order}));
    // 2 calls in each of 2 frames, of 2 micro-batches, in 3 steps.
    CHECK(runs_of(run, "matmul") == Runs{24, 0});
    CHECK(runs_of(run, "rmsnorm") == Runs{24, 24});
    CHECK(run.kinds(Kind::frame_create) == 12);
    CHECK(run.kinds(Kind::frame_free) == 12);
    const std::vector<std::string> packed = slot_values(run, Kind::pack);
    CHECK(packed.size() == 24);
    CHECK(slot_values(run, Kind::slot_fill) == packed);
    CHECK(slot_values(run, Kind::unpack) == packed);
    for (int frame = 0; frame < 12; ++frame)
      CHECK(run.count("replay block#" + std::to_string(frame)) == 1);
  }
}

TEST_CASE("verification 9", "[sim][verification]") {
  const std::string name = "verification_09_early_stop";
  const TextEdit whole{R"("early_stop": true)", R"("early_stop": false)"};
  const TextEdit one_backward{R"("backward": "split")", R"("backward": "full")"};
  const ScenarioRun plain = run_file(name, {under("none"), one_backward});
  const ScenarioRun runs[] = {run_file(name), run_file(name, {whole}),
                              run_file(name, {one_backward}),
                              run_file(name, {whole, one_backward})};
  for (const ScenarioRun& run : runs) {
    require_sound(run, plain);
    const bool stops = run.scenario->options.early_stop;
    CHECK(runs_of(run, "gelu") == Runs{1, 1});
    CHECK(runs_of(run, "matmul") == Runs{1, 0});
    CHECK(runs_of(run, "scale") == Runs{1, stops ? 0 : 1});
    CHECK(run.count("replay block#0") == 1);
    CHECK(run.count("stop") == (stops ? 1 : 0));
    CHECK(rederived_paths(run) == Paths{"gemm arg0"});
    // Each half of a backward reads the slot, which one replay filled.
    const std::vector<std::string> packed = slot_values(run, Kind::pack);
    const bool is_split = run.kinds(Kind::phase_begin) > 2;
    CHECK(slot_values(run, Kind::slot_fill) == packed);
    CHECK(slot_values(run, Kind::unpack) ==
          std::vector<std::string>(is_split ? 2 : 1, packed.at(0)));
    CHECK(run.result.resident_bytes == bytes_of(128, 192) + loss_bytes);
    CHECK(run.result.rederived_bytes == bytes_of(128, 64));
  }
}

TEST_CASE("both halves of a backward that need one outer save end in an error on demand",
          "[sim][verification]") {
  // rmsnorm's input is unpacked for dx and again for dw. Kept for both it can only be by a session
  // that retains, which no replay on demand has.
  const std::string name = "verification_01_rmsnorm_gemm";
  CHECK(run_file(name, {scheduled(R"({"backward": "split"})")}).code() == "E-CACHE-MISS");
  CHECK(run_file(name, {scheduled(R"({"actions": ["F0.0", {"action": "DX0.0", "group": 0},
                                                          {"action": "DW0.0", "group": 0}]})")})
            .code() == "E-TWICE");
}

TEST_CASE("verification 10", "[sim][verification]") {
  const std::string name = "verification_10_moe";
  const ScenarioRun plain = run_file(name, {under("none")});
  const ScenarioRun kept = run_file(name, {under("exclude")});
  const ScenarioRun run = run_file(name);
  require_sound(kept, plain);
  require_sound(run, plain);
  CHECK(runs_of(run, "grouped_matmul") == Runs{2, 0});
  CHECK(runs_of(run, "silu") == Runs{1, 0});
  for (const char* op : {"rmsnorm", "matmul", "softmax", "topk", "argsort", "index_select"}) {
    CAPTURE(op);
    CHECK(runs_of(run, op) == Runs{1, 1});
  }
  CHECK(rederived_paths(run) == Paths{"experts arg0"});
  // 256 tokens go to 2 experts each: 512 rows. up and act are the body's own.
  CHECK(resident(run, OwnerClass::excl_saved) == 2 * bytes_of(512, 128));
  CHECK(resident(run, OwnerClass::excl_output) == bytes_of(512, 64));
  CHECK(kept.result.resident_bytes - run.result.resident_bytes == bytes_of(512, 64));
  CHECK(run.result.rederived_bytes == bytes_of(512, 64));
}
