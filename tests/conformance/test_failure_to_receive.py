"""Failure to receive: who passes tokens but misses packets for ever is expelled. (Paper, section 4.2 Operational,
Figure 4.4)"""

from __future__ import annotations

from ordercast.model.configuration import ChangeReason, ConfigurationKind
from ordercast.model.effects import AlarmKind
from ordercast.model.ids import MILLISECOND, NOBODY
from ordercast.model.notes import Occurrence
from ordercast.sim.faults import Fault, FaultKind
from ordercast.wire.messages import Token

from .play import Play, options
from .solo import ONE, RING, SMALL, THREE, TRIO, TWO, Solo, alarms, occurred, packet_of, reasons, sent

LIMIT = SMALL.fail_to_receive_rotations


def stuck_at(solo: Solo) -> Solo:
    """Packet 1 is here; THREE misses it."""
    solo.give_packets(packet_of(1))
    solo.pass_token(seq=1, aru=0, aru_id=THREE)
    return solo


def test_who_holds_the_aru_for_more_than_the_limit_is_expelled() -> None:
    """Figure 4.4: my_aru_count exceeds fail_rcv_const: aru_id goes to my_fail_set, the token is dropped, and Gather
    begins."""
    solo = stuck_at(Solo().to_operational())
    for _ in range(LIMIT - 1):
        assert reasons(solo.pass_token()) == []
    effects = solo.pass_token()
    assert reasons(effects) == [ChangeReason.FAILED_TO_RECEIVE]
    assert sent(effects, Token) == []
    assert (solo.join.candidates, solo.join.failed, solo.join.blamed) == (TRIO, (THREE,), THREE)
    assert Occurrence.EXPELLED in occurred(effects)
    assert [(alarm.kind, alarm.process) for alarm in alarms(effects)] == [(AlarmKind.FAILED_TO_RECEIVE, THREE)]


def test_an_aru_that_moves_resets_the_count() -> None:
    """Figure 4.4: successive visits with the same aru."""
    solo = stuck_at(Solo().to_operational())
    solo.give_packets(packet_of(2))
    for _ in range(3 * LIMIT):
        effects = solo.pass_token(seq=2, aru=1 - solo.token_forwarded.aru, aru_id=THREE)
        assert reasons(effects) == []


def test_an_unsigned_aru_is_nobodys_failure() -> None:
    """Figure 4.4: aru_id must be valid."""
    solo = Solo().to_operational()
    solo.give_packets(packet_of(1))
    for _ in range(3 * LIMIT):
        assert reasons(solo.pass_token(seq=1, aru=1, aru_id=NOBODY)) == []


def test_nobody_expels_itself() -> None:
    """Figure 4.4: aru_id is not me."""
    solo = Solo().to_operational()
    for _ in range(3 * LIMIT):
        assert reasons(solo.pass_token(seq=1)) == []
    assert solo.token_forwarded.aru_id == TWO


def test_who_is_about_to_raise_the_aru_is_not_blamed() -> None:
    """Deviation: the paper tests the aru that came; here it is the one that will be forwarded. The node raises its own
    aru on this visit, so the aru does not stand still."""
    solo = Solo().to_operational()
    for number in range(1, 3 * LIMIT):
        solo.give_packets(packet_of(number))
        assert reasons(solo.pass_token(seq=number + 1)) == []


def test_it_applies_in_recovery_too() -> None:
    """Section 4.2 Recover."""
    solo = Solo().to_recovery()
    solo.pass_token(seq=1, aru=0, aru_id=THREE)
    effects = [effect for _ in range(LIMIT) for effect in solo.pass_token(aru=0, aru_id=THREE)]
    assert reasons(effects) == [ChangeReason.FAILED_TO_RECEIVE]
    assert solo.join.failed == (THREE,)


def test_ring_mates_take_over_the_blame() -> None:
    """Section 4.2 Gather: the fail_set of a ring-mate is taken over; the reason and who is blamed go on with it."""
    solo = Solo().to_operational()
    join = solo.join_of(ONE, TRIO, {THREE}, ring_seq=8, reason=ChangeReason.FAILED_TO_RECEIVE, blamed=THREE, ring=RING)
    assert reasons(solo.give(join)) == [ChangeReason.FAILED_TO_RECEIVE]
    assert solo.join.blamed == THREE


def test_a_member_deaf_to_data_is_expelled_and_the_others_go_on() -> None:
    """n2 hears tokens and Joins, but no data. The others are one ring, with everything delivered, well
    before it can hear again; it is not merged meanwhile (deviation: hold-down)."""
    faults = (Fault(100 * MILLISECOND, FaultKind.DEAFEN, node=2),)
    play = Play(options(nodes=4, faults=faults, fault_time_ns=400 * MILLISECOND))
    play.at(101, lambda: play.submit(0))
    assert play.run().is_valid
    assert play.memberships(0)[:3] == [[0], [0, 1, 2, 3], [0, 1, 3]]
    assert [len(play.deliveries(node)) for node in (0, 1, 3)] == [1, 1, 1]
    assert play.deliveries(2) == []
    assert {alarm.kind for _, _, alarm in play.result.alarms} == {AlarmKind.FAILED_TO_RECEIVE}
    (expelled,) = [view for view in play.views(0) if len(view.members) == 3 and view.kind is ConfigurationKind.REGULAR]
    assert expelled.reason is ChangeReason.FAILED_TO_RECEIVE
