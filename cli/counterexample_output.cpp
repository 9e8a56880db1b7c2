#include "cli/counterexample_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/console.hpp"
#include "cli/written_files.hpp"
#include "model/flat_map.hpp"
#include "traces/writer.hpp"

namespace remat {
namespace {

constexpr std::size_t events_shown_max = 6;

std::string plural(std::size_t n, const std::string& noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string indented(const std::string& text) {
  std::string result = "    ";
  for (const char c : text) {
    result += c;
    if (c == '\n') result += "    ";
  }
  return result.substr(0, result.find_last_not_of(' ') + 1);
}

std::string file_name(const Counterexample& counterexample, const std::string& mutant) {
  std::string name = mutant.substr(0, mutant.find(' '));
  name += (name.empty() ? "" : "-") + counterexample.outcome.alarm +
          fmt::format("-{:08x}", mixed_text(counterexample.token) & 0xffffffffU);
  std::replace(name.begin(), name.end(), ':', '-');
  return name;
}

}  // namespace

std::string again_command(const Counterexample& counterexample, const std::string& mutant) {
  const std::string number = mutant.substr(0, mutant.find(' '));
  return fmt::format("rematsim fuzz --case {}{}", counterexample.token,
                     number.empty() ? "" : " --mutant " + number);
}

std::string counterexample_text(const Counterexample& counterexample, const std::string& mutant,
                                bool colours) {
  const Shrunk& shrunk = counterexample.shrunk;
  std::string text =
      fmt::format("{} {}  protocol {}, case {}\n", painted("FAIL", Colour::red, colours),
                  counterexample.outcome.alarm, counterexample.protocol, counterexample.number);
  text += fmt::format("  again: {}\n", again_command(counterexample, mutant));
  text += fmt::format("  shrunk: {}, {} -> {}, {} in {} runs{}\n",
                      plural(counterexample.n_regions_before, "region"),
                      plural(counterexample.n_choices_before, "choice"),
                      plural(shrunk.n_regions, "region"), plural(shrunk.n_choices, "choice"),
                      shrunk.n_runs,
                      shrunk.is_minimal ? ", nothing more can be taken away" : " (cut short)");
  text += fmt::format("  {}\n", counterexample.outcome.message);
  text += "  program:\n" + indented(counterexample.program);
  if (!counterexample.events.empty()) text += "  events that prove it:\n";
  for (std::size_t i = 0; i < counterexample.events.size(); ++i) {
    if (i == events_shown_max) {
      text += fmt::format("    … and {} more\n", counterexample.events.size() - i);
      break;
    }
    text += "    " + counterexample.events[i] + "\n";
  }
  return text;
}

nlohmann::ordered_json counterexample_json(const Counterexample& counterexample,
                                           const std::string& mutant) {
  return {{"invariant", counterexample.outcome.alarm},
          {"case", counterexample.token},
          {"protocol", counterexample.protocol},
          {"message", counterexample.outcome.message},
          {"events", counterexample.outcome.events},
          {"regions", counterexample.shrunk.n_regions},
          {"choices", counterexample.shrunk.n_choices},
          {"minimal", counterexample.shrunk.is_minimal},
          {"again", again_command(counterexample, mutant)},
          {"scenario", nlohmann::ordered_json::parse(counterexample.scenario)}};
}

std::string save_counterexample(const Counterexample& counterexample, const std::string& folder,
                                const std::string& mutant) {
  make_folder(folder);
  std::string path = (std::filesystem::path(folder) / file_name(counterexample, mutant)).string();
  write_file(path + ".scenario.json", counterexample.scenario);
  write_trace(counterexample.trace, path + ".jsonl");
  return path;
}

}  // namespace remat
