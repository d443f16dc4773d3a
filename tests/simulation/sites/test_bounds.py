"""What the order over sites costs without loss, in distances D and δ, and how silent sites are afterwards."""

from __future__ import annotations

from collections import Counter

import pytest

from ordercast.model.configuration import ConfigurationKind
from ordercast.model.ids import MILLISECOND, ProcessId
from ordercast.model.notes import Occurred, Occurrence
from ordercast.model.service import Service
from ordercast.sim.options import SIM_SITES
from ordercast.sim.run import Result, simulate
from ordercast.sim.topology import Rate
from ordercast.trace.records import DeliveredBatch, Installed, Noted, Submitted

from .scenes import DISTANCE, apart

DELTA = SIM_SITES.delta_ns
SLACK = 3 * MILLISECOND  # for the rings of both sites
BEGINS = 250 * MILLISECOND
ENDS = 700 * MILLISECOND
BOUNDS = {
    Service.RELIABLE: DISTANCE,
    Service.FIFO: DISTANCE,
    Service.AGREED: 2 * DISTANCE + DELTA,
    Service.SAFE: 3 * DISTANCE + 2 * DELTA,
}


def run(sites: int, senders: int, service: Service) -> Result:
    rates = tuple(Rate(node, 20, is_poisson=True, start_ns=BEGINS, end_ns=ENDS) for node in range(senders))
    options = apart(
        sites, 1, messages=0, rates=rates, services=(service,), size_max=64, fault_time_ns=900 * MILLISECOND
    )
    result = simulate(options, 1, keep_events=True)
    assert result.is_valid, result.verdict.sentence
    begun = [
        event.at
        for event in result.events
        if isinstance(event, Installed) and event.configuration.kind is ConfigurationKind.REGULAR
    ]
    assert max(begun) < BEGINS, "there is one view by then"
    return result


def slowest(result: Result) -> int:
    """Return how long the slowest message took to the last daemon."""
    events = result.events
    sent = {one.message: event.at for event in events if isinstance(event, Submitted) for one in event.messages}
    return max(
        event.at - sent[one.message]
        for event in events
        if isinstance(event, DeliveredBatch)
        for one in event.messages
        if one.message is not None
    )


def updates_after_the_last_message(result: Result) -> Counter[ProcessId]:
    last = max(event.at for event in result.events if isinstance(event, Submitted))
    updates: Counter[ProcessId] = Counter()
    for event in result.events:
        if isinstance(event, Noted) and event.at > last and isinstance(event.note, Occurred):
            updates[event.process] += event.note.count * (event.note.what is Occurrence.SITES_UPDATE)
    return updates


@pytest.mark.parametrize("service", BOUNDS, ids=lambda service: service.name.lower())
@pytest.mark.parametrize(("sites", "senders"), [(2, 1), (4, 4)])
def test_without_loss_a_message_takes_its_distances_and_then_there_is_silence(
    sites: int, senders: int, service: Service
) -> None:
    result = run(sites, senders, service)
    assert DISTANCE <= slowest(result) <= BOUNDS[service] + SLACK
    assert max(updates_after_the_last_message(result).values()) <= 4
