"""Many hostile runs: every seed draws its own cluster, network and faults, and all cores work.

A swarm is only worth what it has met: the tally of all runs tells how often each move, reason and rare event happened.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from random import Random

from ordercast.model.errors import UsageError
from ordercast.model.ids import MICROSECOND, MILLISECOND, SECOND
from ordercast.model.notes import Occurrence
from ordercast.model.service import Service
from ordercast.order.baselines.base import GONE
from ordercast.order.catalogue import DEFAULT, entry_of
from ordercast.sim.aimed_swarm import (
    AIMED_FIRST,
    NETWORKS_EVERY,
    aimed_group_options,
    aimed_network_options,
    aimed_options,
    aimed_replica_options,
    ambushed_ring_options,
    merging_ring_options,
    with_slow_reader,
)
from ordercast.sim.calm_swarm import calm_options
from ordercast.sim.faults import cascade, failing_disks, rotation
from ordercast.sim.group_tally import SELDOM, GroupOccurrence
from ordercast.sim.network_swarm import expected_network_rows, with_networks
from ordercast.sim.options import SIM_RING, Delays, SimOptions
from ordercast.sim.plot import Aim
from ordercast.sim.replica_tally import DURABLE, NEVER, ReplicaOccurrence
from ordercast.sim.ring.poison import Poison
from ordercast.sim.ring_episodes import EPISODES_FIRST, episode_options
from ordercast.sim.ring_topologies import RingTopology, drawn_attachments
from ordercast.sim.rosters import with_rosters
from ordercast.sim.run import simulate
from ordercast.sim.sealed_swarm import expected_sealed_rows, with_seals
from ordercast.sim.site_swarm import with_sites
from ordercast.sim.slot_swarm import with_slots
from ordercast.sim.topology import Link
from ordercast.sim.tree_swarm import with_trees
from ordercast.sim.users import STRUCTURES, TIMED

LARGE_EVERY = 10  # one run in ten has messages above 64 kB
SATURATED_EVERY = 20
SATURATED_FIRST = 7
LISTED_EVERY = 4  # one run in four has node lists, which differ for a while
LISTED_FIRST = 1
POISONED = 0.2  # one run in five has forged numbers
FAILING_DISKS = 0.3  # chance that some do
OF_CLIENTS = (  # applications that do not read are clients, and so is whoever wants groups
    Occurrence.HELD_BY_APPLICATION,
    Occurrence.TREE_HELD_BY_APPLICATION,
    Occurrence.NETWORK_HELD,
    Occurrence.NETWORK_FILTERED,
    Occurrence.NETWORK_INTEREST_RAISED,
)
SEVERAL_EVERY = 3  # one sealed run in three has several networks
TIMED_FIRST = 20_000  # the first seed of replicas whose users have leases, delays and times
DURABLE_FIRST = 2_000_000  # seeds from here on of a swarm with replicas: they keep journals
DOUBLED_EVERY = 3  # one run in three has replicas that send commands twice


class SwarmKind(Enum):
    """What the runs of a swarm have beside plain messages."""

    PLAIN = "plain"
    GROUPS = "groups"  # clients, whose deeds take the place of messages
    REPLICATED = "replicated"  # replicas of a state, likewise
    NETWORKS = "networks"  # several networks
    SEALED = "sealed"  # sealed packets, and an adversary; every third run on several networks


@dataclass(frozen=True, slots=True)
class Outline:
    """What is kept of one run."""

    seed: int
    is_valid: bool
    sentence: str  # why it is not valid; empty when it is
    digest: str
    inputs: int
    submissions: int
    counts: Counter[str]


def hostile_options(seed: int) -> SimOptions:
    """Everything hostile, drawn from the seed alone."""
    options = _hostile(seed)
    return _with_disks(_poisoned(aimed_options(options, seed) if seed >= AIMED_FIRST else options, seed), seed)


def _poisoned(options: SimOptions, seed: int) -> SimOptions:
    """Drawn apart, so that all other runs stay what they were before there was any poison. Some have no faults beside
    it: a new configuration after the last of them would hide what a forged number does to an old one."""
    rng = Random(f"poison swarm {seed}")
    if rng.random() >= POISONED:
        return options
    options = replace(options, poison=rng.choice((0.01, 0.05, 0.2)))
    return replace(options, random_faults=0, ambushes=0, links=()) if rng.random() < 0.4 else options


def _with_disks(options: SimOptions, seed: int) -> SimOptions:
    """Disks fail too, in some runs; drawn apart, so that nothing else of a seed depends on it."""
    rng = Random(f"disks swarm {seed}")
    if rng.random() >= FAILING_DISKS:
        return options
    faults = (*options.faults, *failing_disks(options.nodes, options.fault_time_ns, rng))
    return replace(options, faults=tuple(sorted(faults, key=lambda fault: fault.at)))


def _hostile(seed: int) -> SimOptions:
    rng = Random(f"swarm {seed}")
    nodes = rng.choice((3, 3, 4, 4, 5, 5, 6, 7, 8))
    is_large = seed % LARGE_EVERY == 0
    is_lossy = rng.random() < 0.7
    ring = replace(
        SIM_RING,
        accelerated=rng.random() < 0.5,
        window=rng.choice((16, 40, 64)),
        visit_max=rng.choice((4, 12, 16)),
        packet_size_max=1472 if is_large else rng.choice((300, 600, 1472)),
        fail_to_receive_rotations=rng.choice((8, 15, 30)),
        token_loss_ns=rng.choice((60, 60, 90)) * MILLISECOND,
    )
    return SimOptions(
        nodes=nodes,
        ring=ring,
        messages=rng.randrange(200, 300),
        size_max=rng.choice((60, 400, 1200)),
        large_messages=2 if is_large else 0,
        saturation=150 if seed % SATURATED_EVERY == SATURATED_FIRST else 0,
        delay_max_ns=rng.choice((200, 600, 1500)) * MICROSECOND,
        delays=rng.choice((Delays.UNIFORM, Delays.UNIFORM, Delays.EXPONENTIAL)),
        links=_bad_links(nodes, rng) if rng.random() < 0.3 else (),
        slow_hosts=((rng.randrange(nodes), rng.choice((5.0, 30.0))),) if rng.random() < 0.2 else (),
        straggler=rng.choice((0.0, 0.01, 0.05)),
        ghost=rng.choice((0.0, 0.002, 0.02)),
        loss=rng.choice((0.005, 0.02, 0.08, 0.15)) if is_lossy else 0.0,
        duplication=rng.choice((0.0, 0.01, 0.05)),
        bandwidth=rng.choice((0, 0, 100_000_000)),
        receive_buffer=rng.choice((30, 200)),
        is_fifo=rng.random() < 0.7,
        clock_drift=rng.choice((0.0, 0.0001, 0.01)),
        random_faults=rng.randrange(4, 12),
        ambushes=rng.choice((0, 2, 6)),
        fault_time_ns=rng.choice((400, 800, 1200)) * MILLISECOND,
        settle_ns=8 * SECOND,
        all_at_once=rng.random() < 0.7,
    )


def hostile_group_options(seed: int) -> SimOptions:
    """The same with clients, whose deeds take the place of plain messages. Mostly the network is cut and healed again
    and again, so that groups come together, are torn apart, and are torn apart once more before they know of it."""
    options = _hostile_groups(seed)
    options = aimed_group_options(options, seed) if seed >= AIMED_FIRST else options
    options = _with_sessions(_with_disks(_poisoned(options, seed), seed), seed)
    return with_slow_reader(options) if options.aim is Aim.SLOW_READER else options


def _with_sessions(options: SimOptions, seed: int) -> SimOptions:
    """Clients have little credit, and some read slowly, so that what happens then happens often."""
    rng = Random(f"sessions swarm {seed}")
    return replace(
        options,
        pace_changes=rng.choice((0.0, 0.0, 0.05, 0.15)),
        rudeness=rng.choice((0.0, 0.0, 0.01)),
        send_credit=rng.choice((0, 600, 2_000, 6_000)),
        receive_credit=rng.choice((0, 600, 2_000)),
        client_queue=rng.choice((1_500, 4_000, 16_000, 16_000)),
        hold_ns=rng.choice((30, 80, 200)) * MILLISECOND,
        memberships_max=rng.choice((0, 0, 0, 4)),
    )


def _hostile_groups(seed: int) -> SimOptions:
    rng = Random(f"groups swarm {seed}")
    options = replace(
        _hostile(seed),
        messages=rng.randrange(80, 200),
        large_messages=0,
        saturation=0,
        clients=rng.choice((1, 2, 2, 3)),
        groups=rng.choice((1, 2, 3, 3)),
        rush=rng.choice((0, 2, 5, 10)),
        size_max=rng.choice((40, 120, 400)),
        services=rng.choice((SimOptions().services, (Service.SAFE, Service.SAFE, Service.AGREED, Service.FIFO))),
        ambushes=rng.choice((6, 15, 30)),
    )
    if rng.random() < 0.3:
        return options
    nodes = min(options.nodes, 6)
    faults = cascade(rng.randrange(5, 12), nodes, rng)
    return replace(
        options,
        nodes=nodes,
        loss=rng.choice((0.0, 0.0, 0.01, 0.03)),
        ghost=0.0,
        links=(),
        slow_hosts=(),
        faults=faults,
        random_faults=rng.randrange(0, 3),
        fault_time_ns=faults[-1].at + 100 * MILLISECOND,
    )


def hostile_replica_options(seed: int) -> SimOptions:
    """The same with replicas of a state instead of clients; from `TIMED_FIRST` on all that ends with time is used."""
    options = _hostile_replicas(seed)
    if seed >= DURABLE_FIRST:
        return _durable(options, seed)
    if seed >= TIMED_FIRST:
        return replace(options, structure=TIMED[seed % len(TIMED)])
    return aimed_replica_options(options, seed) if seed >= AIMED_FIRST else options


def _durable(options: SimOptions, seed: int) -> SimOptions:
    """Give the replicas journals, and cut the power of all hosts. Who has a journal is killed at leisure."""
    rng = Random(f"durable replicas {seed}")
    weights = options.replica_weights or (1,) * options.nodes
    return replace(
        options,
        replica_weights=weights,
        journals=True,
        power_cuts=rng.choice((1, 1, 2, 3)),
        replica_kills=rng.choice((0, 3, 8, 20)),
        fault_time_ns=max(options.fault_time_ns, rng.randrange(500, 1100) * MILLISECOND),
        random_faults=rng.choice((0, 0, 1, 3)),
    )


def _hostile_replicas(seed: int) -> SimOptions:
    """Milder, for a state whose replicas all crash is lost; cut and healed again and
    again, so that quorums come and go while states are on their way."""
    rng, silence = Random(f"replicas swarm {seed}"), Random(f"silent replicas {seed}")
    nodes = rng.choice((3, 3, 3, 4, 4, 5, 5, 6))
    options = replace(_hostile_groups(seed), nodes=nodes, links=(), slow_hosts=(), faults=(), poison=0.0)
    faults = (cascade if rng.random() < 0.3 else rotation)(rng.randrange(3, 8), nodes, rng)
    faults = tuple(replace(fault, at=fault.at + 100 * MILLISECOND) for fault in faults)
    weights: tuple[int, ...] = ()
    if rng.random() < 0.6:
        weights = rng.choice(((1,) * nodes, (2, *(1,) * (nodes - 1)), (*(1,) * (nodes - 1), 0)))
    options = replace(
        options,
        messages=rng.randrange(60, 160),
        clients=0,
        replicas=rng.choice((1, 1, 2)),
        replica_weights=weights,
        founders=rng.choice((1, 2, nodes)),
        double_send=0.2 if seed % DOUBLED_EVERY == 0 else 0.0,
        round_ambushes=rng.choice((0, 1, 3)),
        rush=rng.choice((0, 1, 3)),
        structure=rng.choice(("dictionary", *STRUCTURES)),
        replica_kills=rng.choice((0, 3, 8)),
        early_ambush=rng.random() < 0.1,
        replica_hangs=silence.choice((0, 0, 3, 8)),
        silent_members=silence.choice((0, 0, 0, 1, 2)),
        replica_patience_ns=silence.choice((8, 40, 40, 120)) * MILLISECOND,
        transfer_trouble=silence.choice((0.0, 0.02, 0.1)),
        random_faults=rng.randrange(1, 6),
        delay_max_ns=rng.choice((600, 1500)) * MICROSECOND,
    )
    if rng.random() < 0.15:
        return options
    return replace(
        options,
        loss=rng.choice((0.0, 0.0, 0.01, 0.03)),
        ghost=0.0,
        all_at_once=True,
        ambushes=rng.choice((0, 0, 0, 2)),
        faults=faults,
        random_faults=rng.choice((0, 0, 1)),
        fault_time_ns=faults[-1].at + 100 * MILLISECOND,
    )


def _bad_links(nodes: int, rng: Random) -> tuple[Link, ...]:
    """A few links that are much worse than the others, each in its own way."""
    links = []
    for _ in range(rng.randrange(1, 4)):
        source = rng.randrange(nodes)
        target = (source + rng.randrange(1, nodes)) % nodes
        loss, duplication = rng.choice(((0.4, 0.0), (0.1, 0.3), (0.0, 0.0)))
        delay = 4 * MILLISECOND if not loss else None
        links.append(Link(source, target, loss=loss, duplication=duplication, delay_max_ns=delay))
    return tuple(links)


def options_of(
    seed: int, kind: SwarmKind = SwarmKind.PLAIN, engine: str = DEFAULT, topology: RingTopology | None = None
) -> SimOptions:
    """Return the options of a hostile run; in a network of rings of this topology, or of any."""
    if kind is SwarmKind.SEALED:
        beneath = (
            SwarmKind.NETWORKS if seed % SEVERAL_EVERY == 0 and not entry_of(engine).is_static else SwarmKind.PLAIN
        )
        return with_seals(options_of(seed, beneath, engine, topology), seed)
    if entry_of(engine).has_sites:
        return _options_on_sites(engine, seed, kind)
    if entry_of(engine).attachments_max > 1:
        return _options_on_rings(engine, seed, kind, topology)
    if topology is not None:
        raise UsageError(f"the engine {engine!r} has no network of rings: leave out the topology")
    if engine != DEFAULT:
        return _options_on(engine, seed, kind)
    if kind is SwarmKind.NETWORKS:
        is_aimed = seed >= AIMED_FIRST and seed % NETWORKS_EVERY == 0
        return (aimed_network_options if is_aimed else with_networks)(_hostile(seed), seed)
    if kind is SwarmKind.REPLICATED:
        return hostile_replica_options(seed)
    options = hostile_group_options(seed) if kind is SwarmKind.GROUPS else hostile_options(seed)
    return with_rosters(options, seed) if seed % LISTED_EVERY == LISTED_FIRST else options


def _options_on(engine: str, seed: int, kind: SwarmKind) -> SimOptions:
    """The same on another engine than the ring: as hostile as it can bear. UsageError for what it cannot carry."""
    if entry_of(engine).is_static:
        if kind is not SwarmKind.PLAIN:
            raise UsageError(f"the engine {engine!r} has no groups, no replicas and one network: leave out the option")
        return calm_options(engine, seed)
    options = replace(options_of(seed, kind), engine=engine, poison=0.0)  # forgers know the packets of a ring
    if engine == "tree":
        return with_trees(options, seed)
    return with_slots(options, seed) if engine == "adaptive" else options


_HOSTILE: dict[SwarmKind, Callable[[int], SimOptions]] = {
    SwarmKind.PLAIN: hostile_options,
    SwarmKind.GROUPS: hostile_group_options,
    SwarmKind.REPLICATED: hostile_replica_options,
    SwarmKind.NETWORKS: partial(options_of, kind=SwarmKind.NETWORKS),
}


def _options_on_rings(engine: str, seed: int, kind: SwarmKind, topology: RingTopology | None) -> SimOptions:
    """The same in a network of rings, each of which goes by node lists of its own."""
    options = replace(_HOSTILE[kind](seed), engine=engine, aim=None)
    is_wild = kind in {SwarmKind.PLAIN, SwarmKind.GROUPS} and seed < AIMED_FIRST
    if not is_wild:  # plots and episodes go by what rings do undisturbed
        options = replace(options, poison=0.0)
    rng = Random(f"rings {seed}")
    if seed >= EPISODES_FIRST:
        return episode_options(options, seed)
    if seed >= AIMED_FIRST and seed % 5 == 4:
        options = merging_ring_options(options, rng)
        return replace(options, lines=options.lines * options.segments)
    options = replace(options, attachments=drawn_attachments(options.nodes, rng, topology))
    options = replace(options, lines=options.lines * options.segments)
    if seed >= AIMED_FIRST:
        return ambushed_ring_options(options, seed)
    return with_rosters(options, seed) if is_wild and seed % LISTED_EVERY == LISTED_FIRST else options


def _options_on_sites(engine: str, seed: int, kind: SwarmKind) -> SimOptions:
    """The same over several sites. Node lists are a matter of each site, and nobody judges them over several."""
    options = replace(_HOSTILE[kind](seed), engine=engine, poison=0.0, aim=None)
    return with_sites(options, seed)


def outline(
    seed: int, kind: SwarmKind = SwarmKind.PLAIN, engine: str = DEFAULT, topology: RingTopology | None = None
) -> Outline:
    """Run one seed; an exception is a failed run, not the end of the swarm."""
    options = options_of(seed, kind, engine, topology)
    try:
        result = simulate(options, seed)
    except Exception:
        return Outline(seed, False, traceback.format_exc(limit=-3), "", 0, 0, Counter())
    sentence = "" if result.is_valid else result.verdict.sentence
    if not result.settled:
        sentence = f"not settled {options.settle_ns / 1e9:.0f} s after the network healed. {sentence}"
    return Outline(seed, result.is_valid, sentence, result.digest, result.inputs, options.submissions, result.counts)


def swarm(
    seeds: range,
    processes: int | None = None,
    kind: SwarmKind = SwarmKind.PLAIN,
    engine: str = DEFAULT,
    topology: RingTopology | None = None,
) -> Iterator[Outline]:
    """Outlines in the order of the seeds."""
    run = partial(outline, kind=kind, engine=engine, topology=topology)
    workers = processes or os.cpu_count() or 1
    if workers == 1 or len(seeds) <= 1:
        yield from map(run, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(workers, _begin_worker) as pool:
        yield from pool.imap(run, seeds, chunksize=max(1, min(16, len(seeds) // (4 * workers))))


def _begin_worker() -> None:
    """Leave interrupts to the parent. Runs make a lot that is not garbage, which need not be looked at every time."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def expected_rows(kind: SwarmKind = SwarmKind.PLAIN, engine: str = DEFAULT) -> list[str]:
    """Everything that a swarm must have met at least once."""
    entry = entry_of(engine)
    if kind is SwarmKind.SEALED:
        return expected_sealed_rows()
    if kind is SwarmKind.NETWORKS:
        return expected_network_rows(has_rotation=Occurrence.TOKEN_RESTED in entry.occurrences)
    if entry.is_static:  # nobody leaves, nothing fails
        return [f"move {origin} → {target}" for origin, target in sorted(entry.moves) if target != GONE]
    moves = [f"move {origin} → {target}" for origin, target in sorted(entry.moves)]
    reasons = [f"gather: {reason.text}" for reason in entry.reasons]
    reasons += [f"attempt: {reason.text}" for reason in entry.attempts]
    skipped = OF_CLIENTS if kind is SwarmKind.PLAIN else ()
    occurrences = [occurrence.value for occurrence in entry.occurrences if occurrence not in skipped]
    forged = [poison.value for poison in Poison] if engine == DEFAULT else []
    rows = [*moves, *reasons, *occurrences, *forged]
    if kind is SwarmKind.REPLICATED:  # what groups and engines must meet is the business of the other swarms
        return [occurrence.value for occurrence in ReplicaOccurrence if occurrence not in NEVER | DURABLE]
    if kind is SwarmKind.GROUPS:
        rows += [each.value for each in GroupOccurrence if each not in SELDOM]
    return rows
