"""Holds by name and reason, and who wants what."""

from __future__ import annotations

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.holds import Holds, Pressure
from ordercast.order.gateways.interest import Masks, bucket_mask, mask_of
from ordercast.order.gateways.items import EVERYTHING, HoldItem, InterestItem, LogicalRing, Stretch
from ordercast.order.gateways.known import Known

ME, OTHER = ProcessId(1), ProcessId(2)


def test_a_pressure_lets_go_at_three_quarters() -> None:
    pressure = Pressure("queue", 100)
    assert [pressure.measure(amount) for amount in (99, 100, 80, 76, 75, 99, 100)] == [
        False, True, True, True, False, False, True,
    ]  # fmt: skip


def test_a_hold_is_said_once_and_the_latest_counts() -> None:
    mine, theirs = Holds(ME), Holds(OTHER)
    hold = mine.decide(["queue of attachment 2"])
    assert hold == HoldItem(ME, 1, "queue of attachment 2")
    assert mine.take(hold)
    assert mine.decide(["queue of attachment 2"]) is None
    release = mine.decide([])
    assert release is not None
    assert theirs.take(release)
    assert not theirs.take(hold)
    assert theirs.in_force(frozenset((ME, OTHER))) == []


def test_a_holder_that_leaves_the_view_holds_no_more() -> None:
    holds = Holds(ME)
    holds.take(HoldItem(OTHER, 3, "the application is behind"))
    assert [hold.process for hold in holds.in_force(frozenset((ME, OTHER)))] == [OTHER]
    assert holds.in_force(frozenset((ME,))) == []


def _known() -> Known:
    """Gateway 1 on domains 1 and 2, process 2 on domain 2."""
    known = Known(ME, (1, 2))
    for domain, members in ((1, (ME,)), (2, (ME, OTHER))):
        ring = LogicalRing(ConfigurationId(1024 + 4 * domain, ME), frozenset(members), frozenset((ME,)), 1)
        known.learn(ring)
        known.own[domain] = ring.id
        known.born.add(ring.id)
        known.parts[ring.id] = ring.members
        for process in members:
            known.bases[process, domain] = ring.id
    return known


def _packets(*groups: bytes) -> Stretch:
    return Stretch(ConfigurationId(1028, ME), 5, ME, (1,), (b"",), mask=mask_of(groups))


def test_packets_are_carried_only_where_somebody_wants_them() -> None:
    masks = Masks(_known(), is_filtering=True)
    assert masks.is_wanted(2, _packets(b"news"))  # nobody has said anything: all is wanted
    masks.take(InterestItem(OTHER, mask_of([b"chat"])))
    assert not masks.is_wanted(2, _packets(b"news"))
    assert masks.is_wanted(2, _packets(b"news", b"chat"))
    assert not masks.is_wanted(1, _packets(b"chat"))  # nobody is beyond the other attachment
    masks.add(OTHER, mask_of([b"news"]))
    assert masks.is_wanted(2, _packets(b"news"))


def _said(masks: Masks, mask: int) -> InterestItem:
    masks.want(mask)
    interest = masks.due(is_merging=False)
    assert interest == InterestItem(ME, mask)
    return interest


def test_interest_is_in_force_when_its_own_packet_was_delivered() -> None:
    chat, both = bucket_mask(b"chat"), mask_of([b"chat", b"news"])
    masks = Masks(_known(), is_filtering=True)
    assert masks.in_force == EVERYTHING
    first = _said(masks, chat)
    assert masks.in_force == chat  # less is in force at once
    masks.delivered(first)
    more = _said(masks, both)
    assert masks.in_force == chat
    masks.delivered(InterestItem(OTHER, EVERYTHING))
    assert masks.in_force == chat
    masks.delivered(more)
    assert masks.in_force == both
    assert masks.due(is_merging=False) is None


def test_interest_that_was_lost_in_between_is_not_in_force() -> None:
    chat = bucket_mask(b"chat")
    masks = Masks(_known(), is_filtering=True)
    masks.delivered(_said(masks, 0))
    raised, lost, again = (_said(masks, mask) for mask in (chat, 0, chat))
    masks.delivered(raised)
    assert masks.in_force == 0
    masks.delivered(lost)
    assert masks.in_force == 0
    masks.delivered(again)
    assert masks.in_force == chat


def test_everything_is_wanted_while_a_ring_is_to_merge_and_until_all_are_past_it() -> None:
    known = _known()
    masks = Masks(known, is_filtering=True)
    masks.delivered(_said(masks, 0))
    everything = masks.due(is_merging=True)
    assert everything == InterestItem(ME, EVERYTHING)
    masks.want_everything_until((9, 0, 0))
    assert masks.due(is_merging=False) is None
    known.stable = (9, 0, 0)
    assert masks.due(is_merging=False) == InterestItem(ME, 0)
