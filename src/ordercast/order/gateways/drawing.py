"""A network of rings as a drawing: which gateways join which rings, how far apart rings are, and what keeps it in one
piece. Pure, and about no process that runs.

A ring is a node; a gateway is an edge, or joins more than two. The *height* of a ring is the number of hops to the ring
farthest from it (the minimum depth spanning tree of the paper, section 5.4). Sets of rings are bits of an integer, so
that thousands of drawings can be judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import fmean

from ordercast.model.rng import Rng

# Rotations from submission to safe delivery on one ring, on average over its members: half a one until the token comes,
# one until it is known that all have the message, half a one until that is known to a member.
SAFE_ROTATIONS = 2.0


def bits_of(rings: int) -> Iterator[int]:
    """Return the numbers of a set of rings."""
    while rings:
        lowest = rings & -rings
        yield lowest.bit_length() - 1
        rings ^= lowest


@dataclass(frozen=True)
class Drawing:
    """Rings numbered from 0, and the rings that each gateway joins."""

    rings: int
    gateways: tuple[tuple[int, ...], ...]

    @cached_property
    def beside(self) -> list[int]:
        """The rings one hop from each, as bits."""
        beside = [0] * self.rings
        for joined in self.gateways:
            bits = sum(1 << ring for ring in joined)
            for ring in joined:
                beside[ring] |= bits
        return [bits & ~(1 << ring) for ring, bits in enumerate(beside)]

    def without(self, gateway: int) -> Drawing:
        """Return the drawing after the loss of a gateway, by its place."""
        return Drawing(self.rings, self.gateways[:gateway] + self.gateways[gateway + 1 :])

    def with_gateway(self, joined: tuple[int, ...]) -> Drawing:
        return Drawing(self.rings, (*self.gateways, joined))

    # How far

    def distances(self, ring: int) -> list[int]:
        """Return for each number of hops the rings that are so far, as bits; the ring itself first."""
        beside = self.beside
        seen = fresh = 1 << ring
        layers = [fresh]
        while fresh:
            reached = 0
            for one in bits_of(fresh):
                reached |= beside[one]
            fresh = reached & ~seen
            seen |= fresh
            layers.append(fresh)
        return layers[:-1]

    def hops(self, ring: int) -> dict[int, int]:
        """Return the hops from a ring to each that can be reached."""
        return {other: hops for hops, layer in enumerate(self.distances(ring)) for other in bits_of(layer)}

    def heights(self) -> list[int]:
        """Return for each ring the hops to the farthest that can be reached. All rings look one hop further at a
        time."""
        near = [tuple(bits_of(bits)) for bits in self.beside]
        seen = [1 << ring for ring in range(self.rings)]
        heights, hops = [0] * self.rings, 0
        is_new = True
        while is_new:
            before, is_new, hops = seen, False, hops + 1
            seen = []
            for ring, beside in enumerate(near):
                bits = before[ring]
                for other in beside:
                    bits |= before[other]
                if bits != before[ring]:
                    heights[ring], is_new = hops, True
                seen.append(bits)
        return heights

    @property
    def mean_height(self) -> float:
        return fmean(self.heights())

    # What keeps it in one piece

    def pieces(self, lost: int = 0) -> list[int]:
        """Return the sets of rings that are joined, as bits, the largest first; `lost` rings are not there."""
        left, beside, found = (1 << self.rings) - 1 & ~lost, self.beside, []
        while left:
            piece = fresh = left & -left
            while fresh:
                reached = 0
                for ring in bits_of(fresh):
                    reached |= beside[ring]
                fresh = reached & ~piece & ~lost
                piece |= fresh
            found.append(piece)
            left &= ~piece
        return sorted(found, key=lambda piece: (-piece.bit_count(), piece))

    @property
    def is_whole(self) -> bool:
        return len(self.pieces()) <= 1

    def vital_gateways(self) -> list[int]:
        """Return the places of gateways whose loss alone leaves more pieces."""
        whole = len(self.pieces())
        return [place for place in range(len(self.gateways)) if len(self.without(place).pieces()) > whole]

    def vital_rings(self) -> list[int]:
        """Return the rings whose loss alone parts others."""
        whole = len(self.pieces())
        alone = {piece.bit_length() - 1 for piece in self.pieces() if piece.bit_count() == 1}
        return [ring for ring in range(self.rings) if len(self.pieces(1 << ring)) > whole - (ring in alone)]

    @property
    def is_biconnected(self) -> bool:
        """Whether no single ring or gateway keeps it in one piece. Where none of several rings does, no gateway that
        joins two does either."""
        if not self.is_whole or any(len(self.pieces(1 << ring)) > 1 for ring in range(self.rings)):
            return False
        asked = (place for place, joined in enumerate(self.gateways) if len(joined) > 2 or self.rings == 2)
        return all(self.without(place).is_whole for place in asked)

    # What it costs

    def latency_rotations(self, sender: int, *receiver: int) -> float:
        """Return how many rotations pass from submission to delivery, in an idle network whose rings have one rotation
        time: from a process whose first ring is the sender's to one on these rings. Delivery waits for every ring to
        have heard of the message, and for that ring's front to come back."""
        there, back = self.hops(sender), [self.hops(ring) for ring in receiver]
        return SAFE_ROTATIONS * max(1 + hops + min(each[ring] for each in back) for ring, hops in there.items())


def line(rings: int) -> Drawing:
    return Drawing(rings, tuple((ring, ring + 1) for ring in range(rings - 1)))


# Drawings that stand losses


def robust(rings: int, gateways: int) -> Drawing:
    """Return a drawing with so many gateways on each ring, with short ways. Four on an even number of rings: as in the
    paper, rings in a circle, with one hop for the even and another for the odd ones."""
    if rings <= 2:
        return Drawing(rings, ((0, 1),) * gateways if rings == 2 else ())
    gateways = min(gateways, rings - 1)
    best = _circulant(rings, gateways)
    if gateways == 4 and rings % 2 == 0:
        patterns = (pattern(rings, even, odd) for even, odd in _pairs(rings))
        best = min((best, *patterns), key=lambda drawing: (not drawing.is_whole, drawing.mean_height))
    return best


def pattern(rings: int, even: int, odd: int) -> Drawing:
    """Return rings in a circle, even ones also joined at one number of hops, odd ones at another."""
    edges = {tuple(sorted((ring, (ring + 1) % rings))) for ring in range(rings)}
    edges |= {tuple(sorted((ring, (ring + (odd if ring % 2 else even)) % rings))) for ring in range(rings)}
    return Drawing(rings, tuple(sorted(edge for edge in edges if edge[0] != edge[1])))


def _pairs(rings: int) -> Iterable[tuple[int, int]]:
    """Return hops that lead from even to even and from odd to odd, and that give two edges each."""
    hops = range(2, (rings + 1) // 2, 2)
    return combinations(hops, 2)


def _circulant(rings: int, gateways: int) -> Drawing:
    """Return rings in a circle, each joined at the same hops: one after the other the hop that brings rings nearest."""
    chosen = [1] if gateways > 1 else []
    while len(chosen) < gateways // 2:
        others = [hop for hop in range(2, (rings + 1) // 2) if hop not in chosen]
        if not others:
            break
        chosen.append(min(others, key=lambda hop: _joined_at(rings, [*chosen, hop]).mean_height))
    if gateways % 2 and rings % 2 == 0:
        chosen.append(rings // 2)  # one more edge for each: straight across
    return _joined_at(rings, chosen)


def _joined_at(rings: int, hops: Sequence[int]) -> Drawing:
    edges = {tuple(sorted((ring, (ring + hop) % rings))) for ring in range(rings) for hop in hops}
    return Drawing(rings, tuple(sorted(edges)))


# Losses, and what would help

TRIED_MAX = 60  # places for one more gateway


def losses(drawing: Drawing, rng: Rng) -> Iterator[Drawing]:
    """Return the drawing after each loss of a gateway, in an order that is drawn, until it is in pieces."""
    while drawing.gateways and drawing.is_whole:
        drawing = drawing.without(rng.randrange(0, len(drawing.gateways)))
        yield drawing


def _merit(drawing: Drawing) -> tuple[int, int]:
    """Less is better."""
    return len(drawing.pieces()), len(drawing.vital_gateways()) + len(drawing.vital_rings())


def best_addition(drawing: Drawing) -> tuple[int, int] | None:
    """Return the two rings that one more gateway should join; None where none would leave less to be lost at once.
    Rings with few neighbours, far from each other, are tried first, as far as time allows."""
    hops = [drawing.hops(ring) for ring in range(drawing.rings)]

    def promise(pair: tuple[int, int]) -> tuple[int, int]:
        return sum(drawing.beside[ring].bit_count() for ring in pair), -hops[pair[0]].get(pair[1], drawing.rings)

    pairs = sorted(combinations(range(drawing.rings), 2), key=promise)[:TRIED_MAX]
    found = min(((_merit(drawing.with_gateway(pair)), pair) for pair in pairs), default=None, key=lambda each: each[0])
    return found[1] if found is not None and found[0] < _merit(drawing) else None
