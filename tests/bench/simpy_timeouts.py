"""usage: simpy_timeouts.py N      one simpy process that waits for N timeouts, one after another

Exit code 3: there is no simpy here. Debian 12's python3-simpy is SimPy 2, PyPI's simpy is 3 or 4.
"""

import sys


def run_simpy(simpy, n):
    def process(env):
        for _ in range(n):
            yield env.timeout(1)

    env = simpy.Environment()
    env.process(process(env))
    env.run()
    assert env.now == n


def run_simpy2(simulation, n):
    class Sleeper(simulation.Process):
        def sleep(self):
            for _ in range(n):
                yield simulation.hold, self, 1

    sim = simulation.Simulation()
    sim.initialize()
    sleeper = Sleeper(sim=sim)
    sim.activate(sleeper, sleeper.sleep())
    sim.simulate(until=n + 1)
    assert sim.now() == n


def main():
    n = int(sys.argv[1])
    try:
        import simpy
    except ImportError:
        pass
    else:
        return run_simpy(simpy, n)
    try:
        import SimPy.Simulation
    except ImportError:
        return 3
    return run_simpy2(SimPy.Simulation, n)


sys.exit(main())
