"""What a swarm draws of the tree engine: topics that overlap, hosts that change their minds, windows that are met."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ordercast.model.ids import MILLISECOND
from ordercast.order.tree.config import TreeConfig
from ordercast.sim.options import SimOptions

BUILDERS = ("centre", "heuristic-1", "heuristic-3")  # deep ones and flat ones
SIZES = (1, 2, 2, 3, 3, 4, 5)


def with_trees(options: SimOptions, seed: int) -> SimOptions:
    """The same run on trees. Nobody aims at what another engine has, nor saturates what nobody has to share fairly."""
    rng = Random(f"trees {seed}")
    tree = TreeConfig(
        builder=rng.choice(BUILDERS),
        open_gap_ns=rng.choice((1, 3, 10)) * MILLISECOND,
        channel_window=rng.choice((600, 4_000, 20_000)),
        entry_window=rng.choice((20_000, 60_000)),
        source_window=rng.choice((500, 3_000, 20_000)),
    )
    options = replace(options, tree=tree, saturation=0, aim=None)
    if options.has_clients:
        return options
    hosts = range(options.nodes)
    topics = tuple(
        tuple(sorted(rng.sample(hosts, min(options.nodes, rng.choice(SIZES)))))
        for _ in range(rng.randrange(1, options.nodes + 3))
    )
    return replace(options, topics=topics, topic_changes=rng.choice((0, 3, 12, 30)), rush=rng.choice((0, 10, 40)))
