"""What a swarm draws of several sites: who is where, how far apart, over which links, and what happens to those.

The first segments are the sites, the last one is the wide area: no multicast, and delays of its own. Beside the faults
of any run whole sites are cut off, links fail one way or both ways, flap, lose and slow down, and sites split inside.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

from ordercast.model.ids import MILLISECOND, SECOND
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import SIM_SITES, SimOptions
from ordercast.sim.topology import Line, Rate

SITES_MAX = 4
TROUBLES_MAX = 7
PRUNED = 0.4  # of the runs have topics
SCENES_EVERY, SCENES_FIRST = 8, 7
SETTLE_NS = 20 * SECOND  # a saturated run needs it, where the window is small and the sites are far apart
LARGE = (2, 70_000), (8, 12_000), (8, 25_000)  # messages of a run that has large ones, and their bytes
EARLIEST_NS = 80 * MILLISECOND  # by then there may be one view
SiteHosts = list[list[int]]  # by site


def with_sites(options: SimOptions, seed: int) -> SimOptions:
    """The same over several sites. Some runs are scenes that chance shows too seldom."""
    if seed % SCENES_EVERY == SCENES_FIRST and not options.has_clients:
        return _scene(options, Random(f"scene of sites {seed}"))
    rng = Random(f"sites {seed}")
    count = min(rng.choice((1, 2, 2, 3, 3, 3, SITES_MAX)), options.nodes)
    places = [*range(count), *(rng.randrange(count) for _ in range(options.nodes - count))]
    rng.shuffle(places)
    low, high = rng.choice(((1, 2), (3, 6), (8, 10), (2, 15)))
    wide = Line(delay_min_ns=low * MILLISECOND, delay_max_ns=high * MILLISECOND, multicast=False)
    hosts = [[node for node, place in enumerate(places) if place == site] for site in range(count)]
    until = max(options.fault_time_ns, rng.choice((600, 900, 1200)) * MILLISECOND)
    troubles = _troubles(hosts, until, rng)
    options = _with_topics(options, seed)
    many, size = Random(f"large of sites {seed}").choice(LARGE) if options.large_messages else (0, options.large_size)
    return replace(
        options,
        attachments=tuple((place, count) for place in places),
        lines=(*((Line(),) * count * options.networks.count), *((wide,) * options.networks.count)),
        site_links=_links(count, rng),
        sites=replace(
            SIM_SITES,
            delta_ns=rng.choice((0, 5, 20, 40)) * MILLISECOND,
            window=rng.choice((4, 64)) << 10,
            rate=Random(f"rate {seed}").choice(("fair", "fair", "4mbit", "100mbit")),
            prune=options.has_clients or bool(options.topics),
        ),
        links=(),
        large_messages=many,
        large_size=size,
        is_one_whole=options.is_one_whole and all(fault.segment == count for fault in troubles),
        faults=tuple(sorted((*options.faults, *troubles), key=lambda fault: fault.at)),
        fault_time_ns=until,
        settle_ns=SETTLE_NS,
    )


def _scene(options: SimOptions, rng: Random) -> SimOptions:
    """One of: a site whose ring stands while its links answer; a site that is lost with the only copies of what
    another one wants and lacks, while others have it hollow."""
    if rng.random() < 0.3:
        return _standing_ring(options, rng)
    sites = 4
    low = rng.randrange(2, 6)
    wide = Line(delay_min_ns=low * MILLISECOND, delay_max_ns=(low + 1) * MILLISECOND, multicast=False)
    source, *others = rng.sample(range(sites), sites)
    wanting = tuple(sorted(others[: rng.randrange(1, 3)]))
    slow = tuple((source, other) for other in rng.sample(others, rng.randrange(1, 3)))
    at = rng.randrange(400, 500) * MILLISECOND
    faults = [
        Fault(at, FaultKind.SLOW, links=slow, segment=sites, duration_ns=rng.randrange(30, 60) * MILLISECOND),
        Fault(at + rng.randrange(8, 30) * MILLISECOND, FaultKind.CRASH, node=source),
        *(Fault(at + 20 * MILLISECOND, FaultKind.CRASH, node=one) for one in wanting[1:] if rng.random() < 0.5),
        Fault(at + 600 * MILLISECOND, FaultKind.RESTART, node=source),
    ]
    return replace(
        options,
        nodes=sites,
        attachments=tuple((site, sites) for site in range(sites)),
        lines=(*((Line(),) * sites), wide),
        networks=SimOptions().networks,
        topics=((source, *wanting), *((other,) for other in others if other not in wanting)),
        messages=60,
        rates=(Rate(source, 600, end_ns=at + 100 * MILLISECOND),),
        large_messages=0,
        saturation=0,
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
        random_faults=0,
        ambushes=0,
        links=(),
        slow_hosts=(),
        loss=0.0,
        ghost=0.0,
        rosters=(),
        sites=replace(SIM_SITES, prune=True, delta_ns=rng.choice((0, 5)) * MILLISECOND),
        all_at_once=True,
        fault_time_ns=1_200 * MILLISECOND,
    )


def _standing_ring(options: SimOptions, rng: Random) -> SimOptions:
    """Two sites, one of three hosts whose token stands for longer than the others wait."""
    wide = Line(delay_min_ns=2 * MILLISECOND, delay_max_ns=4 * MILLISECOND, multicast=False)
    lasts = SIM_SITES.stuck_ns + rng.randrange(200, 400) * MILLISECOND
    return replace(
        options,
        nodes=5,
        attachments=((0, 2), (0, 2), (1, 2), (1, 2), (1, 2)),
        lines=(Line(), Line(), wide),
        networks=SimOptions().networks,
        ring=replace(options.ring, token_loss_ns=2 * lasts, consensus_ns=40 * MILLISECOND),
        messages=150,
        large_messages=0,
        saturation=0,
        faults=(Fault(rng.randrange(400, 600) * MILLISECOND, FaultKind.PAUSE, node=4, duration_ns=lasts),),
        random_faults=0,
        ambushes=0,
        links=(),
        slow_hosts=(),
        loss=0.0,
        ghost=0.0,
        rosters=(),
        sites=SIM_SITES,
        all_at_once=True,
        fault_time_ns=1_500 * MILLISECOND,
    )


def _with_topics(options: SimOptions, seed: int) -> SimOptions:
    """The same with topics that some hosts want, and that others begin and cease to want; in some runs of plain
    messages. Everywhere else nothing is pruned, so that the judges ask for everything."""
    rng = Random(f"topics of sites {seed}")
    if options.has_clients or options.saturation or rng.random() >= PRUNED:
        return options
    topics = tuple(
        tuple(sorted(rng.sample(range(options.nodes), rng.randrange(1, max(2, options.nodes // 2) + 1))))
        for _ in range(rng.choice((2, 4, 8)))
    )
    return replace(options, topics=topics, topic_changes=rng.choice((0, 10, 30)))


def _links(count: int, rng: Random) -> tuple[tuple[int, int], ...]:
    """Return which sites have links: all, or a chain, or a chain and some more."""
    if count < 3 or rng.random() < 0.4:
        return ()
    order = rng.sample(range(count), count)
    chain = list(pairwise(order))
    return tuple(chain if rng.random() < 0.5 else [*chain, (order[0], order[-1])])


def _troubles(hosts: SiteHosts, until: int, rng: Random) -> list[Fault]:
    """Return what happens to sites and links; each lasts a while, and some come before the last one is over."""
    faults: list[Fault] = []
    at = rng.randrange(EARLIEST_NS, until // 2)
    for _ in range(rng.randrange(0, TROUBLES_MAX)):
        lasts = rng.randrange(5, 250) * MILLISECOND
        faults += _trouble(hosts, at, lasts, rng)
        at += rng.randrange(1, 40) * MILLISECOND if rng.random() < 0.4 else rng.randrange(40, 250) * MILLISECOND
        if at >= until:
            break
    return [fault for fault in faults if fault.at < until]


def _trouble(hosts: SiteHosts, at: int, lasts: int, rng: Random) -> list[Fault]:
    wide, site = len(hosts), rng.randrange(len(hosts))
    match rng.randrange(8):
        case 0:  # a site is cut off
            groups = (tuple(hosts[site]), tuple(node for other in hosts for node in other if other != hosts[site]))
            begins = [Fault(at, FaultKind.PARTITION, groups=tuple(filter(None, groups)), segment=wide)]
        case 1 if len(hosts[site]) > 1:  # a site splits inside
            place = rng.randrange(1, len(hosts[site]))
            mixed = rng.sample(hosts[site], len(hosts[site]))
            groups = tuple(sorted(mixed[:place])), tuple(sorted(mixed[place:]))
            begins = [Fault(at, FaultKind.PARTITION, groups=groups, segment=site)]
            return [*begins, Fault(at + lasts, FaultKind.MEND, segment=site)]
        case 2:  # a representative dies, and comes back
            node = min(hosts[site])
            return [Fault(at, FaultKind.CRASH, node=node), Fault(at + lasts, FaultKind.RESTART, node=node)]
        case 3:  # a link flaps
            pairs = _pairs(hosts, rng)
            times = [at + place * lasts // 6 for place in range(6)]
            kinds = (FaultKind.CUT, FaultKind.MEND) * 3
            return [Fault(one, kind, links=pairs, segment=wide) for one, kind in zip(times, kinds, strict=True)]
        case 4:
            begins = [Fault(at, FaultKind.LOSSY, links=_pairs(hosts, rng), segment=wide, chance=rng.choice((0.1, 0.4)))]
        case 5:
            delay = rng.randrange(5, 60) * MILLISECOND
            begins = [Fault(at, FaultKind.SLOW, links=_pairs(hosts, rng), segment=wide, duration_ns=delay)]
        case 6:
            begins = [Fault(at, FaultKind.DOWN, segment=wide)]
        case _:
            begins = [Fault(at, FaultKind.CUT, links=_pairs(hosts, rng), segment=wide)]
    return [*begins, Fault(at + lasts, FaultKind.MEND, segment=wide)]


def _pairs(hosts: SiteHosts, rng: Random) -> tuple[tuple[int, int], ...]:
    """Return all paths between two sites, one way or both ways."""
    one, other = rng.choice(hosts), rng.choice(hosts)
    forth = [(a, b) for a in one for b in other if a != b]
    return tuple(sorted({*forth, *((b, a) for a, b in forth)} if rng.random() < 0.6 else forth))
