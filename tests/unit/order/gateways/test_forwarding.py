"""What waits to be put on an attachment: how far a ring has come is told once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.items import Carried, Processes, Stretch
from ordercast.order.gateways.network import RingNetwork
from ordercast.order.stamped.lanes import NO_STAMP, Stamp

ME = ProcessId(1)
WEST, EAST = ConfigurationId(1028, ME), ConfigurationId(1032, ME)
SOME: Stamp = (3, 1, 0)
EARLIER: Stamp = (3, 2, 0)
LATE: Stamp = (4, 1, 0)
HALF = frozenset({ME})


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


class Kept:
    """What comes from the east, over links of which some have not begun here."""

    def __init__(self, *came: tuple[Stretch, Stamp, Processes | None]) -> None:
        self.network = RingNetwork(ME, {1: WEST, 2: EAST}, 1)
        for stretch, since, half in came:
            self.comes(stretch, since, half)

    def comes(self, stretch: Stretch, since: Stamp = NO_STAMP, half: Processes | None = None) -> None:
        self.network.forwarding.accept(stretch, since, 2, half)

    def begins(self, merge: Stamp, *, is_known: bool = True) -> None:
        """The order has come to this merge."""
        self.network.known.place = merge
        if is_known:
            self.network.known.merges.add(merge)
        self.network.forwarding.release()

    @property
    def taken(self) -> list[int]:
        """Return the seqs of what has been taken of the west, in order."""
        return [seq for run in self.network.known.streams[WEST].runs for seq in run.content.seqs]

    @property
    def size(self) -> int:
        return self.network.forwarding.aside_size


def test_packets_that_are_kept_for_a_link_are_taken_before_those_behind_them() -> None:
    """Somebody on the way had the first ones over the link, and the others on the way that needs none (groups, seed
    1492)."""
    kept = Kept((_stretch(2), LATE, None), (_stretch(4), LATE, None))
    kept.comes(_stretch(3))
    assert kept.taken == [2, 3]
    kept.comes(_stretch(5))
    assert kept.taken == [2, 3, 4, 5]


@pytest.mark.parametrize("ways", [((2, LATE), (3, EARLIER)), ((3, EARLIER), (2, LATE)), ((3, LATE), (2, EARLIER))])
def test_packets_that_are_kept_for_two_links_are_taken_in_their_order(ways: tuple[tuple[int, Stamp], ...]) -> None:
    kept = Kept(*((_stretch(seq), since, None) for seq, since in ways))
    kept.comes(_stretch(4))
    assert kept.taken == [2, 3, 4] and not kept.size


def test_a_link_that_begins_releases_what_a_later_one_keeps_of_the_packets_before() -> None:
    kept = Kept((_stretch(2), LATE, None), (_stretch(3), EARLIER, None))
    kept.begins(EARLIER)
    assert kept.taken == [2, 3]


@pytest.mark.parametrize(
    ("first", "second"),
    [((_stretch(2), None), (_stretch(3), HALF)), ((_stretch(2), None), (_stretch(3, ring=EAST), None))],
    ids=["residual", "of another ring"],
)
def test_other_packets_release_nothing(
    first: tuple[Stretch, Processes | None], second: tuple[Stretch, Processes | None]
) -> None:
    kept = Kept((first[0], LATE, first[1]), (second[0], NO_STAMP, second[1]))
    assert kept.taken == [] and kept.size


@pytest.mark.parametrize(
    ("other", "half"), [(_stretch(2), HALF), (_stretch(2, ring=EAST), None)], ids=["residual", "of another ring"]
)
def test_only_regular_packets_of_the_ring_are_released(other: Stretch, half: Processes | None) -> None:
    kept = Kept((_stretch(1), LATE, None), (other, LATE, half))
    kept.comes(_stretch(3))
    assert kept.taken == [1, 3] and kept.size == 1


def test_what_is_kept_counts_as_waiting_until_it_is_released() -> None:
    large = replace(_stretch(2), bodies=(bytes(1 << 20),))
    kept = Kept((large, LATE, None))
    assert kept.network.undelivered_size == 1 << 20
    kept.comes(_stretch(3))
    assert kept.taken == [2, 3] and kept.network.undelivered_size == (1 << 20) + 1 and not kept.size


def test_a_link_that_begins_leaves_nothing_of_what_was_kept_for_it() -> None:
    kept = Kept((_stretch(2), LATE, None))
    kept.comes(_stretch(3))
    kept.begins(LATE, is_known=False)
    assert not kept.size and not kept.network.forwarding._aside_taken
