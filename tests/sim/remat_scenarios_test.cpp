#include <catch2/catch.hpp>

#include "tests/sim/remat_stage.hpp"

// The scenarios of torch_remat's regions (protocols.md P7), their bytes worked out by hand, beside
// what exclusion wrappers and torch's checkpoint make of the same programs: docs/boundaries.md has
// these figures.

using namespace remat;

namespace {

using Names = std::vector<std::string>;

constexpr std::int64_t loss_bytes = 2;
constexpr std::int64_t tensor_bytes = std::int64_t{4096} * 1024 * 2;  // bf16: 8 MiB
constexpr std::int64_t weight_bytes = std::int64_t{1024} * 1024 * 2;

ScenarioRun run_named(const std::string& name, const std::string& protocol = "remat") {
  return run_file(name, {{R"("name": "remat")", R"("name": ")" + protocol + "\""}});
}

/// What a run comes to; `resident` and `peak` in tensors.
struct Figures {
  std::int64_t resident = 0;
  std::int64_t peak = 0;
  std::int64_t peak_besides = 0;  // bytes: gradients of parameters
  std::int64_t replayed_ops = 0;
  std::int64_t end_ns = 0;
};
struct Row {
  std::string protocol;
  Figures expected;
};
void check_table(const std::string& name, const std::vector<Row>& rows) {
  const ScenarioRun plain = run_named(name, "none");
  for (const auto& [protocol, expected] : rows) {
    CAPTURE(name, protocol);
    const ScenarioRun run = run_named(name, protocol);
    require_sound(run, plain);
    CHECK(run.result.resident_bytes == expected.resident * tensor_bytes + loss_bytes);
    CHECK(run.result.at_peak.total ==
          expected.peak * tensor_bytes + expected.peak_besides + loss_bytes);
    CHECK(run.result.end.ns == expected.end_ns);
    std::int64_t replayed = 0;
    for (const char* op : {"rmsnorm", "matmul", "add"})
      replayed += run.ops(op, Phase::replay);
    CHECK(replayed == expected.replayed_ops);
  }
}

}  // namespace

TEST_CASE("torch_remat's chain of saved regions keeps what a replay reads, the last output",
          "[sim][remat]") {
  const std::string name = "remat_save_chain";
  const ScenarioRun run = run_named(name);
  CHECK(outputs_told(run, Kind::remat_persist) == Names{"shift.0"});
  CHECK(outputs_told(run, Kind::remat_placeholder) == Names{"gemm.0", "bias.0"});
  CHECK(resident(run, OwnerClass::persisted) == tensor_bytes);
  CHECK(run.result.rederived_bytes == tensor_bytes);  // the first norm's output, for the GEMM
  // Under remat the peak is in the last norm's backward: the slot's tensor, what it was served,
  // the gradients of its output, its input and its weight. Where a replay ends at its last save, it
  // leaves that norm out.
  constexpr std::int64_t norm_weight = std::int64_t{1024} * 2;
  check_table(name, {{"remat", {1, 4, norm_weight, 2, 356'378}},
                     {"exclude-rederive", {3, 5, 0, 1, 339'598}},
                     {"exclude", {4, 6, 0, 1, 339'598}},
                     {"torch", {0, 4, norm_weight, 4, 459'058}}});
}

TEST_CASE("torch_remat keeps a saved region's output for who reads it in a replay, and no other",
          "[sim][remat]") {
  const std::string name = "remat_lazy_persist";
  const ScenarioRun run = run_named(name);
  CHECK(outputs_told(run, Kind::remat_persist) == Names{"gemm1.0"});
  CHECK(outputs_told(run, Kind::remat_placeholder) == Names{"gemm2.0"});
  // The norm is made again, or kept; under torch the first GEMM is too.
  check_table(name, {{"remat", {1, 4, weight_bytes, 1, 410'718}},
                     {"exclude-rederive", {2, 4, weight_bytes, 1, 410'718}},
                     {"exclude", {3, 5, weight_bytes, 0, 393'938}},
                     {"torch", {0, 4, weight_bytes, 2, 496'618}}});
}

TEST_CASE("hazard of torch_remat: a bare op reads what a saved region returned",
          "[sim][hazards][remat]") {
  const std::string name = "hazard_remat_bare_consumer";
  const ScenarioRun run = run_named(name);
  REQUIRE(run.code() == "E-PLACEHOLDER");
  CHECK(run.result.error->message ==
        "add in replay reads the placeholder of region gemm in block#0 (micro-batch 0, replay) "
        "output 0; "
        "say that a replay needs the tensor (needs_tensor), or read it in a region that is "
        "recomputed");
  CHECK(run.broken() == Names{"boundaries_match"});
  const std::string cure = name + "_cured";
  const ScenarioRun plain = run_named(cure, "none");
  const ScenarioRun cured = run_named(cure);
  require_sound(cured, plain);
  CHECK(resident(cured, OwnerClass::persisted) == std::int64_t{16} * 8 * 4);
  // An exclusion wrapper keeps what it returns unasked.
  require_sound(run_named(name, "exclude-rederive"), plain);
  require_sound(run_named(cure, "exclude-rederive"), plain);
}
