"""A disk that refuses or hangs ends no ring. Deviation: the paper's stable storage always answers. (deviations, E10)"""

from __future__ import annotations

from ordercast.model.effects import AlarmKind, Effect, Persist
from ordercast.model.ids import ConfigurationId
from ordercast.model.notes import Occurrence
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.run import simulate
from ordercast.wire.messages import CommitToken, Join

from .play import options
from .solo import ONE, SMALL, TRIO, TWO, Solo, alarms, occurred, sent, views

PATIENCE, LOSS, PAUSE = SMALL.storage_patience_ns, SMALL.token_loss_ns, SMALL.pause_ns
NEXT = ConfigurationId(12, ONE)


def committed() -> Solo:
    solo = Solo(TWO).to_operational().lose_ring().agree()
    solo.give(solo.first_commit(TRIO, NEXT))
    assert solo.node.state_name == "Commit"
    return solo


def kinds(effects: list[Effect]) -> list[AlarmKind]:
    return [alarm.kind for alarm in alarms(effects)]


def writes(effects: list[Effect]) -> list[int]:
    return [int.from_bytes(effect.value, "big") for effect in effects if isinstance(effect, Persist)]


def test_the_disk_is_waited_for_and_then_no_longer() -> None:
    solo = committed()
    assert sent(solo.give(solo.second_commit()), CommitToken) == []
    assert alarms(solo.wait(PATIENCE - 1)) == [] and solo.node.state_name == "Commit"
    effects = solo.wait(1)
    assert [token.token_seq for token in sent(effects, CommitToken)] == [5] and solo.node.state_name == "Recovery"
    assert kinds(effects) == [AlarmKind.WITHOUT_STORAGE] and occurred(effects) == [Occurrence.WITHOUT_STORAGE]
    assert "ring seq 12 was not stored within 267 ms" in alarms(effects)[0].text


def test_patience_runs_from_the_first_rotation_on() -> None:
    """All members wait at the same time: together no longer than one of them."""
    solo = committed()
    assert alarms(solo.wait(PATIENCE)) == [] and solo.node.state_name == "Commit"
    effects = solo.give(solo.second_commit())
    assert sent(effects, CommitToken) and kinds(effects) == [AlarmKind.WITHOUT_STORAGE]


def test_patience_ends_well_before_others_give_up_the_ring() -> None:
    assert 2 * PATIENCE <= LOSS
    solo = committed()
    solo.give(solo.second_commit())
    assert sent(solo.wait(LOSS - 1), Join) == [] and solo.node.state_name == "Recovery"


def test_a_disk_that_answers_in_time_is_no_matter() -> None:
    solo = committed()
    solo.give(solo.second_commit())
    solo.wait(PATIENCE - 1)
    assert alarms(solo.written()) == [] and solo.node.state_name == "Recovery"


def without_storage() -> Solo:
    solo = committed()
    solo.give(solo.second_commit())
    solo.wait(PATIENCE)
    assert solo.node.state_name == "Recovery"
    return solo


def test_an_answer_that_comes_later_is_noted_and_said() -> None:
    solo = without_storage()
    effects = solo.written()
    assert kinds(effects) == [AlarmKind.STORAGE_REPAIRED] and occurred(effects) == [Occurrence.STORAGE_AGAIN]
    assert "ring seq 12 is stored" in alarms(effects)[0].text and writes(effects) == []


def alone() -> tuple[Solo, list[Effect]]:
    """It went without, then lost the others too: what happened since."""
    solo = without_storage()
    effects = solo.wait(10 * LOSS)
    assert solo.node.state_name == "Operational" and solo.node.ring.members == (TWO,)
    return solo, effects


def test_who_is_without_does_not_wait_again_and_says_nothing_twice() -> None:
    _, effects = alone()
    assert alarms(effects) == [] and Occurrence.WITHOUT_STORAGE not in occurred(effects)


def test_one_write_is_outstanding_and_the_newest_follows_it() -> None:
    """A disk that never answers must not gather writes."""
    solo, effects = alone()
    assert writes(effects) == [] and solo.node.ring.id.seq > NEXT.seq
    effects = solo.written()
    assert writes(effects) == [solo.node.ring.id.seq] and alarms(effects) == [], "it is in use, and not stored"
    assert kinds(solo.written()) == [AlarmKind.STORAGE_REPAIRED]


def test_a_pause_of_its_own_is_not_the_fault_of_the_disk() -> None:
    solo = committed()
    solo.give(solo.second_commit())
    assert kinds(solo.wake_late(PATIENCE + PAUSE + 1)) == [AlarmKind.PAUSED] and solo.node.state_name == "Commit"
    assert alarms(solo.written()) == [] and solo.node.state_name == "Recovery"


def test_a_node_starts_without_a_disk_that_hangs() -> None:
    solo = Solo(TWO)
    assert views(solo.wait(PATIENCE - 1)) == []
    effects = solo.wait(1)
    assert len(views(effects)) == 1 and kinds(effects) == [AlarmKind.WITHOUT_STORAGE]
    assert solo.node.state_name == "Operational" and kinds(solo.written()) == [AlarmKind.STORAGE_REPAIRED]


def test_all_disks_fail_and_a_member_crashes() -> None:
    """The others go on, in one view change."""
    disks = tuple(Fault(200_000_000, FaultKind.FAIL_DISK, node=node) for node in range(3))
    faults = (*disks, Fault(300_000_000, FaultKind.CRASH, node=2))
    result = simulate(options(faults=faults, fault_time_ns=600_000_000, messages=100), 2)
    assert result.is_valid and result.counts[Occurrence.WITHOUT_STORAGE.value] == 2
    assert result.counts["regular views"] == 3 + 3 + 2, "each alone, all together, two without the third"
