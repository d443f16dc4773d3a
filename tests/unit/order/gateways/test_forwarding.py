"""What waits to be put on an attachment: how far a ring has come is told once."""

from __future__ import annotations

import pytest

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.items import Carried, Stretch
from ordercast.order.gateways.network import RingNetwork
from ordercast.order.stamped.lanes import NO_STAMP, Stamp

ME = ProcessId(1)
WEST, EAST = ConfigurationId(1028, ME), ConfigurationId(1032, ME)
SOME: Stamp = (3, 1, 0)


def _stretch(*seqs: int, ring: ConfigurationId = WEST, is_safe: bool = False) -> Stretch:
    return Stretch(ring, 5, ME, seqs, (b"x",) * len(seqs), is_safe)


def _queued(*items: tuple[Stretch, Stamp]) -> list[Carried]:
    """What waits after these have come from the west, over links with these beginnings."""
    network = RingNetwork(ME, {1: WEST, 2: EAST}, 1, is_filtering=True)
    for item, since in items:
        network.forwarding.forward(item, since, 1, None)
    return list(network.forwarding.queues[2])


@pytest.mark.parametrize(
    "later",
    [_stretch(4), _stretch(4).hollow(), _stretch(4, is_safe=True), _stretch(4, is_safe=True).hollow()],
    ids=["whole", "hollow", "safe", "safe and hollow"],
)
def test_how_far_a_ring_has_come_is_told_by_whatever_follows_of_it(later: Stretch) -> None:
    assert _queued((_stretch(2, 3).hollow(), NO_STAMP), (later, NO_STAMP)) == [Carried(later)]


def test_whatever_tells_more_than_that_stays() -> None:
    for first in (_stretch(3), _stretch(3, is_safe=True).hollow()):
        later = _stretch(4)
        assert _queued((first, NO_STAMP), (later, NO_STAMP)) == [Carried(first), Carried(later)]


def test_another_ring_and_another_way_tell_nothing_of_it() -> None:
    hollow, other = _stretch(3).hollow(), _stretch(4, ring=ConfigurationId(2052, ME))
    assert _queued((hollow, NO_STAMP), (other, NO_STAMP)) == [Carried(hollow), Carried(other)]
    assert _queued((hollow, NO_STAMP), (_stretch(4), SOME)) == [Carried(hollow), Carried(_stretch(4), SOME)]


def test_what_is_below_does_not_tell_it() -> None:
    """What is kept for a link comes in the order of each gateway, and several may carry it."""
    hollow, lower = _stretch(5).hollow(), _stretch(4)
    assert _queued((hollow, SOME), (lower, SOME)) == [Carried(hollow, SOME), Carried(lower, SOME)]
