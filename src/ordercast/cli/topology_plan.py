"""A network of rings on paper, judged: what `ordercast topology plan` says of a drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.text import Text

from ordercast.cli.event_text import counted, listed
from ordercast.cli.tables import new_table
from ordercast.daemon.config.file import read_cluster
from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND
from ordercast.order.gateways.drawing import Drawing, best_addition, bits_of, losses, robust

RINGS_SHOWN = 24
BETWEEN = "-"


class Drawn(NamedTuple):
    """A drawing with the names of its rings and gateways."""

    drawing: Drawing
    rings: Sequence[str]
    gateways: Sequence[str]


def drawn_robust(rings: int, gateways: int) -> Drawn:
    """Draw a network with so many gateways on each ring."""
    if gateways < 2 and rings > 2:
        raise UsageError("with one gateway on each ring no more than two rings are joined: give --gateways 2 or more")
    return _joined(robust(rings, gateways), [f"r{ring}" for ring in range(rings)])


def drawn_joins(joins: Sequence[str]) -> Drawn:
    """Draw gateways that are given as the rings that they join."""
    names: dict[str, int] = {}
    gateways = []
    for join in joins:
        rings = join.split(BETWEEN)
        if len(rings) < 2 or not all(rings) or len(set(rings)) < len(rings):
            raise UsageError(f"{join!r} is no gateway: write the rings that it joins, each once, as in office-lab")
        gateways.append(tuple(names.setdefault(ring, len(names)) for ring in rings))
    return _joined(Drawing(len(names), tuple(gateways)), list(names))


def drawn_file(path: Path) -> Drawn:
    """Draw the rings of a cluster file."""
    config = read_cluster(path).common
    if config.has_sites:
        raise UsageError(
            f"{path} has sites, which links join and not gateways: see `ordercast config check {path}`, and `ordercast "
            "sites` once they run"
        )
    if not config.rings:
        raise UsageError(f"{path} has one ring: a network has [rings.NAME], see docs/guides/join-several-rings.md")
    names = [ring.name for ring in config.rings]
    joined = {peer.name: tuple(map(names.index, peer.rings)) for peer in config.peers if len(peer.rings) > 1}
    return Drawn(Drawing(len(names), tuple(joined.values())), names, list(joined))


def _joined(drawing: Drawing, names: Sequence[str]) -> Drawn:
    """Name gateways by the rings that they join."""
    return Drawn(drawing, names, [BETWEEN.join(names[ring] for ring in joined) for joined in drawing.gateways])


@dataclass(frozen=True, slots=True)
class PlannedNetwork:
    drawn: Drawn
    rotation_ns: int
    seeds: range  # orders in which gateways are lost

    @property
    def drawing(self) -> Drawing:
        return self.drawn.drawing

    @property
    def names(self) -> Sequence[str]:
        """Names of the rings."""
        return self.drawn.rings

    def lost_until_parted(self) -> list[int]:
        """Return for each seed after how many losses of gateways the network is in pieces."""
        if not (self.drawing.is_whole and self.drawing.rings > 1):
            return []
        return [sum(1 for _ in losses(self.drawing, Random(seed))) for seed in self.seeds]

    def latency_ns(self, ring: int) -> int:
        """Return how long an own message takes on a ring, in an idle network."""
        return round(self.drawing.latency_rotations(ring, ring) * self.rotation_ns)

    def suggestions(self) -> list[str]:
        drawing = self.drawing
        found = []
        if not drawing.is_whole:
            pieces = ["+".join(self.names[ring] for ring in bits_of(piece)) for piece in drawing.pieces()]
            found.append(f"join the pieces {listed(pieces)}: they never hear each other")
        addition = best_addition(drawing) if drawing.rings > 1 else None
        if addition is not None:
            one, other = (self.names[ring] for ring in addition)
            found.append(f"add a gateway between {one} and {other}")
        if not drawing.vital_gateways() and not drawing.vital_rings() and drawing.rings > 4:
            degree = min(sum(ring in joined for joined in drawing.gateways) for ring in range(drawing.rings))
            if degree < 4:
                found.append(f"a ring with {degree} gateways is parted soonest: the paper advises 4 on each")
        return found

    def document(self) -> dict[str, Any]:
        drawing, lost = self.drawing, self.lost_until_parted()
        return {
            "rings": list(self.names),
            "gateways": [[self.names[ring] for ring in joined] for joined in drawing.gateways],
            "pieces": [[self.names[ring] for ring in bits_of(piece)] for piece in drawing.pieces()],
            "heights": dict(zip(self.names, drawing.heights(), strict=True)),
            "mean_height": drawing.mean_height,
            "vital_gateways": [self.drawn.gateways[place] for place in drawing.vital_gateways()],
            "vital_rings": [self.names[ring] for ring in drawing.vital_rings()],
            "losses_until_parted": {"mean": fmean(lost), "least": min(lost), "most": max(lost)} if lost else None,
            "rotation_ns": self.rotation_ns,
            "latency_ns": {name: self.latency_ns(ring) for ring, name in enumerate(self.names)},
            "suggestions": self.suggestions(),
        }


def plan_lines(planned: PlannedNetwork) -> Iterator[RenderableType]:
    """Return what a person reads."""
    drawing, heights = planned.drawing, planned.drawing.heights()
    pieces, gateways = len(drawing.pieces()), counted(len(drawing.gateways), "gateway")
    whole = "in one piece" if pieces == 1 else f"IN {pieces} PIECES"
    yield Text(f"{counted(drawing.rings, 'ring')}, {gateways}, {whole}", "bold")
    yield _table(planned, heights)
    yield Text(
        f"ways: {counted(max(heights), 'hop')} to the farthest ring at most, {drawing.mean_height:.1f} on average"
    )
    yield _vital_line(planned)
    lost = planned.lost_until_parted()
    if lost:
        yield Text(
            f"losses: in pieces after {fmean(lost):.1f} of {gateways} on average, {min(lost)} at "
            f"least ({len(lost)} orders)"
        )
    slowest = max(range(drawing.rings), key=planned.latency_ns)
    yield Text(
        f"latency: {planned.latency_ns(slowest) / MILLISECOND:.3g} ms for an own message of {planned.names[slowest]} "
        f"at a rotation of {planned.rotation_ns / MILLISECOND:.3g} ms, 2 T (2 h + 1) with h = {heights[slowest]}"
    )
    for suggestion in planned.suggestions():
        yield Text(f"! {suggestion}", "yellow")


def _vital_line(planned: PlannedNetwork) -> Text:
    gateways = [planned.drawn.gateways[place] for place in planned.drawing.vital_gateways()]
    rings = [planned.names[ring] for ring in planned.drawing.vital_rings()]
    if not gateways and not rings:
        return Text("alone: no gateway and no ring alone keeps it in one piece", "green")
    alone = [f"gateway {name}" for name in gateways] + [f"ring {name}" for name in rings]
    return Text(f"alone: it is in pieces without {listed(alone).replace(' and ', ' or ')}", "yellow")


def _table(planned: PlannedNetwork, heights: Sequence[int]) -> RenderableType:
    drawing = planned.drawing
    right = ("gateways", "hops to the farthest", "latency of its own, ms")
    table = new_table("ring", "neighbours", *right, right=right)
    for ring, name in enumerate(planned.names[:RINGS_SHOWN]):
        table.add_row(
            name,
            " ".join(planned.names[other] for other in bits_of(drawing.beside[ring])),
            str(sum(ring in joined for joined in drawing.gateways)),
            str(heights[ring]),
            f"{planned.latency_ns(ring) / MILLISECOND:.3g}",
        )
    if len(planned.names) > RINGS_SHOWN:
        table.caption = f"the first {RINGS_SHOWN} of {len(planned.names)}"
    return table
