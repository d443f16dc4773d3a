"""The world of one run: virtual time, hosts, network, applications, faults, and the history that they make.

Everything in it depends on the options and the generator alone; `run.py` wraps it into a function of (options, seed).
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ordercast.model.effects import Alarm
from ordercast.model.ids import MAIN, Attachment, Instant, NodeId, ProcessId, node_of
from ordercast.model.inputs import EVERYWHERE, Lane
from ordercast.model.notes import Occurred, Occurrence
from ordercast.model.service import Service
from ordercast.order.engine import Engine
from ordercast.session.reader import ROOM
from ordercast.sim.adaptive_witness import AdaptiveWitness
from ordercast.sim.churn import Crowd
from ordercast.sim.faults import Fault, FaultKind, ambush, random_faults
from ordercast.sim.gateways.witness import RingsWitness
from ordercast.sim.host import Host, topic_name
from ordercast.sim.network import Network
from ordercast.sim.options import SimOptions
from ordercast.sim.replicas import Replicas
from ordercast.sim.ring.network_witness import NetworkWitness
from ordercast.sim.ring.poison import Poisoner
from ordercast.sim.rosters import FIRST, RosterWitness, last_roster, sim_roster
from ordercast.sim.sealed.adversary import Adversary
from ordercast.sim.sealed.keeper import Keeper
from ordercast.sim.segment import Segment, segments_from
from ordercast.sim.session_witness import SessionWitness
from ordercast.sim.sites.witness import SitesWitness
from ordercast.sim.station import Station
from ordercast.sim.topology import Rate
from ordercast.sim.trees.witness import TreesWitness
from ordercast.trace.client_records import Calm, ClientEvent
from ordercast.trace.records import (
    STAMP_SIZE,
    Ended,
    Event,
    Healed,
    Installed,
    Noted,
    Saturated,
)
from ordercast.trace.replica_records import ReplicaEvent

# Called as rule(source, target, packet).
Rule = Callable[[int, int, bytes], bool]

EVENTS_MAX = 3_000_000  # a run that needs more is stuck; larger clusters have as many for every `HOSTS` hosts
HOSTS = 65
CHECK_INTERVAL_NS = 10_000_000
AMBUSH_PROBABILITY = 0.3
MOMENTS = (  # for ambushes
    Occurrence.PROMISE_MADE,
    Occurrence.NETWORK_MARKED,
    Occurrence.NETWORK_SPOKEN,
    Occurrence.TREE_SENT_AGAIN,
)
TOP_UP_NS = 500_000
RUSH_NS = 4_000_000


@dataclass(slots=True)
class World:
    options: SimOptions
    rng: Random
    observers: list[Callable[[Event], None]]
    on_fault: Callable[[int, Fault], None] | None = None  # told of every fault as it strikes
    client_observers: list[Callable[[ClientEvent], None]] = field(default_factory=list)
    replica_observers: list[Callable[[ReplicaEvent], None]] = field(default_factory=list)
    now: int = 0
    inputs: int = 0
    packets: int = 0  # that hosts handed to networks, a multicast once
    hosts: list[Host] = field(default_factory=list)
    alarms: list[tuple[int, ProcessId, Alarm]] = field(default_factory=list)
    segments: list[Segment] = field(init=False)  # each with its networks, several where they are redundant
    witness: NetworkWitness | None = None  # judges what the layer does with several networks
    slot_witness: AdaptiveWitness | None = None  # judges who uses which place
    rings_witness: RingsWitness | None = None  # judges what becomes of several rings
    sites_witness: SitesWitness | None = None  # judges what daemons of several sites do
    trees_witness: TreesWitness | None = None  # judges what processes of trees do
    rosters: RosterWitness | None = None  # judges who was taken in, where there are node lists
    group_counts: Counter[str] = field(default_factory=Counter)  # what happened in the groups
    names: dict[tuple[int, str], ProcessId] = field(default_factory=dict)  # of clients: where each was last used
    poisoner: Poisoner | None = None  # who forges packets
    keeper: Keeper | None = None  # of the keys, in a sealed run
    adversary: Adversary | None = None  # who attacks it
    rule: Rule | None = None  # a script's own: asked when a packet arrives, False loses it
    _queue: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = field(default_factory=list)
    _order: int = 0
    _is_healed: bool = False
    _pending: int = 0  # submissions that are still to come
    replicas: Replicas | None = None  # of a state, on the hosts
    crowd: Crowd = field(init=False)  # what clients do next
    session_rng: Random = field(init=False)  # of the connections between clients and daemons
    session_room: bytearray = field(init=False)  # where all of them read, one after the other
    session_witness: SessionWitness = field(init=False)  # judges both ends of them
    _ambushes: int = 0  # faults that wait for their moment
    _is_calm: bool = False  # all has settled once, and clients have said their last

    def __post_init__(self) -> None:
        self.segments = segments_from(self.options, self.rng, self.arrive_at)
        self._ambushes = self.options.ambushes
        self.session_witness, self.crowd = SessionWitness(self.options), Crowd(self)
        if self.options.has_clients:
            self.session_rng, self.session_room = Random(self.rng.random()), bytearray(ROOM)
        if self.options.replicas:
            self.replicas = Replicas(self, self.rng)

    # Services for hosts and network

    def schedule(self, at: int, action: Callable[..., None], *arguments: Any) -> None:
        self._order += 1
        heapq.heappush(self._queue, (at, self._order, action, arguments))

    def plan(self, at: int, action: Callable[[], None]) -> None:
        """Schedule something that the run waits for: it has not settled before."""
        self._pending += 1
        self.schedule(at, self._carry_out_plan, action)

    def _carry_out_plan(self, action: Callable[[], None]) -> None:
        self._pending -= 1
        action()

    @property
    def networks(self) -> list[Network]:
        """All of them, those of the first segment first."""
        return [network for segment in self.segments for network in segment.networks]

    @property
    def network(self) -> Network:
        """The only one, or the first of several."""
        return self.segments[0].networks[0]

    def arrive_at(
        self, segment: int, network: int, at: int, source: int, target: int, lane: Lane, packets: list[bytes]
    ) -> None:
        self.schedule(at, self._arrive, source, target, lane, packets, network, segment)

    def _arrive(self, source: int, target: int, lane: Lane, packets: list[bytes], network: int, segment: int) -> None:
        if self.rule is not None:
            packets = [packet for packet in packets if self.rule(source, target, packet)]
        if self.poisoner is not None and not self._is_healed:
            packets = self._poisoned(self.poisoner, target, lane, packets, self.segments[segment])
        if self.adversary is not None and not self._is_healed:
            packets = self.adversary.arriving(target, lane, packets, network, segment)
        self.hosts[target].arrive(lane, packets, network, self.segments[segment].attachments[target])

    def _poisoned(
        self, poisoner: Poisoner, target: int, lane: Lane, packets: list[bytes], segment: Segment
    ) -> list[bytes]:
        arriving: list[bytes] = []
        life = self.hosts[target].life
        if life is None:
            return packets
        for packet in packets:
            forged, is_for_all = poisoner.forged(packet, life.engine) or (b"", False)
            for node, attachment in segment.attachments.items() if is_for_all else ():
                self.hosts[node].arrive(lane, [forged], attachment=attachment)
            arriving += [forged, packet] if forged and not is_for_all else [packet]
        return arriving

    def record(self, event: Event) -> None:
        for observe in self.observers:
            observe(event)
        if self._ambushes and not self._is_healed and not self._is_early():
            self._lie_in_wait(event)
        if self.options.clients and isinstance(event, Installed):
            self.tell(event)
        if self.options.rush and not self._is_healed and isinstance(event, Installed):
            self._rush(self.now)

    def tell(self, event: ClientEvent) -> None:
        for observe in self.client_observers:
            observe(event)

    def tell_replica(self, event: ReplicaEvent) -> None:
        for observe in self.replica_observers:
            observe(event)

    def later(self, delay_ns: int, action: Callable[..., None], *arguments: Any) -> None:
        """Have something done that a run does not end without."""
        self._pending += 1
        self.schedule(self.now + delay_ns, self._due, action, arguments)

    def _due(self, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._pending -= 1
        action(*arguments)

    @property
    def is_healed(self) -> bool:
        return self._is_healed

    def station_at(self, node: int) -> Station | None:
        """Where clients may connect."""
        host = self.hosts[node]
        return None if host.life is None or host.has_left else host.life.station

    def others(self, node: int, attachment: Attachment = MAIN) -> list[int]:
        """Whom a packet for everybody on a segment goes to."""
        host = self.hosts[node]
        others = [other for other in host.segments[attachment].attachments if other != node]
        return [other for other in others if host.reaches(other, attachment)] if self.options.is_unicast else others

    def can_talk(self, one: int, other: int) -> bool:
        """Whether packets pass both ways between two hosts, on some network of a segment that both are attached to, or
        over live hosts that join segments and route between them."""
        reached, fresh = {one}, [one]
        while other not in reached and fresh:
            host = self.hosts[fresh.pop()]
            beside = {node for segment in host.segments for node in segment.beside(host.node)} - reached
            reached |= beside
            fresh += [node for node in sorted(beside) if self.hosts[node].is_router]
        return other in reached

    def departed(self, host: Host) -> None:
        """A host has left in order. After healing segments stay joined: it comes back if it joins some."""
        if self._is_healed and host.joins_segments:
            self.schedule(self.now, self._restart, host)

    # One run

    def run(self, make_engine: Callable[[NodeId], Engine]) -> bool:
        """True when everything settled in time."""
        options, rng = self.options, self.rng
        topics: defaultdict[int, list[int]] = defaultdict(list)  # that each host wants
        for topic, wanting in enumerate(options.topics):
            for node in wanting:
                topics[node].append(topic)
        for node in range(options.nodes):
            drift = rng.uniform(-options.clock_drift, options.clock_drift)
            segments = [self.segments[number] for number in options.segments_of(node)]
            host = Host(self, node, make_engine, segments, drift, dict(options.slow_hosts).get(node, 1.0))
            if options.rosters:
                host.roster = sim_roster(FIRST, options.rosters[node])
            host.topics = set(topics[node])
            self.hosts.append(host)
            at = 0 if options.all_at_once else rng.randrange(0, options.fault_time_ns // 4)
            self.schedule(at, self._restart, host)
        drawn = random_faults(options.random_faults, options.nodes, options.fault_time_ns, rng, options.attachments)
        faults = (*options.faults, *drawn)
        for fault in faults:
            self._rush(max(0, fault.at - RUSH_NS // 2))
            self.schedule(fault.at, self._strike, fault)
        self._plan_messages()
        self._plan_rates()
        for _ in range(options.topic_changes):
            self._pending += 1
            self.schedule(rng.randrange(0, options.fault_time_ns), self._turn)
        self.schedule(max([options.fault_time_ns, *(fault.at + 1 for fault in faults)]), self._heal)
        settled = self._loop()
        ended = Ended(Instant(self.now), complete=True)
        self.record(ended)
        for station in self._stations():
            self.tell(station.known())
            if settled:
                self.session_witness.ended([client.id for client in station.clients.values()])
        self.tell(ended)
        if self.replicas is not None:
            self.replicas.end(ended)
        return settled

    def _loop(self) -> bool:
        next_check = 0
        deadline: int | None = None
        for _ in range(EVENTS_MAX * (1 + self.options.nodes // HOSTS)):
            if not self._queue:
                return self._is_healed and self._is_settled()
            self.now, _, action, arguments = heapq.heappop(self._queue)
            action(*arguments)
            if self._is_healed and self.now >= next_check:
                next_check = self.now + CHECK_INTERVAL_NS
                deadline = deadline or self.now + self.options.settle_ns
                if self._is_settled() and not self._speak_last():
                    return True
                if self.now > deadline:
                    return False
        return False

    def _is_settled(self) -> bool:
        """One configuration of all that live, everything sent, received and delivered."""
        if self._pending:
            return False
        lives = [host.life for host in self.hosts if host.life is not None]
        members = {life.view.id: life.view.members for life in lives if life.view is not None}
        alive = tuple(sorted(life.process for life in lives))
        return (
            list(members.values()) in ([], [alive])
            and not any(host.has_left and host.life is not None for host in self.hosts)
            and all(life.view is not None and life.engine.is_idle() for life in lives)
            and all(station.is_quiet() for station in self._stations())
            and (self.replicas is None or self.replicas.is_quiet())
        )

    # Applications

    def _plan_messages(self) -> None:
        options, rng = self.options, self.rng
        for number in range(options.messages + options.large_messages):
            is_large = number >= options.messages
            late = rng.random() < 0.1
            at = options.fault_time_ns + 1 + rng.randrange(0, 50_000_000) if late else None
            self._pending += 1
            self.schedule(at or rng.randrange(0, options.fault_time_ns), self._submit, is_large)

    def _submit(self, is_large: bool) -> None:
        self._pending -= 1
        options, rng = self.options, self.rng
        host = self.hosts[rng.randrange(0, options.nodes)]
        if options.has_clients:
            self._act(host)
            return
        self._submit_plain(host, rng, options.large_size if is_large else None)

    def _submit_plain(self, host: Host, rng: Random, size: int | None) -> None:
        """One message of this size, or of a drawn one."""
        options = self.options
        sender = rng.randrange(0, options.senders)
        service = options.services[rng.randrange(0, len(options.services))]
        size = size or rng.randrange(options.size_min, options.size_max + 1)
        filler = rng.randbytes(size - STAMP_SIZE)
        host.submit(sender, service, size, filler, self._destinations(host, rng) if options.topics else EVERYWHERE)

    def _destinations(self, host: Host, rng: Random) -> tuple[str, ...]:
        """Return where a message goes, mostly to what the host wants itself; now and then everywhere, or to nobody."""
        drawn, topics = rng.random(), range(len(self.options.topics))
        if drawn < 0.03:
            return EVERYWHERE
        if drawn < 0.06:
            return (topic_name(len(topics)),)
        own = sorted(host.topics)
        picks = 2 if drawn < 0.2 else 1
        chosen = {rng.choice(own) if own and rng.random() < 0.7 else rng.choice(topics) for _ in range(picks)}
        return tuple(topic_name(topic) for topic in sorted(chosen))

    def _turn(self) -> None:
        """Some host begins or ceases to want a topic."""
        self._pending -= 1
        host = self.hosts[self.rng.randrange(0, self.options.nodes)]
        host.turn_to(self.rng.randrange(0, len(self.options.topics)))

    def _plan_rates(self) -> None:
        """Each host with a rate has a generator of its own, so that it sends the same whatever the others do."""
        for rate in self.options.rates:
            rng = Random(self.rng.random())
            self._submit_later(rate, rng, rate.first_ns(rng))

    def _submit_later(self, rate: Rate, rng: Random, at: int) -> None:
        active = rate.active_ns(at)
        if active is not None and active < self.options.fault_time_ns:
            self._pending += 1
            self.schedule(active, self._submit_at_rate, rate, rng)

    def _submit_at_rate(self, rate: Rate, rng: Random) -> None:
        self._pending -= 1
        self._submit_plain(self.hosts[rate.node], rng, None)
        self._submit_later(rate, rng, self.now + rate.gap_ns(rng))

    def _rush(self, at: int) -> None:
        """Clients are busiest when it hurts, and so are those who send to topics."""
        for _ in range(self.options.rush if self.options.has_clients or self.options.topics else 0):
            self._pending += 1
            self.schedule(at + self.rng.randrange(0, RUSH_NS), self._submit, False)

    def _act(self, host: Host) -> None:
        life = host.life
        if life is not None and life.station is not None and not host.has_left:
            if self.replicas is not None:
                self.replicas.act(host.node, life.station)
            else:
                self.crowd.act(life.station)

    def _stations(self) -> list[Station]:
        lives = [host.life for host in self.hosts]
        return [life.station for life in lives if life is not None and life.station is not None]

    def _speak_last(self) -> bool:
        """Clients get a last word when all is calm; False when they have had it, or there are none."""
        stations = self._stations()
        if self._is_calm or not any(station.clients for station in stations):
            return False
        self._is_calm = True
        self.tell(Calm(Instant(self.now)))
        if self.replicas is not None:
            self.replicas.speak_last(Calm(Instant(self.now)))
        else:
            self.crowd.speak_last(stations)
        return True

    def _saturate(self) -> None:
        """Every process always has something to send, until all have been given enough."""
        alive = [host for host in self.hosts if host.life is not None and not host.has_left]
        senders = tuple(host.life.process for host in alive if host.life is not None)
        self.record(Saturated(Instant(self.now), senders, begins=True))
        self._top_up(alive, senders, self.options.saturation * len(alive))

    def _top_up(self, hosts: list[Host], senders: tuple[ProcessId, ...], left: int) -> None:
        sizes = self.options.sizes
        size = self.options.saturation_size or sizes.whole_size_max
        # Nobody's queue takes what is meant for the others: then they would have nothing to send.
        kept = min(4 * sizes.turn_size_max, self.options.saturation * size)
        enough = sizes.queue_size_max - kept
        for host in hosts:
            while left > 0 and host.life is not None and host.life.engine.room() > enough:
                left -= 1
                host.submit(0, Service.AGREED, size, self.rng.randbytes(size - STAMP_SIZE))
        if left > 0:
            self.schedule(self.now + TOP_UP_NS, self._top_up, hosts, senders, left)
            return
        self._pending -= 1
        self.record(Saturated(Instant(self.now), senders, begins=False))

    def _is_early(self) -> bool:
        """Clients first need time to find each other."""
        return bool(self.options.clients) and self.now < self.options.fault_time_ns // 6

    def _lie_in_wait(self, event: Event) -> None:
        """Strike in the middle of a recovery or a merge: after a promise, a mark or a topology, or when the first has
        installed a configuration."""
        promised = isinstance(event, Noted) and isinstance(event.note, Occurred) and event.note.what in MOMENTS
        installed = isinstance(event, Installed) and len(event.configuration.members) > 1
        if (promised or installed) and self.rng.random() < AMBUSH_PROBABILITY:
            self._ambushes -= 1
            at = self.now + self.rng.randrange(0, 2 * self.options.delay_max_ns)
            node = node_of(event.process) if isinstance(event, Noted | Installed) else 0
            fault = ambush(at, node, self.options.nodes, self.rng, self.options.attachments)
            self.schedule(at, self._strike, fault)

    # Faults

    def strike_at(self, at: int, fault: Fault) -> None:
        self.schedule(at, self._strike, fault)

    def _strike(self, fault: Fault) -> None:
        if self._is_healed:
            return  # it lay in wait too long
        if self.on_fault is not None:
            self.on_fault(self.now, fault)
        host = self.hosts[fault.node]
        for segment in self.segments if fault.segment is None else [self.segments[fault.segment]]:
            for network in segment.networks if fault.network is None else [segment.networks[fault.network]]:
                self._strike_network(network, fault)
        match fault.kind:
            case FaultKind.CRASH:
                host.crash()
            case FaultKind.CRASH_BEFORE_WRITE | FaultKind.CRASH_DURING_WRITE | FaultKind.CRASH_AFTER_WRITE:
                if host.life is not None:
                    host.life.crash_at_write = fault.kind
            case FaultKind.LOSE_DISK:
                host.crash()
                host.disk.clear()
            case FaultKind.FAIL_DISK:
                host.is_disk_failing = True
            case FaultKind.MEND_DISK:
                host.mend_disk()
            case FaultKind.RESTART:
                self._restart(host)
            case FaultKind.PAUSE:
                host.paused_until = self.now + fault.duration_ns
            case FaultKind.LEAVE:
                host.leave()
            case FaultKind.RELOAD:
                host.enlist(sim_roster(fault.version, fault.listed, fault.variant))
            case FaultKind.FLOOD:
                for attachment, segment in enumerate(host.segments):
                    if fault.segment in (None, segment.number):
                        host.narrow_until[attachment] = self.now + fault.duration_ns

    def _strike_network(self, network: Network, fault: Fault) -> None:
        match fault.kind:
            case FaultKind.PARTITION:
                network.partition(fault.groups)
            case FaultKind.CUT:
                network.cuts.update(fault.links)
            case FaultKind.BLOCK:
                network.blocked.update(fault.links)
            case FaultKind.MEND if fault.links:
                network.mend(fault.links)
            case FaultKind.HEAL | FaultKind.MEND:
                network.heal()
            case FaultKind.DETACH:
                network.detached.add(fault.node)
            case FaultKind.ATTACH:
                network.detached.discard(fault.node)
            case FaultKind.DEAFEN:
                network.deaf.add(fault.node)
            case FaultKind.LOSE_TOKEN:
                network.tokens_lost_until = self.now + fault.duration_ns
            case FaultKind.DOWN:
                network.is_down = True
            case FaultKind.LOSSY if fault.links:
                network.link_loss.update(dict.fromkeys(fault.links, fault.chance))
            case FaultKind.LOSSY:
                network.loss = fault.chance
            case FaultKind.SLOW if fault.links:
                network.link_delay_ns.update(dict.fromkeys(fault.links, fault.duration_ns))
            case FaultKind.SLOW:
                network.delay_ns = fault.duration_ns

    def _restart(self, host: Host) -> None:
        if host.life is None:
            host.start()

    def _heal(self) -> None:
        """From now on nothing bad happens. Who is dead or gone stays so, or comes back for the last time."""
        for network in self.networks:
            network.heal()
            network.is_calm = True
            network.tokens_lost_until = -1
        for host in self.hosts:
            host.narrow_until = [0] * len(host.segments)
            host.paused_until = min(host.paused_until, self.now)
            is_needed = self.replicas is not None or host.joins_segments
            if host.life is None and (self.rng.random() < 0.5 or is_needed):
                self._restart(host)
            if host.life is not None:
                host.life.crash_at_write = None
            if self.options.rosters:
                host.enlist(last_roster(self.options))
        if self.keeper is not None:
            self.keeper.heal()
        alive = tuple(host.life.process for host in self.hosts if host.life is not None and not host.has_left)
        healed = Healed(Instant(self.now), alive)
        self.record(healed)
        self.tell(healed)
        for station in self._stations():
            station.heal()
        if self.replicas is not None:
            self.replicas.heal(healed)
        self._is_healed = True
        if self.options.saturation:
            self._pending += 1
            self.schedule(self.now + self.options.settle_ns // 4, self._saturate)
