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

from ordercast.checker import Checkers
from ordercast.checker.groups import GroupCheckers
from ordercast.checker.replicated import ReplicaCheckers
from ordercast.checker.verdict import Outcome, Verdict, combined
from ordercast.model.effects import Alarm
from ordercast.model.ids import NodeId, ProcessId
from ordercast.model.notes import Moved, NetworkTurned, Occurred, TokenReleased, Visited
from ordercast.networks.assembly import assembled
from ordercast.order.catalogue import entry_of
from ordercast.order.engine import Engine
from ordercast.order.membership.states.moves import GATHER
from ordercast.order.setup import Domain
from ordercast.sim.digest import Digest
from ordercast.sim.faults import Fault
from ordercast.sim.network_swarm import release_row, turn_row
from ordercast.sim.options import SimOptions
from ordercast.sim.plots import lay
from ordercast.sim.ring.network_witness import NetworkWitness
from ordercast.sim.ring.poison import Poisoner
from ordercast.sim.ring.rest_witness import RestWitness
from ordercast.sim.rosters import RosterWitness
from ordercast.sim.topology import segments_of
from ordercast.sim.world import World
from ordercast.trace.client_records import ClientEvent
from ordercast.trace.records import Event, Installed, Noted, Started
from ordercast.trace.replica_records import ReplicaEvent


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
            elif isinstance(note, Occurred):
                self.counts[note.what.value] += note.count
            elif isinstance(note, Visited):
                self.counts["retransmissions"] += note.retransmitted
            elif isinstance(note, NetworkTurned):
                self.counts[turn_row(note.state, note.evidence)] += 1
            elif isinstance(note, TokenReleased):
                self.counts[release_row(note.cause)] += 1
        elif isinstance(event, Installed):
            self.counts[f"{event.configuration.kind.value} views"] += 1


def engine_of(options: SimOptions, verbose: bool, node: NodeId) -> Engine:
    """The engine of one host, as a daemon makes it."""
    segments = segments_of(options.attachments, node)
    return assembled(
        options.engine,
        node,
        options,
        options.networks,
        nodes=options.nodes,
        verbose=verbose,
        domains=tuple(Domain(segment, f"segment{segment}") for segment in segments),
    ).driven


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
) -> Result:
    """`script` may set the scene before the run begins: schedule actions, give the network a rule."""
    options.validate()
    entry, checkers, tally, digest, rest = entry_of(options.engine), Checkers(), Tally(), Digest(), RestWitness()
    events: list[Event] = []
    observers: list[Callable[[Event], None]] = [checkers.observe, tally.observe, digest.observe, rest.observe]
    if keep_events:
        observers.append(events.append)
    if observer is not None:
        observers.append(observer)
    world = World(options, Random(seed), observers, on_fault)
    group_checkers, client_events = GroupCheckers(entry.groups), list[ClientEvent]()
    if options.has_clients:
        observers.append(
            lambda event: group_checkers.observe(event) if isinstance(event, Started | Installed) else None
        )
        world.client_observers += [group_checkers.observe, digest.observe]
        if keep_events:
            world.client_observers.append(client_events.append)
        if client_observer is not None:
            world.client_observers.append(client_observer)
    replica_checkers, replica_events = ReplicaCheckers(entry.replicas), list[ReplicaEvent]()
    if options.replicas:
        world.replica_observers += [replica_checkers.observe, digest.observe]
        if keep_events:
            world.replica_observers.append(replica_events.append)
        if replica_observer is not None:
            world.replica_observers.append(replica_observer)
    if options.networks.count > 1 and (entry.is_layered or options.segments == 1):  # networks lie beneath rings
        world.witness = NetworkWitness(options)
        observers.append(world.witness.observe)
        for network in world.networks:
            network.witness = world.witness.arriving
    if options.rosters:
        world.roster_witness = RosterWitness()
        observers.append(world.roster_witness.observe)
    if options.poison:
        world.poisoner = Poisoner(options.sizes.cluster, options.poison, Random(f"poison {seed}"), tally.counts)
    if options.aim is not None:
        lay(world, options.aim, Random(f"aim {seed}"))
    if script is not None:
        script(world)
    settled = world.run(make_engine or partial(engine_of, options, verbose))
    verdicts = checkers.verdicts() + (group_checkers.verdicts() if options.has_clients else [])
    if not options.poison:  # a forged aru makes a token rest too early, which costs time and no promise
        verdicts += rest.verdicts()
    verdicts += world.session_witness.verdicts()
    verdicts += replica_checkers.verdicts() if options.replicas else []
    if world.witness is not None:
        verdicts += world.witness.verdicts()
        tally.counts[f"networks: {options.networks.replication.value}"] += 1
        tally.counts.update(f"networks: {fault.kind.value}" for fault in options.faults if fault.network is not None)
    if world.roster_witness is not None:
        verdicts += world.roster_witness.verdicts()
    tally.counts.update(world.group_counts)
    return Result(
        seed,
        options,
        verdicts,
        combined(verdicts),
        digest.text(),
        world.now,
        world.inputs,
        settled,
        tally.counts,
        world.alarms,
        events,
        client_events,
        replica_events,
    )
