#include "properties/invariants/writes_since.hpp"

#include <fmt/format.h>

namespace remat {

std::string writes_since(const Facts& facts, StorageId storage, std::uint32_t version) {
  const std::uint32_t now = facts.storages().version(storage);
  const auto written = facts.storages().written_seq(storage);
  return fmt::format(
      "written {} at event {} (version {} then, {} now)",
      now - version == 1 ? "since," : fmt::format("{} times since, last", now - version),
      written.value_or(0), version, now);
}

std::vector<std::int64_t> proof_of_write(const Facts& facts, StorageId storage, std::int64_t since,
                                         std::int64_t now) {
  std::vector<std::int64_t> events = {since, now};
  if (const auto written = facts.storages().written_seq(storage)) events.push_back(*written);
  return events;
}

}  // namespace remat
