#include <catch2/catch.hpp>
#include <string>

#include "schedules/pipeline_lists_text.hpp"
#include "schedules/replay_placement.hpp"
#include "tests/schedules/shared_schedules.hpp"

using namespace remat;

namespace {

std::string replayed(const std::string& csv, std::int64_t distance) {
  return lists_csv(with_replays(read_pipeline_lists("lists.csv", csv), distance));
}

}  // namespace

TEST_CASE("an R stands before each B or DX", "[schedules]") {
  CHECK(replayed("0F0,0F1,0B0,0B1\n", 0) == "0F0,0F1,0R0,0B0,0R1,0B1\n");
  CHECK(replayed("0F0,0I0,0W0\n", 0) == "0F0,0R0,0I0,0W0\n");
}

TEST_CASE("a distance counts places without R's, and ends behind the own forward", "[schedules]") {
  CHECK(replayed("0F0,0F1,0B0,0B1\n", 1) == "0F0,0R0,0F1,0R1,0B0,0B1\n");
  CHECK(replayed("0F0,0F1,0B0,0B1\n", 2) == "0F0,0R0,0F1,0R1,0B0,0B1\n");
  CHECK(replayed("0F0,0F1,0F2,0B0,0B1,0B2\n", 2) == "0F0,0R0,0F1,0R1,0F2,0R2,0B0,0B1,0B2\n");
  CHECK(replayed("0F0,0F1,0B1,0B0\n", 1) == "0F0,0F1,0R1,0R0,0B1,0B0\n");
}

TEST_CASE("an overlapped pair is one place, and no R comes between", "[schedules]") {
  CHECK(replayed("0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,0B2\n", 0) ==
        "0F0,0F1,0R0,(0F2;0B0)OVERLAP_F_B,0R1,0B1,0R2,0B2\n");
  CHECK(replayed("0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,0B2\n", 1) ==
        "0F0,0R0,0F1,0R1,(0F2;0B0)OVERLAP_F_B,0R2,0B1,0B2\n");
}

TEST_CASE("replays stand where independent lists have them", "[schedules]") {
  const auto shared = shared_schedules();
  if (!shared) return;
  const std::string folder = *shared + "golden/";
  int n_compared = 0;
  for (const std::string& file : csv_files_in(folder)) {
    for (const auto& [end, distance] :
         {std::pair("_Rondemand.order.csv", 0), {"_Rpre.order.csv", 0}, {"_Rpre1.order.csv", 1}}) {
      if (!file.ends_with(end)) continue;
      CAPTURE(file);
      const std::string plain =
          folder + file.substr(0, file.size() - std::string(end).size()) + ".order.csv";
      CHECK(replayed(text_of(plain), distance) ==
            lists_csv(read_pipeline_lists(file, text_of(folder + file))));
      ++n_compared;
    }
  }
  CHECK(n_compared == 21);
}
