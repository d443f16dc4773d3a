"""Episodes: from one whole network into trouble, again and again. `python -m tests.simulation.gateways.episodes 0 300`

Random faults (`hostile.py`) rarely find a network that is whole, so that splits in which both halves stay connected,
members claimed by two rings and halves of two minds are rare there. Here everything is healed first; then come a few
packets of which most members lack some, a split between gateways, and one more fault or two while processes install
what they agreed on, each in its own time.
"""

from __future__ import annotations

import sys
from collections import Counter

from ordercast.order.gateways.items import NOBODY_ELSE, Processes, TopologyItem
from tests.simulation.gateways.hostile import Run
from tests.simulation.gateways.ideal import Host, World

EPISODES = 8
TURNS_MAX = 14  # between two faults of one episode
PATIENCE = 50  # turns until a merge is under way


class Episodes(Run):
    """One run of several episodes."""

    safe_share = 0.6
    rounds_max = 100

    def __init__(self, seed: int, world: type[World] = World, steps: int = EPISODES) -> None:
        super().__init__(seed, world, steps)

    def _chaos(self) -> None:
        for _ in range(self.steps):
            self._heal()
            if not self._settle():
                self.errors.append("not settled before an episode")
                return
            self._episode()

    def _heal(self) -> None:
        for key in self.world.cells:
            self.world.cells[key] = 0
        self.world.break_rings()

    def _episode(self) -> None:
        rng = self.rng
        self._some_traffic(rng.randrange(0, 4))
        for _ in range(rng.choice((1, 1, 2, 2, 3, 4))):
            self._trouble()
            self._turns(rng.randrange(0, TURNS_MAX))
            if rng.random() < 0.3:
                self._half_a_merge()

    def _half_a_merge(self) -> None:
        """Let everybody come together, and tear a ring apart when some of its members have marked, or have heard what
        one side has to say."""
        rng, world = self.rng, self.world
        self._heal()
        for domain in self.domains:
            world.reform(domain, 0)
        has_come = rng.choice((_has_marks, _has_topologies, _has_all_topologies, _has_all_topologies))
        for _ in range(PATIENCE):
            self._lossy_turn(rng.choice((0.4, 0.9)))
            self._installations(0.6)
            ripe = sorted({domain for host in world.alive for domain in host.domains if has_come(host, domain)})
            if ripe and rng.random() < 0.4:
                self._tear(rng.choice(ripe))
                return

    def _some_traffic(self, turns: int) -> None:
        rng, world = self.rng, self.world
        for host in world.alive:
            for _ in range(rng.choice((0, 0, 1, 2))):
                self._send(host)
        for _ in range(turns):
            self._lossy_turn(rng.choice((0.1, 0.4)))
        for host in rng.sample(world.alive, 2):
            self._send(host)

    def _lossy_turn(self, receiving: float, asleep: Processes = NOBODY_ELSE) -> None:
        """Let everybody do a little, and receive less; the order of some may be asleep."""
        rng, world = self.rng, self.world
        for host in world.alive:
            for domain in host.domains:
                if rng.random() < 0.6:
                    world.visit(host, domain, rng.randrange(1, 5))
                if rng.random() < receiving:
                    world.receive(host, domain)
                if rng.random() < 0.5:
                    world.deliver(host, domain)
            if rng.random() < 0.6 and host.id not in asleep:
                host.step()

    def _turns(self, turns: int) -> None:
        rng, world = self.rng, self.world
        receiving, installing = rng.choice((0.1, 0.4, 0.8)), rng.choice((0.1, 0.3))
        for _ in range(turns):
            self._lossy_turn(receiving)
            self._installations(installing)
            if rng.random() < 0.3:
                self._notice(rng.choice(self.domains))
            if rng.random() < 0.2:
                self._send(rng.choice(world.alive))

    def _installations(self, chance: float) -> None:
        for host in self.world.alive:
            for domain in list(host.attempts):
                if self.rng.random() < chance:
                    self.world.install(host, domain)

    def _trouble(self) -> None:
        rng, world = self.rng, self.world
        domain = rng.choice(self.domains)
        what = rng.random()
        if what < 0.65:
            self._tear(domain)
            return
        if what < 0.75 and len(world.alive) > 3:
            self._replace(rng.choice(world.alive))
        elif what < 0.85:
            self._heal()
        if rng.random() < 0.7:
            for cell in (0, 1):
                world.reform(domain, cell)

    def _tear(self, domain: int) -> None:
        """Let a domain fall apart; mostly both sides agree on new rings at once."""
        rng, world = self.rng, self.world
        hosts = [host for host in world.alive if domain in host.domains]
        first = self._half(hosts)
        if rng.random() < 0.6:
            self._last_packets(domain, hosts)
        for host in hosts:
            world.cells[domain, host.id] = host.id not in first
        world.break_rings()
        if rng.random() < 0.7:
            for cell in (0, 1):
                world.reform(domain, cell)

    def _last_packets(self, domain: int, hosts: list[Host]) -> None:
        """Let some send what only some receive."""
        for host in hosts:
            if self.rng.random() < 0.5:
                self._send(host)
                self.world.visit(host, domain, 4)
        for host in hosts:
            if self.rng.random() < 0.4:
                self.world.receive(host, domain)

    def _half(self, hosts: list[Host]) -> Processes:
        """Return those on one side of a cut: with a gateway on each side, if there are two."""
        rng = self.rng
        gateways = [host for host in hosts if len(host.domains) > 1]
        rng.shuffle(gateways)
        rest = [host for host in hosts if host not in gateways[:2]]
        return frozenset(host.id for host in (*gateways[:1], *(host for host in rest if rng.random() < 0.5)))

    def _replace(self, host: Host) -> None:
        """Let a host crash, and come back as another process."""
        host.is_alive = False
        self.world.break_rings()
        new = self.world.add(host.domains)
        for domain in new.domains:
            self.world.cells[domain, new.id] = self.world.cells[domain, host.id]


def _has_marks(host: Host, domain: int) -> bool:
    flush = host.network.merging.flushes.get(domain)
    return flush is not None and bool(flush.marks)


def _has_topologies(host: Host, domain: int) -> bool:
    flush = host.network.merging.flushes.get(domain)
    return flush is not None and bool(flush.topologies)


def _has_all_topologies(host: Host, domain: int) -> bool:
    """Whether both sides have spoken on the ring, and the host does not know it."""
    flush, log = host.network.merging.flushes.get(domain), host.world.rings[host.rings[domain]].log
    said = sum(packet.carried is not None and isinstance(packet.carried.item, TopologyItem) for packet in log)
    return flush is not None and flush.tick is not None and said >= len(flush.halves)


def main(first: int, last: int) -> int:
    """Judge many seeds; return how many are bad."""
    bad = 0
    counts: Counter[str] = Counter()
    for seed in range(first, last):
        run = Episodes(seed)
        errors = run.judge()
        counts.update(run.counts())
        if errors:
            bad += 1
            sys.stdout.write(f"{seed}: {[run.name, *errors[:2]]}\n")
            sys.stdout.flush()
    lines = [f"{bad} bad of {last - first}", *(f"{count:8} {what}" for what, count in sorted(counts.items()))]
    sys.stdout.write("\n".join(lines) + "\n")
    return bad


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])) > 0)
