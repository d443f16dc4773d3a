"""Every judge of replicas has a history that it accepts and at least one that it rejects."""

from __future__ import annotations

import pytest

from ordercast.checker.replicated import REPLICA_CHECKERS, ReplicaCheckers, check_replicas
from ordercast.checker.verdict import Outcome, combined
from ordercast.model.ids import Instant
from ordercast.model.lineage import Lineage
from ordercast.model.promises import ReplicaPromise
from ordercast.trace.records import Ended, Healed

from .stories import Story, delete, outcome, put, term

ALL = ("a", "b", "c")


def good() -> Story:
    """Two commands, a member cut off, one command without it, and it comes back."""
    story = Story(*ALL)
    story.primary(1, *ALL)
    first = story.call("a", put("k", "1"))
    story.apply(first, *ALL)
    story.confirm(first)
    story.primary(2, "a", "b")
    second = story.call("b", put("k", "2"))
    story.apply(second, "a", "b")
    story.confirm(second)
    refused = story.call("c", put("k", "9"))
    story.refuse(refused)
    story.load("c", "a")
    story.primary(3, *ALL)
    third = story.call("c", delete("k"))
    story.apply(third, *ALL)
    story.confirm(third)
    return story


@pytest.mark.parametrize("promise", REPLICA_CHECKERS, ids=lambda promise: promise.name)
def test_a_good_history_is_accepted(promise: ReplicaPromise) -> None:
    expected = Outcome.NOT_EXERCISED if promise is ReplicaPromise.EXCLUSIVE else Outcome.VALID  # it is a dictionary
    assert outcome(promise, good().finished(*ALL)) is expected


def test_the_panel_says_all_at_once() -> None:
    verdicts = check_replicas(good().finished(*ALL))
    assert combined(verdicts).sentence == f"{len(REPLICA_CHECKERS) - 1} promises kept, 1 not exercised"


def test_what_is_not_promised_is_not_judged() -> None:
    story = good()
    story.apply(story.call("a", put("k", "5")), "a")
    story.apply(story.call("b", put("k", "6")), "b")
    (verdict,) = check_replicas(story.finished(), promised=set(ReplicaPromise) - {ReplicaPromise.SAME_COMMANDS})[:1]
    assert (verdict.promise, verdict.outcome) == (ReplicaPromise.SAME_COMMANDS, Outcome.NOT_PROMISED)


def test_an_empty_history_exercises_nothing() -> None:
    assert {verdict.outcome for verdict in check_replicas([Healed(Instant(0), ()), Ended(Instant(0))])} == {
        Outcome.NOT_EXERCISED
    }


def test_a_history_that_cannot_be_read_is_unknown() -> None:
    panel = ReplicaCheckers()
    for event in good().finished(*ALL)[3:]:
        panel.observe(event)
    assert panel.verdict().outcome is Outcome.UNKNOWN


def test_another_command_in_the_same_place() -> None:
    story = good()
    story.apply(story.call("a", put("k", "5")), "a")
    story.apply(story.call("b", put("k", "6")), "b")
    assert outcome(ReplicaPromise.SAME_COMMANDS, story.finished()) is Outcome.INVALID


def test_the_same_command_after_others() -> None:
    story = good()
    story.copies["c"].chain += 1
    story.apply(story.call("a", put("k", "5")), *ALL)
    assert outcome(ReplicaPromise.SAME_COMMANDS, story.finished()) is Outcome.INVALID


def test_a_picture_of_another_state() -> None:
    story = good()
    story.load("c", "a", chain=7)
    assert outcome(ReplicaPromise.SAME_COMMANDS, story.finished()) is Outcome.INVALID


def test_a_command_in_two_places() -> None:
    story = good()
    again = story.call("a", put("k", "5"))
    story.apply(again, *ALL)
    story.apply(again, *ALL)
    assert outcome(ReplicaPromise.ONCE, story.finished()) is Outcome.INVALID


def test_a_command_that_overtakes_another_of_its_caller() -> None:
    story = good()
    first, second, other = (
        story.call("a", put("k", "5")),
        story.call("a", put("k", "6")),
        story.call("b", put("k", "7")),
    )
    story.apply(other, *ALL)
    assert outcome(ReplicaPromise.CALL_ORDER, story.finished()) is Outcome.VALID
    story.apply(second, *ALL)
    story.apply(first, *ALL)
    assert outcome(ReplicaPromise.CALL_ORDER, story.finished()) is Outcome.INVALID


def test_confirmed_before_it_is_applied() -> None:
    story = good()
    early = story.call("a", put("k", "5"))
    story.confirm(early, b"3", place=4)
    story.apply(early, *ALL)
    assert outcome(ReplicaPromise.CONFIRMATIONS, story.finished()) is Outcome.INVALID


def test_confirmed_where_it_is_not_yet_applied() -> None:
    story = good()
    early = story.call("a", put("k", "5"))
    story.apply(early, "b", "c")
    story.confirm(early)
    assert outcome(ReplicaPromise.CONFIRMATIONS, story.finished()) is Outcome.INVALID


def test_confirmed_with_the_result_of_another() -> None:
    story = good()
    call = story.call("a", put("k", "5"))
    story.apply(call, *ALL)
    story.confirm(call, b"other")
    assert outcome(ReplicaPromise.CONFIRMATIONS, story.finished()) is Outcome.INVALID
    assert outcome(ReplicaPromise.LINEARISABLE, story.finished()) is Outcome.INVALID


def test_refused_and_applied() -> None:
    story = good()
    call = story.call("a", put("k", "5"))
    story.refuse(call)
    story.apply(call, *ALL)
    assert outcome(ReplicaPromise.REFUSALS, story.finished()) is Outcome.INVALID


def test_refused_without_certainty_may_be_applied() -> None:
    story = good()
    call = story.call("a", put("k", "5"))
    story.refuse(call, is_certain=False)
    story.apply(call, *ALL)
    assert outcome(ReplicaPromise.REFUSALS, story.finished()) is Outcome.VALID


def test_a_confirmed_command_is_missing_in_the_next_primary_component() -> None:
    story = good()
    lost = story.call("a", put("k", "5"))
    story.apply(lost, "a")
    story.confirm(lost)
    story.primary(4, "b", "c")
    assert outcome(ReplicaPromise.DURABILITY, story.finished()) is Outcome.INVALID


def test_beginning_anew_while_somebody_has_the_state() -> None:
    story = good()
    story.lineage = Lineage(term(9))
    story.primary(9, "c")
    assert outcome(ReplicaPromise.DURABILITY, story.finished()) is Outcome.INVALID


def test_beginning_anew_when_everything_is_lost() -> None:
    story = good()
    for name in ALL:
        story.end(name)
        story.start(name)
    story.lineage = Lineage(term(9))
    story.primary(9, *ALL)
    assert outcome(ReplicaPromise.DURABILITY, story.finished()) is Outcome.VALID


def test_an_earlier_view_goes_on_applying() -> None:
    story = good()
    story.primary(2, "a")
    story.apply(story.call("a", put("k", "5")), "a")
    assert outcome(ReplicaPromise.ONE_PRIMARY, story.finished()) is Outcome.INVALID


def test_an_order_against_real_time() -> None:
    story = good()
    first = story.call("a", put("k", "5"))
    story.apply(first, *ALL)
    later = story.call("b", put("k", "6"))
    story.apply(later, *ALL)
    story.confirm(later)
    after = story.call("c", b"")
    story.confirm(after, b"", place=4)
    assert outcome(ReplicaPromise.LINEARISABLE, story.finished()) is Outcome.INVALID


def test_a_quorum_that_does_not_go_on() -> None:
    assert outcome(ReplicaPromise.LIVENESS, good().finished()) is Outcome.INVALID
    assert outcome(ReplicaPromise.LIVENESS, good().finished("a", "b")) is Outcome.INVALID
    assert outcome(ReplicaPromise.LIVENESS, good().finished(*ALL, waiting=1)) is Outcome.INVALID
    assert outcome(ReplicaPromise.LIVENESS, good().finished(*ALL, pictures=1)) is Outcome.INVALID
    assert outcome(ReplicaPromise.LIVENESS, good().finished(*ALL, ghosts=1)) is Outcome.INVALID


def test_without_a_quorum_nothing_is_owed() -> None:
    story = good()
    story.cut("a")
    story.end("b")
    assert outcome(ReplicaPromise.LIVENESS, story.finished()) is Outcome.VALID


@pytest.mark.parametrize(("is_formed", "wanted"), [(True, Outcome.INVALID), (False, Outcome.VALID)])
def test_a_beginning_of_which_somebody_made_something_is_not_forgotten(is_formed: bool, wanted: Outcome) -> None:
    story = Story(*ALL)
    story.view(1, *ALL)
    story.decide(1, "a", "b", members=ALL, is_attempt=True)
    story.view(2, "a", "b")
    story.decide(2, "b", members=("a", "b"), is_attempt=not is_formed)
    story.decide(2, "a", members=("a", "b"), is_attempt=True)
    story.forget("a")
    story.view(3, "a", "c")
    assert outcome(ReplicaPromise.LIVENESS, story.finished()) is wanted


def test_all_are_there_and_nobody_begins() -> None:
    assert outcome(ReplicaPromise.LIVENESS, Story(*ALL).finished()) is Outcome.INVALID
    assert outcome(ReplicaPromise.LIVENESS, Story(*ALL, weighted=False).finished()) is Outcome.INVALID


# Who held the state last


def test_who_held_the_state_last_is_there_and_does_not_go_on() -> None:
    story = Story(*ALL, weighted=False)
    story.primary(1, *ALL)
    story.primary(2, "a", "b")
    assert outcome(ReplicaPromise.LIVENESS, story.finished()) is Outcome.INVALID
    story.cut("a")
    assert outcome(ReplicaPromise.LIVENESS, story.finished()) is Outcome.VALID


@pytest.mark.parametrize(("gone", "owed"), [("b", Outcome.INVALID), ("a", Outcome.VALID)])
def test_half_of_them_are_enough_with_the_first(gone: str, owed: Outcome) -> None:
    story = Story(*ALL, weighted=False)
    story.primary(1, *ALL)
    story.primary(2, "a", "b")
    story.end(gone)
    assert outcome(ReplicaPromise.LIVENESS, story.finished()) is owed


def attempted() -> Story:
    """b has decided a component with a after the signal; what a did, nobody knows."""
    story = Story(*ALL, weighted=False)
    story.primary(1, *ALL)
    story.view(2, "a", "b")
    story.decide(2, "b", members=("a", "b"), is_attempt=True)
    return story


def test_an_attempt_binds_while_nobody_can_say_that_it_failed() -> None:
    story = attempted()
    story.end("a")
    assert outcome(ReplicaPromise.LIVENESS, story.finished()) is Outcome.VALID


def test_an_attempt_of_which_one_of_its_holders_does_not_know_has_failed() -> None:
    assert outcome(ReplicaPromise.LIVENESS, attempted().finished()) is Outcome.INVALID


def test_a_second_life_does_not_begin() -> None:
    story = Story(*ALL, weighted=False)
    story.end("b")
    story.start("b")
    assert outcome(ReplicaPromise.LIVENESS, story.finished()) is Outcome.VALID


# Reads, and locks


def test_a_read_of_what_is_not_there() -> None:
    story = good()
    key = put("k", "")[1:6]
    story.look("a", key, b"\0")
    assert outcome(ReplicaPromise.LINEARISABLE, story.finished(*ALL)) is Outcome.VALID
    story.look("a", key, b"\1" + put("", "2")[5:])
    assert outcome(ReplicaPromise.LINEARISABLE, story.finished(*ALL)) is Outcome.INVALID


def test_a_linearised_read_sees_what_had_returned() -> None:
    story = good()
    read = story.call("a", b"")
    story.confirm(read, b"", place=3)
    assert outcome(ReplicaPromise.LINEARISABLE, story.finished(*ALL)) is Outcome.VALID
    late = story.call("b", b"")
    story.confirm(late, b"", place=2)
    assert outcome(ReplicaPromise.LINEARISABLE, story.finished(*ALL)) is Outcome.INVALID


def locked(*answers: tuple[str, bytes]) -> Outcome:
    """What copies have as the holder, each one command further."""
    story = Story(*ALL, structure="lock")
    story.primary(1, *ALL)
    for number, (name, answer) in enumerate(answers, 1):
        story.apply(story.call("a", b"\1" + number.to_bytes(8, "big")), *ALL)
        story.look(name, b"", answer)
    return outcome(ReplicaPromise.EXCLUSIVE, story.finished(*ALL))


def test_a_lock_has_one_holder() -> None:
    assert locked(("a", b"a 1 1 1"), ("b", b"a 1 1 1"), ("c", b"b 2 1 3")) is Outcome.VALID
    assert locked(("a", b"a 1 1 1"), ("b", b"b 2 1 1")) is Outcome.INVALID
    assert locked(("a", b"a 1 1 1"), ("a", b"b 2 1 2"), ("b", b"a 1 1 1")) is Outcome.INVALID
    assert locked(("a", b"a 1 1 2")) is Outcome.INVALID


@pytest.mark.parametrize("belief", [{"is_current": True}, {"holds": True}], ids=["current", "holder"])
def test_who_is_cut_off_calls_itself_neither_current_nor_holder(belief: dict[str, bool]) -> None:
    story = good()
    story.believe("a", is_current=True, holds=True)
    story.cut("a")
    story.believe("a")
    story.view(7, *ALL)
    story.believe("a", is_current=True, holds=True)
    assert outcome(ReplicaPromise.BELIEFS, story.finished(*ALL)) is Outcome.VALID
    story.cut("a")
    story.believe("a", **belief)
    assert outcome(ReplicaPromise.BELIEFS, story.finished(*ALL)) is Outcome.INVALID


def test_who_is_cut_off_is_in_no_primary_component_before_its_stream_is_back() -> None:
    story = good()
    story.cut("a")
    story.decide(1, "a", members=ALL)
    assert outcome(ReplicaPromise.BELIEFS, story.finished(*ALL)) is Outcome.INVALID


def test_who_has_ended_calls_itself_nothing() -> None:
    story = good()
    life = story.lives["a"]
    story.end("a")
    story.lives["a"] = life
    story.believe("a", is_current=True)
    assert outcome(ReplicaPromise.BELIEFS, story.events) is Outcome.INVALID


def test_a_record_that_was_cut_short_says_nothing_of_liveness() -> None:
    assert outcome(ReplicaPromise.LIVENESS, good().events) is Outcome.UNKNOWN
