"""The command that replays one run of a campaign. Pure."""

from __future__ import annotations

import shlex

from ordercast.pipeline.campaign.plan import Campaign, Cell
from ordercast.sim.run_options import replay_command


def replay_of(campaign: Campaign, cell: Cell, seed: int) -> str:
    """`ordercast sim` with the seed's own options, or with those of the cell: most have no flag of their own."""
    if cell.is_plainly_hostile:
        return replay_command(cell.options(seed), seed, is_hostile=True)
    words = ["ordercast", "sim", "--campaign", str(campaign.path), "--cell", cell.name]
    words += [] if campaign.engine is None else ["--engine", campaign.engine]
    return shlex.join([*words, "--seed", str(seed)])
