"""Hostile runs with a plot (`plot.py`): from seed 10,000 on, every seed has one, and what else it draws is milder.

Random faults would spoil most plots, so there are few of them. All is drawn by a generator of its own: no seed below
`AIMED_FIRST` depends on what is here.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ordercast.model.ids import MICROSECOND, MILLISECOND
from ordercast.networks.config import Replication
from ordercast.sim.faults import Fault, FaultKind, cascade
from ordercast.sim.network_swarm import SIM_NETWORKS
from ordercast.sim.options import SIM_RING, SimOptions
from ordercast.sim.plot import Aim
from ordercast.sim.ring_topologies import attached, twice_joined

AIMED_FIRST = 10_000
EXCHANGE_DIGIT = 8  # the last one of seeds that aim at an exchange
NETWORKS_EVERY = 5  # one run in five with several networks is aimed
AIMS = (Aim.GAP, Aim.PROMISE, Aim.LATE)  # by turns, without clients
GROUP_AIMS = (Aim.GATHERING, Aim.GAP, Aim.GATHERING, Aim.PROMISE, Aim.SLOW_READER)  # by turns, with clients

MERGE_AMBUSHES, MERGE_FAULTS = 12, 16  # of a run that aims at merges of rings
RING_AIMS = (Aim.MARK, Aim.TOPOLOGY, Aim.INSTALLATION, Aim.COVERAGE)  # by turns, in a network of rings


def merging_ring_options(options: SimOptions, rng: Random) -> SimOptions:
    """A network of rings that merge: cut again and again, mostly at the moment at which a process marks or speaks."""
    return replace(
        attached(options, twice_joined(rng)),
        ambushes=MERGE_AMBUSHES,
        random_faults=max(options.random_faults, MERGE_FAULTS),
        faults=(),
        rates=(),
        links=(),
        slow_hosts=(),
    )


def ambushed_ring_options(options: SimOptions, seed: int) -> SimOptions:
    """A network of rings that is cut and healed, so that rings merge, and struck at the worst moments of that."""
    rng = Random(f"ring aims swarm {seed}")
    faults = sorted((*options.faults, *cascade(rng.randrange(2, 5), options.nodes, rng)), key=lambda fault: fault.at)
    until = max(options.fault_time_ns, faults[-1].at + 100 * MILLISECOND)
    aim = RING_AIMS[seed % len(RING_AIMS)] if options.nodes > 2 else None
    return replace(options, aim=aim, faults=tuple(faults), fault_time_ns=until)


def aimed_group_options(options: SimOptions, seed: int) -> SimOptions:
    """Clients of daemons that come together and are torn apart, again and again, at the worst moments."""
    rng = Random(f"group aims swarm {seed}")
    return replace(
        options,
        aim=GROUP_AIMS[seed % len(GROUP_AIMS)],
        nodes=rng.choice((4, 4, 5, 6)),
        messages=rng.randrange(40, 150),
        delay_max_ns=rng.choice((200, 600, 1500)) * MICROSECOND,
        links=(),
        slow_hosts=(),
        ghost=0.0,
        loss=rng.choice((0.0, 0.0, 0.005, 0.02)),
        rush=rng.choice((0, 2)),
        faults=(),
        random_faults=rng.choice((0, 0, 3, 6)),
        ambushes=0,
        fault_time_ns=rng.choice((1200, 1600, 2000)) * MILLISECOND,
        all_at_once=rng.random() < 0.5,
    )


def with_slow_reader(options: SimOptions) -> SimOptions:
    """Little may wait for a client, and it has little time."""
    return replace(options, receive_credit=600, client_queue=4_000, hold_ns=30 * MILLISECOND, memberships_max=0)


def aimed_network_options(options: SimOptions, seed: int) -> SimOptions:
    """An idle ring, and on one network somebody is not heard by hosts to which it passes no token: nothing shows it but
    its announcements."""
    rng = Random(f"network aims swarm {seed}")
    nodes, count = rng.choice((3, 4, 5)), rng.choice((2, 2, 3))
    source, network = rng.randrange(nodes), rng.randrange(count)
    deaf = [node for node in range(nodes) if node not in (source, (source + 1) % nodes)]
    links = tuple((source, node) for node in rng.sample(deaf, rng.randrange(1, len(deaf) + 1)))
    return replace(
        options,
        nodes=nodes,
        ring=replace(SIM_RING, token_retransmit_ns=4 * MILLISECOND, token_loss_ns=90 * MILLISECOND),
        networks=replace(SIM_NETWORKS, count=count, replication=Replication.ACTIVE),
        messages=rng.choice((0, 5)),
        large_messages=0,
        saturation=0,
        links=(),
        slow_hosts=(),
        straggler=0.0,
        ghost=0.0,
        loss=0.0,
        faults=(Fault(200 * MILLISECOND, FaultKind.CUT, links=links, network=network),),
        random_faults=0,
        ambushes=0,
        fault_time_ns=rng.randrange(700, 1200) * MILLISECOND,
        all_at_once=True,
    )


def aimed_replica_options(options: SimOptions, seed: int) -> SimOptions:
    """Replicas whose beginning fails, or which are often loaded, with trouble; what strikes them later is as usual."""
    rng = Random(f"replica aims swarm {seed}")
    if seed % 2 == 0:
        return replace(options, replica_kills=8, round_ambushes=3, transfer_trouble=rng.choice((0.05, 0.15)))
    return replace(
        options,
        aim=Aim.BEGINNING,
        replica_weights=rng.choice(((1,) * options.nodes, ())),
        founders=options.nodes,
        early_ambush=False,
        replica_hangs=rng.choice((0, options.replica_hangs)),
        loss=rng.choice((0.0, 0.0, 0.01)),
        ghost=0.0,
        random_faults=rng.choice((0, 0, 1)),
        all_at_once=True,
    )


def aimed_options(options: SimOptions, seed: int) -> SimOptions:
    """The same cluster, with a plot and hardly any other fault."""
    rng = Random(f"aims swarm {seed}")
    return replace(
        options,
        aim=Aim.EXCHANGE if seed % 10 == EXCHANGE_DIGIT else AIMS[seed % len(AIMS)],
        # The longer what was announced is believed, the sooner those come together who have just been parted.
        ring=replace(options.ring, announce_ns=rng.choice((25, 80)) * MILLISECOND),
        nodes=rng.choice((4, 4, 5, 5, 6, 7)),
        messages=rng.randrange(20, 150),
        delay_max_ns=rng.choice((200, 600, 1500)) * MICROSECOND,
        links=(),
        slow_hosts=(),
        straggler=rng.choice((0.0, 0.0, 0.01)),
        ghost=rng.choice((0.0, 0.0, 0.002)),
        loss=rng.choice((0.0, 0.0, 0.005, 0.02)),
        receive_buffer=200,
        random_faults=rng.choice((0, 0, 0, 2)),
        ambushes=rng.choice((0, 0, 1)),
        fault_time_ns=rng.choice((1000, 1400, 1800)) * MILLISECOND,
        all_at_once=True,
    )
