"""What can go wrong, when, and to whom. Scripted by hand, or drawn from the seed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ordercast.model.rng import Rng


class FaultKind(Enum):
    PARTITION = "partition"  # `groups` hear only themselves; other hosts form one more group
    CUT = "cut"  # the directed links `links` are dead
    HEAL = "heal"  # all links work again, nobody is deaf
    CRASH = "crash"  # `node` dies, its disk stays
    CRASH_BEFORE_WRITE = "crash before write"  # at its next write, nothing of which reaches the disk
    CRASH_DURING_WRITE = "crash during write"  # at its next write, which may or may not have reached the disk
    CRASH_AFTER_WRITE = "crash after write"  # at its next write, which is on the disk, unconfirmed
    LOSE_DISK = "lose disk"  # `node` dies, and its disk with it
    FAIL_DISK = "fail disk"  # nothing that `node` writes reaches its disk any more, healed or not
    MEND_DISK = "mend disk"  # it works again, and what waits is written
    RESTART = "restart"  # `node` starts again, if it is dead
    PAUSE = "pause"  # `node` does nothing for `duration_ns`, then finds what piled up
    DEAFEN = "deafen"  # `node` receives tokens and Joins, but no data
    LEAVE = "leave"  # `node` leaves in order
    LOSE_TOKEN = "lose token"  # everything on token lanes is lost for `duration_ns`
    FLOOD = "flood"  # `node` can receive only a few packets at a time for `duration_ns`
    DOWN = "down"  # `network` carries nothing
    LOSSY = "lossy"  # `network` loses packets, each with `chance`
    SLOW = "slow"  # `network` takes `duration_ns` longer for every hop
    MEND = "mend"  # `network` works again
    RELOAD = "reload"  # `node` gets a node list of this `version`, with the hosts `listed`


@dataclass(frozen=True, slots=True)
class Fault:
    at: int  # nanoseconds from the start
    kind: FaultKind
    node: int = 0
    groups: tuple[tuple[int, ...], ...] = ()
    links: tuple[tuple[int, int], ...] = ()
    duration_ns: int = 0
    network: int | None = None  # None: all of them
    chance: float = 0.0
    version: int = 0
    listed: tuple[int, ...] = ()
    variant: str = ""  # of the node list: ordered, or other than that of the others

    def problem(self, nodes: int, networks: int = 1) -> str | None:
        """What makes this fault impossible in a cluster of that size, in words."""
        named = {
            self.node,
            *self.listed,
            *(n for group in self.groups for n in group),
            *(n for link in self.links for n in link),
        }
        strangers = sorted(n for n in named if not 0 <= n < nodes)
        if strangers:
            return f"fault {self.kind.value!r} names node {strangers[0]}, there are 0..{nodes - 1}"
        if self.at < 0 or self.duration_ns < 0:
            return f"fault {self.kind.value!r} has a time below zero"
        if self.network is not None and not 0 <= self.network < networks:
            return f"fault {self.kind.value!r} names network {self.network}, there are 0..{networks - 1}"
        return None

    def __str__(self) -> str:
        return self._text() if self.network is None else f"{self._text()} on net{self.network}"

    def _text(self) -> str:
        match self.kind:
            case FaultKind.PARTITION:
                return "partition " + " | ".join(" ".join(f"n{n}" for n in group) for group in self.groups)
            case FaultKind.CUT:
                return "cut " + ", ".join(f"n{a}→n{b}" for a, b in self.links)
            case FaultKind.HEAL | FaultKind.DOWN | FaultKind.MEND:
                return f"{self.kind.value}"
            case FaultKind.LOSSY:
                return f"lossy {self.chance:.0%}"
            case FaultKind.SLOW:
                return f"slow by {self.duration_ns / 1e6:g} ms"
            case FaultKind.LOSE_TOKEN:
                return f"lose token for {self.duration_ns / 1e6:.0f} ms"
            case FaultKind.PAUSE | FaultKind.FLOOD:
                return f"{self.kind.value} n{self.node} for {self.duration_ns / 1e6:.0f} ms"
            case FaultKind.RELOAD:
                names = " ".join(f"n{node}" for node in self.listed)
                return f"reload n{self.node}: version {self.version} of {names}{self.variant and ', ' + self.variant}"
            case _:
                return f"{self.kind.value} n{self.node}"


_COMMON = (
    FaultKind.PARTITION,
    FaultKind.PARTITION,
    FaultKind.CUT,
    FaultKind.HEAL,
    FaultKind.CRASH,
    FaultKind.CRASH_BEFORE_WRITE,
    FaultKind.CRASH_DURING_WRITE,
    FaultKind.CRASH_AFTER_WRITE,
    FaultKind.LOSE_DISK,
    FaultKind.RESTART,
    FaultKind.RESTART,
    FaultKind.PAUSE,
    FaultKind.DEAFEN,
    FaultKind.LEAVE,
    FaultKind.LOSE_TOKEN,
    FaultKind.LOSE_TOKEN,
    FaultKind.FLOOD,
)


def random_faults(count: int, nodes: int, until_ns: int, rng: Rng) -> tuple[Fault, ...]:
    """Some come in bursts, because failures during recovery are the ones that matter."""
    faults: list[Fault] = []
    at = 0
    for _ in range(count):
        gap = until_ns // (2 * count) if rng.random() < 0.5 else until_ns // 20
        at = at + rng.randrange(0, gap + 1) if faults and rng.random() < 0.5 else rng.randrange(0, until_ns)
        faults.append(_random_fault(min(at, until_ns), nodes, rng))
    return tuple(sorted(faults, key=lambda fault: fault.at))


def ambush(at: int, node: int, nodes: int, rng: Rng) -> Fault:
    """A fault for the worst moment: the token vanishes, the network splits, or the process that just acted dies."""
    chance = rng.random()
    if chance < 0.4:
        return Fault(at, FaultKind.LOSE_TOKEN, duration_ns=rng.randrange(20_000_000, 120_000_000))
    if chance < 0.8:
        return Fault(at, FaultKind.PARTITION, groups=_random_groups(nodes, rng))
    return Fault(at, FaultKind.CRASH, node=node)


def cascade(count: int, nodes: int, rng: Rng) -> tuple[Fault, ...]:
    """Cuts and repairs by turns: some when all has settled, some when the one before is still being digested."""
    faults: list[Fault] = []
    at = rng.randrange(120_000_000, 250_000_000)
    for _ in range(count):
        chance = rng.random()
        if faults and faults[-1].kind is not FaultKind.HEAL and chance < 0.5:
            faults.append(Fault(at, FaultKind.HEAL))
        elif chance < 0.9:
            faults.append(Fault(at, FaultKind.PARTITION, groups=_random_groups(nodes, rng)))
        else:
            node = rng.randrange(0, nodes)
            faults.append(Fault(at, FaultKind.CRASH, node=node))
            faults.append(Fault(at + rng.randrange(1, 100_000_000), FaultKind.RESTART, node=node))
        at += rng.randrange(150_000_000, 300_000_000) if rng.random() < 0.5 else rng.randrange(1_000_000, 130_000_000)
    return tuple(sorted(faults, key=lambda fault: fault.at))


def failing_disks(nodes: int, until_ns: int, rng: Rng) -> tuple[Fault, ...]:
    """Disks of one host, of some or of all fail, together or one after the other; half of them for ever."""
    faults: list[Fault] = []
    is_together, at = rng.random() < 0.5, rng.randrange(0, until_ns // 2)
    for node in range(nodes) if rng.random() < 0.4 else sorted({rng.randrange(0, nodes) for _ in range(nodes // 2)}):
        begins = at if is_together else rng.randrange(0, until_ns)
        faults.append(Fault(begins, FaultKind.FAIL_DISK, node=node))
        if rng.random() < 0.5:
            faults.append(Fault(rng.randrange(begins, until_ns) + 1, FaultKind.MEND_DISK, node=node))
    return tuple(sorted(faults, key=lambda fault: fault.at))


def rotation(count: int, nodes: int, rng: Rng) -> tuple[Fault, ...]:
    """Cuts in two, one after the other: who is in the larger half changes, so that it always has some of the last."""
    faults: list[Fault] = []
    at = rng.randrange(120_000_000, 250_000_000)
    for _ in range(count):
        chance = rng.random()
        node = rng.randrange(0, nodes)
        if chance < 0.12:
            faults.append(Fault(at, FaultKind.CRASH, node=node))
            faults.append(Fault(at + rng.randrange(1, 60_000_000), FaultKind.RESTART, node=node))
        elif chance < 0.35:
            faults.append(Fault(at, FaultKind.HEAL))
        else:
            faults.append(Fault(at, FaultKind.PARTITION, groups=halves(nodes, rng)))
        at += rng.randrange(120_000_000, 300_000_000) if rng.random() < 0.7 else rng.randrange(1_000_000, 130_000_000)
    return tuple(sorted(faults, key=lambda fault: fault.at))


def halves(nodes: int, rng: Rng) -> tuple[tuple[int, ...], ...]:
    """A minority of at least one, and the others."""
    names = list(range(nodes))
    size = rng.randrange(1, max(2, (nodes + 1) // 2))
    minority = sorted(names.pop(rng.randrange(0, len(names))) for _ in range(size))
    return tuple(minority), tuple(names)


def muted(node: int, nodes: int) -> tuple[tuple[int, int], ...]:
    """The links on which nobody hears this one, which hears all."""
    return tuple((node, other) for other in range(nodes) if other != node)


def _random_fault(at: int, nodes: int, rng: Rng) -> Fault:
    kind = _COMMON[rng.randrange(0, len(_COMMON))]
    node = rng.randrange(0, nodes)
    duration = rng.randrange(20_000_000, 250_000_000)
    if kind is FaultKind.PARTITION:
        return Fault(at, kind, groups=_random_groups(nodes, rng))
    if kind is FaultKind.CUT:
        return Fault(at, kind, links=_random_links(nodes, rng))
    return Fault(at, kind, node=node, duration_ns=duration)


def _random_groups(nodes: int, rng: Rng) -> tuple[tuple[int, ...], ...]:
    sides = rng.randrange(2, 4)
    groups: list[list[int]] = [[] for _ in range(sides)]
    for node in range(nodes):
        groups[rng.randrange(0, sides)].append(node)
    return tuple(tuple(group) for group in groups if group)


def _random_links(nodes: int, rng: Rng) -> tuple[tuple[int, int], ...]:
    """A few links, one way or both ways."""
    links: set[tuple[int, int]] = set()
    for _ in range(rng.randrange(1, max(2, nodes))):
        one = rng.randrange(0, nodes)
        other = (one + rng.randrange(1, max(2, nodes))) % nodes
        links.add((one, other))
        if rng.random() < 0.5:
            links.add((other, one))
    return tuple(sorted(links))
