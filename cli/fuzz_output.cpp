#include "cli/fuzz_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/console.hpp"
#include "cli/counterexample_output.hpp"

namespace remat {
namespace {

using Json = nlohmann::ordered_json;

double per_second(std::uint64_t n, double seconds) {
  return seconds > 0 ? static_cast<double>(n) / seconds : 0;
}

std::string counted(std::uint64_t n) {
  return grouped(static_cast<std::int64_t>(n));
}

Json coverage_json(const FuzzReport& report) {
  const Coverage& coverage = report.result.coverage;
  Json json;
  json["cells"] = Json::array();
  for (const auto& [cell, n] : coverage.cells()) {
    json["cells"].push_back({{"protocol", std::get<0>(cell)},
                             {"code", std::get<1>(cell)},
                             {"invariant", std::get<2>(cell)},
                             {"cases", n}});
  }
  json["codes"] = coverage.codes();
  json["edits"] = coverage.edits();
  json["features"] = Json::object();
  for (std::size_t i = 0; i < feature_count; ++i) {
    const auto feature = static_cast<Feature>(i);
    json["features"][std::string(name_of(feature))] = coverage.with(feature);
  }
  json["strategies"] = Json::object();
  for (std::size_t i = 0; i < strategy_count; ++i) {
    const auto strategy = static_cast<Strategy>(i);
    json["strategies"][std::string(name_of(strategy))] = coverage.with(strategy);
  }
  json["sometimes"] = Json::object();
  for (std::size_t i = 0; i < sometimes_count; ++i) {
    const auto sometimes = static_cast<Sometimes>(i);
    json["sometimes"][std::string(name_of(sometimes))] = coverage.with(sometimes);
  }
  json["op_kinds"] = coverage.op_kinds();
  json["distinct_programs"] = report.result.distinct_programs;
  json["programs_compared"] = report.result.programs_compared;
  return json;
}

std::size_t sometimes_seen(const Coverage& coverage) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < sometimes_count; ++i)
    n += coverage.with(static_cast<Sometimes>(i)) > 0 ? 1 : 0;
  return n;
}

std::string campaign_command(const FuzzOptions& options, const FuzzReport& report) {
  std::string command = fmt::format("rematsim fuzz --seed {} --cases {}", options.seed,
                                    options.cases.value_or(report.result.end));
  if (options.shard != "0/1") command += " --shard " + options.shard;
  if (!options.corpus.empty()) command += " --corpus " + options.corpus;
  if (!options.protocol.empty()) command += " --protocol " + options.protocol;
  if (!report.mutant.empty())
    command += " --mutant " + report.mutant.substr(0, report.mutant.find(' '));
  if (options.max_failures != 1) command += fmt::format(" --max-failures {}", options.max_failures);
  return command;
}

}  // namespace

std::string why_of(const FuzzReport& report) {
  if (!report.counterexamples.empty()) return "violation";
  if (!report.unhealthy.empty()) return "health";
  return "";
}

std::string fuzz_json(const FuzzReport& report) {
  const CampaignResult& result = report.result;
  Json json = {{"version", 1}};
  json["cases"] = result.cases;
  json["events"] = result.events;
  json["seconds"] = report.seconds;
  json["cases_per_second"] = per_second(result.cases, report.seconds);
  json["violations"] = Json::array();
  for (const Counterexample& found : report.counterexamples) {
    Json violation = counterexample_json(found, report.mutant);
    violation["seed"] = report.seed;
    violation["number"] = found.number;
    json["violations"].push_back(std::move(violation));
  }
  json["violations_found"] = std::max(report.n_failures, report.counterexamples.size());
  json["coverage"] = coverage_json(report);
  json["discarded"] = 0;  // every tape gives a case
  json["digest"] = shown_digest(result.digest);
  json["seed"] = report.seed;
  json["mutant"] = report.mutant.empty() ? Json(nullptr) : Json(report.mutant);
  json["corpus_cases"] = report.corpus_cases;
  json["health"] = report.unhealthy;
  json["interrupted"] = report.was_interrupted;
  const std::string why = why_of(report);
  json["why"] = why.empty() ? Json(nullptr) : Json(why);
  return json.dump(2) + "\n";
}

std::string fuzz_text(const FuzzOptions& options, const FuzzReport& report, bool colours) {
  const CampaignResult& result = report.result;
  std::string text;
  for (const Counterexample& found : report.counterexamples)
    text += counterexample_text(found, report.mutant, colours);
  for (const std::string& path : report.saved)
    text += fmt::format("  saved: {0}.scenario.json, {0}.jsonl\n", path);
  text += fmt::format("{} cases, {} events in {:.1f} s ({} cases/s, {:.2f} M events/s)\n",
                      counted(result.cases), counted(result.events), report.seconds,
                      counted(static_cast<std::uint64_t>(per_second(result.cases, report.seconds))),
                      per_second(result.events, report.seconds) / 1e6);
  std::string codes;
  for (const auto& [code, n] : result.coverage.codes())
    codes += fmt::format("{}{} {}", codes.empty() ? "" : ", ", code, counted(n));
  text += fmt::format("  errors that edits were to end in: {}\n", codes);
  text += fmt::format(
      "  coverage: {} cells of protocol x error x invariant, {} op kinds, "
      "{} of {} things that must sometimes happen\n",
      result.coverage.cells().size(), result.coverage.op_kinds().size(),
      sometimes_seen(result.coverage), sometimes_count);
  if (result.programs_compared > 0) {
    text += fmt::format("  programs: {:.1f} % distinct; none discarded\n",
                        100.0 * static_cast<double>(result.distinct_programs) /
                            static_cast<double>(result.programs_compared));
  }
  text += fmt::format("  digest: {}\n", shown_digest(result.digest));
  for (const std::string& complaint : report.unhealthy)
    text += painted("unhealthy", Colour::red, colours) + ": " + complaint + "\n";
  if (report.was_interrupted) text += painted("interrupted", Colour::yellow, colours) + "\n";
  if (report.n_failures > report.counterexamples.size()) {
    text += fmt::format("{} more failed and are not told: there was no time left to shrink them\n",
                        counted(report.n_failures - report.counterexamples.size()));
  }
  const std::string verdict = !report.counterexamples.empty()
                                  ? fmt::format("{} found", counted(report.n_failures))
                                  : std::string("no violation");
  text += fmt::format(
      "{}. Again: {}\n",
      painted(verdict, report.counterexamples.empty() ? Colour::green : Colour::red, colours),
      campaign_command(options, report));
  return text;
}

}  // namespace remat
