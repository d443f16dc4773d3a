"""Hostile runs of the order of a network: `python -m tests.simulation.gateways.hostile 0 300` judges seeds 0 to 299."""

from __future__ import annotations

import random
import sys
import traceback
from collections import Counter
from hashlib import blake2b

from ordercast.model.ids import ProcessId
from ordercast.order.gateways.items import EVERYTHING, NOBODY_ELSE, Processes
from tests.simulation.gateways.ideal import Host, Message, Native, World
from tests.simulation.gateways.judges import verdict

# Domains, attachments of gateways, attachments of others.
Drawing = tuple[tuple[int, ...], tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]

TOPOLOGIES: dict[str, Drawing] = {
    "two": ((1, 2), ((1, 2),), ((1,), (1,), (2,), (2,))),
    "parallel": ((1, 2), ((1, 2), (1, 2)), ((1,), (1,), (2,), (2,))),
    "line": ((1, 2, 3), ((1, 2), (2, 3)), ((1,), (2,), (3,))),
    "cycle": ((1, 2, 3), ((1, 2), (2, 3), (1, 3)), ((1,), (2,), (3,), (1,))),
    "double line": ((1, 2, 3), ((1, 2), (1, 2), (2, 3), (2, 3)), ((1,), (2,), (3,))),
    "star": ((1, 2, 3, 4), ((1, 2), (1, 3), (1, 4)), ((1,), (2,), (3,), (4,))),
    "hub": ((1, 2, 3), ((1, 2, 3), (1, 2)), ((1,), (2,), (3,))),
}


GROUPS = 8  # in networks that filter


class Filtering(World):
    """A network whose gateways do not carry what nobody wants."""

    is_filtering = True


class Sleepy(Filtering):
    """A network that filters, some of whose processes are far behind in the order."""

    sleepers = frozenset((ProcessId(1), ProcessId(3), ProcessId(8), ProcessId(11)))


class Run:
    """One run: a world, and what happens to it."""

    safe_share = 0.4  # of all messages
    rounds_max = 600  # in which all have come together, or never will
    topologies = TOPOLOGIES

    def __init__(self, seed: int, world: type[World] = World, steps: int = 700) -> None:
        self.rng = random.Random(seed * 7919 + 1)
        self.world = world(seed)
        self.name = self.rng.choice(sorted(self.topologies))
        self.domains, gateways, others = self.topologies[self.name]
        for domains in (*gateways, *others):
            self.world.add(domains)
        self.messages = 0
        self.steps = steps
        self.errors: list[str] = []

    def judge(self) -> list[str]:
        """Run, and return what is wrong."""
        try:
            self._chaos()
            if not self._calm():
                self.errors.append("not settled")
        except AssertionError as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            return [f"assertion at {where.name}: {error}"]
        self.errors += verdict(self.world)
        return self.errors

    def counts(self) -> Counter[str]:
        """Return what occurred, at how many processes."""
        counts = Counter(self.world.counts)
        for host in self.world.hosts.values():
            counts.update({what.value: count for what, count in host.network.known.occurred.items()})
        return counts

    def digest(self) -> str:
        """Return a digest of all that was delivered, everywhere."""
        text = "\n".join(
            f"{host.id} {event.stamp} {event.body.hex() if isinstance(event, Message) else sorted(event.transitional)}"
            for host in self.world.hosts.values()
            for event in host.events
        )
        return blake2b(text.encode("ascii"), digest_size=8).hexdigest()

    def say_more(self, rounds: int) -> bool:
        """Let every host send a message in each of several rounds; return whether all were delivered."""
        for _ in range(rounds):
            for host in self.world.alive:
                self._send(host)
            if not self._settle():
                return False
        return True

    def idle(self, turns: int) -> None:
        """Let the rings turn, with nothing to send."""
        for _ in range(turns):
            self._turn()

    def _send(self, host: Host) -> None:
        self.messages += 1
        domain = self.rng.choice(host.domains)
        mask = EVERYTHING
        if self.world.is_filtering and self.rng.random() < 0.9:
            mask = 1 << self.rng.randrange(GROUPS)
        host.natives[domain].append(Native(b"m%d" % self.messages, self.rng.random() < self.safe_share, mask))

    def _turn(self) -> None:
        rng, world = self.rng, self.world
        for host in world.alive:
            for domain in host.domains:
                if rng.random() < 0.5:
                    world.visit(host, domain, rng.randrange(1, 5))
                if rng.random() < 0.7:
                    world.receive(host, domain)
                if rng.random() < 0.5:
                    world.deliver(host, domain)
                if rng.random() < 0.2:
                    world.tell_lowest(domain, host)
            if rng.random() < (0.5 if host.id not in world.sleepers else 0.03):
                host.step()

    def _chaos(self) -> None:
        rng, world = self.rng, self.world
        chaos = rng.choice((0.03, 0.06, 0.12))
        for domain in self.domains:
            world.reform(domain, 0)
        for _ in range(self.steps):
            self._turn()
            alive = world.alive
            if rng.random() < 0.4:
                for _ in range(rng.choice((1, 1, 3))):
                    self._send(rng.choice(alive))
            for host in alive:
                for domain in list(host.attempts):
                    if rng.random() < 0.25:
                        world.install(host, domain)
            if world.is_filtering and rng.random() < 0.05:
                rng.choice(alive).want(1 << rng.randrange(GROUPS) | 1 << rng.randrange(GROUPS))
            if rng.random() < 0.015:
                rng.choice(alive).network.hold(
                    rng.choice(((), (), ("its queue is full",), ("its application is behind",)))
                )
            if rng.random() < chaos:
                self._fault(alive)
            if rng.random() < chaos * 2:
                self._notice(rng.choice(self.domains))

    def _fault(self, alive: list[Host]) -> None:
        rng, world = self.rng, self.world
        what, domain = rng.random(), rng.choice(self.domains)
        hosts = [host for host in alive if domain in host.domains]
        if what < 0.6:
            for host in hosts:
                world.cells[domain, host.id] = rng.randrange(2) if what < 0.35 else 0
            world.break_rings()
        elif 0.75 <= what < 0.85 and len(alive) > 3:
            host = rng.choice(alive)
            host.is_alive = False
            world.break_rings()
            if rng.random() < 0.8 or len(host.domains) > 1:
                new = world.add(host.domains)
                for each in new.domains:
                    world.cells[each, new.id] = rng.randrange(2)
        else:
            world.reform(domain, rng.randrange(2))

    def _notice(self, domain: int) -> None:
        """Let the rings of a domain notice what is wrong."""
        world = self.world
        for cell in (0, 1):
            hosts = [host for host in world.alive if domain in host.domains and world.cells[domain, host.id] == cell]
            rings = [world.rings[host.rings[domain]] for host in hosts]
            if any(ring.is_broken or ring.members != frozenset(host.id for host in hosts) for ring in rings):
                world.reform(domain, cell)

    def _calm(self) -> bool:
        """Heal everything; return whether all come together, before and after one more message of each."""
        for key in self.world.cells:
            self.world.cells[key] = 0
        self.world.break_rings()
        for host in self.world.alive:
            host.network.hold(())
        return self._settle() and self.say_more(1)

    def _settle(self) -> bool:
        world = self.world
        for _ in range(self.rounds_max):
            for domain in self.domains:
                hosts = [host for host in world.alive if domain in host.domains]
                if not any(domain in host.attempts for host in hosts) and not world.is_formed(domain):
                    world.reform(domain, 0)
            self._round()
            if self._is_settled():
                return True
        return False

    def _round(self, asleep: Processes = NOBODY_ELSE) -> None:
        """Let everybody do all that it can, but those whose order sleeps."""
        rng, world = self.rng, self.world
        for host in world.alive:
            for domain in host.domains:
                attempt = host.attempts.get(domain)
                if attempt is not None and (world.rings[attempt.ring].is_broken or rng.random() < 0.6):
                    world.install(host, domain)
                world.visit(host, domain, 50)
        for host in world.alive:
            for domain in host.domains:
                for _ in range(10):
                    world.receive(host, domain)
                world.deliver(host, domain, is_all=True)
                world.tell_lowest(domain, host)
            if host.id not in asleep:
                host.step()

    def _is_settled(self) -> bool:
        world = self.world
        alive = frozenset(host.id for host in world.alive)
        for host in world.alive:
            network = host.network
            if any(network.forwarding.queues[domain] or host.natives[domain] for domain in host.domains):
                return False
            if (
                host.attempts
                or host.view().is_provisional
                or host.view().members != alive
                or any(network.known.streams[ring].runs for ring in network.known.parts)
            ):
                return False
            rings = [world.rings[host.rings[domain]] for domain in host.domains]
            if any(ring.delivered[host.id] != len(ring.log) for ring in rings):
                return False
        return len({host.view().id for host in world.alive}) == 1


def main(first: int, last: int, world: type[World]) -> int:
    """Judge many seeds; return how many are bad."""
    bad = 0
    counts: Counter[str] = Counter()
    for seed in range(first, last):
        run = Run(seed, world)
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
    kinds = {"plain": World, "filtering": Filtering, "sleepy": Sleepy}
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), kinds[(*sys.argv[3:], "plain")[0]]) > 0)
