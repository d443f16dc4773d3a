"""A network of rings on a stage: one process in the middle of it, with the fronts and packets that a figure shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.attached import SEQS_PER_DOMAIN
from ordercast.order.gateways.items import (
    Carried,
    Column,
    LogicalRing,
    NoticeItem,
    Processes,
    Statement,
    Stretch,
    tag_of,
)
from ordercast.order.gateways.network import Heard, RingNetwork
from ordercast.order.gateways.views import NetworkView, Views


def people(*numbers: int) -> Processes:
    return frozenset(ProcessId(number) for number in numbers)


def ring_ids(names: str, seq: int = 1024) -> dict[str, ConfigurationId]:
    """Return ids of rings on domains 1, 2 and so on. Their tags rise with their names: what has one tick is concurrent,
    and any order of the tags will do; the paper's figures have that of the names."""
    found: dict[str, ConfigurationId] = {}
    last = 0
    for domain, name in enumerate(names, start=1):
        candidates = (ConfigurationId(seq + SEQS_PER_DOMAIN * domain, ProcessId(who)) for who in range(1, 10_000))
        step = (1 << 63) // (len(names) + 1)
        found[name] = next(each for each in candidates if last < tag_of(each) <= last + step)
        last = tag_of(found[name])
    return found


@dataclass
class Stage:
    """A process in a network whose rings have been there for long."""

    me: ProcessId
    members: dict[str, Processes]  # of each ring
    gateways: Processes
    ids: dict[str, ConfigurationId]
    network: RingNetwork = field(init=False)
    log: list[str] = field(default_factory=list)  # what was delivered: "7A", and views: "view ABC"
    seqs: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        domains = {name: number for number, name in enumerate(self.ids, start=1)}
        mine = [name for name, members in self.members.items() if self.me in members]
        alone = {domains[name]: ConfigurationId(SEQS_PER_DOMAIN * domains[name], self.me) for name in mine}
        self.network = RingNetwork(self.me, alone, 0)
        known = self.network.known
        known.parts.clear()
        for name, members in self.members.items():
            ring = LogicalRing(self.ids[name], members, members & self.gateways, 1)
            known.learn(ring)
            known.born.add(ring.id)
            known.parts[ring.id] = members
            for process in members:
                known.bases[process, domains[name]] = ring.id
        for name in mine:
            known.own[domains[name]] = self.ids[name]
        known.changed()
        begun, views = Views(known), self.network.views
        views.current, views.common, views.installed = begun.current, begun.common, begun.installed
        self.domains = domains

    def receive(self, name: str, ticks: Iterable[int], is_safe: bool = False) -> None:
        """Let packets of a ring come, one of each tick."""
        for tick in ticks:
            self.seqs[name] = self.seqs.get(name, 0) + 1
            stretch = Stretch(self.ids[name], tick, ProcessId(1), (self.seqs[name],), (b"",), is_safe)
            self.network.forwarding.take(stretch, None)

    def tell_front(self, name: str, tick: int) -> None:
        """Let a gateway say that nothing of a ring at or below a tick is missing."""
        stream = self.network.known.streams[self.ids[name]]
        stream.raise_front(stream.stamp(tick, 1 << 20))

    def guarantee(self, name: str, row: dict[str, int]) -> None:
        """Let a gateway on a ring say what all of the ring have."""
        streams = self.network.known.streams
        entries = tuple(
            Statement(Column(self.ids[source], None), streams[self.ids[source]].stamp(tick, 1 << 20))
            for source, tick in row.items()
        )
        speaker = min(self.members[name])
        self.network.coverage.state(self.ids[name], speaker, None, entries)

    def hear(self, domain: int, sender: int, seq: int, tick: int, carried: Carried) -> None:
        self.network.deliver(domain, [Heard(ProcessId(sender), seq, tick, carried)])

    def step(self) -> list[str]:
        """Let the order go on; return what was delivered so far."""
        self.network.step()
        names = {ring: name for name, ring in self.ids.items()}
        for event in self.network.passed:
            if isinstance(event, NetworkView):
                rings = "".join(names.get(part.ring.id, "?") for part in event.rings)
                self.log.append(f"{event.stamp[0]}: {rings}")
            else:
                self.log += [f"{event.content.tick}{names[event.content.ring]}"] * len(event.content.seqs)
        self.network.passed.clear()
        return self.log

    def notices(self, domain: int) -> list[NoticeItem]:
        queue = self.network.forwarding.queues[domain]
        return [carried.item for carried in queue if isinstance(carried.item, NoticeItem)]
