#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/exit_code.hpp"

namespace remat {

struct FuzzOptions {
  std::string seed = "0";
  std::optional<std::uint64_t> cases;
  std::string budget;  // empty: none, or 10 s where there is no number of cases either
  std::string jobs = "1";
  std::string shard = "0/1";
  std::string protocol;
  std::string mutant;
  std::string fuzz_case;  // runs this one alone
  std::string trace;      // … and writes its trace
  std::string corpus;
  std::string save;
  std::string emit;
  std::string junit;
  std::string sarif;
  std::uint64_t max_failures = 1;
  std::string output = "-";
  bool json = false;
  bool digest = false;  // runs all cases whatever fails, and prints their digest alone
  bool progress = false;
};

/// Random programs under every protocol, held against every invariant and the plain run. Throws
/// InputError.
ExitCode fuzz_command(const FuzzOptions& options);

}  // namespace remat
