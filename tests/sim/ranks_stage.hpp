#pragma once

#include <string>

#include "tests/sim/scenario_run.hpp"

namespace remat {

/// A stage over an input `x` [4, 8] and parameters `w` and `v` [8, 8] that `n_ranks` ranks run; the
/// last statement must make `loss`. `more`: further keys of the scenario.
inline std::string ranks_scenario(int n_ranks, const std::string& statements,
                                  const std::string& protocol = R"("name":"torch")",
                                  const std::string& more = R"("steps":1)") {
  return R"({"format":"rematsim-scenario","version":1,"ranks":)" + std::to_string(n_ranks) +
         R"(,"program":{"loss":"loss","inputs":{"x":{"shape":[4,8],"requires_grad":true}},)"
         R"("params":{"w":{"shape":[8,8]},"v":{"shape":[8,8]}},"stages":[[)" +
         statements + R"(]]},"protocol":{)" + protocol + "}," + more + "}";
}
inline ScenarioRun run_ranks(int n_ranks, const std::string& statements,
                             const std::string& protocol = R"("name":"torch")",
                             const std::string& more = R"("steps":1)") {
  return run_text(ranks_scenario(n_ranks, statements, protocol, more));
}

/// {"collective": kind, …} that makes a tensor.
inline std::string collective(const std::string& kind, const std::string& in,
                              const std::string& out, const std::string& more = "") {
  return R"({"collective":")" + kind + R"(","in":[")" + in + R"("],"out":[")" + out + "\"]" +
         (more.empty() ? "" : "," + more) + "}";
}
/// Likewise, that writes one.
inline std::string collective_into(const std::string& kind, const std::string& in,
                                   const std::string& into) {
  return R"({"collective":")" + kind + R"(","in":[")" + in + R"("],"into":")" + into + "\"}";
}
inline std::string on_ranks(const std::string& ranks, const std::string& body) {
  return R"({"on_ranks":[)" + ranks + R"(],"body":[)" + body + "]}";
}

/// A region with the two collectives of a tensor-parallel layer.
inline std::string parallel_block(const std::string& name, const std::string& in,
                                  const std::string& out) {
  const auto own = [&](const char* tensor) { return name + "_" + tensor; };
  return checkpoint(name, op("matmul", {in, "w"}, {own("h")}) + "," +
                              collective("all_gather", own("h"), own("g")) + "," +
                              op("gelu", {own("g")}, {own("a")}) + "," +
                              collective("reduce_scatter", own("a"), own("s")) + "," +
                              op("tanh", {own("s")}, {out}));
}

}  // namespace remat
