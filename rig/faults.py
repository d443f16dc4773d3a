"""What can happen to a live cluster, drawn by chance: each fault begins at once and says how it ends.

`Faults` keeps the books: which cuts are in force, which processes are in trouble already. Whatever is drawn depends on
the seed and on what was drawn before, not on what the nodes do.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from ordercast.daemon.config.node import GROUP, PORT
from ordercast.wire.head import MAGIC
from rig.cluster import LiveCluster
from rig.hosts import Host
from rig.switch import Link

SIZES = (20, 100, 100, 1000, 3000, 20_000)
SERVICES = ("RELIABLE", "FIFO", "CAUSAL", "AGREED", "AGREED", "SAFE", "SAFE")
GARBAGE_COUNT = 1000


def nothing() -> None:
    pass


@dataclass(frozen=True)
class Fault:
    kind: str
    text: str
    lasts_s: float = 0.0
    end: Callable[[], None] = nothing


@dataclass(frozen=True, eq=False)
class Cut:
    side_a: list[Host]
    side_b: list[Host]
    one_way: bool
    segment: int | None  # None: all


class Faults:
    def __init__(self, cluster: LiveCluster, rng: Random) -> None:
        self._cluster, self._hosts, self._rng = cluster, cluster.hosts, rng
        self._cuts: list[Cut] = []
        self._in_trouble: set[Host] = set()  # killed, stopped, blocked, gone: left alone until that is over
        network = [self.partition, self.partition, self.deaf_pair, self.one_way_cut, self.loss, self.loss, self.narrow]
        process = [self.kill, self.kill, self.restart, self.stop, self.stop, self.block, self.leave, self.slow]
        other = [self.everybody, self.garbage, self.burst, self.burst]
        self._catalogue = [*network, *process, *other]
        self._gateways = [host for host in self._hosts if len(host.segments) > 1]
        if self._gateways:
            self._catalogue += [self.cut_ring, self.cut_ring, self.unplug, self.unplug, self.kill_gateway]
        if cluster.hosts.has_switch:
            self._catalogue += [self.disturb, self.disturb, self.disturb]

    def draw(self) -> Fault:
        """Begins one."""
        return self._rng.choice(self._catalogue)()

    # The network

    def partition(self) -> Fault:
        mixed = self._rng.sample(list(self._hosts), len(self._hosts))
        at = self._rng.randrange(1, len(mixed))
        return self._cut("cut", mixed[:at], mixed[at:])

    def deaf_pair(self) -> Fault:
        """Two who do not hear each other, and everybody else hears both."""
        one, two = self._rng.sample(list(self._hosts), 2)
        return self._cut("cut", [one], [two])

    def one_way_cut(self) -> Fault:
        source, *targets = self._rng.sample(list(self._hosts), self._rng.randint(2, len(self._hosts)))
        return self._cut("one-way cut", [source], targets, one_way=True)

    def cut_ring(self) -> Fault:
        """One LAN is cut in the middle; others may join its halves."""
        segment = self._rng.choice([one for one in range(self._hosts.segments) if len(self._on(one)) > 1])
        mixed = self._rng.sample(on := self._on(segment), len(on))
        at = self._rng.randrange(1, len(mixed))
        return self._cut("ring cut", mixed[:at], mixed[at:], segment=segment)

    def unplug(self) -> Fault:
        """A gateway loses one of its legs."""
        gateway = self._rng.choice(self._gateways)
        segment = self._rng.choice(gateway.segments)
        others = [host for host in self._on(segment) if host is not gateway]
        return self._cut("unplugged", [gateway], others, segment=segment)

    def _on(self, segment: int) -> list[Host]:
        return [host for host in self._hosts if segment in host.segments]

    def _cut(
        self, kind: str, side_a: list[Host], side_b: list[Host], one_way: bool = False, segment: int | None = None
    ) -> Fault:
        cut = Cut(side_a, side_b, one_way, segment)
        self._cuts.append(cut)
        self._hosts.cut(side_a, side_b, one_way=one_way, segment=segment)

        def mend() -> None:
            self._cuts.remove(cut)
            self._hosts.heal()
            for other in self._cuts:
                self._hosts.cut(other.side_a, other.side_b, one_way=other.one_way, segment=other.segment)

        where = "" if segment is None else f" on r{segment + 1}"
        text = f"{names(side_a)} {'→' if one_way else '|'} {names(side_b)}{where}"
        return Fault(kind, text, self._some(0.3, 5.0), mend)

    def loss(self) -> Fault:
        victims = self._several()
        probability = self._rng.choice((0.01, 0.05, 0.1, 0.3))
        port = self._rng.choice((None, None, PORT, PORT + 1))
        self._hosts.loss(victims, probability, port=port)
        which = {None: "everything", PORT: "data", PORT + 1: "tokens"}[port]
        return Fault(
            "loss",
            f"{probability:.0%} of {which} to {names(victims)}",
            self._some(0.5, 5.0),
            lambda: self._hosts.loss(victims, 0, port=port),
        )

    def narrow(self) -> Fault:
        victim, rate = self._rng.choice(self._hosts), self._rng.choice(("2mbit", "10mbit", "50mbit"))
        self._hosts.bandwidth(victim, rate)
        return Fault(
            "narrow link",
            f"{rate} at {names([victim])}",
            self._some(1.0, 5.0),
            lambda: self._hosts.bandwidth(victim, None),
        )

    def disturb(self) -> Fault:
        rng = self._rng
        link = Link(
            delay_ms=rng.choice((0, 1, 5, 30)),
            jitter_ms=rng.choice((0, 1, 10)),
            duplicate=rng.choice((0, 0.05, 0.3)),
            reorder=rng.choice((0, 0.05, 0.3)),
            corrupt=rng.choice((0, 0, 0.02)),
        )
        sources, targets = self._several(), self._several()
        self._hosts.disturb(link, sources, targets)
        text = (
            f"{names(sources)} → {names(targets)}: {link.delay_ms}–{link.delay_ms + link.jitter_ms} ms, "
            f"{link.reorder:.0%} late, {link.duplicate:.0%} twice, {link.corrupt:.0%} damaged"
        )
        return Fault("bad links", text, self._some(1.0, 6.0), lambda: self._hosts.disturb(Link(), sources, targets))

    # Processes

    def kill(self) -> Fault:
        return self._kill(self._untroubled())

    def kill_gateway(self) -> Fault:
        return self._kill([gateway for gateway in self._gateways if gateway not in self._in_trouble][:1])

    def _kill(self, victims: list[Host]) -> Fault:
        if not victims:
            return self.burst()
        forget = self._rng.random() < 0.3
        self._trouble(victims)
        self._cluster.kill(*victims)

        def back() -> None:
            self._start(victims, forget)
            self._in_trouble.difference_update(victims)

        text = f"{names(victims)}{', storage lost' if forget else ''}"
        return Fault("kill -9", text, self._some(0.0, 4.0), back)

    def restart(self) -> Fault:
        """Down and up again before anybody can notice."""
        victims = self._untroubled()[:1]
        self._cluster.kill(*victims)
        self._start(victims, forget=False)
        return Fault("restart", names(victims))

    def everybody(self) -> Fault:
        """The power fails. Who is in trouble already stays so."""
        victims = [host for host in self._hosts if host not in self._in_trouble]
        self._cluster.kill(*victims)
        self._start(victims, forget=False)
        return Fault("all restarted", names(victims))

    def stop(self) -> Fault:
        victims = self._trouble(self._untroubled())
        self._cluster.stop(*victims)

        def go_on() -> None:
            self._cluster.go_on(*victims)
            self._in_trouble.difference_update(victims)

        return Fault("SIGSTOP", names(victims), self._some(0.1, 5.0), go_on)

    def block(self) -> Fault:
        victims, seconds = self._trouble(self._untroubled()[:1]), self._some(0.05, 2.0)
        for host in victims:
            self._cluster.order(host, "block", seconds=seconds)
        return Fault("loop blocked", names(victims), seconds, lambda: self._in_trouble.difference_update(victims))

    def leave(self) -> Fault:
        victims = self._trouble(self._untroubled()[:1])
        self._cluster.leave(*victims)

        def back() -> None:
            self._start(victims, forget=False)
            self._in_trouble.difference_update(victims)

        return Fault("leave", names(victims), self._some(0.0, 3.0), back)

    def slow(self) -> Fault:
        victims = self._trouble(self._untroubled()[:1])
        for host in victims:
            self._cluster.order(host, "read", on=False)

        def read() -> None:
            for host in victims:
                self._cluster.order(host, "read", on=True)
            self._in_trouble.difference_update(victims)

        return Fault("application slow", names(victims), self._some(0.5, 4.0), read)

    # What is sent

    def garbage(self) -> Fault:
        source = self._rng.choice(self._hosts)
        targets = [(GROUP, PORT), *((host.address(), PORT + 1) for host in self._hosts)]
        with source.inside():
            sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with sending:
            for _ in range(GARBAGE_COUNT):
                packet = self._rng.choice((b"", MAGIC)) + self._rng.randbytes(self._rng.choice((0, 1, 72, 500, 1400)))
                try:
                    sending.sendto(packet, self._rng.choice(targets))
                except OSError:
                    continue  # its own link may be in trouble
        return Fault("garbage", f"{GARBAGE_COUNT} packets from {names([source])}")

    def burst(self) -> Fault:
        senders, size = self._several(), self._rng.choice((10, 100, 1400, 8000, 100_000))
        total = min(2000, 2_000_000 // size)
        able = [host for host in senders if host not in self._in_trouble]
        self._cluster.send(able, total=total, rate=None, sizes=(size,), services=SERVICES)
        return Fault("burst", f"{total:,} messages of {size:,} bytes from {names(able)}")

    # Chance

    def _start(self, hosts: list[Host], forget: bool) -> None:
        self._cluster.start(*hosts, forget=forget)
        self.traffic(hosts)

    def traffic(self, hosts: list[Host]) -> None:
        self._cluster.send(hosts, rate=40, sizes=SIZES, services=SERVICES)

    def _trouble(self, hosts: list[Host]) -> list[Host]:
        self._in_trouble.update(hosts)
        return hosts

    def _some(self, least: float, most: float) -> float:
        """Seconds; short ones as likely as long ones."""
        return least + (most - least) * self._rng.random() ** 2

    def _several(self) -> list[Host]:
        return sorted(self._rng.sample(list(self._hosts), self._rng.randint(1, len(self._hosts))), key=_number)

    def _untroubled(self) -> list[Host]:
        """One or two, or nobody if all are in trouble."""
        free = [host for host in self._hosts if host not in self._in_trouble]
        return self._rng.sample(free, min(len(free), self._rng.choice((1, 1, 1, 2))))


def names(hosts: list[Host]) -> str:
    return " ".join(f"n{host.number}" for host in sorted(hosts, key=_number)) or "nobody"


def _number(host: Host) -> int:
    return host.number
