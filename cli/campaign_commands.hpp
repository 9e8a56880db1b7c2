#pragma once

#include <functional>

#include "cli/exit_code.hpp"

namespace CLI {
class App;
}

namespace remat {

/// Adds fuzz, shrink, mutants and selfcheck with their options; parsing one of them sets `chosen`.
void add_campaign_commands(CLI::App& app, std::function<ExitCode()>& chosen);

}  // namespace remat
