#include "sim/scenario_ranks.hpp"

#include <algorithm>
#include <string>

#include "model/collectives.hpp"

namespace remat {
namespace {

constexpr std::int64_t ranks_max = 256;

RankGroup group_at(const std::string& name, const JsonPlace& place, std::uint32_t n_ranks) {
  RankGroup group{name, {}};
  for (const JsonPlace& item : place.items()) {
    const std::int64_t rank = item.integer(0);
    if (rank >= n_ranks) {
      item.fail("there is no rank " + std::to_string(rank) + "; expected one below " +
                std::to_string(n_ranks));
    }
    const auto number = static_cast<std::uint32_t>(rank);
    if (std::find(group.ranks.begin(), group.ranks.end(), number) != group.ranks.end())
      item.fail("rank " + std::to_string(rank) + " is in the group already; expected it once");
    group.ranks.push_back(number);
  }
  if (group.ranks.empty()) place.fail("a group of nobody; expected a rank or more");
  return group;
}

}  // namespace

void read_ranks(const JsonPlace& root, Scenario& scenario, ProgramReading& reading) {
  if (const auto ranks = root.find("ranks")) {
    const std::int64_t n = ranks->integer(1);
    if (n > ranks_max) ranks->fail("so many ranks are not simulated; expected 256 or fewer");
    scenario.n_ranks = static_cast<std::uint32_t>(n);
  }
  reading.n_ranks = scenario.n_ranks;
  reading.groups.push_back(all_ranks(scenario.n_ranks));
  const auto groups = root.find("groups");
  if (!groups) return;
  for (const std::string& name : groups->keys()) {
    const JsonPlace place = groups->at(name);
    if (name == reading.groups.front().name)
      place.fail("'world' is the group of all ranks; expected another name");
    reading.groups.push_back(group_at(name, place, scenario.n_ranks));
  }
}

void read_programs(const JsonPlace& place, Scenario& scenario, ProgramReading& reading) {
  scenario.program = read_program(place, reading);
  if (!scenario.program.differs_by_rank) return;
  for (reading.rank = 1; reading.rank < scenario.n_ranks; ++reading.rank)
    scenario.other_programs.push_back(read_program(place, reading));
  reading.rank = 0;
}

}  // namespace remat
