"""Runs of sites that chance shows too seldom, for tests of single rules and for faults that are planted."""

from __future__ import annotations

from dataclasses import replace

from ordercast.model.ids import MILLISECOND
from ordercast.model.service import Service
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import SIM_SITES, SimOptions
from ordercast.sim.topology import Line, Rate

DISTANCE = 10 * MILLISECOND
WIDE = Line(delay_min_ns=DISTANCE, delay_max_ns=DISTANCE, multicast=False)
PRUNING = replace(SIM_SITES, prune=True)


def apart(sites: int, each: int, **changes: object) -> SimOptions:
    """So many sites with so many hosts each, `DISTANCE` apart, all linked."""
    options = SimOptions(
        nodes=sites * each,
        engine="sites",
        attachments=tuple((node % sites, sites) for node in range(sites * each)),
        lines=(*((Line(),) * sites), WIDE),
        messages=40,
    )
    return replace(options, **changes)  # type: ignore[arg-type]


def cut_and_mended() -> SimOptions:
    """Three sites, and a link of one of them that fails and is mended again and again under load."""
    there = [(a, b) for a in (0, 3) for b in (1, 4)]
    links = tuple(sorted([*there, *((b, a) for a, b in there)]))
    times = range(400, 2200, 600)
    faults = [Fault(at * MILLISECOND, FaultKind.CUT, links=links, segment=3) for at in times]
    faults += [Fault((at + 200) * MILLISECOND, FaultKind.MEND, segment=3) for at in times]
    ordered = tuple(sorted(faults, key=lambda fault: fault.at))
    return apart(3, 2, messages=200, faults=ordered, fault_time_ns=2_400 * MILLISECOND)


def killed_in_turns() -> SimOptions:
    """Two sites of three hosts under load, of which one after the other is killed and comes back."""
    killed = [Fault((300 + 300 * at) * MILLISECOND, FaultKind.CRASH, node=at + 2) for at in range(4)]
    back = [Fault((450 + 300 * at) * MILLISECOND, FaultKind.RESTART, node=at + 2) for at in range(4)]
    faults = tuple(sorted([*killed, *back], key=lambda fault: fault.at))
    rates = tuple(Rate(node, 200) for node in range(6))
    return apart(2, 3, messages=60, rates=rates, loss=0.1, faults=faults, fault_time_ns=1_800 * MILLISECOND)


def cut_in_recovery() -> SimOptions:
    """Three sites of two hosts under load. A host of the last is killed, and a site is cut off while the view that
    follows is agreed on, each time somewhat later: some are ready for it together with that site, and go on without."""
    faults: list[Fault] = []
    for number, late in enumerate(range(24, 96, 6)):
        at = (400 + 700 * number) * MILLISECOND
        faults += [
            Fault(at, FaultKind.CRASH, node=5),
            Fault(at + late * MILLISECOND, FaultKind.PARTITION, groups=((0, 3), (1, 2, 4, 5)), segment=3),
            Fault(at + 300 * MILLISECOND, FaultKind.MEND, segment=3),
            Fault(at + 350 * MILLISECOND, FaultKind.RESTART, node=5),
        ]
    rates = tuple(Rate(node, 40) for node in range(5))
    until = (400 + 700 * 12) * MILLISECOND
    return apart(3, 2, messages=0, rates=rates, faults=tuple(faults), fault_time_ns=until)


def joining(topics: int = 800, changes: int = 1400, messages: int = 400) -> SimOptions:
    """Three sites whose hosts begin to want topics, most for the first time, amid messages to them."""
    options = apart(3, 1, messages=messages, topics=((),) * topics, topic_changes=changes, size_max=100, loss=0.01)
    return replace(options, sites=PRUNING, fault_time_ns=2_000 * MILLISECOND)


def crowded() -> SimOptions:
    """Two sites that send more than a small window lets be under way."""
    rates = tuple(Rate(node, 1500) for node in range(2))
    options = apart(2, 1, messages=0, rates=rates, services=(Service.AGREED,), fault_time_ns=500 * MILLISECOND)
    return replace(options, sites=replace(SIM_SITES, window=8 << 10))
