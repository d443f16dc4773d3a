"""What a status says of a network of rings: its parts, who joins them, what delivery waits for, the own rings. Pure.

Every daemon knows the whole graph, so any of them may be asked. What is its own are the attachments: the tokens of the
rings that it is on, and what waits to be carried onto them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

from ordercast.daemon.config.node import NodeConfig
from ordercast.daemon.status.counters import Counters
from ordercast.daemon.status.out_of_view import OutOfView, out_of_view
from ordercast.model.ids import SECOND, ConfigurationId, Instant, ProcessId
from ordercast.model.notes import Occurrence
from ordercast.order.engine import ObservedEngine
from ordercast.order.membership.stats import RingStats
from ordercast.order.ring.config import RingConfig

if TYPE_CHECKING:  # what an engine's section needs of it is imported by then: daemons of other engines start without it
    from ordercast.order.gateways.node import GatewayNode
    from ordercast.order.gateways.observed import NetworkSnapshot

SILENCE_NS = 10 * SECOND


class SectionSource(Protocol):
    """The part of a node that a section is made of."""

    @property
    def config(self) -> NodeConfig: ...
    @property
    def engine(self) -> ObservedEngine: ...
    @property
    def counters(self) -> Counters: ...
    def now(self) -> Instant: ...
    def name_of(self, process: ProcessId) -> str: ...


@dataclass(frozen=True, slots=True)
class TokenStatus:
    """The token of a ring and the flow control that goes with it."""

    visits: int
    rotation_ns: int  # smoothed, while the token does not rest
    last_visit_ns: int | None  # how long ago
    window: int
    visit_max: int
    limited_visits: int  # on which flow control let this process send less than it had

    @classmethod
    def of(cls, stats: RingStats, config: RingConfig, now: Instant, members: int) -> Self:
        last = now - stats.last_visit_at if stats.visits else None
        window = config.window_of(members)
        return cls(stats.visits, stats.rotation_ns, last, window, config.visit_max, stats.limited_visits)

    def silence(self, members: int) -> str:
        """Return for how long no token came, where one should; otherwise nothing."""
        silence = self.last_visit_ns
        is_silent = silence is not None and silence > SILENCE_NS and members > 1
        return f"no token for {silence / SECOND:.0f} s" if silence is not None and is_silent else ""


@dataclass(frozen=True, slots=True)
class AttachmentStatus:
    """An own ring."""

    ring: str
    state: str
    is_ready: bool
    members: int
    queue_size: int  # bytes that wait to be carried onto it
    token: TokenStatus


@dataclass(frozen=True, slots=True)
class PartStatus:
    """A ring of the network."""

    name: str
    domain: int
    id: str
    members: tuple[str, ...]
    gateways: tuple[str, ...]
    front: int  # tick up to which everything of it is known here
    undelivered: int  # packets of it that wait here
    is_own: bool
    awaited: tuple[str, ...]  # gateways that have not yet said that it ended


@dataclass(frozen=True, slots=True)
class NetworkMergeStatus:
    """Rings of different pasts on one of the own domains become one."""

    ring: str
    members: tuple[str, ...]
    unmarked: tuple[str, ...]
    unspoken: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NetworkHoldStatus:
    """A process that asks all users to stop sending."""

    process: str
    number: int
    reason: str
    for_ns: int


@dataclass(frozen=True, slots=True)
class NetworkWaitStatus:
    """What is next in the order and cannot be done yet."""

    what: str
    ring: str  # whose packet or change it is
    sender: str  # of a message
    tick: int
    for_ns: int
    rings: tuple[str, ...]  # that may still bring something before it
    processes: tuple[str, ...]  # whose word is missing
    for_disk: bool = False  # the clock's bound is not stored here, and nothing else is missing


@dataclass(frozen=True, slots=True)
class RingsSection:
    place: int  # tick up to which everything is done
    parts: tuple[PartStatus, ...]
    attachments: tuple[AttachmentStatus, ...]  # of this process, the ring of its users first
    attached: dict[str, tuple[str, ...]]  # the rings of every member
    silent: tuple[str, ...]  # members that cannot be heard any more
    merges: tuple[NetworkMergeStatus, ...]
    holds: tuple[NetworkHoldStatus, ...]
    waiting: NetworkWaitStatus | None
    undelivered: int  # packets that wait here
    filtered: int  # packets that were not carried on, because nobody there wants them
    missing: tuple[OutOfView, ...] = ()  # of the file

    @property
    def fronts(self) -> dict[str, int]:
        """The lowest front of each domain."""
        fronts: dict[str, int] = {}
        for part in self.parts:
            fronts[part.name] = min(fronts.get(part.name, part.front), part.front)
        return fronts

    def warnings(self, members: int) -> Iterator[str]:
        from ordercast.order.gateways.watch import SILENT_NS

        waiting = self.waiting
        if waiting is not None and waiting.for_ns >= SILENT_NS:
            missing = " ".join(waiting.rings or waiting.processes) or ("the disk" if waiting.for_disk else "itself")
            lasted = f"{waiting.for_ns / SECOND:.0f} s"
            yield f"delivery has waited for {lasted} for {missing}: see `ordercast topology explain`"
        for hold in self.holds:
            if hold.for_ns >= SILENT_NS:
                yield f"{hold.process} has asked everybody to stop for {hold.for_ns / SECOND:.0f} s: {hold.reason}"
        for own in self.attachments:
            if silence := own.token.silence(own.members):
                yield f"{own.ring}: {silence}"

    def as_before(self, document: dict[str, Any]) -> dict[str, Any]:
        """This engine was never the only one."""
        return {}


def rings_section(node: SectionSource) -> RingsSection:
    from ordercast.order.gateways.node import GatewayNode

    engine = node.engine
    assert isinstance(engine, GatewayNode)
    seen, own = engine.snapshot(), tuple(_attachments(node, engine))
    filtered = node.counters.occurred[Occurrence.NETWORK_FILTERED.value]
    if seen is None:
        return RingsSection(0, (), own, {}, (), (), (), None, 0, filtered)
    return _Told(node, engine, seen).section(own, filtered)


def _attachments(node: SectionSource, engine: GatewayNode) -> Iterator[AttachmentStatus]:
    for domain, ring in engine.rings.items():
        members = len(ring.configuration.members)
        token = TokenStatus.of(ring.stats, node.config.ring, node.now(), members)
        name = engine.watch.name(domain)
        yield AttachmentStatus(name, ring.state_name, ring.is_ready, members, ring.freight_size, token)


class _Told:
    """A snapshot in the names of the node that tells it."""

    def __init__(self, node: SectionSource, engine: GatewayNode, seen: NetworkSnapshot) -> None:
        self._node, self._watch, self._seen = node, engine.watch, seen
        self._domains = {ring.id: ring.domain for ring in seen.rings}

    def section(self, own: tuple[AttachmentStatus, ...], filtered: int) -> RingsSection:
        seen = self._seen
        return RingsSection(
            place=seen.place[0],
            parts=tuple(self._parts()),
            attachments=own,
            attached={
                self._node.name_of(process): tuple(map(self._watch.name, domains))
                for process, domains in seen.attachments
            },
            silent=self._names(seen.silent),
            merges=tuple(
                NetworkMergeStatus(
                    self._watch.name(merge.domain), *map(self._names, (merge.members, merge.unmarked, merge.unspoken))
                )
                for merge in seen.merges
            ),
            holds=tuple(self._holds()),
            waiting=self._waiting(),
            undelivered=seen.undelivered,
            filtered=filtered,
            missing=out_of_view(self._node, set(map(self._watch.name, self._domains.values())), self._node.now()),
        )

    def _names(self, processes: Iterable[ProcessId]) -> tuple[str, ...]:
        return tuple(map(self._node.name_of, processes))

    def _ring(self, ring: ConfigurationId) -> str:
        return self._watch.name(self._domains[ring]) if ring in self._domains else str(ring)

    def _parts(self) -> Iterator[PartStatus]:
        for ring in self._seen.rings:
            id_text = f"{ring.id.seq}.{self._node.name_of(ring.id.representative)}"
            yield PartStatus(
                self._watch.name(ring.domain),
                ring.domain,
                id_text,
                self._names(ring.members),
                self._names(ring.gateways),
                ring.front[0],
                ring.undelivered,
                ring.is_own,
                self._names(ring.awaited),
            )

    def _holds(self) -> Iterator[NetworkHoldStatus]:
        now = self._node.now()
        for hold in self._seen.holds:
            since = self._watch.holds_since(hold.process, hold.number)
            lasted = 0 if since is None else now - since
            yield NetworkHoldStatus(self._node.name_of(hold.process), hold.number, hold.reason, lasted)

    def _waiting(self) -> NetworkWaitStatus | None:
        waiting = self._seen.waiting
        if waiting is None:
            return None
        since = self._watch.waits_since(waiting)
        return NetworkWaitStatus(
            waiting.kind.value,
            self._ring(waiting.ring),
            "" if waiting.originator is None else self._node.name_of(waiting.originator),
            waiting.stamp[0],
            0 if since is None else self._node.now() - since,
            tuple(dict.fromkeys(map(self._ring, waiting.fronts))),
            self._names(waiting.processes),
            waiting.for_disk,
        )
