"""Twins: hosts that stay together on a ring all the time, with the same companions, must not differ in anything.

`python -m tests.simulation.gateways.twins 0 300` judges seeds 0 to 299.

Views with different ids look like a split to the other judges, so that nobody sees when two who never parted go through
different ones. Two of one drawing often stay together if trouble is aimed at others: a ring on which there are several
gateways splits, merges and forms anew, while somebody's order is asleep, somebody receives nothing or is handed up
nothing on one ring, and members are lost on another one. Each episode begins with one whole network and ends with one.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations, zip_longest
from typing import NamedTuple

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.items import NOBODY_ELSE, Processes
from ordercast.order.gateways.views import NetworkView
from tests.simulation.gateways.episodes import Episodes
from tests.simulation.gateways.hostile import Drawing
from tests.simulation.gateways.ideal import Host, Message, World

EPISODES = 6
CLOCK_LEAP_MAX = 60

SHAPES: dict[str, Drawing] = {
    "parallel": ((1, 2), ((1, 2), (1, 2)), ((1,), (1,), (2,), (2,))),
    "two gateways": ((1, 2), ((1, 2), (1, 2)), ((1,), (1,))),  # the second ring has nobody else
    "three gateways": ((1, 2), ((1, 2), (1, 2), (1, 2)), ((1,), (1,), (2,))),
    "hub": ((1, 2, 3), ((1, 2, 3), (1, 2)), ((1,), (1,), (3,), (3,))),
    "hubs": ((1, 2, 3), ((1, 2, 3), (1, 2, 3)), ((1,), (1,), (3,))),
    "circle": ((1, 2, 3), ((1, 2), (2, 3), (1, 3)), ((1,), (1,), (2,), (2,))),
    "bridge": ((1, 2, 3), ((1, 2), (1, 2), (2, 3)), ((1,), (1,), (3,), (3,))),
}


class Step(NamedTuple):
    """A ring that a host has installed, and with whom it came there."""

    ring: ConfigurationId
    companions: Processes


class Watched(World):
    """A network in which hosts may be deaf or slow on a ring, and each step of each host is known."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.deaf: set[tuple[ProcessId, int]] = set()  # who receives nothing on which domain
        self.slow: set[tuple[ProcessId, int]] = set()  # whose ring on which domain hands up nothing
        self.steps: dict[tuple[ProcessId, int], list[Step]] = defaultdict(list)
        self.begin: dict[ProcessId, int] = {}  # how many events came before all were last together

    def mark(self) -> None:
        """Note that all are together: whoever takes the same steps from here on is a twin."""
        self.steps.clear()
        self.begin = {host.id: len(host.events) for host in self.alive}

    def receive(self, host: Host, domain: int) -> None:
        if (host.id, domain) not in self.deaf:
            super().receive(host, domain)

    def deliver(self, host: Host, domain: int, is_all: bool = False) -> None:
        if (host.id, domain) not in self.slow:
            super().deliver(host, domain, is_all)

    def install(self, host: Host, domain: int) -> None:
        attempt = host.attempts.get(domain)
        if host.is_alive and attempt is not None:
            self.steps[host.id, domain].append(Step(attempt.ring, attempt.companions))
        super().install(host, domain)

    def twins(self) -> Iterator[tuple[Host, Host]]:
        """Yield the pairs of hosts that have been together on a ring since all were."""
        hosts = [host for host in self.alive if host.id in self.begin]
        for one, other in combinations(hosts, 2):
            if any(
                self.steps[one.id, domain] == self.steps[other.id, domain]
                for domain in one.domains
                if domain in other.domains
            ):
                yield one, other


def same_at_twins(world: Watched) -> Iterator[str]:
    """Twins go through the same views, and deliver the same messages in each: in the end, when nobody is late."""
    for one, other in world.twins():
        one_events, other_events = (map(_told, host.events[world.begin[host.id] :]) for host in (one, other))
        for its, others in zip_longest(one_events, other_events):
            if its != others:
                yield f"twins {one.id} and {other.id} differ: {its} and {others}"
                break
            world.counts["events that twins share"] += 1


def _told(event: Message | NetworkView) -> tuple[object, ...]:
    if isinstance(event, Message):
        return event.stamp, event.body
    return event.stamp, event.id, sorted(event.members)


class Twins(Episodes):
    """One run of several episodes, each aimed at one ring of gateways and at one other ring."""

    topologies = SHAPES
    world: Watched

    def __init__(self, seed: int, world: type[Watched] = Watched, steps: int = EPISODES) -> None:
        super().__init__(seed, world, steps)
        self._asleep: Processes = NOBODY_ELSE

    def judge(self) -> list[str]:
        return super().judge() or list(same_at_twins(self.world))

    def _episode(self) -> None:
        rng, world = self.rng, self.world
        self.errors += same_at_twins(world)
        world.mark()
        ring = rng.choice([domain for domain in self.domains if len(self._gateways(domain)) > 1])
        other = rng.choice([domain for domain in self.domains if domain != ring])
        if rng.random() < 0.85:
            self._tear(ring)
            self._go_on()
            if rng.random() < 0.3:
                self._impair(ring, other)
            self._together(ring)
        self._impair(ring, other)
        self._go_on()
        self._hurry()
        self._asleep = self._sleepers(ring)
        self._lose(other)
        if rng.random() < 0.8:
            self._recover()
        self._again(ring)
        if rng.random() < 0.3:
            self._lose(rng.choice(self.domains))
        self._recover()
        self._asleep = NOBODY_ELSE
        if rng.random() < 0.5:
            self._go_on()

    def _sleepers(self, ring: int) -> Processes:
        """Return whose order is to sleep: mostly one who has a twin elsewhere."""
        rng, world = self.rng, self.world
        away = [host for host in world.alive if ring not in host.domains]
        hosts = away if rng.random() < 0.7 and away else world.alive
        return frozenset(host.id for host in rng.sample(hosts, rng.choice((1, 1, 2)) if len(hosts) > 1 else 1))

    def _gateways(self, domain: int) -> list[Host]:
        return [host for host in self.world.alive if domain in host.domains and len(host.domains) > 1]

    # Acts

    def _again(self, ring: int) -> None:
        """Let a ring of gateways form anew, whole or in halves, or nothing befall it."""
        what = self.rng.random()
        if what < 0.4:
            self._together(ring)
        elif what < 0.8:
            self._tear(ring)
        self._go_on()

    def _together(self, domain: int) -> None:
        """Let the hosts of a domain hear one another, and agree on a ring, which all install at once or some later."""
        world = self.world
        for host in world.alive:
            if domain in host.domains:
                world.cells[domain, host.id] = 0
        world.reform(domain, 0)
        for host in world.alive if self.rng.random() < 0.6 else ():
            world.install(host, domain)

    def _lose(self, domain: int) -> None:
        """Let a domain lose a gateway, which may go on elsewhere; or some of its members; or form anew."""
        rng, world = self.rng, self.world
        what = rng.random()
        if what < 0.6:
            lost = rng.choice(self._gateways(domain))
            for host in world.alive:
                if domain in host.domains:
                    world.cells[domain, host.id] = int(host is lost)
            world.break_rings()
        elif what < 0.75:
            self._tear(domain)
        elif what < 0.85:
            self._replace(rng.choice(self._gateways(domain)))
        if rng.random() < 0.8:
            for cell in (0, 1):
                world.reform(domain, cell)
        self._go_on()

    def _impair(self, ring: int, other: int) -> None:
        """Let some be deaf or slow: mostly one is deaf on the ring of gateways, so that a merge there does not end."""
        rng, world = self.rng, self.world
        if rng.random() < 0.7:
            world.deaf.add((rng.choice([host.id for host in world.alive if ring in host.domains]), ring))
        for impaired in (world.deaf, world.slow):
            if rng.random() < 0.3:
                host = rng.choice(world.alive)
                impaired.add((host.id, rng.choice(host.domains)))
        if rng.random() < 0.2:
            world.slow |= {(host.id, other) for host in world.alive if other in host.domains}

    def _recover(self) -> None:
        """Let all hear and be handed up everything."""
        self.world.deaf.clear()
        self.world.slow.clear()
        self._go_on()

    def _hurry(self) -> None:
        """Let somebody be ahead of the clocks of others, and say something."""
        rng = self.rng
        for host in rng.sample(self.world.alive, rng.choice((0, 1, 2))):
            host.raise_clock(host.clock + rng.randrange(1, CLOCK_LEAP_MAX))
            self._send(host)
        if rng.random() < 0.5:
            self._go_on()

    def _go_on(self) -> None:
        """Let everybody do as much as it can, or a little, for a while; those whose order sleeps only hear."""
        rng, world = self.rng, self.world
        does_all = rng.random() < 0.7
        for _ in range(rng.choice((0, 1, 3, 6, 12, 12, 20))):
            if does_all:
                self._round(self._asleep)
            else:
                self._lossy_turn(rng.choice((0.4, 0.9)), self._asleep)
                self._installations(0.3)
            if rng.random() < 0.15:
                self._send(rng.choice(world.alive))


def main(first: int, last: int) -> int:
    """Judge many seeds; return how many are bad."""
    bad = 0
    counts: Counter[str] = Counter()
    for seed in range(first, last):
        run = Twins(seed)
        errors = run.judge()
        counts.update(run.counts())
        if errors:
            bad += 1
            sys.stdout.write(f"{seed}: {[run.name, *errors[:2]]}\n")
        if errors or seed % 100 == 99:
            sys.stdout.write(f"{bad} bad of {seed + 1 - first}\n")
            sys.stdout.flush()
    lines = [f"{bad} bad of {last - first}", *(f"{count:8} {what}" for what, count in sorted(counts.items()))]
    sys.stdout.write("\n".join(lines) + "\n")
    return bad


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])) > 0)
