from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.model.ids import ConfigurationId, ProcessId, Seq
from ordercast.order.membership.recovery_plan import RecoveryPlan, kept_promise, must_exchange, plan_from
from ordercast.wire.messages import CommitEntry

from ..rings import FOUR, ONE, RING_ID, THREE, TWO

OTHER = ConfigurationId(4, FOUR)


def _member(
    process: ProcessId, aru: int, delivered: int, ring: ConfigurationId = RING_ID, received: bool = False
) -> CommitEntry:
    return CommitEntry(process, True, ring, Seq(aru), Seq(delivered), received)


MEMBERS = (_member(ONE, 10, 9), _member(TWO, 7, 7), _member(THREE, 12, 5), _member(FOUR, 90, 80, OTHER))


def test_companions_are_those_who_come_from_the_same_ring() -> None:
    assert plan_from(MEMBERS, TWO).transitional == (ONE, TWO, THREE)
    assert plan_from(MEMBERS, FOUR).transitional == (FOUR,)


def test_a_plan_is_equal_at_all_companions() -> None:
    expected = RecoveryPlan((ONE, TWO, THREE), frozenset({ONE, TWO, THREE}), Seq(7), Seq(9), Seq(12))
    assert [plan_from(MEMBERS, me) for me in (ONE, TWO, THREE)] == [expected] * 3


def test_strangers_numbers_do_not_count() -> None:
    plan = plan_from(MEMBERS, FOUR)
    assert (plan.low_aru, plan.high_delivered) == (90, 80)


def test_packets_are_exchanged_unless_every_companion_has_promised_before() -> None:
    plan = plan_from(MEMBERS, ONE)
    assert must_exchange(MEMBERS, plan)
    some = (replace(MEMBERS[0], received=True), *MEMBERS[1:])
    assert must_exchange(some, plan)
    companions = (*(replace(member, received=True) for member in MEMBERS[:3]), MEMBERS[3])
    assert not must_exchange(companions, plan)
    assert must_exchange(companions, plan_from(companions, FOUR))


def test_a_kept_promise_owes_what_was_owed_then_to_those_who_come_along_now() -> None:
    promise = plan_from(MEMBERS, ONE)
    now = plan_from((_member(ONE, 12, 12), _member(TWO, 12, 9)), ONE)
    assert kept_promise(promise, now) == RecoveryPlan((ONE, TWO), frozenset({ONE, TWO, THREE}), Seq(7), Seq(9), Seq(12))


def test_a_plan_owes_other_than_a_promise_when_fewer_come_along_or_less_was_delivered_by_them() -> None:
    promise = plan_from(MEMBERS[:3], ONE)
    received = [replace(member, old_aru=Seq(12), received=True) for member in MEMBERS[:3]]
    assert plan_from(received, ONE).owed == promise.owed, "how far each has received decides nothing any more"
    assert plan_from(received[:2], ONE).owed != promise.owed
    assert plan_from([replace(received[0], high_delivered=Seq(4)), *received[1:]], ONE).owed != promise.owed


def test_companions_never_become_more_while_recovery_fails() -> None:
    promise = plan_from(MEMBERS[:2], ONE)
    with pytest.raises(AssertionError, match="only become fewer"):
        kept_promise(promise, plan_from(MEMBERS, ONE))
