#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "cli/counterexample_output.hpp"
#include "cli/fuzz_output.hpp"
#include "model/flat_map.hpp"
#include "properties/invariants/registry.hpp"
#include "schedules/registry.hpp"

// Reports that CI systems read.

namespace remat {
namespace {

using Json = nlohmann::ordered_json;

std::string escaped(const std::string& text) {
  std::string xml;
  for (const char c : text) {
    switch (c) {
      case '&':
        xml += "&amp;";
        break;
      case '<':
        xml += "&lt;";
        break;
      case '>':
        xml += "&gt;";
        break;
      case '"':
        xml += "&quot;";
        break;
      default:
        // XML 1.0 has no other control characters.
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') xml += c;
    }
  }
  return xml;
}

/// Equal for failures of one kind: protocol, what was found, and the shape of what is left.
std::string fingerprint(const Counterexample& found) {
  return fmt::format(
      "{:016x}", mixed_text(found.protocol + "/" + found.outcome.alarm + "/" + found.outcome.code));
}

}  // namespace

std::string fuzz_junit(const FuzzReport& report) {
  std::string cases;
  std::size_t n_tests = 0;
  std::size_t n_failures = 0;
  const auto add = [&](const std::string& protocol, const std::string& invariant) {
    ++n_tests;
    std::string failures;
    for (const Counterexample& found : report.counterexamples) {
      if (found.protocol != protocol || found.outcome.alarm != invariant) continue;
      ++n_failures;
      failures +=
          fmt::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n",
                      escaped(invariant), escaped("again: " + again_command(found, report.mutant)),
                      escaped(counterexample_text(found, report.mutant, false)));
    }
    cases += fmt::format("    <testcase classname=\"rematsim.{}\" name=\"{}\"", escaped(protocol),
                         escaped(invariant));
    cases += failures.empty() ? "/>\n" : ">\n" + failures + "    </testcase>\n";
  };
  for (const ProtocolRow& protocol : protocols()) {
    for (const InvariantRow& row : invariants())
      add(std::string(protocol.name), std::string(row.name));
    std::set<std::string> others;  // an error that should not have been is no invariant's
    for (const Counterexample& found : report.counterexamples) {
      if (found.protocol == protocol.name && invariant_named(found.outcome.alarm) == nullptr)
        others.insert(found.outcome.alarm);
    }
    for (const std::string& other : others)
      add(std::string(protocol.name), other);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
      "  <testsuite name=\"rematsim fuzz\" tests=\"{}\" failures=\"{}\" time=\"{:.3f}\">\n"
      "    <properties>\n      <property name=\"seed\" value=\"{}\"/>\n"
      "      <property name=\"cases\" value=\"{}\"/>\n"
      "      <property name=\"digest\" value=\"{}\"/>\n    </properties>\n{}"
      "  </testsuite>\n</testsuites>\n",
      n_tests, n_failures, report.seconds, report.seed, report.result.cases,
      shown_digest(report.result.digest), cases);
}

std::string fuzz_sarif(const FuzzReport& report) {
  Json rules = Json::array();
  for (const InvariantRow& row : invariants()) {
    rules.push_back({{"id", std::string(row.name)},
                     {"shortDescription", {{"text", std::string(row.holds_when)}}}});
  }
  std::set<std::string> others;
  Json results = Json::array();
  for (const Counterexample& found : report.counterexamples) {
    if (invariant_named(found.outcome.alarm) == nullptr &&
        others.insert(found.outcome.alarm).second) {
      rules.push_back({{"id", found.outcome.alarm},
                       {"shortDescription", {{"text", "a run ends as its program says"}}}});
    }
    Json steps = Json::array();
    for (const std::string& event : found.events)
      steps.push_back({{"location", {{"message", {{"text", event}}}}}});
    results.push_back(
        {{"ruleId", found.outcome.alarm},
         {"level", "error"},
         {"message",
          {{"text", found.outcome.message + "\nagain: " + again_command(found, report.mutant)}}},
         {"locations", Json::array({{{"logicalLocations", Json::array({{{"name", found.protocol},
                                                                        {"kind", "module"}}})}}})},
         {"partialFingerprints", {{"rematsim/v1", fingerprint(found)}}},
         {"codeFlows", Json::array({{{"threadFlows", Json::array({{{"locations", steps}}})}}})}});
  }
  const Json sarif = {
      {"$schema",
       "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/"
       "sarif-schema-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs", Json::array({{{"tool", {{"driver", {{"name", "rematsim"}, {"rules", rules}}}}},
                             {"results", results}}})}};
  return sarif.dump(2) + "\n";
}

}  // namespace remat
