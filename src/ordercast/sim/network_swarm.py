"""Hostile runs with several networks: every seed draws a style, networks, and faults of networks.

Every second run has faults of networks alone, which leave one network whole, and the default timeouts: there the view
must not change. In the others networks and hosts fail together.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ordercast.model.ids import MICROSECOND, MILLISECOND, SECOND
from ordercast.model.notes import Evidence, NetworkState, Release
from ordercast.networks.config import NetworksConfig, Replication
from ordercast.order.ring.config import RingConfig
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import SimOptions
from ordercast.sim.topology import Line

STRIKES = (
    FaultKind.DOWN,
    FaultKind.DOWN,
    FaultKind.CUT,
    FaultKind.CUT,
    FaultKind.PARTITION,
    FaultKind.LOSSY,
    FaultKind.LOSSY,
    FaultKind.SLOW,
)
BLAMES = (Evidence.TOKEN_TIMER, Evidence.TOKENS, Evidence.MESSAGES, Evidence.ANNOUNCEMENTS)
SLOW_MAX_NS = 4 * MILLISECOND  # less than half of what a token waits

# Short times, as in SIM_RING: they go with the hostile runs in which hosts fail too.
SIM_NETWORKS = NetworksConfig(
    token_hold_ns=2 * MILLISECOND,
    decay_ns=100 * MILLISECOND,
    probe_ns=10 * MILLISECOND,
    calm_ns=400 * MILLISECOND,
)


def with_networks(options: SimOptions, seed: int) -> SimOptions:
    """The options of a hostile run of hosts, or of a run in which networks alone fail."""
    rng = Random(f"networks swarm {seed}")
    networks = _networks(rng)
    return _alone(networks, rng) if seed % 2 == 0 else _mixed(options, networks, rng)


def _networks(rng: Random) -> NetworksConfig:
    replication = rng.choice(tuple(Replication))
    count = rng.choice((3, 3, 4)) if replication is Replication.ACTIVE_PASSIVE else rng.choice((2, 2, 2, 3))
    copies = rng.randrange(2, count) if replication is Replication.ACTIVE_PASSIVE else 2
    return replace(SIM_NETWORKS, count=count, replication=replication, copies=copies, is_strict=rng.random() < 0.7)


def _alone(drawn: NetworksConfig, rng: Random) -> SimOptions:
    """Networks fail, hosts do not, and the timeouts are the default ones."""
    usual = NetworksConfig()
    networks = replace(usual, count=drawn.count, replication=drawn.replication, copies=drawn.copies)
    nodes = rng.choice((2, 3, 3, 4, 4, 5, 6, 8))
    ring = replace(
        RingConfig(),
        packet_size_max=600,
        window=64,
        visit_max=16,
        backlog_max=400,
        accelerated=rng.random() < 0.3,
    )
    whole = rng.randrange(networks.count)
    until = 7 * SECOND
    faults = tuple(
        fault
        for network in range(networks.count)
        if network != whole
        for fault in network_faults(network, nodes, 2 * SECOND, until, rng)
    )
    return SimOptions(
        nodes=nodes,
        ring=ring,
        networks=networks,
        is_one_whole=True,
        messages=rng.choice((40, 120, 400)),
        lines=tuple(_line(rng) for _ in range(networks.count)),
        receive_buffer=2000,
        clock_drift=rng.choice((0.0, 0.0001, 0.01)),
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
        fault_time_ns=until,
        settle_ns=20 * SECOND,
    )


def _line(rng: Random) -> Line:
    """Constant delays, so that each network keeps the order of all its packets."""
    delay = rng.choice((50, 80, 120, 400)) * MICROSECOND
    return Line(delay_min_ns=delay, delay_max_ns=delay)


def _mixed(options: SimOptions, networks: NetworksConfig, rng: Random) -> SimOptions:
    ring = replace(options.ring, token_retransmit_ns=4 * MILLISECOND, token_loss_ns=90 * MILLISECOND)
    faults = tuple(
        fault
        for network in range(networks.count)
        for fault in network_faults(network, options.nodes, 0, options.fault_time_ns, rng)
    )
    return replace(options, ring=ring, networks=networks, faults=tuple(sorted(faults, key=lambda fault: fault.at)))


def network_faults(network: int, nodes: int, begin: int, until: int, rng: Random) -> list[Fault]:
    """Faults of one network by turns with repairs; some of them in quick succession, as of a network that flaps."""
    faults: list[Fault] = []
    span = until - begin
    at = begin + rng.randrange(0, span // 2)
    is_flapping = rng.random() < 0.25
    while at < until and len(faults) < 16:
        faults.append(_strike(network, nodes, at, rng))
        at += rng.randrange(span // 50, span // 12) if is_flapping else rng.randrange(span // 20, span // 2)
        if rng.random() < 0.8:
            faults.append(Fault(min(at, until), FaultKind.MEND, network=network))
            at += rng.randrange(span // 50, span // 12) if is_flapping else rng.randrange(span // 10, span // 2)
    return [fault for fault in faults if fault.at <= until]


def _strike(network: int, nodes: int, at: int, rng: Random) -> Fault:
    kind = rng.choice(STRIKES)
    match kind:
        case FaultKind.CUT:
            return Fault(at, kind, links=_cut(nodes, rng), network=network)
        case FaultKind.PARTITION:
            side = tuple(node for node in range(nodes) if rng.random() < 0.5)
            rest = tuple(node for node in range(nodes) if node not in side)
            return Fault(at, kind, groups=tuple(group for group in (side, rest) if group), network=network)
        case FaultKind.LOSSY:
            return Fault(at, kind, network=network, chance=rng.choice((0.01, 0.05, 0.2, 0.5, 0.9)))
        case FaultKind.SLOW:
            return Fault(at, kind, network=network, duration_ns=rng.randrange(MILLISECOND, SLOW_MAX_NS))
        case _:
            return Fault(at, kind, network=network)


def _cut(nodes: int, rng: Random) -> tuple[tuple[int, int], ...]:
    """The paper's faults: one host cannot send, or cannot receive, or some do not reach some others."""
    everybody = range(nodes)
    one = rng.randrange(nodes)
    chance = rng.random()
    if chance < 0.35:
        return tuple((one, other) for other in everybody if other != one)
    if chance < 0.7:
        return tuple((other, one) for other in everybody if other != one)
    sources = [node for node in everybody if rng.random() < 0.5] or [one]
    targets = [node for node in everybody if rng.random() < 0.5] or [(one + 1) % nodes]
    links = tuple((a, b) for a in sources for b in targets if a != b)
    return links or ((one, (one + 1) % nodes),)


def expected_network_rows(*, has_rotation: bool = True) -> list[str]:
    """Everything that a swarm with several networks must have met at least once; `has_rotation`: on an engine whose
    token goes round all the time."""
    blames = [evidence for evidence in BLAMES if has_rotation or evidence is not Evidence.TOKEN_TIMER]
    turns = [(NetworkState.FAULTY, evidence) for evidence in (*blames, Evidence.REFUSAL, Evidence.UNHEARD)]
    turns += [(NetworkState.ON_TRIAL, evidence) for evidence in (Evidence.PROVED, Evidence.NEW_RING, Evidence.NEED)]
    turns += [(NetworkState.GOOD, evidence) for evidence in (Evidence.HEARD, Evidence.REFUSAL)]
    return [
        *(turn_row(state, evidence) for state, evidence in turns),
        *(release_row(cause) for cause in Release),
        *(f"networks: {style.value}" for style in Replication),
        *(f"networks: {kind.value}" for kind in (*dict.fromkeys(STRIKES), FaultKind.MEND)),
    ]


def turn_row(state: NetworkState, evidence: Evidence) -> str:
    if state is NetworkState.GOOD and evidence is not Evidence.HEARD:
        return "network kept, for it is the last good one"
    return f"network {state.value}: {evidence.value}"


def release_row(cause: Release) -> str:
    return f"token released: {cause.value}"
