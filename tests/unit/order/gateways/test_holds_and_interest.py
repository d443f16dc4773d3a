"""Holds by name and reason, and who wants what."""

from __future__ import annotations

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.model.inputs import Interest
from ordercast.order.gateways.holds import Holds, Pressure
from ordercast.order.gateways.interest import Masks, Subscriptions, bucket_mask, mask_of
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


def _packets(*groups: str) -> Stretch:
    return Stretch(ConfigurationId(1028, ME), 5, ME, (1,), (b"",), mask=mask_of(groups))


def test_packets_are_carried_only_where_somebody_wants_them() -> None:
    masks = Masks(_known(), is_filtering=True)
    assert masks.is_wanted(2, _packets("news"))  # nobody has said anything: all is wanted
    masks.take(InterestItem(OTHER, mask_of(("chat",))))
    assert not masks.is_wanted(2, _packets("news"))
    assert masks.is_wanted(2, _packets("news", "chat"))
    assert not masks.is_wanted(1, _packets("chat"))  # nobody is beyond the other attachment
    masks.add(OTHER, mask_of(("news",)))
    assert masks.is_wanted(2, _packets("news"))


def _said(masks: Masks, mask: int) -> InterestItem:
    masks.want(mask)
    masks.came(EVERYTHING ^ mask)  # something that is not wanted: less is said at once
    interest = masks.due(is_merging=False)
    assert interest == InterestItem(ME, mask)
    return interest


def test_interest_is_in_force_when_its_own_packet_was_delivered() -> None:
    chat, both = bucket_mask("chat"), mask_of(("chat", "news"))
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
    chat = bucket_mask("chat")
    masks = Masks(_known(), is_filtering=True)
    masks.delivered(_said(masks, 0))
    raised, lost, again = (_said(masks, mask) for mask in (chat, 0, chat))
    masks.delivered(raised)
    assert masks.in_force == 0
    masks.delivered(lost)
    assert masks.in_force == 0
    masks.delivered(again)
    assert masks.in_force == chat


def test_users_are_passed_what_the_interest_delivered_last_names_and_what_was_said_since() -> None:
    masks = Masks(_known(), is_filtering=True)
    less = _said(masks, bucket_mask("chat"))
    assert masks.is_for_users(_packets("news"))  # whoever is at another place in the order may count on it
    masks.delivered(less)
    assert not masks.is_for_users(_packets("news"))
    assert masks.is_for_users(_packets("news", "chat"))
    assert masks.is_for_users(_packets())
    masks.want(0)
    assert masks.is_for_users(_packets("chat"))  # users want it no more, but that has not been said
    more = _said(masks, bucket_mask("news"))
    assert masks.is_for_users(_packets("news")) and masks.is_for_users(_packets("chat"))
    masks.delivered(more)
    assert masks.is_for_users(_packets("news")) and not masks.is_for_users(_packets("chat"))


def test_users_are_passed_everything_where_nothing_is_filtered() -> None:
    masks = Masks(_known(), is_filtering=False)
    masks.want(0)
    assert masks.is_for_users(_packets("news"))


def test_everything_is_wanted_while_a_ring_is_to_merge_and_until_all_are_past_it() -> None:
    known = _known()
    masks = Masks(known, is_filtering=True)
    masks.delivered(_said(masks, 0))
    everything = masks.due(is_merging=True)
    assert everything == InterestItem(ME, EVERYTHING)
    masks.want_everything_until((9, 0, 0))
    assert masks.due(is_merging=False) is None
    known.stable = (9, 0, 0)
    masks.came(EVERYTHING)
    assert masks.due(is_merging=False) == InterestItem(ME, 0)


def test_less_is_said_only_when_something_comes_that_nobody_wants() -> None:
    chat, news = bucket_mask("chat"), bucket_mask("news")
    masks = Masks(_known(), is_filtering=True)
    masks.want(chat)
    assert masks.due(is_merging=False) is None
    masks.came(chat | news)
    assert masks.due(is_merging=False) is None
    masks.came(news)
    assert masks.due(is_merging=False) == InterestItem(ME, chat)
    masks.came(news)  # it was on its way
    masks.want(0)
    assert masks.due(is_merging=False) is None


def test_messages_without_destinations_go_everywhere() -> None:
    assert mask_of(()) == EVERYTHING and mask_of(("chat", "@n1")) == bucket_mask("chat") | bucket_mask("@n1")


def test_a_group_is_granted_once_its_bucket_is_in_force() -> None:
    chat, news = bucket_mask("chat"), bucket_mask("news")
    wishes = Subscriptions()
    wishes.change([Interest("chat", True), Interest("news", True)])
    assert wishes.mask == chat | news and wishes.is_waiting
    assert wishes.granted(chat) == ("chat",)
    assert wishes.granted(chat) == ()
    wishes.change([Interest("news", False)])
    assert wishes.mask == chat and wishes.granted(EVERYTHING) == () and not wishes.is_waiting


def test_a_bucket_is_wanted_while_one_of_its_groups_is() -> None:
    first = "chat"
    second = next(name for name in map(str, range(10_000)) if bucket_mask(name) == bucket_mask(first))
    wishes = Subscriptions()
    wishes.change([Interest(first, True), Interest(second, True), Interest(first, False)])
    assert wishes.mask == bucket_mask(first) and wishes.granted(EVERYTHING) == (second,)
    wishes.change([Interest(second, False)])
    assert wishes.mask == 0
