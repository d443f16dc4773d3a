"""Rules that keep one site from hurting all: interests, queues, stuck sites, strangers, who has the only copy."""

from __future__ import annotations

import pytest

from ordercast.model.effects import Alarm, AlarmKind, Effect, Endpoint, Unicast
from ordercast.model.errors import WireError
from ordercast.model.ids import MILLISECOND, SECOND, ConfigurationId, Instant, NodeId, ProcessId
from ordercast.model.inputs import Interest
from ordercast.model.service import Service
from ordercast.order.links.link import LinkFailure
from ordercast.order.setup import FarNode
from ordercast.order.sites.codec import encode
from ordercast.order.sites.config import SitesConfig
from ordercast.order.sites.early import EarlyFrames
from ordercast.order.sites.frames import Contradiction, UnitFrame
from ordercast.order.sites.hello import Greeting, HelloKind, encode_greeting
from ordercast.order.sites.interest import InterestTable, WantsTold, Wishes, digests_of, wants_of
from ordercast.order.sites.neighbours import Neighbours
from ordercast.order.sites.order import WideOrder
from ordercast.order.sites.plan import plan_of
from ordercast.order.sites.stuck import StuckSites
from ordercast.order.sites.units import SessionRun, UnitBody
from ordercast.order.sites.views import EVERYBODY, Fragment, WideProposal
from ordercast.order.sites.window import FIRST, LEAST, QUEUE_MAX_NS, STEP_NS, QueueReport, UnstableWindow

from .test_order import FRAGMENTS, VIEW, A, B, C, passed, state, unit
from .test_tape import EDGE, frame, spreading_at

T0 = Instant(0)
CLUSTER = bytes(8)


# Interest


def test_everybody_wants_everything_until_it_has_told_its_list() -> None:
    table, (red,) = InterestTable(VIEW), digests_of(("red",))
    assert table.needs(()) == EVERYBODY == table.needs((red,))
    table.take(B, WantsTold((), (), True))
    assert table.needs((red,)) == 0b101
    table.take(C, WantsTold((7,), (), False))
    assert table.needs((red,)) == 0b101  # more of its list is to come
    table.take(C, WantsTold((8,), (), True))
    assert table.needs((red,)) == 0b001 and table.needs((red, 8)) == 0b101
    table.take(B, WantsTold((red,), (), False))
    assert table.needs((red,)) == 0b011
    table.take(B, WantsTold((), (red,), False))
    assert table.needs((red,)) == 0b001


def test_a_wish_is_answered_when_everybody_has_the_unit_that_tells_of_it() -> None:
    wishes = Wishes(100)
    wishes.change([Interest("red", is_wanted=True)], T0)
    (listed,) = wishes.due(VIEW, T0)
    assert wants_of(listed).is_complete and wishes.granted == ["red"]  # a view begins with everything
    wishes.granted.clear()
    wishes.seen(listed, 40)
    wishes.change([Interest("blue", is_wanted=True)], T0)
    (told,) = wishes.due(VIEW, T0)
    wishes.stable_at(1000)
    assert not wishes.granted and wishes
    wishes.seen(told, 50)
    wishes.stable_at(50)
    assert not wishes.granted
    wishes.stable_at(51)
    assert wishes.granted == ["blue"] and not wishes


def test_what_was_given_up_and_wanted_again_waits_for_the_later_unit() -> None:
    wishes = Wishes(100)
    wishes.change([], T0)
    wishes.seen(wishes.due(VIEW, T0)[0], 40)
    wishes.change([Interest("red", is_wanted=True)], T0)
    (first,) = wishes.due(VIEW, T0)
    wishes.change([Interest("red", is_wanted=False)], T0)
    assert wishes.due(VIEW, Instant(99)) == [] and wishes.deadline == 100
    (given_up,) = wishes.due(VIEW, Instant(100))
    wishes.change([Interest("red", is_wanted=True)], Instant(100))
    (again,) = wishes.due(VIEW, Instant(100))
    wishes.seen(first, 50)
    wishes.stable_at(60)
    assert not wishes.granted
    wishes.seen(given_up, 70)
    wishes.seen(again, 80)
    wishes.stable_at(90)
    assert wishes.granted == ["red"]


def test_a_hollow_unit_counts_in_its_session_and_is_not_delivered() -> None:
    order = WideOrder(VIEW, A)
    hollow = unit(1, 50, 0, 1, Service.FIFO)
    hollow.body = hollow.body.hollow()
    order.take(hollow)
    order.take(unit(1, 60, 50, 2, Service.FIFO))
    assert passed(order) == ["1.2"] and order.streams[1].line == 61


def test_who_lacks_what_only_hollow_copies_are_left_of_comes_along_with_nobody() -> None:
    proposal, none = WideProposal(ConfigurationId(12, A), (FRAGMENTS[0], FRAGMENTS[2]), ()), ((), (), ())
    hollow = ((), ((50, 0b110),), ())
    has, lacks = state(A, (60, 51, 40), none, rank=0, hollow=hollow), state(C, (60, 50, 45), none, rank=2)
    plan = plan_of(proposal, {A: has, C: lacks}, C)
    assert plan.is_orphan and plan.companions == (C,) and not plan.lacking
    other = plan_of(proposal, {A: has, C: lacks}, A)
    assert not other.is_orphan and other.companions == (A,) and not other.to_send
    assert plan.view == other.view and plan.view.id.seq == 16  # room for the view of the orphan
    unconcerned = has._replace(hollow=((), ((50, 0b010),), ()))
    plan = plan_of(proposal, {A: unconcerned, C: lacks}, A)
    assert plan.companions == (A, C) and plan.to_send == {(1, 50): 0b10} and plan.view.id.seq == 12


# One site must not stop all


def test_the_window_grows_while_it_keeps_messages_back() -> None:
    window = UnstableWindow(FIRST * 100)
    assert window.size == 100 and window.share(4) == 25 and window.deadline is None
    window.look(0, T0)
    assert window.size == 100, "nobody waits for it"
    for step in range(8):
        window.keeps_back()
        window.look(0, Instant(step * STEP_NS))
        window.look(0, Instant(step * STEP_NS + 1))
    assert window.size == FIRST * 100 and window.deadline is None


def test_the_window_shrinks_with_the_longest_queue_and_stands_until_that_has_drained() -> None:
    window = UnstableWindow(FIRST * 8000)
    window.look(4 * QUEUE_MAX_NS, T0)
    assert window.size == 2000
    window.keeps_back()
    drained = Instant(3 * QUEUE_MAX_NS)
    assert window.deadline == drained
    window.look(0, Instant(drained - 1))
    assert window.size == 2000
    window.look(0, drained)
    assert window.size == 2250, "in small steps once it has shrunk"
    window.look(1000 * QUEUE_MAX_NS, Instant(drained + STEP_NS))
    assert window.size == FIRST * 8000 // LEAST


def test_a_queue_is_told_when_it_is_long_and_when_it_is_short_again() -> None:
    report = QueueReport()
    told = [report.is_news(queue * MILLISECOND) for queue in (150, 250, 300, 600, 190, 90, 210)]
    assert told == [False, True, False, True, True, False, True] and report.told_ms == 210


def test_a_site_for_which_all_wait_is_stuck_and_one_that_moves_is_not() -> None:
    order, stuck = WideOrder(VIEW, A), StuckSites(10 * SECOND)
    order.take(unit(1, 50, 0, 1))
    order.tape_at(1, 90)
    assert stuck.look(order, T0) == []
    order.promise(2, 0, 20, 0)
    assert stuck.look(order, Instant(6 * SECOND)) == []
    assert stuck.look(order, Instant(12 * SECOND)) == []
    (found,) = stuck.look(order, Instant(16 * SECOND))
    alarm = stuck.alarm(found)
    assert found == FRAGMENTS[2] and alarm.kind is AlarmKind.SITE_STUCK and "site 2" in alarm.text
    order.promise(2, 0, 60, 0)
    order.walk()
    assert stuck.look(order, Instant(40 * SECOND)) == []


def test_a_hole_is_noticed_while_acknowledgements_go_on() -> None:
    order, stuck = WideOrder(VIEW, A), StuckSites(10 * SECOND)
    order.take(unit(1, 50, 40, 2))  # the one before it never comes
    order.tape_at(1, 90)
    order.take(unit(2, 60, 0, 1))
    order.tape_at(2, 90)
    for second in range(0, 10, 2):
        order.acknowledge(1, 60 + second)
        assert stuck.look(order, Instant(second * SECOND)) == []
    assert stuck.look(order, Instant(10 * SECOND)) == [FRAGMENTS[1]]


def test_a_site_that_does_not_acknowledge_is_stuck_unless_it_waits_for_another_itself() -> None:
    order, stuck = WideOrder(VIEW, A), StuckSites(10 * SECOND)
    order.take(unit(0, 50, 0, 1))
    order.tape_at(1, 90)
    order.promise(1, 0, 60, 0)
    assert stuck.look(order, T0) == []
    assert stuck.look(order, Instant(10 * SECOND)) == [FRAGMENTS[2]], "nobody can be past it without its promise"
    order.promise(2, 0, 60, 55)
    order.acknowledge(0, 60)
    order.walk()
    assert passed(order) and stuck.look(order, Instant(12 * SECOND)) == []
    assert stuck.look(order, Instant(22 * SECOND)) == [FRAGMENTS[1]], "it is delivered here, and held for its sake"
    order.acknowledge(1, 60)
    order.walk()
    assert stuck.look(order, Instant(40 * SECOND)) == []


def test_what_comes_before_its_view_begins_is_kept_or_its_link_fails() -> None:
    early, data = EarlyFrames(1 << 20), encode(frame(300, 0))
    for stamp in range(10_000):
        early.keep(frame(stamp, 0), data)
    assert len(early.of_view(ConfigurationId(4, A), VIEW.digest)) == 10_000
    with pytest.raises(Contradiction, match="any window"):
        for stamp in range((4 << 20) // len(data) + 1):
            early.keep(frame(stamp, 0), data)


# Strangers and contradictions


def at(me: ProcessId, site: int, *far: FarNode, cluster: bytes = CLUSTER) -> Neighbours:
    made = Neighbours(me, site, far, SitesConfig(), cluster)
    made.represent(me, T0)
    return made


def far(node: int, site: int, cost: int = 0) -> FarNode:
    return FarNode(NodeId(node), Endpoint(str(node), 0), site, cost)


def greetings(effects: list[Effect]) -> list[bytes]:
    return [packet for one in effects if isinstance(one, Unicast) for packet in one.packets]


def texts(one: Neighbours) -> list[str]:
    return [alarm.text for alarm in one.alarms if isinstance(alarm, Alarm)]


def test_packets_of_another_cluster_are_told_once_and_dropped() -> None:
    one, other = at(A, 0, far(2, 1)), at(B, 1, far(1, 0), cluster=b"stranger")
    for _ in range(3):
        for packet in greetings(other._greet_all()):
            with pytest.raises(WireError, match="cluster"):
                one.receive(packet, T0)
    (text,) = texts(one)
    assert "another cluster" in text and "node 2" in text and not one.up()


def test_who_is_in_another_site_than_the_file_says_is_told_once_and_dropped() -> None:
    one, other = at(A, 0, far(2, 3)), at(B, 1, far(1, 0))
    for packet in greetings(other.flush(T0)) * 2:
        with pytest.raises(WireError, match="which is in site 3"):
            one.receive(packet, T0)
    with pytest.raises(WireError, match="which is in site 3"):
        one.check(Fragment(ConfigurationId(4, B), 1, (B,)))
    (text,) = texts(one)
    assert "site 1" in text and "site 3" in text and "both files" in text


def test_a_link_is_set_up_with_the_third_that_somebody_refers_to() -> None:
    third = ProcessId(5 << 48 | 1)
    one, other, right = at(A, 0, far(2, 1), far(5, 1)), at(B, 1, far(1, 0)), at(third, 1, far(1, 0))
    other.represent(third, T0)
    hello, *_ = greetings(one.flush(T0))
    (refer,) = greetings(other.receive(hello, T0)[1])
    packets = greetings(one.receive(refer, T0)[1])
    assert packets, "the third is greeted"
    speaker, listener = one, right
    while packets:
        packets = greetings([effect for packet in packets for effect in listener.receive(packet, T0)[1]])
        speaker, listener = listener, speaker
    assert [link.peer for link in one.up()] == [third] and [link.peer for link in right.up()] == [A]


def test_a_cost_that_is_set_counts_instead_of_the_measured_one() -> None:
    one, other = at(A, 0, far(2, 1, cost=35)), at(B, 1, far(1, 0, cost=80))
    packets, speaker, listener = greetings(one.flush(T0)), one, other
    while packets:
        packets = greetings([effect for packet in packets for effect in listener.receive(packet, T0)[1]])
        speaker, listener = listener, speaker
    assert one.up()[0].cost == 35 and other.up()[0].cost == 80


def test_two_units_with_one_stamp_are_a_contradiction() -> None:
    made, _ = spreading_at(C, EDGE)
    made.spread(frame(300, 0), encode(frame(300, 0)))
    body = UnitBody((SessionRun(0, 1, 1, Service.AGREED),), (b"y",))
    other: UnitFrame = frame(300, 0)._replace(body=body)
    with pytest.raises(Contradiction, match="two units with one stamp"):
        made.is_copy(other, encode(other))
    assert made.is_copy(frame(300, 0), encode(frame(300, 0)))


def test_of_links_that_ended_the_latest_is_last_and_a_standby_is_said_to_be_one() -> None:
    one = at(A, 0, far(2, 1), far(3, 1))
    for peer, speaks in ((C, B), (B, B), (C, B)):
        other = at(peer, 1, far(1, 0))
        packets, speaker, listener = greetings(other.flush(T0)), other, one
        while packets:
            packets = greetings([effect for packet in packets for effect in listener.receive(packet, T0)[1]])
            speaker, listener = listener, speaker
        refer = Greeting(HelloKind.REFER, 1, speaks, 0)
        one.receive(encode_greeting(CLUSTER, peer, refer), T0)
        assert list(one.why)[-1] == peer
    assert one.why == {B: LinkFailure.LEFT, C: LinkFailure.REFERRED}
