"""What can go wrong, when, and to whom. Scripted by hand, or drawn from the seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from ordercast.model.rng import Rng
from ordercast.sim.topology import Attachments, segment_count, segments_of


class FaultKind(Enum):
    PARTITION = "partition"  # `groups` hear only themselves; other hosts form one more group
    CUT = "cut"  # the directed links `links` are dead
    HEAL = "heal"  # all links and attachments work again, nobody is deaf
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
    DOWN = "down"  # `network` or `segment` carries nothing
    LOSSY = "lossy"  # `network`, `segment` or `links` lose packets, each with `chance`
    SLOW = "slow"  # `network`, `segment` or `links` take `duration_ns` longer for every hop
    MEND = "mend"  # `network`, `segment` or `links` work again
    BLOCK = "block"  # what processes tell each other on links is lost on the directed `links`, all else passes
    DETACH = "detach"  # `node` neither sends nor receives on `segment`: it has lost that attachment
    ATTACH = "attach"  # `node` has the attachment again
    RELOAD = "reload"  # `node` gets a node list of this `version`, with the hosts `listed`


@dataclass(frozen=True, slots=True)
class Fault:
    at: int  # nanoseconds from the start
    kind: FaultKind
    node: int = 0
    groups: tuple[tuple[int, ...], ...] = ()
    links: tuple[tuple[int, int], ...] = ()
    duration_ns: int = 0
    network: int | None = None  # of a segment; None: all of them
    segment: int | None = None  # None: all of them
    chance: float = 0.0
    version: int = 0
    listed: tuple[int, ...] = ()
    variant: str = ""  # of the node list

    def problem(self, nodes: int, networks: int = 1, attachments: Attachments = ()) -> str | None:
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
        segments = segment_count(attachments)
        if self.segment is not None and not 0 <= self.segment < segments:
            return f"fault {self.kind.value!r} names segment {self.segment}, there are 0..{segments - 1}"
        own = segments_of(attachments, self.node)
        if self.segment is not None and self.kind in OF_ATTACHMENTS and self.segment not in own:
            return f"fault {self.kind.value!r} names segment {self.segment}, node {self.node} is not attached to it"
        return None

    def __str__(self) -> str:
        places = [f"net{self.network}"] if self.network is not None else []
        places += [f"seg{self.segment}"] if self.segment is not None else []
        return f"{self._text()} on {' of '.join(places)}" if places else self._text()

    def _text(self) -> str:
        match self.kind:
            case FaultKind.PARTITION:
                return "partition " + " | ".join(" ".join(f"n{n}" for n in group) for group in self.groups)
            case FaultKind.CUT:
                return f"cut{self._links_text()}"
            case FaultKind.BLOCK:
                return f"block{self._links_text()}"
            case FaultKind.HEAL | FaultKind.DOWN:
                return f"{self.kind.value}"
            case FaultKind.MEND:
                return f"mend{self._links_text()}"
            case FaultKind.LOSSY:
                return f"lossy{self._links_text()} {self.chance:.0%}"
            case FaultKind.SLOW:
                return f"slow{self._links_text()} by {self.duration_ns / 1e6:g} ms"
            case FaultKind.LOSE_TOKEN:
                return f"lose token for {self.duration_ns / 1e6:.0f} ms"
            case FaultKind.PAUSE | FaultKind.FLOOD:
                return f"{self.kind.value} n{self.node} for {self.duration_ns / 1e6:.0f} ms"
            case FaultKind.RELOAD:
                names = " ".join(f"n{node}" for node in self.listed)
                return f"reload n{self.node}: version {self.version} of {names}{self.variant and ', ' + self.variant}"
            case _:
                return f"{self.kind.value} n{self.node}"

    def _links_text(self) -> str:
        return "".join(f"{', ' if at else ' '}n{a}→n{b}" for at, (a, b) in enumerate(self.links))


# Strike what they name: a network, a segment or links.
VARIANTS = ("ordered", "other", "elsewhere")  # of a node list
OF_NETWORKS = (FaultKind.DOWN, FaultKind.LOSSY, FaultKind.SLOW, FaultKind.MEND)
# Strike one attachment of a host where they name a segment.
OF_ATTACHMENTS = (FaultKind.DETACH, FaultKind.ATTACH, FaultKind.DEAFEN, FaultKind.FLOOD)

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


# Drawn as well where there is more than one segment.
_OF_SEGMENTS = (FaultKind.DETACH, FaultKind.DETACH, FaultKind.ATTACH, *OF_NETWORKS)
_OF_NETWORK = (FaultKind.PARTITION, FaultKind.CUT, FaultKind.HEAL, FaultKind.LOSE_TOKEN)
_CHANCES = (0.05, 0.2, 0.5)  # of losing a packet
_CONFINED = 0.6  # chance that a fault of the network strikes one of several segments alone


def random_faults(count: int, nodes: int, until_ns: int, rng: Rng, attachments: Attachments = ()) -> tuple[Fault, ...]:
    """Some come in bursts, because failures during recovery are the ones that matter."""
    faults: list[Fault] = []
    at = 0
    for _ in range(count):
        gap = until_ns // (2 * count) if rng.random() < 0.5 else until_ns // 20
        at = at + rng.randrange(0, gap + 1) if faults and rng.random() < 0.5 else rng.randrange(0, until_ns)
        faults.append(_random_fault(min(at, until_ns), nodes, rng, attachments))
    return tuple(sorted(faults, key=lambda fault: fault.at))


def ambush(at: int, node: int, nodes: int, rng: Rng, attachments: Attachments = ()) -> Fault:
    """A fault for the worst moment: the token vanishes, the network splits, or the process that just acted dies, or
    loses an attachment where it has several."""
    chance = rng.random()
    own = segments_of(attachments, node)
    if chance < 0.4:
        fault = Fault(at, FaultKind.LOSE_TOKEN, duration_ns=rng.randrange(20_000_000, 120_000_000))
    elif chance < 0.8:
        fault = Fault(at, FaultKind.PARTITION, groups=_random_groups(nodes, rng))
    elif len(own) > 1 and chance < 0.9:
        return Fault(at, FaultKind.DETACH, node=node, segment=own[rng.randrange(0, len(own))])
    else:
        return Fault(at, FaultKind.CRASH, node=node)
    is_confined = segment_count(attachments) > 1 and rng.random() < _CONFINED
    return replace(fault, segment=own[rng.randrange(0, len(own))]) if is_confined else fault


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


def _random_fault(at: int, nodes: int, rng: Rng, attachments: Attachments) -> Fault:
    segments = segment_count(attachments)
    kinds = _COMMON if segments == 1 else (*_COMMON, *_OF_SEGMENTS)
    kind = kinds[rng.randrange(0, len(kinds))]
    node = rng.randrange(0, nodes)
    duration = rng.randrange(20_000_000, 250_000_000)
    if kind is FaultKind.PARTITION:
        fault = Fault(at, kind, groups=_random_groups(nodes, rng))
    elif kind is FaultKind.CUT:
        fault = Fault(at, kind, links=_random_links(nodes, rng))
    else:
        fault = Fault(at, kind, node=node, duration_ns=duration)
    return fault if segments == 1 else _confined(fault, segments, rng, attachments)


def _confined(fault: Fault, segments: int, rng: Rng, attachments: Attachments) -> Fault:
    """The same on one of several segments, or on some links of it, where that makes sense."""
    if fault.kind in OF_ATTACHMENTS:
        own = segments_of(attachments, fault.node)
        return replace(fault, segment=own[rng.randrange(0, len(own))])
    if fault.kind in (FaultKind.LOSSY, FaultKind.SLOW):
        links = _random_links(len(attachments), rng) if rng.random() < 0.5 else ()
        chance, delay = _CHANCES[rng.randrange(0, len(_CHANCES))], rng.randrange(100_000, 5_000_000)
        fault = replace(fault, links=links, chance=chance, duration_ns=delay)
    if fault.kind in OF_NETWORKS or (fault.kind in _OF_NETWORK and rng.random() < _CONFINED):
        return replace(fault, segment=rng.randrange(0, segments))
    return fault


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
