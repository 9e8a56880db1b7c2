#include "properties/invariants/wait_cycle.hpp"

#include <catch2/catch.hpp>
#include <vector>

using namespace remat;

namespace {

/// Calls of one step, each given by its rank; events are numbered as they come.
class Step {
 public:
  void collective(std::int64_t rank, std::uint32_t group) {
    waits_.collective(group, {NameId(group), std::nullopt, std::nullopt, rank, ++seq_});
  }
  void send(std::int64_t from, std::int64_t to, std::uint32_t tag = 0) {
    waits_.message({from, to, tag}, true, ++seq_);
  }
  void receive(std::int64_t from, std::int64_t to, std::uint32_t tag = 0) {
    waits_.message({from, to, tag}, false, ++seq_);
  }
  void end() { waits_.begin_step(); }
  /// The ranks that wait in a circle.
  std::vector<std::int64_t> circle() const {
    std::vector<std::int64_t> ranks;
    for (const WaitCycle::Wait& wait : waits_.find())
      ranks.push_back(wait.rank);
    return ranks;
  }
  const WaitCycle& waits() const { return waits_; }

 private:
  WaitCycle waits_;
  std::int64_t seq_ = 0;
};

using Ranks = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("ranks that issue the collectives of two groups crosswise wait for each other",
          "[invariants]") {
  Step step;
  step.collective(0, 7);
  step.collective(0, 8);
  step.collective(1, 8);
  step.collective(1, 7);
  const std::vector<WaitCycle::Wait> circle = step.waits().find();
  REQUIRE(circle.size() == 2);
  CHECK(circle[0].rank == 0);
  CHECK(circle[0].seq == 1);
  CHECK(circle[0].what == NameId(7));
  CHECK(circle[0].for_rank == 1);
  CHECK(circle[1].rank == 1);
  CHECK(circle[1].seq == 3);
  CHECK(circle[1].what == NameId(8));
  CHECK(circle[1].for_rank == 0);
}

TEST_CASE("ranks that issue the collectives of two groups in one order go on", "[invariants]") {
  Step step;
  for (const std::int64_t rank : {0, 1, 2}) {
    step.collective(rank, 7);
    if (rank != 1) step.collective(rank, 8);
    step.collective(rank, 7);
  }
  CHECK(step.circle().empty());
}

TEST_CASE("ranks that receive from each other before they send wait for each other",
          "[invariants]") {
  Step step;
  step.receive(1, 0);
  step.send(0, 1);
  step.receive(0, 1);
  step.send(1, 0);
  CHECK(step.circle() == Ranks{0, 1});
  CHECK_FALSE(step.waits().find().front().what.has_value());
}

TEST_CASE("a send waits for nobody: two that send before they receive go on", "[invariants]") {
  Step step;
  step.send(0, 1);
  step.receive(1, 0);
  step.send(1, 0);
  step.receive(0, 1);
  CHECK(step.circle().empty());
}

TEST_CASE("a receive takes the messages of its channel in their order, and of its tag alone",
          "[invariants]") {
  Step step;
  step.send(0, 1, 5);
  step.receive(1, 0);
  step.receive(0, 1, 6);
  step.send(1, 0);
  step.send(0, 1, 6);
  CHECK(step.circle() == Ranks{0, 1});
}

TEST_CASE("a circle is told without those who merely wait for it, from its lowest rank on",
          "[invariants]") {
  Step step;
  step.collective(0, 9);  // waits for rank 3, which never gets there
  step.collective(3, 7);
  step.collective(3, 8);
  step.collective(3, 9);
  step.collective(1, 8);
  step.collective(1, 7);
  CHECK(step.circle() == Ranks{1, 3});
}

TEST_CASE("whoever waits for a rank that is not in the trace waits in no circle", "[invariants]") {
  Step step;
  step.receive(9, 0);
  step.send(0, 1);
  step.receive(0, 1);
  CHECK(step.circle().empty());
}

TEST_CASE("what was sent in one step is received in a later one", "[invariants]") {
  Step step;
  step.send(0, 1);
  step.end();
  step.receive(0, 1);
  step.send(1, 0);
  step.receive(1, 0);
  step.send(0, 1);
  CHECK(step.circle().empty());
  step.end();
  CHECK(step.circle().empty());
}
