"""A process that was paused does not blame others. Deviation: the paper's failure detector is the bare timeout."""

from __future__ import annotations

from ordercast.model.effects import AlarmKind
from ordercast.model.ids import MILLISECOND, Instant
from ordercast.model.notes import Occurrence
from ordercast.sim.faults import Fault, FaultKind

from .play import Play, options
from .solo import RING, SMALL, TRIO, TWO, Solo, alarms, moves, occurred

LOSS, CONSENSUS, PAUSE = SMALL.token_loss_ns, SMALL.consensus_ns, SMALL.pause_ns


def test_a_paused_member_raises_an_alarm_and_keeps_its_ring() -> None:
    solo = Solo().to_operational()
    effects = solo.wake_late(5 * LOSS)
    assert moves(effects) == []
    (alarm,) = alarms(effects)
    assert (alarm.kind, alarm.process) == (AlarmKind.PAUSED, TWO)
    assert alarm.duration is not None and alarm.duration > PAUSE
    assert Occurrence.PAUSE_NOTICED in occurred(effects)


def test_its_patience_begins_anew() -> None:
    solo = Solo().to_operational()
    solo.wake_late(5 * LOSS)
    solo.wait(LOSS - 1)
    assert solo.node.state_name == "Operational"
    solo.wait(1)
    assert solo.node.state_name == "Gather"


def test_it_fails_nobody_in_gather() -> None:
    solo = Solo().to_operational().lose_ring()
    effects = solo.wake_late(10 * CONSENSUS)
    assert len(alarms(effects)) == 1
    assert (solo.join.candidates, solo.join.failed) == (TRIO, ())


def test_a_timer_that_is_a_little_late_is_no_pause() -> None:
    solo = Solo().to_operational()
    deadline = solo.node.next_deadline()
    assert deadline is not None
    effects = solo.wake_late(deadline - solo.now + PAUSE)
    assert alarms(effects) == []


def test_packets_that_piled_up_are_read_first() -> None:
    """Whatever input comes first after the pause, nobody is blamed."""
    solo = Solo().to_operational()
    token = solo.token()
    solo.now = Instant(solo.now + 5 * LOSS)
    effects = solo.give(token)
    assert len(alarms(effects)) == 1
    assert solo.node.state_name == "Operational"
    assert solo.node.ring.id == RING


def test_on_a_whole_ring_only_the_others_decide() -> None:
    """n1 is paused for longer than the token loss timeout. The others go on without it; n1 says that it was paused, and
    its own list of failures never names them: it comes back."""
    faults = (Fault(100 * MILLISECOND, FaultKind.PAUSE, node=1, duration_ns=150 * MILLISECOND),)
    play = Play(options(faults=faults, fault_time_ns=400 * MILLISECOND)).run()
    assert play.is_valid
    assert play.memberships(0)[2] == [0, 2]
    assert {(alarm.kind, process >> 48) for _, process, alarm in play.result.alarms} == {(AlarmKind.PAUSED, 1)}
    assert play.memberships(1)[-1] == [0, 1, 2]


def test_a_short_pause_costs_no_view() -> None:
    faults = (Fault(100 * MILLISECOND, FaultKind.PAUSE, node=1, duration_ns=40 * MILLISECOND),)
    play = Play(options(faults=faults)).run()
    assert play.is_valid
    assert [play.memberships(node)[1:] for node in range(3)] == [[[0, 1, 2]]] * 3
