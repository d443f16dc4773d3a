"""The witness and the stories are worth what they catch: every planted fault, within a stated number of runs."""

from __future__ import annotations

from functools import partial

import pytest

from ordercast.checker import Outcome
from ordercast.model.effects import AlarmKind
from ordercast.model.promises import NetworkPromise
from ordercast.order.catalogue import DEFAULT
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.run import simulate
from ordercast.sim.swarm import SwarmKind, options_of

from .catches import first_catch
from .network_scenes import BEGIN, KINDS, MENDED, NETWORK, NODES, Story, told
from .planted_networks import PLANTED, PlantedFault

STORIES = tuple(fault for fault in PLANTED if fault.broken is None)
# Of each style one that breaks what is promised of tokens, and one of what is sent.
BENEATH_RINGS = tuple(
    {
        (fault.style, fault.broken): fault
        for fault in PLANTED
        if fault.broken in (NetworkPromise.TOKENS, NetworkPromise.SENDS)
    }.values()
)


def _is_caught(fault: PlantedFault, seed: int, engine: str = DEFAULT) -> bool:
    """By the witness."""
    options = options_of(seed, SwarmKind.NETWORKS, engine)
    if options.networks.replication is not fault.style:
        return False
    try:
        result = simulate(options, seed)
    except AssertionError:
        return False  # an invariant has caught it before the witness
    return any(v.promise is fault.broken and v.outcome is Outcome.INVALID for v in result.verdicts)


def _story(fault: PlantedFault) -> Story:
    assert fault.style is not None
    if fault.kind == "healthy":
        loss = Fault(BEGIN, FaultKind.LOSSY, chance=0.01, network=NETWORK)
        return told(fault.style, loss, messages=2000)
    mend = Fault(MENDED, FaultKind.MEND, network=NETWORK)
    return told(fault.style, KINDS[fault.kind], mend, messages=fault.messages)


def _is_as_it_should_be(fault: PlantedFault, story: Story) -> bool:
    """The fault is found by all, once, and the network taken back; a healthy network is left alone."""
    if fault.kind == "healthy":
        return not story.found
    marks = [alarm for _, _, alarm in story.result.alarms if alarm.kind is AlarmKind.NETWORK_FAULTY]
    is_found = sorted(story.found) == sorted(story.repaired) == list(range(NODES))
    return story.result.is_valid and story.views == 0 and is_found and len(marks) == NODES


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.name)
def test_every_planted_fault_is_caught(fault: PlantedFault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault.plant(monkeypatch)
    if fault.broken is not None:
        seed = first_catch("networks", fault.name, fault.seeds, partial(_is_caught, fault))
        assert seed is not None, f"not caught in runs of {fault.seeds}"
    else:
        assert not _is_as_it_should_be(fault, _story(fault))


@pytest.mark.parametrize("fault", BENEATH_RINGS, ids=lambda fault: fault.name)
def test_so_it_is_beneath_the_rings_of_a_network(fault: PlantedFault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault.plant(monkeypatch)
    is_caught = partial(_is_caught, fault, engine="gateways")
    assert first_catch("rings", fault.name, range(1, 100, 2), is_caught) is not None


@pytest.mark.long
@pytest.mark.parametrize("fault", STORIES, ids=lambda fault: fault.name)
def test_without_it_the_story_is_as_it_should_be(fault: PlantedFault) -> None:
    assert _is_as_it_should_be(fault, _story(fault))


def test_the_slips_of_the_printed_figures_are_among_them() -> None:
    names = " ".join(fault.name for fault in PLANTED)
    assert len(PLANTED) >= 12 and all(f"Figure {number}" in names for number in (2, 4, 5))
