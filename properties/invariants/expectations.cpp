#include "properties/invariants/expectations.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace remat {

struct ParsedExpectation {
  nlohmann::json json;
};

namespace {

[[noreturn]] void wrong(const std::string& pointer, const std::string& expected) {
  throw HeaderError(
      fmt::format("the header's expectation is of another form (at /expect{}); expected {}",
                  pointer, expected));
}

const nlohmann::json& part_of(const TraceHeader& header, const char* key) {
  static const nlohmann::json none;
  if (!header.parsed_expect) {
    header.parsed_expect = std::make_shared<const ParsedExpectation>(
        ParsedExpectation{nlohmann::json::parse(header.expect)});
  }
  const nlohmann::json& expect = header.parsed_expect->json;
  if (!expect.is_object()) wrong("", "an object");
  const auto found = expect.find(key);
  return found == expect.end() ? none : *found;
}

std::optional<std::int64_t> bytes_of(const TraceHeader& header, const char* key) {
  const nlohmann::json& part = part_of(header, key);
  if (part.is_null()) return std::nullopt;
  if (!part.is_number_integer() || part.get<std::int64_t>() < 0)
    wrong(std::string("/") + key, "a number of bytes, an integer of at least 0");
  return part.get<std::int64_t>();
}

}  // namespace

std::map<std::string, std::vector<std::string>> expected_gradients(const TraceHeader& header) {
  std::map<std::string, std::vector<std::string>> gradients;
  const nlohmann::json& part = part_of(header, "gradients");
  if (part.is_null()) return gradients;
  if (!part.is_object()) wrong("/gradients", "an object {parameter: [values]}");
  for (const auto& [param, values] : part.items()) {
    if (!values.is_array()) wrong("/gradients/" + param, "a list of values");
    for (const auto& value : values)
      gradients[param].push_back(value.dump());
    gradients.try_emplace(param);  // an empty list: the gradient must be missing
  }
  return gradients;
}

std::vector<ExpectedCount> expected_op_counts(const TraceHeader& header) {
  std::vector<ExpectedCount> counts;
  const nlohmann::json& part = part_of(header, "op_counts");
  if (part.is_null()) return counts;
  if (!part.is_object()) wrong("/op_counts", "an object {name or name:phase: count}");
  for (const auto& [key, count] : part.items()) {
    if (!count.is_number_integer() || count.get<std::int64_t>() < 0)
      wrong("/op_counts/" + key, "an integer of at least 0");
    ExpectedCount row{key, Phase::none, count.get<std::int64_t>()};
    if (const std::size_t colon = key.rfind(':'); colon != std::string::npos) {
      if (const auto phase = phase_named(std::string_view(key).substr(colon + 1))) {
        row.name = key.substr(0, colon);  // an op's own name may hold colons: c10d::allreduce_
        row.phase = *phase;
      }
    }
    counts.push_back(std::move(row));
  }
  return counts;
}

std::optional<std::int64_t> expected_peak_bytes(const TraceHeader& header) {
  return bytes_of(header, "peak_bytes");
}
std::optional<std::int64_t> expected_resident_bytes(const TraceHeader& header) {
  return bytes_of(header, "resident_bytes");
}

}  // namespace remat
