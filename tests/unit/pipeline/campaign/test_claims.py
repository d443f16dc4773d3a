"""What the paper says of one curve beside another, and what the report makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ordercast.pipeline.campaign.claims import claim_from, finding_of
from ordercast.pipeline.campaign.figures import BESIDE, comparison_section
from ordercast.pipeline.campaign.plan import Campaign, campaign_from
from ordercast.pipeline.page.html import Figure, PageTable
from ordercast.pipeline.page.plot import Shape, svg_of

MEANS = {"fast": {100.0: 1250.0, 200.0: 900.0, 300.0: 700.0}, "plain": {100.0: 1000.0, 200.0: 800.0, 400.0: 1.0}}
CLAIM = {"note": "200 to 300 more", "curve": "fast", "over": "plain", "low": 200, "high": 300}

TEXT = """
title = "Two styles"
seeds = "1..1"
[options]
nodes = 4
messages = 0
saturation = 10
bandwidth = 100_000_000
[options.ring]
token_retransmit = "40ms"
token_loss = "800ms"
[measure]
saturated = true
[axes]
size = [100, 400]
style = [{ label = "one" }, { label = "two", "networks.count" = 2, "networks.replication" = "passive" }]
[[comparisons]]
title = "Rates"
x = "size"
x_label = "bytes"
y_label = "messages/s"
series = "style"
measure = "messages_per_s"
prediction = "messages_per_s"
log = ["x", "y"]
marks = [{ x = 200, name = "here" }, { y = 300, name = "capacity" }]
claims = [{ note = "up to 900 fewer", curve = "two", over = "one", low = -900, high = 0 }]
"""


def test_a_difference_is_found_where_both_curves_are() -> None:
    finding = finding_of(claim_from(CLAIM), MEANS)
    assert finding.found == {100.0: 250.0, 200.0: 100.0}
    assert finding.within == [100.0]
    assert finding.range_text == "+100 at 200 … +250 at 100"
    assert finding.within_text == "100"


def test_the_shorter_list_of_places_is_told() -> None:
    plain = {float(x): 1000.0 for x in (1, 2, 3)}
    for fast, words in (((1250, 1250, 1000), "all but 3"), ((0, 0, 0), "nowhere"), ((1250, 0, 0), "1")):
        curve = dict(zip(plain, map(float, fast), strict=True))
        assert finding_of(claim_from(CLAIM), {"fast": curve, "plain": plain}).within_text == words


def test_a_ratio() -> None:
    claim = claim_from({**CLAIM, "as": "ratio", "low": 1, "high": 2})
    finding = finding_of(claim, MEANS)
    assert finding.range_text == "1.12 at 200 … 1.25 at 100"
    assert finding.within_text == "everywhere"
    assert claim.bounds(500) == (500, 1000)


def test_where_nothing_was_measured_nothing_is_found() -> None:
    finding = finding_of(claim_from(CLAIM), {})
    assert (finding.range_text, finding.within_text) == ("–", "–")


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    path = tmp_path / "styles.toml"
    path.write_text(TEXT)
    return campaign_from(path)


def _rows(campaign: Campaign) -> list[dict[str, object]]:
    rates = {("one", 100): 1000.0, ("one", 400): 500.0, ("two", 100): 900.0, ("two", 400): 600.0}
    return [
        {"cell_key": cell.key, "measures": [("messages_per_s", rates[cell.axes["style"], cell.axes["size"]])]}
        for cell in campaign.cells
    ]


def test_each_curve_has_its_own_prediction_and_claims_are_bands(campaign: Campaign) -> None:
    section = comparison_section(campaign, campaign.comparisons[0], _rows(campaign))
    figure, claims, table = section.blocks
    assert isinstance(figure, Figure) and isinstance(claims, PageTable) and isinstance(table, PageTable)
    plot = figure.drawing
    series = plot.series  # type: ignore[union-attr]
    dashed = [one for one in series if one.is_dashed]
    assert [one.colour for one in dashed] == [0, 1]
    assert dashed[0].present != dashed[1].present  # two networks carry more
    (band,) = [one for one in series if one.shape is Shape.BAND]
    # Nothing is below what a logarithmic axis can show: the least that was measured.
    assert (band.colour, band.present) == (1, [(100.0, 500.0, 1000.0), (400.0, 500.0, 500.0)])
    drawn = svg_of(plot)  # type: ignore[arg-type]
    assert "here" in drawn and "capacity" in drawn and "the paper: up to 900 fewer" in drawn
    assert claims.rows == [["up to 900 fewer", "-100 at 100 … +100 at 400", "100"]]
    assert [row[0] for row in table.rows] == ["100", "400"]
    assert table.columns == ["bytes", "one", BESIDE, "two", BESIDE]
    assert [row[1] for row in table.rows] == ["1,000", "500"]
