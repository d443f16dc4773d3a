"""The page of the graph study: what the paper's Figures 5.21 to 5.23 show, and what holds of what it says. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ordercast.pipeline.campaign.graphs import DEGREE_MAX, RINGS, GraphSum
from ordercast.pipeline.page.html import Fact, Figure, Page, PageTable, Section, Text
from ordercast.pipeline.page.plot import Plot, Series, Shape
from ordercast.pipeline.page.scales import Axis

STEPS = (0, 10, 20, 30)  # losses that tables show
WHOLE_MIN = 0.05  # of the networks must be in one piece for a mean of their heights
SMALLER_SHOWN = 12
ROBUST, FULL, SOME, LEAST = range(4)


@dataclass(frozen=True, slots=True)
class PaperClaim:
    """What the paper says, and what was found."""

    said: str
    found: str
    holds: str


def height_plot(sums: Sequence[GraphSum]) -> Plot:
    """Figure 5.21."""
    series = [
        Series(
            one.kind.name,
            [
                (lost, height)
                for lost in range(one.lost_max)
                if one.whole_share(lost) >= WHOLE_MIN and (height := one.height(lost)) is not None
            ],
            Shape.LINE,
            colour,
        )
        for colour, one in enumerate(sums)
    ]
    x, y = Axis("gateways lost", is_whole=True), Axis("mean height, hops", low=0)
    return Plot("Height of the network against losses (Figure 5.21)", x, y, series)


def whole_plot(sums: Sequence[GraphSum]) -> Plot:
    """Figure 5.22."""
    most = max(one.lost_max for one in sums)
    series = [
        Series(one.kind.name, [(lost, 100 * one.whole_share(lost)) for lost in range(most + 1)], Shape.STEP, colour)
        for colour, one in enumerate(sums)
    ]
    x, y = Axis("gateways lost", is_whole=True), Axis("in one piece, %", low=0, high=100)
    return Plot("Networks in one piece against losses (Figure 5.22)", x, y, series)


def smaller_plot(sums: Sequence[GraphSum]) -> Plot:
    """Figure 5.23, with its logarithmic axis."""
    series = [
        Series(
            one.kind.name,
            [
                (size, 100 * share) if (share := one.smaller_share(size)) else None
                for size in range(1, SMALLER_SHOWN + 1)
            ],
            Shape.LINE_AND_DOTS,
            colour,
        )
        for colour, one in enumerate(sums)
    ]
    x, y = Axis("rings of the smaller part", is_whole=True, low=0), Axis("of the networks, %", is_log=True)
    return Plot("Size of the smaller part at the first cut (Figure 5.23)", x, y, series)


PLOTS = {"heights": height_plot, "whole": whole_plot, "smaller": smaller_plot}


def claims(sums: Sequence[GraphSum]) -> list[PaperClaim]:
    robust, least = sums[ROBUST], sums[LEAST]
    heights = [one.height(step) or 0 for one in (robust, sums[FULL]) for step in (STEPS[0], STEPS[-1])]
    longer = [robust.lost - one.lost for one in sums[1:]]
    small = [one.small_share() for one in sums]
    return [
        PaperClaim(
            "heights increase very slowly with losses, of networks that stay in one piece",
            f"over {STEPS[-1]} losses {heights[0]:.1f} to {heights[1]:.1f} hops (robust), {heights[2]:.1f} to "
            f"{heights[3]:.1f} (random, full): {(heights[1] - heights[0]) / STEPS[-1]:.2f} hops for each loss",
            "yes",
        ),
        PaperClaim(
            "networks are parted after relatively few losses; that matters more than longer ways",
            f"after 20 losses {robust.whole_share(20):.0%} (robust) to {least.whole_share(20):.0%} (random, least) are "
            "in one piece",
            "yes",
        ),
        PaperClaim(
            "robust networks stay in one piece five to seven losses longer than random ones",
            f"{longer[0]:+.1f} than random networks that are full, {longer[1]:+.1f} than those with 95 gateways, "
            f"{longer[2]:+.1f} than those that stop when no single ring or gateway keeps them together",
            "only for one reading of random",
        ),
        PaperClaim(
            "the smaller part has one or two nodes in over 99 % of the cases (robust)",
            f"{small[0]:.1%} (robust), {min(small[1:]):.1%} to {max(small[1:]):.1%} (random); of robust ones that part "
            f"within {STEPS[-1]} losses {robust.small_share(STEPS[-1]):.1%}",
            "yes" if small[0] > 0.99 else "only for early cuts" if robust.small_share(STEPS[-1]) > 0.99 else "no",
        ),
    ]


def sum_rows(sums: Sequence[GraphSum]) -> list[list[str]]:
    return [
        [
            one.kind.name,
            f"{one.edges:.1f}",
            f"{one.lost:.1f}",
            *(f"{height:.1f}" if (height := one.height(step)) is not None else "–" for step in STEPS),
            f"{one.small_share():.1%}",
        ]
        for one in sums
    ]


COLUMNS = ("network", "gateways", "first cut", *(f"height, {step} lost" for step in STEPS), "one or two cut off")


def graphs_page(sums: Sequence[GraphSum], command: str) -> Page:
    seeds = len(sums[0].runs)
    kinds = [[one.kind.name, one.kind.what] for one in sums]
    found = [[claim.said, claim.found, claim.holds] for claim in claims(sums)]
    sections = [
        Section(
            "What the paper says, and what holds",
            [PageTable(("the paper", "found", "holds"), found, wide=("the paper", "found"), left=("holds",))],
        ),
        Section(
            "Networks",
            [
                PageTable(("network", "how it is made"), kinds, left=("network",), wide=("how it is made",)),
                PageTable(
                    COLUMNS, sum_rows(sums), left=("network",), caption=f"Means over {seeds} networks of each kind."
                ),
            ],
        ),
        Section("Ways", [Figure(height_plot(sums), "Means of those in one piece, while one in twenty is.")]),
        Section("In one piece", [Figure(whole_plot(sums))]),
        Section("What is cut off", [Figure(smaller_plot(sums)), Text("A part of one ring has lost its last gateway.")]),
    ]
    facts = [
        Fact(str(RINGS), "rings", f"at most {DEGREE_MAX} gateways on each"),
        Fact(f"{seeds:,}", "networks of each kind"),
        Fact(f"{sums[ROBUST].lost:.1f}", "losses until the first cut", "robust"),
    ]
    title = "How networks of rings stand the loss of gateways"
    return Page(title, "Figures 5.21 to 5.23 of the paper, drawn anew.", facts, sections, f"Made by {command}.")
