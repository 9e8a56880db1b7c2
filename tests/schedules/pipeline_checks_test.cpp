#include "schedules/pipeline_checks.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "schedules/pipeline_lists_text.hpp"
#include "schedules/pipeline_registry.hpp"

using namespace remat;

namespace {

std::vector<std::string> complaints(const std::string& csv) {
  std::vector<std::string> messages;
  for (const ListComplaint& complaint : complaints_about(read_pipeline_lists("x", csv), 5))
    messages.push_back(std::string(name_of(complaint.check)) + ": " + complaint.message);
  return messages;
}
using Messages = std::vector<std::string>;

}  // namespace

TEST_CASE("lists are whole with each F, and each B or DX and DW, once on one rank", "[schedules]") {
  CHECK(complaints("0F0,0B0\n1F0,1I0,1W0\n").empty());
  CHECK(complaints("0F0,0B0\n1F0,1R0,1B0\n").empty());
  CHECK(complaints("0F0,0B0\n1B0\n") == Messages{"complete: F1.0 is missing"});
  CHECK(complaints("0F0\n1F0,1B0\n") == Messages{"complete: B0.0 is missing"});
  CHECK(complaints("0F0,0I0\n") == Messages{"complete: DW0.0 is missing"});
  CHECK(complaints("0F0,0W0\n") == Messages{"complete: DX0.0 is missing"});
  CHECK(complaints("0F0,0F0,0B0\n") == Messages{"complete: F0.0 is there more than once"});
  CHECK(complaints("0F0,0I0,0W0,0B0\n") == Messages{"complete: B0.0 is there beside its DX or DW"});
  CHECK(complaints("0F0,0B0\n1F0\n1B0\n") ==
        Messages{"complete: B1.0 is on rank 2, other work of its stage on rank 1"});
  CHECK(complaints("0F0,0B0,0F2,0B2\n") ==
        Messages{"complete: F0.1 is missing", "complete: B0.1 is missing"});
}

TEST_CASE("not more is said than was asked for", "[schedules]") {
  CHECK(complaints("0F0,0F1,0F2,0F3,0F4,0F5,0F6,0F7\n").size() == 5);
}

TEST_CASE("ranks that share stages have their collectives in one order", "[schedules]") {
  const std::string first = "0F0,p1:1F0,p1:1B0,0B0,0REDUCE_GRAD,p1:1REDUCE_GRAD\n";
  CHECK(complaints(first + "p1:0F0,1F0,1B0,p1:0B0,p1:0REDUCE_GRAD,1REDUCE_GRAD\n").empty());
  CHECK(complaints(first + "p1:0F0,1F0,1B0,p1:0B0,1REDUCE_GRAD,p1:0REDUCE_GRAD\n") ==
        Messages{"collectives_agree: collective 0 of the stages that ranks 0 and 1 share is "
                 "REDUCE_GRAD0 on one and REDUCE_GRAD1 on the other"});
  CHECK(complaints(first + "p1:0F0,1F0,1B0,p1:0B0,p1:0REDUCE_GRAD,1REDUCE_GRAD,1RESHARD\n") ==
        Messages{"collectives_agree: collective 2 of the stages that ranks 0 and 1 share is "
                 "nothing on one and RESHARD1 on the other"});
  CHECK(complaints("0F0,0B0,0UNSHARD,0RESHARD\n1F0,1B0,1UNSHARD\n").empty());
}

TEST_CASE("every schedule is whole at every small size", "[schedules]") {
  for (const PipelineRow& row : pipelines()) {
    for (std::int64_t ranks = row.is_bidirectional ? 2 : 1; ranks <= 6; ++ranks) {
      for (std::int64_t microbatches = 1; microbatches <= 13; ++microbatches) {
        for (std::int64_t more = 1; more <= 3; ++more) {
          const bool is_odd = ranks % 2 != 0 || microbatches % 2 != 0;
          if (row.is_bidirectional && is_odd) continue;
          PipelineRequest request = {.ranks = ranks, .microbatches = microbatches};
          if (row.chunks == PipelineRow::Chunks::any) request.chunks = more;
          if (row.has_slices) request.slices = more;
          CAPTURE(row.name, ranks, microbatches, more);
          const PipelineLists lists = make_pipeline(row, request);
          CHECK(lists.ranks.size() == static_cast<std::size_t>(ranks));
          CHECK(complaints_about(lists, 1).empty());
          CHECK(extent_of(lists).microbatches ==
                (row.is_bidirectional ? microbatches / 2 : microbatches));
        }
      }
    }
  }
}
