"""A campaign that takes a second, for tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ordercast.pipeline.campaign.plan import Campaign, Cell, campaign_from

TEXT = """
title = "Small"
text = "Two loads, with and without a crash."
seeds = "1..2"
[options]
nodes = 3
size = 100
fault_time = "100ms"
[measure]
window = "20ms..100ms"
[axes]
load = [200, 400]
[schedules]
none = []
crash = ["40ms crash n1", "60ms restart n1"]
[[comparisons]]
title = "Rotation against load"
x = "load"
where = { faults = "none" }
x_label = "load, messages/s"
y_label = "rotation, ms"
measure = "rotation_us"
scale = 1000
prediction = "rotation_us"
paper = [{ x = 300, y = 1, note = "about 1 ms" }]
"""


def small_campaign(folder: Path) -> Campaign:
    path = folder / "small.toml"
    path.write_text(TEXT)
    return campaign_from(path)


def impossible(cell: Cell) -> Cell:
    """The same, but a run of it raises: such options are refused."""
    return replace(cell, name="impossible", settings={**cell.settings, "nodes": 0})
