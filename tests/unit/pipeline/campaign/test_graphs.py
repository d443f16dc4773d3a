"""The graph study: what random and robust networks are, their losses, and the page."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest

from ordercast.cli.main import run
from ordercast.pipeline.campaign.graphs import DEGREE_MAX, KINDS, RINGS, GraphKind, GraphRun, GraphSum, graph_run
from ordercast.pipeline.campaign.graphs_page import claims


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_networks_are_as_the_paper_says(kind: GraphKind) -> None:
    """50 rings, at most 4 gateways on each, none twice between two, and at least biconnected."""
    drawing = kind.draw(Random(1))
    degrees = [sum(ring in joined for joined in drawing.gateways) for ring in range(RINGS)]
    assert max(degrees) <= DEGREE_MAX and drawing.is_biconnected
    assert len({frozenset(joined) for joined in drawing.gateways}) == len(drawing.gateways) <= 100


def test_a_run_is_drawn_from_its_seed_and_ends_with_the_first_cut() -> None:
    one = graph_run(KINDS[0], 3)
    assert one == graph_run(KINDS[0], 3) != graph_run(KINDS[0], 4)
    assert len(one.heights) == one.lost and one.heights[0] == 4 and 1 <= one.smaller <= RINGS // 2
    assert one.heights[-1] > one.heights[0]


def test_sums_of_a_kind() -> None:
    runs = [GraphRun("robust", seed, 100, heights, len(heights), 1 + seed) for seed, heights in enumerate(HEIGHTS)]
    total = GraphSum(KINDS[0], runs)
    assert total.lost == 3 and total.height(0) == 4 and total.height(3) == 6 and total.height(4) is None
    assert [total.whole_share(lost) for lost in range(5)] == [1, 1, 2 / 3, 1 / 3, 0]
    assert total.small_share() == 2 / 3 and total.small_share(3) == 1 and total.smaller_share(3) == 1 / 3


HEIGHTS = ((4.0, 4.0), (4.0, 5.0, 5.0), (4.0, 5.0, 5.0, 6.0))


def test_the_command_writes_a_page_and_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["topology", "study", "--seeds", "1..2", "--out", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in document["networks"]] == [kind.name for kind in KINDS]
    assert len(document["claims"]) == 4 and document["networks"][0]["heights"]["0"] == 4
    assert "Figure 5.21" in (tmp_path / "report.html").read_text(encoding="utf-8")
    for name in ("heights", "whole", "smaller"):
        picture = ElementTree.parse(tmp_path / f"{name}.svg").getroot()
        assert picture.tag.endswith("svg") and len(picture) > 5


@pytest.mark.parametrize(("small", "holds"), [(100, "yes"), (93, "no"), (-93, "only for early cuts")])
def test_a_claim_is_judged_by_what_was_found(small: int, holds: str) -> None:
    """A negative number: the others part late."""
    late = 3 if small > 0 else 40
    parted = [(1, 3) if seed < abs(small) else (9, late) for seed in range(100)]
    runs = [GraphRun("robust", seed, 100, HEIGHTS[1], lost, smaller) for seed, (smaller, lost) in enumerate(parted)]
    assert claims([GraphSum(kind, runs) for kind in KINDS])[-1].holds == holds
