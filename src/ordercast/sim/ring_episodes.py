"""Networks of rings that are whole, and then are not: from seed 20,000 on, swarms on several rings are drawn here.

Random faults rarely find one network that is whole, so that a ring whose halves stay connected over other rings, halves
with different last packets, members claimed by two rings and merges that are cut short are rare among them. Here a
segment becomes lossy and falls apart between its gateways, sometimes another one too before everybody has seen it; then
all is healed, and the next episode may begin while rings still merge. All is drawn by a generator of its own.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ordercast.model.ids import MICROSECOND, MILLISECOND
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import SimOptions
from ordercast.sim.plot import Aim
from ordercast.sim.ring_topologies import attached, sides_between_gateways
from ordercast.sim.topology import Attachments, segment_count

EPISODES_FIRST = 20_000
BRIDGES_EVERY, BRIDGES_LAST = 5, 4  # one run in five, those of which seed % 5 is 4, has a plot instead
BRIDGE_AIMS = (Aim.CLAIM, Aim.MINDS, Aim.HOLE, Aim.STAMP)  # by turns
FIRST_NS = 250 * MILLISECOND  # by then there is one network
# Gateways of networks in which a ring may fall apart, and both halves stay connected over other rings.
BRIDGED: tuple[Attachments, ...] = (
    ((0, 1), (1, 0)),
    ((0, 1), (1, 2), (2, 0)),
    ((0, 1), (0, 1), (1, 2), (1, 2)),
)


def episode_options(options: SimOptions, seed: int) -> SimOptions:
    """The same with episodes, or a plot, and hardly any other fault."""
    if seed % BRIDGES_EVERY == BRIDGES_LAST and options.networks.count == 1:
        return bridge_options(options, seed)
    rng = Random(f"ring episodes {seed}")
    nodes = rng.choice((5, 5, 6, 7))
    gateways = rng.choice(BRIDGED)
    attachments = (*gateways, *((place % segment_count(gateways),) for place in range(nodes - len(gateways))))
    faults = episodes(rng.randrange(1, 4), attachments, rng)
    return replace(
        attached(options, attachments),
        aim=None,
        messages=options.messages if options.clients else rng.randrange(80, 220),
        links=(),
        slow_hosts=(),
        ghost=0.0,
        straggler=rng.choice((0.0, 0.0, 0.01)),
        loss=rng.choice((0.0, 0.01, 0.05)),
        delay_max_ns=rng.choice((200, 600, 1500)) * MICROSECOND,
        faults=faults,
        random_faults=rng.choice((0, 0, 0, 1)),
        ambushes=rng.choice((0, 2, 4)),
        fault_time_ns=faults[-1].at + 150 * MILLISECOND,
        all_at_once=True,
    )


def bridge_options(options: SimOptions, seed: int) -> SimOptions:
    """The same with a plot against one segment at a time, and hardly any other fault."""
    rng = Random(f"ring bridges {seed}")
    gateways, nodes = rng.choice(((BRIDGED[0], 6), (BRIDGED[0], 7), (BRIDGED[1], 9)))
    attachments = (*gateways, *((place % segment_count(gateways),) for place in range(nodes - len(gateways))))
    return replace(
        attached(options, attachments),
        aim=BRIDGE_AIMS[seed // BRIDGES_EVERY % len(BRIDGE_AIMS)],
        messages=options.messages if options.clients else rng.randrange(60, 140),
        links=(),
        slow_hosts=(),
        ghost=0.0,
        straggler=0.0,
        loss=rng.choice((0.0, 0.0, 0.01)),
        delay_max_ns=rng.choice((200, 600)) * MICROSECOND,
        faults=(),
        random_faults=0,
        ambushes=0,
        fault_time_ns=rng.choice((1800, 2400)) * MILLISECOND,
        all_at_once=True,
    )


def episodes(count: int, attachments: Attachments, rng: Random) -> tuple[Fault, ...]:
    """Return the faults of several episodes, one after the other."""
    faults: list[Fault] = []
    at = FIRST_NS
    for _ in range(count):
        for _ in range(rng.choice((1, 1, 2, 3))):
            faults += _trouble(at, attachments, rng)
            at += rng.randrange(1, 30) * MILLISECOND if rng.random() < 0.6 else rng.randrange(60, 160) * MILLISECOND
        at += rng.randrange(60, 240) * MILLISECOND
        faults.append(Fault(at, FaultKind.HEAL))
        faults += [Fault(at, FaultKind.MEND, segment=segment) for segment in range(segment_count(attachments))]
        at += rng.randrange(40, 130) * MILLISECOND if rng.random() < 0.4 else rng.randrange(180, 320) * MILLISECOND
    return tuple(sorted(faults, key=lambda fault: fault.at))


def _trouble(at: int, attachments: Attachments, rng: Random) -> list[Fault]:
    segment = rng.randrange(segment_count(attachments))
    hosts = [node for node, own in enumerate(attachments) if segment in own]
    if rng.random() < 0.15:
        node = rng.choice(hosts)
        return [
            Fault(at, FaultKind.CRASH, node=node),
            Fault(at + rng.randrange(1, 120) * MILLISECOND, FaultKind.RESTART, node=node),
        ]
    before = rng.randrange(2, 12) * MILLISECOND
    return [
        Fault(at - before, FaultKind.LOSSY, segment=segment, chance=rng.choice((0.2, 0.5))),
        Fault(at, FaultKind.MEND, segment=segment),
        Fault(at, FaultKind.PARTITION, groups=sides_between_gateways(hosts, attachments, rng), segment=segment),
    ]
