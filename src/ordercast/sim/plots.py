"""All plots, by what they aim at (`plot.py` says what a plot is)."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from ordercast.sim.client_plots import BeginningPlot, GatheringPlot, SlowReaderPlot
from ordercast.sim.plot import Aim, Plot
from ordercast.sim.ring.ambushes import CoverageAmbush, InstallationAmbush, MarkAmbush, TopologyAmbush
from ordercast.sim.ring.bridge_plots import ClaimPlot, HolePlot, MindsPlot, StampPlot
from ordercast.sim.ring.recovery_plots import ExchangePlot, GapPlot, LatePlot, PromisePlot

if TYPE_CHECKING:
    from ordercast.sim.world import World

PLOTS: dict[Aim, type[Plot]] = {
    Aim.GAP: GapPlot,
    Aim.PROMISE: PromisePlot,
    Aim.LATE: LatePlot,
    Aim.EXCHANGE: ExchangePlot,
    Aim.GATHERING: GatheringPlot,
    Aim.SLOW_READER: SlowReaderPlot,
    Aim.BEGINNING: BeginningPlot,
    Aim.MARK: MarkAmbush,
    Aim.TOPOLOGY: TopologyAmbush,
    Aim.INSTALLATION: InstallationAmbush,
    Aim.COVERAGE: CoverageAmbush,
    Aim.CLAIM: ClaimPlot,
    Aim.MINDS: MindsPlot,
    Aim.HOLE: HolePlot,
    Aim.STAMP: StampPlot,
}


def lay(world: World, aim: Aim, rng: Random) -> Plot:
    """Have a plot watch a run and rule its network; return it."""
    plot = PLOTS[aim](world, rng)
    world.rule = plot.passes
    world.observers.append(lambda event: None if world.is_healed else plot.observe(event))
    return plot
