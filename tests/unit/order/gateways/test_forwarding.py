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
EARLIER: Stamp = (3, 2, 0)
LATE: Stamp = (4, 1, 0)


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


def _taken(network: RingNetwork) -> list[int]:
    """Return the seqs of what has been taken of the west, in order."""
    return [seq for run in network.known.streams[WEST].runs for seq in run.content.seqs]


def test_packets_that_are_kept_for_a_link_are_taken_before_those_behind_them() -> None:
    """Somebody on the way had the first ones over the link, and the others on the way that needs none (groups, seed
    1492)."""
    network = RingNetwork(ME, {1: WEST, 2: EAST}, 1)
    for seq, since in ((2, LATE), (4, LATE), (3, NO_STAMP)):
        network.forwarding.accept(_stretch(seq), since, 2, None)
    assert _taken(network) == [2, 3]
    network.forwarding.accept(_stretch(5), NO_STAMP, 2, None)
    assert _taken(network) == [2, 3, 4, 5]


def test_packets_that_are_kept_for_two_links_are_taken_in_their_order() -> None:
    network = RingNetwork(ME, {1: WEST, 2: EAST}, 1)
    for seq, since in ((2, LATE), (3, EARLIER)):
        network.forwarding.accept(_stretch(seq), since, 2, None)
    network.known.place = EARLIER
    network.known.merges.add(EARLIER)
    network.forwarding.release()
    assert _taken(network) == [2, 3]
