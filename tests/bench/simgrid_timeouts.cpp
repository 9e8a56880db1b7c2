// usage: simgrid_timeouts N      one SimGrid actor that sleeps N times, one after another
//
// The bench compiles it where SimGrid is installed; our own build does not.
#include <cstdlib>
#include <simgrid/s4u.hpp>

int main(int argc, char** argv) {
  simgrid::s4u::Engine engine(&argc, argv);
  const long n = argc > 1 ? std::atol(argv[1]) : 0;
  auto* zone = simgrid::s4u::create_full_zone("zone");
  auto* host = zone->create_host("host", 1e9);
  zone->seal();
  simgrid::s4u::Actor::create("sleeper", host, [n] {
    for (long i = 0; i < n; ++i)
      simgrid::s4u::this_actor::sleep_for(1);
  });
  engine.run();
  return simgrid::s4u::Engine::get_clock() == static_cast<double>(n) ? 0 : 1;
}
