"""What a swarm draws of the tree engine: topics that overlap, hosts that change their minds, windows that are met."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ordercast.model.ids import MILLISECOND
from ordercast.order.tree.config import TreeConfig
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import SimOptions

BUILDERS = ("centre", "heuristic-1", "heuristic-3", "auto", "shallow")  # deep ones and flat ones
BLOCKED = 0.35  # chance that some links are
SIZES = (1, 2, 2, 3, 3, 4, 5)


def with_trees(options: SimOptions, seed: int) -> SimOptions:
    """The same run on trees. Nobody aims at what another engine has, nor saturates what nobody has to share fairly."""
    rng = Random(f"trees {seed}")
    tree = TreeConfig(
        builder=rng.choice(BUILDERS),
        open_gap_ns=rng.choice((1, 3, 10)) * MILLISECOND,
        rebuild_gap_ns=rng.choice((30, 200, 1_000)) * MILLISECOND,
        close_patience_ns=rng.choice((100, 300)) * MILLISECOND,
        link_patience_ns=rng.choice((120, 300)) * MILLISECOND,
        load_gap_ns=rng.choice((20, 100)) * MILLISECOND,
        channel_window=rng.choice((600, 4_000, 20_000)),
        entry_window=rng.choice((20_000, 60_000)),
        source_window=(source_window := rng.choice((500, 3_000, 20_000))),
        cargo_size=max(460, source_window * 2 // 3),
    )
    options = replace(options, tree=tree, saturation=0, aim=None)
    if options.has_clients:
        return options
    hosts = range(options.nodes)
    topics = tuple(
        tuple(sorted(rng.sample(hosts, min(options.nodes, rng.choice(SIZES)))))
        for _ in range(rng.randrange(1, options.nodes + 3))
    )
    options = replace(options, topics=topics, topic_changes=rng.choice((0, 3, 12, 30)), rush=rng.choice((0, 10, 40)))
    return with_blocked_links(options, rng) if rng.random() < BLOCKED else options


def with_blocked_links(options: SimOptions, rng: Random) -> SimOptions:
    """Some links carry nothing for a while, one way or both, and the members see nothing of it. Fewer other faults:
    each new configuration has new links."""
    faults: list[Fault] = []
    for _ in range(rng.randrange(1, 4)):
        one = rng.randrange(options.nodes)
        other = (one + rng.randrange(1, options.nodes)) % options.nodes
        links = ((one, other), (other, one)) if rng.random() < 0.5 else ((one, other),)
        at = rng.randrange(options.fault_time_ns)
        faults += [Fault(at, FaultKind.BLOCK, links=links)]
        if rng.random() < 0.5:
            faults += [Fault(at + rng.choice((50, 200, 400)) * MILLISECOND, FaultKind.MEND, links=links)]
    faults = [fault for fault in faults if fault.at < options.fault_time_ns]
    return replace(
        options,
        faults=tuple(sorted((*options.faults, *faults), key=lambda fault: fault.at)),
        random_faults=min(options.random_faults, rng.randrange(4)),
        ambushes=min(options.ambushes, 1),
        tree=replace(options.tree, link_patience_ns=rng.choice((60, 120)) * MILLISECOND),
    )
