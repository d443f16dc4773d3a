"""Figures 6 to 9 of the paper in the simulator, as numbers: what `campaigns/redundant.toml` says, without Spark.

The hosts, the networks, the styles and the sizes are the campaign's; nothing of the model is here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ordercast.pipeline.campaign.plan import Campaign, Cell, campaign_from
from ordercast.pipeline.campaign.trial import VALID, trial

CAMPAIGN = Path(__file__).parents[1] / "campaigns" / "redundant.toml"
QUICK = (400, 700, 720, 1400, 1440)  # around the sizes of which two or one fill a packet


def measured(campaign: Campaign, cell: Cell) -> str:
    row = trial(cell, campaign.seeds[0])
    assert row["outcome"] == VALID, row["sentence"]
    measures = dict(row["measures"])
    return f"{measures['messages_per_s']:>12,.0f} ({measures['bytes_per_s'] / 1000:>8,.0f})"


def _table(campaign: Campaign, title: str, axis: str, cells: list[Cell]) -> None:
    styles = list(dict.fromkeys(cell.axes["style"] for cell in cells))
    print(f"  {title:>16} " + "".join(f"{style:>34}" for style in styles))
    for place in dict.fromkeys(cell.axes[axis] for cell in cells):
        row = [measured(campaign, cell) for cell in cells if cell.axes[axis] == place]
        print(f"  {place:>16,} " + "".join(f"{text:>34}" for text in row), flush=True)


def main(quick: bool = True) -> None:
    campaign = campaign_from(CAMPAIGN)
    print("simulated, 100 Mbit/s a network: messages/s (KB/s)")
    sized: list[Cell] = [cell for cell in campaign.cells if cell.grid == "size"]
    for nodes in dict.fromkeys(cell.axes["nodes"] for cell in sized):
        _table(
            campaign, f"{nodes} nodes, bytes", "size", [cell for cell in sized if _is_shown(cell.axes, nodes, quick)]
        )
    faster = [cell for cell in campaign.cells if cell.grid == "processors" and (not quick or cell.axes["speed"] == 4)]
    _table(campaign, "processors ×", "speed", faster)


def _is_shown(axes: Any, nodes: int, quick: bool) -> bool:
    return bool(axes["nodes"] == nodes and (not quick or axes["size"] in QUICK))


if __name__ == "__main__":
    main()
