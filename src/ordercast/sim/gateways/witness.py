"""Judges what processes make of their rings: it sees every ring of a network, from the packets of all hosts.

Nobody is told of it while all is well. What it judges follows from the rules of `docs/internals/gateways.md`, and a
fault in one of them may cost no user anything for long: a statement that is not true delivers a safe message too early
only if a host crashes at that very moment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from ordercast.checker.verdict import Verdict
from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.ids import ConfigurationId, NodeId, ProcessId, node_of
from ordercast.model.inputs import Packet
from ordercast.model.promises import RingsPromise
from ordercast.model.service import Service
from ordercast.order.engine import Engine
from ordercast.order.gateways.config import GatewaysConfig
from ordercast.order.gateways.items import LogicalRing
from ordercast.order.gateways.merging import PhysicalRing
from ordercast.order.gateways.node import GatewayNode
from ordercast.order.gateways.timeline import FROM_THE_PAST
from ordercast.order.gateways.views import NetworkView
from ordercast.sim.findings import Findings
from ordercast.sim.gateways.ledger import RingLedger
from ordercast.sim.gateways.watched import WatchedNetwork
from ordercast.sim.ring.network_witness import data_key, is_data
from ordercast.sim.rosters import RosterWitness
from ordercast.trace.records import DeliveredBatch, Event, Installed, Started, StorageTurned
from ordercast.wire.header import FLAGS_AT, RECOVERED, origin_of

if TYPE_CHECKING:
    from ordercast.sim.host import Host

QUEUE_HIGH = GatewaysConfig().carried_size_max
QUEUE_MAX = 2 * QUEUE_HIGH  # what all who send may have under way when they are asked to stop

Delivered = tuple[ConfigurationId, int, int]  # a place: origin, number, slot


class RingsWitness:
    """All rings of one run."""

    def __init__(self, rosters: RosterWitness | None = None, *, has_forgers: bool = False) -> None:
        """`rosters`: of the node lists, if there are any."""
        self._rosters = rosters
        self._has_forgers = has_forgers
        self.findings = Findings()
        self.ledger = RingLedger(self.findings)
        self._is_filtering = False
        self._logical: dict[ConfigurationId, LogicalRing] = {}  # rings that somebody was on
        self._numbered: dict[int, int] = {}  # by node: the highest tick that it gave, in a life that kept its storage
        self._without: set[int] = set()  # nodes that went on without their storage
        self._views: dict[ProcessId, tuple[ConfigurationId, int]] = {}  # where each is: view, events since
        self._after: dict[ConfigurationId, list[Delivered]] = defaultdict(list)  # what followed a view
        self._regular: dict[ProcessId, Configuration] = {}  # the last regular configuration of each
        self._safe_up_to: dict[ConfigurationId, Delivered] = {}  # the last place of what was safe in a view, anywhere
        self._left_at: dict[ConfigurationId, Delivered] = {}  # the first place at which somebody was in another

    # What is seen

    def watched(self, make: Callable[[NodeId], Engine], node: NodeId) -> Engine:
        """Return an engine that is watched."""
        engine = make(node)
        assert isinstance(engine, GatewayNode)
        engine.make_network = partial(WatchedNetwork, self, engine)
        return engine

    def received(self, process: ProcessId, packets: Iterable[Packet]) -> None:
        """Hear what a process takes from its networks."""
        for packet in packets:
            data = bytes(packet.data)
            if is_data(data):
                self.ledger.received(process, *data_key(data))
                if data[FLAGS_AT] & RECOVERED:
                    self.ledger.received(process, *origin_of(data))

    def observe(self, event: Event) -> None:
        match event:
            case Started():
                self._is_filtering |= event.promises.prunes
                self._without.discard(node_of(event.process))
                if not event.kept_storage:
                    self._numbered.pop(node_of(event.process), None)
            case StorageTurned():
                self._turn_storage(node_of(event.process), event.in_use)
            case Installed():
                self._views[event.process] = (event.configuration.id, 0)
                if event.configuration.kind is ConfigurationKind.REGULAR:
                    self._leave(event.process, event.configuration)
            case DeliveredBatch():
                self._compare(event)
                self._note_safe(event)
            case _:
                pass

    def _turn_storage(self, node: int, is_in_use: bool) -> None:
        """Whoever goes on without its storage promises nothing of the life after."""
        if is_in_use:
            self._without.discard(node)
        else:
            self._without.add(node)
            self._numbered.pop(node, None)

    def numbered(self, process: ProcessId, tick: int) -> None:
        """Hear that a process gave this tick."""
        node = node_of(process)
        if node not in self._without:
            self._numbered[node] = max(self._numbered.get(node, 0), tick)

    def joined(self, process: ProcessId, domain: int, ring: PhysicalRing) -> None:
        """Hear that a process has installed a ring."""
        if self._rosters is not None:
            self._rosters.installed(domain, process, ring.id, ring.members)

    def founded(self, process: ProcessId, tick: int) -> None:
        """Hear where the clock of a life begins."""
        last = self._numbered.get(node_of(process), -1)
        if tick <= last:
            self.findings.add(RingsPromise.TICKS, f"begins at tick {tick}, and gave {last} in a life before", process)

    def went_on(self, process: ProcessId, ring: LogicalRing) -> None:
        """Hear that a process is on a logical ring."""
        known = self._logical.setdefault(ring.id, ring.bare())
        if (known.members, known.tick) != (ring.members, ring.tick):
            what = f"is on a ring of {len(ring.members)} born at {ring.tick}, others on one of {len(known.members)}"
            self.findings.add(RingsPromise.PARTS, f"{what} born at {known.tick}", process, ring.id)

    def viewed(self, process: ProcessId, view: NetworkView) -> None:
        """Hear the view that a process is in."""
        for part in view.rings:
            known = self._logical.get(part.ring.id)
            if known is None or (known.members, known.tick) != (part.ring.members, part.ring.tick):
                self.findings.add(RingsPromise.PARTS, f"has part {part.ring.id}, which no ring is", process, view.id)
            elif not part.members <= known.members:
                self.findings.add(RingsPromise.PARTS, f"counts others on {part.ring.id} than are", process, view.id)

    def _compare(self, event: DeliveredBatch) -> None:
        """Whoever is in one view delivers the same, as far as each goes."""
        if self._is_filtering or event.process not in self._views:
            return
        view, count = self._views[event.process]
        after = self._after[view]
        for message in event.messages:
            place = (event.origin, message.number, message.slot)
            if count == len(after):
                after.append(place)
            elif after[count] != place:
                what = f"delivered {place} after {count} messages in this view, another {after[count]}"
                self.findings.add(RingsPromise.SAME_EVENTS, what, event.process, view)
                return
            count += 1
        self._views[event.process] = (view, count)

    def _leave(self, process: ProcessId, view: Configuration) -> None:
        old = self._regular.get(process)
        self._regular[process] = view
        if old is not None:
            origin, number, slot = view.position
            place = (origin, number, slot)
            self._left_at[old.id] = min(place, self._left_at.get(old.id, place))
            self._judge_safe(process, old.id)

    def _note_safe(self, event: DeliveredBatch) -> None:
        """Note what was delivered as safe in a regular configuration."""
        safe = [message for message in event.messages if message.service == Service.SAFE]
        view = self._regular.get(event.process)
        if safe and view is not None and view.id == event.configuration:
            place = (event.origin, safe[-1].number, safe[-1].slot)
            self._safe_up_to[view.id] = max(place, self._safe_up_to.get(view.id, place))
            self._judge_safe(event.process, view.id)

    def _judge_safe(self, process: ProcessId, view: ConfigurationId) -> None:
        """Whoever was in a view, and is in another from a place on, has delivered all that is safe in the first."""
        safe, left = self._safe_up_to.get(view), self._left_at.get(view)
        if safe is not None and left is not None and safe > left:
            what = f"{safe} was delivered there as safe, and somebody was in another view from {left} on"
            self.findings.add(RingsPromise.SAFE_IN_VIEW, what, process, view)

    def queued(self, process: ProcessId, size: int, is_holding: bool) -> None:
        """Hear how much waits to be carried onto a ring, and whether the process asks all users to stop."""
        if size >= QUEUE_HIGH and not is_holding:
            what = f"{size} bytes wait to be carried, and it asks nobody to stop"
            self.findings.add(RingsPromise.QUEUES, what, process)
        if size > QUEUE_MAX:
            self.findings.add(RingsPromise.QUEUES, f"{size} bytes wait to be carried", process)

    def refused(self, process: ProcessId, reasons: Iterable[str]) -> None:
        """Hear why a process drops what its rings have brought. A decision that was made too early shows here."""
        if FROM_THE_PAST in reasons and not self._has_forgers:
            self.findings.add(RingsPromise.PAST, f"drops {FROM_THE_PAST}", process)

    def settled(self, hosts: Iterable[Host]) -> None:
        """Hear that all has settled: everybody's parts are the rings that there are."""
        engines = [host.life.engine for host in hosts if host.life is not None]
        networks = [engine.network for engine in engines if isinstance(engine, GatewayNode) and engine.network]
        rings = {ring for network in networks for ring in network.known.own.values()}
        for network in networks:
            if network.known.parts.keys() != rings:
                what = f"has {len(network.known.parts)} parts, and there are {len(rings)} rings"
                self.findings.add(RingsPromise.PARTS, what, network.known.me)

    def verdicts(self) -> list[Verdict]:
        """Return a verdict on what was broken."""
        return self.findings.broken()
