"""How networks of rings stand the loss of gateways: the study of the paper's section 5.4, Figures 5.21 to 5.23.

A ring is a node, a gateway an edge; 50 rings with at most 4 gateways on each. Gateways are lost in an order drawn from
the seed, until the network is in two. The paper does not say when its random networks have enough edges: that decides
how they compare, so there are several of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from statistics import fmean

from ordercast.order.gateways.drawing import Drawing, losses, pattern

RINGS = 50
DEGREE_MAX = 4
ROBUST_HOPS = (8, 14)  # of even and odd rings; the paper's are not printed
SMALL = 2  # rings of a part that the paper calls small


@dataclass(frozen=True, slots=True)
class GraphKind:
    name: str
    what: str
    draw: Callable[[Random], Drawing]


@dataclass(frozen=True, slots=True)
class GraphRun:
    """One network and its losses."""

    kind: str
    seed: int
    edges: int
    heights: tuple[float, ...]  # mean height after 0, 1, 2 … losses, as long as it is in one piece
    lost: int  # gateways, when it was first in two
    smaller: int  # rings of the smaller part then


def random_drawing(rng: Random, is_enough: Callable[[Drawing], bool]) -> Drawing:
    """Return rings that are joined two by two at random, no two of them twice, until that is enough or no pair is left
    with room for a gateway; and again, until no single ring or gateway keeps the network in one piece."""
    while True:
        pairs = list(combinations(range(RINGS), 2))
        rng.shuffle(pairs)
        degrees, drawing = [0] * RINGS, Drawing(RINGS, ())
        for pair in pairs:
            if is_enough(drawing):
                break
            if all(degrees[ring] < DEGREE_MAX for ring in pair):
                drawing = drawing.with_gateway(pair)
                for ring in pair:
                    degrees[ring] += 1
        if drawing.is_biconnected:
            return drawing


def _with_edges(count: int) -> Callable[[Random], Drawing]:
    return lambda rng: random_drawing(rng, lambda drawing: len(drawing.gateways) >= count)


def _is_biconnected(drawing: Drawing) -> bool:
    return len(drawing.gateways) >= RINGS and all(drawing.beside) and drawing.is_biconnected


KINDS = (
    GraphKind(
        "robust",
        f"a circle of rings, even ones also at {ROBUST_HOPS[0]} hops, odd ones at {ROBUST_HOPS[1]}",
        lambda rng: pattern(RINGS, *ROBUST_HOPS),
    ),
    GraphKind(
        "random, full", "random gateways, until none has room", lambda rng: random_drawing(rng, lambda drawing: False)
    ),
    GraphKind("random, 95", "random gateways, 95 of them", _with_edges(95)),
    GraphKind(
        "random, least",
        "random gateways, until no single ring or gateway keeps it in one piece",
        lambda rng: random_drawing(rng, _is_biconnected),
    ),
)


def graph_run(kind: GraphKind, seed: int) -> GraphRun:
    """Draw a network, and lose gateways until it is in two."""
    rng = Random(f"{kind.name} {seed}")
    whole = kind.draw(rng)
    *held, parted = losses(whole, rng)
    heights = tuple(drawing.mean_height for drawing in (whole, *held))
    smaller = min(piece.bit_count() for piece in parted.pieces())
    return GraphRun(kind.name, seed, len(whole.gateways), heights, len(heights), smaller)


@dataclass(frozen=True, slots=True)
class GraphSum:
    """What the networks of one kind came to."""

    kind: GraphKind
    runs: Sequence[GraphRun]

    @property
    def edges(self) -> float:
        return fmean(run.edges for run in self.runs)

    @property
    def lost(self) -> float:
        """Mean number of losses until it is in two."""
        return fmean(run.lost for run in self.runs)

    def small_share(self, lost_max: int | None = None) -> float:
        """How often the smaller part has one or two rings, of all networks or of those parted by so many losses."""
        parted = [run for run in self.runs if lost_max is None or run.lost <= lost_max]
        return sum(run.smaller <= SMALL for run in parted) / len(parted) if parted else 1.0

    def height(self, lost: int) -> float | None:
        """Mean height after so many losses, of networks that are in one piece then; None where none is."""
        heights = [run.heights[lost] for run in self.runs if lost < len(run.heights)]
        return fmean(heights) if heights else None

    def whole_share(self, lost: int) -> float:
        """How many are in one piece after so many losses."""
        return sum(lost < run.lost for run in self.runs) / len(self.runs)

    def smaller_share(self, size: int) -> float:
        """How often the smaller part has so many rings."""
        return sum(run.smaller == size for run in self.runs) / len(self.runs)

    @property
    def lost_max(self) -> int:
        return max(run.lost for run in self.runs)


def graph_sums(runs: Sequence[GraphRun]) -> list[GraphSum]:
    return [GraphSum(kind, [run for run in runs if run.kind == kind.name]) for kind in KINDS]
