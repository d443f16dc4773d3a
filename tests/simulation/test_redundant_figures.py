"""What the redundant ring paper says of its figures 6 to 9 holds in the simulator, for the hosts of the campaign."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from ordercast.pipeline.campaign.plan import campaign_from
from ordercast.pipeline.campaign.trial import VALID, trial

CAMPAIGN = campaign_from(Path(__file__).parents[2] / "campaigns" / "redundant.toml")
BYTES = 250_000  # from each host: a few rotations are enough to tell these apart
PLAIN, ACTIVE, PASSIVE = "unreplicated", "active, 2", "passive, 2"


@cache
def _measures(size: int, style: str) -> Mapping[str, float]:
    cell = CAMPAIGN.cell(f"size: nodes=4, size={size}, style={style}")
    row = trial(replace(cell, settings={**cell.settings, "saturation": BYTES // size}), seed=1)
    assert row["outcome"] == VALID, row["sentence"]
    assert not dict(row["counts"]).get("retransmissions")
    return dict(row["measures"])


def _messages(size: int, style: str) -> float:
    return _measures(size, style)["messages_per_s"]


def _kilobytes(size: int, style: str) -> float:
    return _measures(size, style)["bytes_per_s"] / 1000


@pytest.mark.parametrize("style", [PLAIN, ACTIVE, PASSIVE])
def test_messages_that_fill_packets_carry_most(style: str) -> None:
    for full, too_large in ((700, 720), (1400, 1440)):
        assert _kilobytes(full, style) > 1.3 * _kilobytes(too_large, style)


@pytest.mark.parametrize("size", [720, 1400, 1440])
def test_active_is_a_little_below_one_network(size: int) -> None:
    assert 0 < _messages(size, PLAIN) - _messages(size, ACTIVE) <= 1500


@pytest.mark.parametrize("size", [700, 1400])
def test_passive_carries_more_than_one_network_can_and_less_than_two(size: int) -> None:
    assert 2000 <= _kilobytes(size, PASSIVE) - _kilobytes(size, PLAIN) <= 4000
    assert _kilobytes(size, PASSIVE) > 100_000 / 8  # Mbit/s


def test_the_papers_rate_for_a_kilobyte() -> None:
    assert 9_000 < _messages(1024, PLAIN) < 11_000
