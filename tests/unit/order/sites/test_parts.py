"""Trees, the outbox, updates, storage and greetings: the small parts of the sites engine."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ordercast.model.effects import Alarm, Effect, Endpoint, Persist, Unicast
from ordercast.model.errors import UsageError, WireError
from ordercast.model.ids import MILLISECOND, ConfigurationId, Instant, NodeId, ProcessId
from ordercast.model.service import Service
from ordercast.order.links.config import PAYLOAD_MAX
from ordercast.order.outbox import Lot, lots_from
from ordercast.order.ring.config import RingConfig
from ordercast.order.setup import Domain, FarNode, SitePlaces
from ordercast.order.sites.codec import decode, encode
from ordercast.order.sites.config import SitesConfig
from ordercast.order.sites.frames import DataEntry, RecoveredFrame, SpreadFrame, UnitFrame
from ordercast.order.sites.neighbours import Neighbours
from ordercast.order.sites.node import SitesNode
from ordercast.order.sites.outbox import GONE_SIZE_MAX, WideOutbox
from ordercast.order.sites.routes import children, reaches, tree_of, used_edges
from ordercast.order.sites.storage import WideStorage
from ordercast.order.sites.units import SessionRun, Unit, UnitBody
from ordercast.order.sites.update import NEVER, Owing, SitePressure
from ordercast.order.sites.views import SiteEdge

A, B = ProcessId(1 << 48 | 1), ProcessId(2 << 48 | 1)
T0 = Instant(0)
CALM = SitePressure(False, 0)


def test_trees_are_shortest_paths_by_directed_costs_with_ties_by_hops_and_rank() -> None:
    square = (
        SiteEdge(0, 1, 1, 1, (1, 1)),
        SiteEdge(0, 2, 1, 1, (1, 1)),
        SiteEdge(1, 3, 1, 1, (1, 1)),
        SiteEdge(2, 3, 1, 1, (1, 1)),
    )
    assert tree_of(0, 4, square) == (None, 0, 0, 1)
    assert tree_of(3, 4, square) == (1, 3, 3, None)
    uneven = (*square[:2], SiteEdge(1, 3, 5, 1, (1, 1)), square[3])
    assert tree_of(0, 4, uneven) == (None, 0, 0, 2) and tree_of(3, 4, uneven) == (1, 3, 3, None)
    assert children(tree_of(0, 4, uneven), 2) == (3,) and reaches(tree_of(0, 4, uneven), 2) == 0b1100
    triangle = (SiteEdge(0, 1, 2, 2, (1, 1)), SiteEdge(0, 2, 1, 1, (1, 1)), SiteEdge(1, 2, 1, 1, (1, 1)))
    assert tree_of(0, 3, triangle) == (None, 0, 0)  # as far as over 2, and fewer hops
    assert tree_of(0, 3, triangle[:1]) == (None, 0, None)
    assert used_edges(3, (*triangle[1:], SiteEdge(0, 1, 9, 9, (1, 1)))) == triangle[1:]


def messages(sender: int, service: Service, *payloads: bytes) -> list[Lot]:
    return lots_from(payloads, int(service), sender)


def bodies(outbox: WideOutbox, view: bytes, limit: int = 1) -> list[UnitBody]:
    """Return what the next helpings say."""
    found = [decode(entry) for entry in outbox.next(view, limit)]
    return [entry.body for entry in found if isinstance(entry, DataEntry)]


V1, V2, V3 = (bytes((number,)) * 8 for number in (1, 2, 3))


def test_a_void_helping_is_sent_again_before_all_later_ones() -> None:
    outbox = WideOutbox(200)
    outbox.add(messages(0, Service.AGREED, b"a" * 150, b"b" * 150) + messages(1, Service.SAFE, b"c"))
    (first,), (second,) = bodies(outbox, V1), bodies(outbox, V1)
    assert first.payloads == (b"a" * 150,) and second.runs == (SessionRun(0, 2, 1, Service.AGREED),)
    outbox.seen(is_void=False)
    assert outbox.next(V2) == []  # the second is still under way
    outbox.seen(is_void=True)
    (again,) = bodies(outbox, V2)
    assert again.payloads == (b"b" * 150,) and again.runs[0].first == 1
    (last,) = bodies(outbox, V2)
    assert last.payloads == (b"c",) and outbox.next(V2) == []


def test_of_helpings_that_are_alike_those_are_sent_again_that_are_void() -> None:
    outbox = WideOutbox(200)
    payloads = [bytes((number,)) * 80 for number in range(9)]
    outbox.add(messages(0, Service.AGREED, *payloads))
    size = outbox.size
    sent = bodies(outbox, V1, 3)
    assert [body.payloads for body in sent] == [tuple(payloads[at : at + 2]) for at in (0, 2, 4)]
    assert [body.runs[0].first for body in sent] == [1, 3, 5] and outbox.under_way == 3
    outbox.seen(2, is_void=False)
    assert outbox.size == size * 5 // 9
    outbox.seen(is_void=True)
    assert [body.payloads for body in bodies(outbox, V2, 9)] == [tuple(payloads[4:6])]  # laid apart from what waited
    assert [body.payloads for body in bodies(outbox, V2, 9)] == [tuple(payloads[6:8])]
    assert [body.payloads for body in bodies(outbox, V2, 9)] == [(payloads[8],)]


def test_messages_that_fit_in_no_packet_go_together_in_units_of_several() -> None:
    outbox = WideOutbox(100)
    payloads = [bytes((number,)) * 150 for number in range(7)]
    outbox.add(messages(5, Service.AGREED, *payloads))
    first = bodies(outbox, V1, 5)  # packets: two messages take four of them
    assert [body.payloads for body in first] == [tuple(payloads[:2])] and outbox.under_way == 4
    assert [body.payloads for body in bodies(outbox, V1, 1)] == [(payloads[2],)] and outbox.under_way == 6
    outbox.seen(1, is_void=False)
    outbox.seen(1, is_void=True)
    assert not outbox.under_way
    again = bodies(outbox, V2, 99)
    assert [(body.payloads, body.part, body.parts) for body in again] == [((payloads[2],), 0, 1)]
    rest = bodies(outbox, V2, 99)  # eight packets have room for four
    assert [body.payloads for body in rest] == [tuple(payloads[3:])]
    assert [body.runs[0].first for body in again + rest] == [1, 2]


def test_a_unit_takes_eight_packets_at_most_and_a_link_carries_it() -> None:
    for body_max, most in ((100, 8), (1200, 8), (9000, 7), (60_000, 2)):
        outbox = WideOutbox(body_max)
        outbox.add(messages(5, Service.AGREED, bytes(1 << 20)))
        counts = []
        while found := bodies(outbox, V1):
            counts.append(outbox.under_way)
            (body,) = found
            frame = UnitFrame(V1, 0, 0, 1, 1, 1, 1, body)
            attempt = ConfigurationId(1, ProcessId(1))
            recovered = encode(RecoveredFrame(attempt, V1, 0, ProcessId(1), 1, 1, body))
            assert len(encode(frame)) <= PAYLOAD_MAX
            assert len(encode(SpreadFrame(attempt, 0, 1, recovered))) <= PAYLOAD_MAX
        packets = [after - before for before, after in pairwise([0, *counts])]
        assert set(packets[:-1]) == {most} and 1 <= packets[-1] <= most
        for _ in packets:
            outbox.seen(is_void=False)
        assert not outbox.under_way and not outbox


@pytest.mark.parametrize("size", [159, 162, 194])
def test_packets_without_room_for_a_unit_are_refused(size: int) -> None:
    places = SitePlaces(Domain(0, "east"))
    with pytest.raises(UsageError, match="larger packet_size_max"):
        SitesNode(NodeId(1), RingConfig(packet_size_max=size), SitesConfig(), places)
    SitesNode(NodeId(1), RingConfig(packet_size_max=195), SitesConfig(), places)


def test_a_large_message_whose_last_part_is_void_starts_over() -> None:
    outbox = WideOutbox(100)
    outbox.add(messages(5, Service.AGREED, bytes(1500)))
    parts = [bodies(outbox, V1)[0] for _ in range(3)]
    assert [(part.part, part.parts) for part in parts] == [(0, 3), (1, 3), (2, 3)]
    for is_void in (False, False, True):
        outbox.seen(is_void=is_void)
    assert bodies(outbox, V2)[0].part == 0
    outbox.seen(is_void=True)
    (again,) = bodies(outbox, V3)
    assert again.part == 0 and again.runs[0].first == 1


def test_large_messages_that_are_gone_are_not_held_while_more_of_them_wait() -> None:
    outbox, size = WideOutbox(60_000), 1 << 20
    for number in range(12):
        outbox.add(messages(5, Service.AGREED, *(bytes(size) for _ in range(1 if number else 2))))
        while bodies(outbox, V1)[0].part < size // 60_000:
            outbox.seen(is_void=False)
        outbox.seen(is_void=False)
        held = sum(len(payload) for lot in outbox._queue for payload in lot.payloads)
        assert size < outbox.size < 2 * size and held <= outbox.size + GONE_SIZE_MAX


def test_what_comes_in_the_name_of_this_process_and_is_not_under_way_is_not_counted() -> None:
    outbox = WideOutbox(100)
    outbox.seen(2, is_void=True)
    outbox.add(messages(5, Service.AGREED, b"a"))
    assert bodies(outbox, V1)[0].payloads == (b"a",)
    outbox.seen(2, is_void=False)
    assert not outbox and not outbox.under_way and not outbox.size and not outbox.voids


def unit(stamp: int, service: Service) -> Unit:
    return Unit(1, stamp, 0, B, UnitBody((SessionRun(0, 1, 1, service),), (b"x",)))


def test_an_update_is_owed_for_what_waits_and_for_what_is_here_and_not_for_rising_stamps() -> None:
    owing = Owing(SitesConfig(delta_ns=100), 10)
    assert owing.due(99, 10, CALM, T0) == NEVER
    owing.heed(unit(50, Service.AGREED), T0, is_foreign=True)
    assert owing.due(99, 10, CALM, T0) == T0
    owing.said(99, 10, CALM, T0)
    assert owing.due(200, 10, CALM, T0) == NEVER
    assert owing.due(200, 51, CALM, Instant(30)) == 100  # δ after the last one
    owing.said(200, 51, CALM, Instant(100))
    assert owing.due(300, 300, CALM, Instant(400)) == NEVER


def test_reliable_units_are_acknowledged_lazily() -> None:
    owing = Owing(SitesConfig(delta_ns=0, lazy_ns=1000), 10)
    owing.heed(unit(50, Service.RELIABLE), T0, is_foreign=True)
    owing.said(99, 10, CALM, T0)
    assert owing.due(99, 51, CALM, T0) == 1000
    assert owing.due(99, 50, CALM, T0) == NEVER


def test_reliable_units_ask_lazily_for_a_promise_or_nobody_could_acknowledge_them() -> None:
    owing = Owing(SitesConfig(delta_ns=0, lazy_ns=1000), 10)
    owing.heed(unit(50, Service.RELIABLE), T0, is_foreign=True)
    assert owing.due(99, 10, CALM, T0) == 1000
    owing.said(99, 10, CALM, Instant(1000))
    assert owing.due(200, 10, CALM, Instant(1000)) == NEVER


def test_a_full_window_of_reliable_units_asks_soon() -> None:
    owing = Owing(SitesConfig(delta_ns=100, window=4), 10, daemons=2)
    owing.heed(unit(50, Service.RELIABLE), T0, is_foreign=True)
    assert owing.due(99, 10, CALM, T0) == T0


def test_a_disk_that_hangs_is_not_waited_for_without_end() -> None:
    storage = WideStorage(100)
    assert storage.start({}) == 4
    (write,) = storage.want(4, T0)
    assert isinstance(write, Persist) and not storage.has(4)
    assert storage.wake(A, Instant(99)) == []
    assert isinstance(storage.wake(A, Instant(100))[0], Alarm) and storage.has(4)
    assert isinstance(storage.persisted(A)[0], Alarm) and not storage.is_without and storage.has(4)


def sent(effects: list[Effect]) -> list[tuple[object, bytes]]:
    return [(one.target, packet) for one in effects if isinstance(one, Unicast) for packet in one.packets]


def exchange(one: Neighbours, other: Neighbours, packets: list[tuple[object, bytes]], now: Instant) -> None:
    """Let two speak until both are silent."""
    for _ in range(6):
        answers = sent([effect for _, packet in packets for effect in other.receive(packet, now)[1]])
        one, other, packets = other, one, answers
    assert not packets, "greetings end"


def pair() -> tuple[Neighbours, Neighbours]:
    config = SitesConfig()
    one = Neighbours(A, 0, [FarNode(NodeId(2), Endpoint("2", 0), 1)], config, bytes(8))
    other = Neighbours(B, 1, [FarNode(NodeId(1), Endpoint("1", 0), 0)], config, bytes(8))
    return one, other


def test_two_representatives_find_each_other_and_begin_anew() -> None:
    one, other = pair()
    for each, me in ((one, A), (other, B)):
        each.represent(me, T0)
    exchange(one, other, sent(one.flush(T0)), T0)
    first = one.up()[0]
    assert first.peer == B and other.up()[0].tags == first.tags[::-1]
    late = Instant(3_000 * MILLISECOND)
    one.flush(late)  # silence: one end is through with it
    assert not one.up() and [who for who, _ in one.failed] == [B]
    exchange(one, other, sent(one._greet_all()), late)
    second = one.up()[0]
    assert second.tags != first.tags and other.up()[0].tags == second.tags[::-1]
    assert [who for who, _ in other.failed] == [A]


def test_who_was_not_up_keeps_its_tag_and_is_heard_again() -> None:
    one, other = pair()
    for each, me in ((one, A), (other, B)):
        each.represent(me, T0)
    (hello,) = sent(one.flush(T0))
    answer = sent(other.receive(hello[1], T0)[1])
    for _, packet in answer:
        one.receive(packet, T0)  # up at one end, and the other never hears of it
    late = Instant(3_000 * MILLISECOND)
    one.flush(late)
    exchange(one, other, sent(one._greet_all()), late)
    assert one.up() and other.up()[0].tags == one.up()[0].tags[::-1]


def test_a_restarted_process_is_found_again() -> None:
    one, other = pair()
    for each, me in ((one, A), (other, B)):
        each.represent(me, T0)
    exchange(one, other, sent(one.flush(T0)), T0)
    late = Instant(3_000 * MILLISECOND)
    one.flush(late)
    again = Neighbours(ProcessId(B + 1), 1, [FarNode(NodeId(1), Endpoint("1", 0), 0)], SitesConfig(), bytes(8))
    again.represent(ProcessId(B + 1), late)
    exchange(one, again, sent(one._greet_all()), late)
    assert [link.peer for link in one.up()] == [B + 1] and again.up()[0].tags == one.up()[0].tags[::-1]
    exchange(again, one, sent(again._greet_all()), late)
    assert again.up()[0].tags == one.up()[0].tags[::-1]


def test_a_link_of_an_earlier_life_is_not_taken_for_one_of_this() -> None:
    one, other = pair()
    for each, me in ((one, A), (other, B)):
        each.represent(me, T0)
    exchange(one, other, sent(one.flush(T0)), T0)
    again = Neighbours(ProcessId(B + 1), 1, [FarNode(NodeId(1), Endpoint("1", 0), 0)], SitesConfig(), bytes(8))
    again.represent(ProcessId(B + 1), T0)
    link = one.link_to(B)
    assert link is not None
    link.send([b"of the old link"])
    ((packet, size),) = link.flush(T0)
    for _, hello in sent(one._greet_all()):
        again.receive(hello, T0)
    with pytest.raises(WireError, match="not there"):
        again.receive(packet[:size], T0)
    assert not again.up()


def test_who_does_not_represent_its_ring_refers_to_the_one_who_does() -> None:
    one, other = pair()
    one.represent(A, T0)
    other.represent(ProcessId(5), T0)
    ((target, packet),) = sent(one.flush(T0))
    assert isinstance(target, Endpoint)
    answers = sent(other.receive(packet, T0)[1])
    assert answers and answers[0][0] == A
    assert ConfigurationId(0, A) and not one.up()
