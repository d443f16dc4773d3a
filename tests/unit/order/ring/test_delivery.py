"""Agreed and safe delivery on a ring of three, and its end. (Paper, sections 4.1 and 4.3; erratum E11)"""

from __future__ import annotations

import pytest

from ordercast.model.configuration import ChangeReason, ConfigurationKind
from ordercast.model.effects import Deliver, Effect, Install, Record
from ordercast.model.ids import SLOT_MAX, ConfigurationId, Position, ProcessId, Seq
from ordercast.model.notes import Occurred, Occurrence
from ordercast.model.service import Service
from ordercast.order.membership.recovery_plan import RecoveryPlan
from ordercast.order.ring.delivery import Delivery
from ordercast.wire.header import Part, recovered
from ordercast.wire.run import PacketRun

from ..rings import NEXT_RING_ID, ONE, RING_ID, THREE, TWO, make_packet, make_ring, make_run


def _delivery(*packets: tuple[int, PacketRun]) -> Delivery:
    ring = make_ring(ONE)
    for seq, packet in packets:
        ring.store.add(Seq(seq), packet)
    return Delivery(ring, ring.id, reach=64)


def _agreed(seq: int, originator: ProcessId = ONE) -> tuple[int, PacketRun]:
    return seq, make_packet(seq, originator=originator)


def _safe(seq: int) -> tuple[int, PacketRun]:
    return seq, make_packet(seq, service=Service.SAFE)


def _part(seq: int, part: Part, text: str, sender: int = 0) -> tuple[int, PacketRun]:
    return seq, make_packet(seq, text, part=part, sender=sender)


def _advance(delivery: Delivery, safe: int = 0) -> list[str]:
    effects: list[Effect] = []
    delivery.deliver(Seq(safe), effects)
    assert len(effects) <= 1
    return _texts(effects)


def _texts(effects: list[Effect]) -> list[str]:
    return [message[5].decode() for effect in effects if isinstance(effect, Deliver) for message in effect.messages()]


# In the regular configuration


def test_agreed_messages_are_delivered_up_to_the_first_hole() -> None:
    delivery = _delivery(_agreed(1), _agreed(2), _agreed(4))
    assert _advance(delivery) == ["1", "2"]
    assert _advance(delivery) == []
    delivery.ring.store.add(Seq(3), make_packet(3))
    assert _advance(delivery) == ["3", "4"]
    assert delivery.delivered == 4


def test_a_message_not_yet_safe_holds_up_later_agreed_ones() -> None:
    delivery = _delivery(_agreed(1), _safe(2), _agreed(3))
    assert _advance(delivery, safe=1) == ["1"]
    assert delivery.delivered == 1
    assert _advance(delivery, safe=2) == ["2", "3"]


def test_what_is_safe_and_discarded_meanwhile_is_not_delivered_twice() -> None:
    delivery = _delivery(_agreed(1), _agreed(2))
    assert _advance(delivery) == ["1", "2"]
    delivery.ring.store.discard(Seq(2))
    delivery.ring.store.add(Seq(3), make_packet(3))
    assert _advance(delivery) == ["3"]


def test_all_messages_of_a_packet_are_delivered_in_their_order_with_their_position() -> None:
    delivery = _delivery((1, make_packet(1, "a", "b", originator=TWO, sender=7)))
    effects: list[Effect] = []
    delivery.deliver(Seq(0), effects)
    (deliver,) = effects
    assert isinstance(deliver, Deliver) and (deliver.configuration, deliver.origin) == (RING_ID, RING_ID)
    assert list(deliver.messages()) == [
        (1, 0, TWO, 7, Service.AGREED, b"a"),
        (1, 1, TWO, 7, Service.AGREED, b"b"),
    ]


def test_parts_are_delivered_as_one_message_at_the_place_of_the_last() -> None:
    delivery = _delivery(
        _part(1, Part.FIRST, "to "),
        _agreed(2),
        _part(3, Part.MIDDLE, "be "),
        _part(4, Part.FIRST, "not ", sender=9),
        _part(5, Part.LAST, "or"),
    )
    effects: list[Effect] = []
    delivery.deliver(Seq(0), effects)
    assert _texts(effects) == ["2", "to be or"]
    (deliver,) = effects
    assert isinstance(deliver, Deliver) and list(deliver.messages())[1][:2] == (5, 0)
    delivery.ring.store.add(Seq(6), make_packet(6, "to be", part=Part.LAST, sender=9))
    assert _advance(delivery) == ["not to be"]


def test_a_message_begun_again_is_delivered_from_its_new_beginning() -> None:
    delivery = _delivery(_part(1, Part.FIRST, "lost"), _part(2, Part.FIRST, "so"), _part(3, Part.LAST, " be it"))
    assert _advance(delivery) == ["so be it"]


def test_parts_whose_beginning_is_unknown_are_not_delivered() -> None:
    delivery = _delivery(_part(1, Part.MIDDLE, "b"), _part(2, Part.LAST, "c"), _agreed(3))
    assert _advance(delivery) == ["3"]


# Packets in runs


def test_of_a_run_what_is_safe_is_delivered_and_the_rest_later() -> None:
    delivery = _delivery()
    delivery.ring.store.extend(make_run(1, "1", "2", "3", "4", service=Service.SAFE))
    delivery.ring.store.extend(make_run(5, "5", "6"))
    assert _advance(delivery, safe=2) == ["1", "2"]
    assert delivery.delivered == 2
    assert _advance(delivery, safe=2) == []
    delivery.ring.store.discard(Seq(1))
    assert _advance(delivery, safe=3) == ["3"]
    assert _advance(delivery, safe=4) == ["4", "5", "6"]


def test_a_safe_run_ends_where_it_ends_however_much_is_safe() -> None:
    delivery = _delivery()
    delivery.ring.store.extend(make_run(1, "1", "2", service=Service.SAFE))
    delivery.ring.store.extend(make_run(3, "3", "4"))
    assert _advance(delivery, safe=4) == ["1", "2", "3", "4"]


def test_a_run_that_was_delivered_lets_go_of_its_messages() -> None:
    delivery, run = _delivery(), make_run(1, "1", "2", service=Service.SAFE)
    delivery.ring.store.extend(run)
    _advance(delivery, safe=1)
    assert run.parcel is not None
    _advance(delivery, safe=2)
    assert run.parcel is None


def test_a_run_that_begins_or_ends_at_a_hole_is_delivered_to_the_hole_and_from_it_on() -> None:
    delivery = _delivery()
    store = delivery.ring.store
    store.extend(make_run(1, "1", "2"))
    beyond = make_run(4, "4", "5", "6")
    for seq in (4, 6):
        store.add(Seq(seq), beyond)
    assert _advance(delivery) == ["1", "2"]
    store.add(Seq(3), make_packet(3))
    assert _advance(delivery) == ["3", "4"]
    store.add(Seq(5), beyond)
    assert _advance(delivery) == ["5", "6"]


def test_where_nothing_is_deliverable_there_is_no_effect() -> None:
    effects: list[Effect] = []
    _delivery(_safe(1)).deliver(Seq(0), effects)
    assert effects == []
    delivers = [effect for effect in _finish(_delivery(), _plan(ONE, TWO)) if isinstance(effect, Deliver)]
    assert delivers == []


def test_stamps_are_for_enclosing_engines_alone() -> None:
    effects: list[Effect] = []
    _delivery(_agreed(1)).deliver(Seq(0), effects)
    assert [effect.stamps for effect in effects if isinstance(effect, Deliver)] == [None]


def test_a_run_of_parts_is_put_together_with_what_is_around_it() -> None:
    delivery = _delivery(_part(1, Part.FIRST, "a"))
    delivery.ring.store.extend(make_run(2, "b", "c", "d", part=Part.MIDDLE))
    delivery.ring.store.extend(make_packet(5, "e", part=Part.LAST))
    assert _advance(delivery) == ["abcde"]


def test_of_a_run_beyond_the_gap_every_packet_is_judged() -> None:
    delivery = _delivery(_agreed(1))
    store = delivery.ring.store
    for run in (make_run(3, "3", "4", originator=THREE), make_run(5, "5", "6", originator=TWO)):
        for seq in range(run.seq, run.last + 1):
            store.add(Seq(seq), run)
    effects = _finish(delivery, _plan(ONE, TWO))
    assert _texts(effects) == ["1", "5", "6"]
    assert _occurrences(effects) == {
        Occurrence.GAP_DROPPED: 2,
        Occurrence.BEYOND_GAP_DELIVERED: 2,
        Occurrence.GAP_AMONG_COMPANIONS: 1,
    }


# The end of the ring


def _plan(*members: ProcessId, obligation: tuple[ProcessId, ...] = (), delivered: int = 0) -> RecoveryPlan:
    return RecoveryPlan(members, frozenset(obligation or members), Seq(0), Seq(delivered), Seq(0))


def _finish(delivery: Delivery, plan: RecoveryPlan) -> list[Effect]:
    effects: list[Effect] = []
    delivery.finish(plan, make_ring(ONE, (ONE, TWO), NEXT_RING_ID), ChangeReason.TOKEN_LOST, effects)
    return effects


def _occurrences(effects: list[Effect]) -> dict[Occurrence, int]:
    notes = [effect.note for effect in effects if isinstance(effect, Record)]
    return {note.what: note.count for note in notes if isinstance(note, Occurred)}


def test_both_views_are_installed_around_the_rest() -> None:
    effects = _finish(_delivery(_agreed(1), _safe(2)), _plan(ONE, TWO))
    assert [type(effect) for effect in effects if not isinstance(effect, Record)] == [
        Deliver,
        Install,
        Deliver,
        Install,
    ]
    in_regular, in_transitional = (effect for effect in effects if isinstance(effect, Deliver))
    assert (in_regular.configuration, in_regular.origin) == (RING_ID, RING_ID)
    assert (in_transitional.configuration, in_transitional.origin) == (
        ConfigurationId(NEXT_RING_ID.seq - 2, ONE),
        RING_ID,
    )


def test_views_say_where_they_come_from_and_where_they_are_in_the_order() -> None:
    delivery = _delivery(_agreed(1), _safe(2), _agreed(3))
    views = [effect.configuration for effect in _finish(delivery, _plan(ONE, TWO)) if isinstance(effect, Install)]
    transitional, regular = views
    assert (transitional.kind, regular.kind) == (ConfigurationKind.TRANSITIONAL, ConfigurationKind.REGULAR)
    assert transitional.id == ConfigurationId(NEXT_RING_ID.seq - 2, ONE)
    assert transitional.position == Position(RING_ID, Seq(1), SLOT_MAX)
    assert (transitional.previous, transitional.members) == (RING_ID, (ONE, TWO))
    assert (regular.id, regular.previous) == (NEXT_RING_ID, transitional.id)
    assert regular.position == Position(NEXT_RING_ID, Seq(0), 0)
    assert regular.transitional == transitional.transitional == (ONE, TWO)
    assert regular.reason == transitional.reason == ChangeReason.TOKEN_LOST


def test_the_transitional_view_is_named_after_the_lowest_who_comes_along() -> None:
    effects = _finish(_delivery(), _plan(TWO, THREE))
    transitional = next(effect.configuration for effect in effects if isinstance(effect, Install))
    assert transitional.id == ConfigurationId(NEXT_RING_ID.seq - 2, TWO)


def test_what_a_companion_delivered_in_the_regular_view_is_delivered_there_too() -> None:
    delivery = _delivery(_safe(1), _safe(2))
    effects = _finish(delivery, _plan(ONE, TWO, delivered=1))
    delivers = [effect for effect in effects if isinstance(effect, Deliver)]
    assert [(deliver.configuration == RING_ID, _texts([deliver])) for deliver in delivers] == [
        (True, ["1"]),
        (False, ["2"]),
    ]
    assert _occurrences(effects)[Occurrence.SAFE_IN_TRANSITIONAL] == 1


def test_up_to_the_gap_everything_and_beyond_it_only_what_companions_sent() -> None:
    delivery = _delivery(
        _safe(1), _agreed(2, THREE), _agreed(4, THREE), _agreed(5, TWO), _agreed(6, THREE), _agreed(8, ONE)
    )
    effects = _finish(delivery, _plan(ONE, TWO))
    assert _texts(effects) == ["1", "2", "5", "8"]
    counted = _occurrences(effects)
    assert counted[Occurrence.GAP_DROPPED] == 2
    assert counted[Occurrence.BEYOND_GAP_DELIVERED] == 2


def test_an_obligation_is_kept_to_those_who_do_not_come_along() -> None:
    delivery = _delivery(_agreed(2, THREE), _agreed(3, TWO))
    effects = _finish(delivery, _plan(ONE, obligation=(ONE, THREE)))
    assert _texts(effects) == ["2"]
    assert Occurrence.GAP_AMONG_COMPANIONS not in _occurrences(effects), "who is alone has no companions"


def test_a_gap_beyond_which_nothing_is_owed_is_none_among_companions() -> None:
    effects = _finish(_delivery(_agreed(2, THREE)), _plan(ONE, TWO))
    assert _occurrences(effects) == {Occurrence.GAP_DROPPED: 1}


def test_a_large_message_cut_by_the_end_is_dropped_and_told() -> None:
    effects = _finish(_delivery(_part(1, Part.FIRST, "half")), _plan(ONE, TWO))
    assert _texts(effects) == []
    assert _occurrences(effects) == {Occurrence.LARGE_CUT: 1}


def test_a_large_message_in_the_rest_is_put_together() -> None:
    delivery = _delivery(_safe(1), _part(2, Part.FIRST, "a"), _part(3, Part.LAST, "b"))
    assert _texts(_finish(delivery, _plan(ONE, TWO))) == ["1", "ab"]


def _recovered(seq: int) -> tuple[int, PacketRun]:
    return seq, PacketRun(b"", 0, 0, Seq(seq), ONE)


def test_recovered_packets_have_nothing_to_deliver() -> None:
    assert _advance(_delivery(_recovered(1), _agreed(2))) == ["2"]
    assert _texts(_finish(_delivery(_safe(1), _recovered(2)), _plan(ONE, TWO))) == ["1"]


# What the exchange brings


def _exchanged(seq: int) -> bytes:
    return recovered(make_packet(seq).packet(Seq(seq)), ONE, make_ring(ring_id=NEXT_RING_ID).heading, ONE, Seq(1), 1)


def test_a_packet_that_the_exchange_brings_is_kept_once() -> None:
    delivery = _delivery(_agreed(1))
    packet = _exchanged(3)
    assert delivery.keep(Seq(3), packet)
    assert not delivery.keep(Seq(3), packet)
    assert [seq for seq, _ in delivery.held_after(Seq(0))] == [1, 3] and delivery.aru == 1
    assert delivery.keep(Seq(2), _exchanged(2))
    assert _advance(delivery) == ["1", "2", "3"]


def test_a_packet_that_lies_too_far_ahead_is_of_no_use() -> None:
    delivery = _delivery(_agreed(1))
    assert not delivery.keep(Seq(65), _exchanged(65))
    assert delivery.keep(Seq(64), _exchanged(64))


def test_how_far_ahead_is_measured_from_the_last_token() -> None:
    """A forged token's seq had leapt: packets above it are held by some, and all companions must be able to."""
    delivery = _delivery(_agreed(1))
    delivery.ring.memory.forwarded_seq = Seq(1000)
    assert delivery.keep(Seq(1003), _exchanged(1003))


# Stamps, for an engine that encloses the ring


def _stamps(effects: list[Effect]) -> list[list[int]]:
    return [stamps for effect in effects if isinstance(effect, Deliver) for stamps in effect.stamps or []]


def test_of_each_parcel_the_stamps_of_its_packets_are_told() -> None:
    delivery = _delivery(_agreed(1))
    delivery.is_stamped = True
    for seq in (2, 3, 4):
        delivery.ring.store.add(Seq(seq), make_run(2, "b", "c", "d"))
    effects: list[Effect] = []
    delivery.advance(effects)
    assert _stamps(effects) == [[1], [2, 3, 4]]


def test_a_message_in_parts_has_the_stamp_of_the_part_that_completes_it() -> None:
    delivery = _delivery(_part(1, Part.FIRST, "a"), _part(2, Part.MIDDLE, "b"), _part(3, Part.LAST, "c"))
    delivery.is_stamped = True
    effects: list[Effect] = []
    delivery.advance(effects)
    assert (_texts(effects), _stamps(effects)) == (["abc"], [[3]])


def test_what_is_delivered_in_the_transitional_view_has_stamps_too() -> None:
    delivery = _delivery(_agreed(1), _safe(2))
    delivery.is_stamped = True
    effects = _finish(delivery, _plan(ONE, TWO, delivered=1))
    assert _stamps(effects) == [[1], [2]]


def test_of_a_run_that_is_delivered_in_part_the_stamps_of_that_part_are_told() -> None:
    delivery = _delivery()
    delivery.is_stamped = True
    delivery.ring.store.extend(make_run(1, "1", "2", "3", service=Service.SAFE))
    effects: list[Effect] = []
    delivery.deliver(Seq(2), effects)
    assert _stamps(effects) == [[1, 2]]


@pytest.mark.parametrize("is_stamped", [True, False])
def test_an_enclosing_engine_alone_is_told_what_lies_beyond_a_gap(is_stamped: bool) -> None:
    delivery = _delivery(_safe(1), _agreed(3), _agreed(4))
    delivery.is_stamped = is_stamped
    delivers = [effect for effect in _finish(delivery, _plan(ONE, TWO)) if isinstance(effect, Deliver)]
    told = [(deliver.ordered, _texts([deliver])) for deliver in delivers]
    assert told == ([(True, ["1"]), (False, ["3", "4"])] if is_stamped else [(True, ["1", "3", "4"])])
