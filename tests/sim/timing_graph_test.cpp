#include "sim/timing_graph.hpp"

#include <catch2/catch.hpp>

using namespace remat;

TEST_CASE("TimingGraph gives each node the latest of what it waits for", "[sim]") {
  TimingGraph graph(4);
  graph.add({.waiter = 1, .awaited = 0, .time = 2, .kind = WaitKind::order});
  graph.add({.waiter = 2, .awaited = 0, .time = 5, .kind = WaitKind::needs});
  graph.add({.waiter = 2, .awaited = 1, .time = 4, .kind = WaitKind::order});
  graph.solve();
  REQUIRE(graph.is_solved());
  CHECK(graph.instant(0) == 0);
  CHECK(graph.instant(1) == 2);
  CHECK(graph.instant(2) == 6);
  CHECK(graph.instant(3) == 0);
  CHECK(graph.decisive(2)->awaited == 1);
  CHECK_FALSE(graph.decisive(3));
}

TEST_CASE("TimingGraph names the waits of a cycle, not those that lead to it", "[sim]") {
  TimingGraph graph(5);
  graph.add({.waiter = 1, .awaited = 2, .time = 1, .kind = WaitKind::needs});
  graph.add({.waiter = 2, .awaited = 0, .time = 1, .kind = WaitKind::needs});
  graph.add({.waiter = 2, .awaited = 3, .time = 1, .kind = WaitKind::order});
  graph.add({.waiter = 3, .awaited = 2, .time = 1, .kind = WaitKind::needs});
  graph.solve();
  CHECK_FALSE(graph.is_solved());
  CHECK(graph.has_instant(0));
  CHECK_FALSE(graph.has_instant(1));
  CHECK(graph.has_instant(4));
  const std::vector<TimingGraph::Wait> cycle = graph.cycle();
  REQUIRE(cycle.size() == 2);
  CHECK(cycle[0].awaited == cycle[1].waiter);
  CHECK(cycle[1].awaited == cycle[0].waiter);
}

TEST_CASE("TimingGraph tells a node that waits for itself", "[sim]") {
  TimingGraph graph(2);
  graph.add({.waiter = 0, .awaited = 1, .time = 0, .kind = WaitKind::order});
  graph.add({.waiter = 1, .awaited = 1, .time = 0, .kind = WaitKind::needs});
  graph.solve();
  REQUIRE(graph.cycle().size() == 1);
  CHECK(graph.cycle()[0].waiter == 1);
}
