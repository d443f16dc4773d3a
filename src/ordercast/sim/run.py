"""One run from outside: `simulate(options, seed)`, a pure function, and what it returns.

The result says what happened, what the checkers think of it, and a digest of the whole history that is the same on any
machine under any hash seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import TypeVar

from ordercast.checker import Checkers
from ordercast.checker.groups import GroupCheckers
from ordercast.checker.replicated import ReplicaCheckers
from ordercast.checker.verdict import Outcome, Verdict, combined
from ordercast.model.effects import Alarm, Endpoint
from ordercast.model.ids import NodeId, ProcessId
from ordercast.model.notes import Distributed, Moved, NetworkTurned, Occurred, TokenReleased, Visited
from ordercast.networks.assembly import Assembly, assembled
from ordercast.order.catalogue import entry_of
from ordercast.order.engine import Engine
from ordercast.order.gateways.promised import ENGINE as GATEWAYS
from ordercast.order.membership.states.moves import GATHER
from ordercast.order.setup import Domain, FarNode
from ordercast.order.sites.promised import ENGINE as SITES
from ordercast.order.sites.states import EXCHANGE
from ordercast.order.tree.promised import ENGINE as TREE
from ordercast.sim.adaptive_witness import AdaptiveWitness
from ordercast.sim.digest import Digest
from ordercast.sim.faults import Fault
from ordercast.sim.gateways.witness import RingsWitness
from ordercast.sim.network_swarm import release_row, turn_row
from ordercast.sim.options import ORACLE, SimOptions
from ordercast.sim.plot import Aim
from ordercast.sim.plots import lay
from ordercast.sim.ring.network_witness import NetworkWitness
from ordercast.sim.ring.poison import Poisoner
from ordercast.sim.ring.rest_witness import RestWitness
from ordercast.sim.ring_topologies import clusters_of, domain_name
from ordercast.sim.rosters import RosterWitness
from ordercast.sim.sealed.adversary import Adversary
from ordercast.sim.sealed.keeper import Keeper
from ordercast.sim.sealed.options import SealedRun
from ordercast.sim.sites.witness import SitesWitness
from ordercast.sim.topology import are_linked, segments_of
from ordercast.sim.trees.oracle import Oracle
from ordercast.sim.trees.witness import TreesWitness
from ordercast.sim.world import World
from ordercast.trace.client_records import ClientEvent
from ordercast.trace.records import Event, Installed, Noted, Started
from ordercast.trace.replica_records import ReplicaEvent

EventT = TypeVar("EventT")
PACKETS = "packets sent"  # row of the counts


@dataclass(slots=True)
class Result:
    seed: int
    options: SimOptions
    verdicts: list[Verdict]
    verdict: Verdict
    digest: str
    virtual_ns: int
    inputs: int
    settled: bool
    counts: Counter[str]  # how often everything happened that a campaign counts
    alarms: list[tuple[int, ProcessId, Alarm]]
    events: list[Event]  # the history, when it was asked for
    client_events: list[ClientEvent] = field(default_factory=list)  # that of the clients, likewise
    replica_events: list[ReplicaEvent] = field(default_factory=list)  # that of the replicas, likewise

    @property
    def is_valid(self) -> bool:
        return self.verdict.outcome is Outcome.VALID and self.settled


@dataclass(slots=True)
class Tally:
    """Counts what a campaign wants to have seen."""

    counts: Counter[str] = field(default_factory=Counter)

    def observe(self, event: Event) -> None:
        if isinstance(event, Noted):
            note = event.note
            if isinstance(note, Moved):
                self.counts[f"move {note.origin} → {note.target}"] += 1
                if note.reason is not None and note.target == GATHER:
                    self.counts[f"gather: {note.reason.text}"] += 1
                elif note.reason is not None and note.target == EXCHANGE:
                    self.counts[f"attempt: {note.reason.text}"] += 1
            elif isinstance(note, Occurred):
                self.counts[note.what.value] += note.count
            elif isinstance(note, Visited):
                self.counts["retransmissions"] += note.retransmitted
            elif isinstance(note, Distributed):
                self.counts["distributions adopted"] += 1
            elif isinstance(note, NetworkTurned):
                self.counts[turn_row(note.state, note.evidence)] += 1
            elif isinstance(note, TokenReleased):
                self.counts[release_row(note.cause)] += 1
        elif isinstance(event, Installed):
            self.counts[f"{event.configuration.kind.value} views"] += 1


def engine_of(options: SimOptions, verbose: bool, node: NodeId) -> Engine:
    """The engine of one host, as a daemon makes it."""
    return assembly_of(options, verbose, node).driven


def assembly_of(options: SimOptions, verbose: bool, node: NodeId) -> Assembly:
    """The same with all that lies beneath it."""
    segments = segments_of(options.attachments, node)
    if entry_of(options.engine).has_sites:
        return _assembly_of_site(options, verbose, node)
    return assembled(
        options.engine,
        node,
        options,
        options.networks,
        nodes=options.nodes,
        verbose=verbose,
        domains=tuple(Domain(segment, domain_name(segment)) for segment in segments),
    )


def _assembly_of_site(options: SimOptions, verbose: bool, node: NodeId) -> Assembly:
    """The engine of a host of several sites: its first segment is its site, its second the wide area."""
    site, *_ = segments_of(options.attachments, node)
    return assembled(
        options.engine,
        node,
        options,
        options.networks,
        nodes=options.nodes,
        verbose=verbose,
        domains=(Domain(site, f"site{site}"),),
        beyond=tuple(
            FarNode(NodeId(other), Endpoint(str(other), 0), segments_of(options.attachments, other)[0])
            for other in range(options.nodes)
            if are_linked(options.site_links, site, segments_of(options.attachments, other)[0])
        ),
    )


class _Jury:
    """Who watches a run and judges it, whatever the run has: clients, replicas, several networks, node lists."""

    def __init__(self, options: SimOptions, *, judged: bool = True) -> None:
        self._judged = judged
        self._entry = entry = entry_of(options.engine)
        self._options = options
        self.order, self.tally, self.digest, self._rest = Checkers(), Tally(), Digest(), RestWitness()
        self._groups, self._replicas = GroupCheckers(entry.groups), ReplicaCheckers(entry.replicas)
        self.observers: list[Callable[[Event], None]] = [*(self.tally.observe, self.digest.observe, self._rest.observe)]
        if judged:
            self.observers.insert(0, self.order.observe)

    def watch_clients(self, world: World, also: list[Callable[[ClientEvent], None]]) -> None:
        if self._options.has_clients:
            self.observers.append(self._tell_groups)
            world.client_observers += [self._groups.observe, self.digest.observe, *also]

    def _tell_groups(self, event: Event) -> None:
        """The judges of groups want to know what daemons promise and who was in reach."""
        if isinstance(event, Started | Installed):
            self._groups.observe(event)

    def watch_replicas(self, world: World, also: list[Callable[[ReplicaEvent], None]]) -> None:
        if self._options.replicas:
            world.replica_observers += [self._replicas.observe, self.digest.observe, *also]

    def watch_networks(self, world: World) -> None:
        options = self._options
        if options.rosters and (options.sealed is None or options.engine != GATEWAYS):  # sealed, nobody sees its rings
            world.rosters = RosterWitness(sees_all=options.engine != TREE, is_told=options.engine == GATEWAYS)
            self.observers.append(world.rosters.observe)
        if options.sealed is not None:
            return  # what follows reads packets, and these are sealed
        if options.networks.count > 1 and (self._entry.is_layered or options.segments == 1):  # they lie beneath rings
            world.witness = NetworkWitness(options)
            self.observers.append(world.witness.observe)
            for network in world.networks:
                network.witness = world.witness.arriving
        if options.engine == "adaptive":
            world.slot_witness = AdaptiveWitness(options)
            self.observers.append(world.slot_witness.observe)

    def watch_rings(self, world: World, make: Callable[[NodeId], Engine]) -> Callable[[NodeId], Engine]:
        """Return how engines are made, seen by the witness of several rings or sites if there is one."""
        if self._options.engine == SITES:
            world.sites_witness = SitesWitness()
            return partial(world.sites_witness.watched, make)
        if self._options.engine == TREE:
            world.trees_witness = TreesWitness()
            return partial(world.trees_witness.watched, make)
        if self._options.engine != GATEWAYS or self._options.sealed is not None:
            return make
        world.rings_witness = RingsWitness(world.rosters, has_forgers=bool(self._options.poison))
        self.observers.append(world.rings_witness.observe)
        return partial(world.rings_witness.watched, make)

    def verdicts(self, world: World, *, settled: bool) -> list[Verdict]:
        options, counts = self._options, self.tally.counts
        verdicts = self.order.verdicts() if self._judged else []
        verdicts += self._groups.verdicts() if options.has_clients else []
        is_ordered_by_token = not self._entry.has_links
        if not options.poison and is_ordered_by_token:  # a forged aru makes it rest too early: no promise is broken
            verdicts += self._rest.verdicts()
        verdicts += world.session_witness.verdicts()
        verdicts += self._replicas.verdicts() if options.replicas else []
        if world.witness is not None:
            verdicts += world.witness.verdicts()
            counts[f"networks: {options.networks.replication.value}"] += 1
            counts.update(f"networks: {fault.kind.value}" for fault in options.faults if fault.network is not None)
        if world.rings_witness is not None:
            if settled:
                world.rings_witness.settled(world.hosts)
            verdicts += world.rings_witness.verdicts()
        if world.sites_witness is not None:
            verdicts += world.sites_witness.verdicts()
        if world.trees_witness is not None:
            if settled:
                world.trees_witness.settled(world.hosts)
            verdicts += world.trees_witness.verdicts()
        if world.slot_witness is not None:
            verdicts += world.slot_witness.verdicts()
        if world.rosters is not None:
            verdicts += world.rosters.verdicts()
        if world.keeper is not None:
            world.keeper.end()
            verdicts += world.keeper.witness.verdicts()
        counts.update(world.group_counts)
        counts[PACKETS] = world.packets
        return verdicts


def simulate(
    options: SimOptions,
    seed: int,
    *,
    keep_events: bool = False,
    verbose: bool = True,
    observer: Callable[[Event], None] | None = None,
    client_observer: Callable[[ClientEvent], None] | None = None,
    replica_observer: Callable[[ReplicaEvent], None] | None = None,
    on_fault: Callable[[int, Fault], None] | None = None,
    make_engine: Callable[[NodeId], Engine] | None = None,
    script: Callable[[World], None] | None = None,
    judged: bool = True,
) -> Result:
    """`script` may set the scene before the run begins: schedule actions, give the network a rule. `judged`: by the
    promises of the engine; otherwise witnesses alone look on, whose time does not grow with hosts times messages."""
    options.validate()
    events, client_events, replica_events = list[Event](), list[ClientEvent](), list[ReplicaEvent]()
    jury = _Jury(options, judged=judged)
    jury.observers += _also(events, keep_events, observer)
    world = World(options, Random(seed), jury.observers, on_fault)
    jury.watch_clients(world, _also(client_events, keep_events, client_observer))
    jury.watch_replicas(world, _also(replica_events, keep_events, replica_observer))
    jury.watch_networks(world)
    make = make_engine or partial(engine_of, options, verbose)
    oracle = Oracle(world) if options.control == ORACLE else None
    make = jury.watch_rings(world, make if oracle is None else partial(oracle.make, options))
    make = make if oracle is None else partial(oracle.sharing, make)
    if options.sealed is not None:
        make = _sealed(world, options.sealed, seed, verbose, jury.tally.counts)
    _make_trouble(world, seed, jury.tally.counts)
    if script is not None:
        script(world)
    settled = world.run(make)
    verdicts = jury.verdicts(world, settled=settled)
    digest, counts = jury.digest.text(), jury.tally.counts
    told = (digest, world.now, world.inputs, settled, counts, world.alarms, events, client_events, replica_events)
    return Result(seed, options, verdicts, combined(verdicts), *told)


def _also(
    kept: list[EventT], is_kept: bool, observer: Callable[[EventT], None] | None
) -> list[Callable[[EventT], None]]:
    """Return who else is told of events: a list that keeps them, and the caller's own observer."""
    return [*([kept.append] if is_kept else []), *([observer] if observer is not None else [])]


def _sealed(
    world: World, plan: SealedRun, seed: int, verbose: bool, counts: Counter[str]
) -> Callable[[NodeId], Engine]:
    """Return how sealed engines are made; keys, salts and attacks are drawn apart."""
    keeper = world.keeper = Keeper(world, plan, Random(f"keys {seed}"), counts)
    if plan.adversary:
        world.adversary = Adversary(world, keeper, plan.adversary, Random(f"adversary {seed}"), counts)

    def make(node: NodeId) -> Engine:
        return keeper.sealed(assembly_of(world.options, verbose, node), node, world.hosts[node].lives)

    return make


def _make_trouble(world: World, seed: int, counts: Counter[str]) -> None:
    """Have packets forged and a plot laid, where the options ask for it."""
    options = world.options
    if options.poison:
        # Rings that fall apart would spoil the plot that brings daemons together.
        rng, is_aimed = Random(f"poison {seed}"), options.aim not in (None, Aim.GATHERING)
        world.poisoner = Poisoner(clusters_of(options), options.poison, rng, counts, is_aimed=is_aimed)
    if options.aim is not None:
        lay(world, options.aim, Random(f"aim {seed}"))
