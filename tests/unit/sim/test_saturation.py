"""While a run is saturated, everybody has something to send, whatever the size of the messages."""

from __future__ import annotations

from collections import Counter

import pytest

from ordercast.model.errors import UsageError
from ordercast.sim.options import SimOptions
from ordercast.sim.run import simulate
from ordercast.trace.records import Saturated, Submitted


@pytest.mark.parametrize("size", [20, 100, 2000])
def test_everybody_gets_messages_of_that_size_and_none_takes_those_of_the_others(size: int) -> None:
    options = SimOptions(nodes=3, messages=0, saturation=60, saturation_size=size)
    result = simulate(options, 1, keep_events=True)
    submitted = [event for event in result.events if isinstance(event, Submitted)]
    assert {message.size for event in submitted for message in event.messages} == {size}
    counts = Counter(event.process for event in submitted)
    assert len(counts) == 3 and sum(counts.values()) == 180
    assert [event.begins for event in result.events if isinstance(event, Saturated)] == [True, False]
    assert result.is_valid, result.verdict.sentence


def test_a_size_that_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match="saturation_size must be 0, or 20 bytes"):
        SimOptions(saturation_size=5).validate()
