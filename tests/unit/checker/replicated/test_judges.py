"""Every judge of replicas has a history that it accepts and at least one that it rejects."""

from __future__ import annotations

import pytest

from ordercast.checker.replicated import REPLICA_CHECKERS, ReplicaCheckers, check_replicas
from ordercast.checker.replicated.sequential import SequentialDictionary
from ordercast.checker.verdict import Outcome
from ordercast.model.ids import Instant
from ordercast.model.promises import ReplicaPromise
from ordercast.trace.replica_records import Read, ReplicaEvent

from .stories import Story, outcome, view

ALL = ("a", "b", "c")


def good() -> Story:
    """Two commands, a member cut off, one command without it, and it comes back."""
    story = Story(*ALL)
    story.primary(1, *ALL)
    first = story.call("a", b"put k 1")
    story.apply(first, *ALL)
    story.confirm(first)
    story.primary(2, "a", "b")
    second = story.call("b", b"add k 2")
    story.apply(second, "a", "b")
    story.confirm(second)
    refused = story.call("c", b"put k 9")
    story.refuse(refused)
    story.load("c", "a")
    story.primary(3, *ALL)
    third = story.call("c", b"get k")
    story.apply(third, *ALL)
    story.confirm(third)
    return story


@pytest.mark.parametrize("promise", REPLICA_CHECKERS, ids=lambda promise: promise.name)
def test_a_good_history_is_accepted(promise: ReplicaPromise) -> None:
    assert outcome(promise, good().finished(*ALL)) is Outcome.VALID


def test_the_panel_says_all_at_once() -> None:
    assert [verdict.outcome for verdict in check_replicas(good().finished(*ALL))] == [Outcome.VALID] * 8


def test_a_history_that_cannot_be_read_is_unknown() -> None:
    panel = ReplicaCheckers()
    for event in good().finished(*ALL)[3:]:
        panel.observe(event)
    assert panel.verdict().outcome is Outcome.UNKNOWN


def test_another_command_in_the_same_place() -> None:
    story = good()
    story.apply(story.call("a", b"put k 5"), "a")
    story.apply(story.call("b", b"put k 6"), "b")
    assert outcome(ReplicaPromise.SAME_COMMANDS, story.finished()) is Outcome.INVALID


def test_the_same_command_after_others() -> None:
    story = good()
    story.copies["c"].chain += 1
    story.apply(story.call("a", b"put k 5"), *ALL)
    assert outcome(ReplicaPromise.SAME_COMMANDS, story.finished()) is Outcome.INVALID


def test_a_picture_of_another_state() -> None:
    story = good()
    story.load("c", "a", chain=7)
    assert outcome(ReplicaPromise.SAME_COMMANDS, story.finished()) is Outcome.INVALID


def test_a_command_in_two_places() -> None:
    story = good()
    again = story.call("a", b"put k 5")
    story.apply(again, *ALL)
    story.apply(again, *ALL)
    assert outcome(ReplicaPromise.ONCE, story.finished()) is Outcome.INVALID


def test_confirmed_before_it_is_applied() -> None:
    story = good()
    early = story.call("a", b"put k 5")
    story.confirm(early, b"3", place=4)
    story.apply(early, *ALL)
    assert outcome(ReplicaPromise.CONFIRMATIONS, story.finished()) is Outcome.INVALID


def test_confirmed_where_it_is_not_yet_applied() -> None:
    story = good()
    early = story.call("a", b"put k 5")
    story.apply(early, "b", "c")
    story.confirm(early)
    assert outcome(ReplicaPromise.CONFIRMATIONS, story.finished()) is Outcome.INVALID


def test_confirmed_with_the_result_of_another() -> None:
    story = good()
    call = story.call("a", b"put k 5")
    story.apply(call, *ALL)
    story.confirm(call, b"other")
    assert outcome(ReplicaPromise.CONFIRMATIONS, story.finished()) is Outcome.INVALID
    assert outcome(ReplicaPromise.LINEARISABLE, story.finished()) is Outcome.INVALID


def test_refused_and_applied() -> None:
    story = good()
    call = story.call("a", b"put k 5")
    story.refuse(call)
    story.apply(call, *ALL)
    assert outcome(ReplicaPromise.REFUSALS, story.finished()) is Outcome.INVALID


def test_refused_without_certainty_may_be_applied() -> None:
    story = good()
    call = story.call("a", b"put k 5")
    story.refuse(call, is_certain=False)
    story.apply(call, *ALL)
    assert outcome(ReplicaPromise.REFUSALS, story.finished()) is Outcome.VALID


def test_a_confirmed_command_is_missing_in_the_next_primary_component() -> None:
    story = good()
    lost = story.call("a", b"put k 5")
    story.apply(lost, "a")
    story.confirm(lost)
    story.primary(4, "b", "c")
    assert outcome(ReplicaPromise.DURABILITY, story.finished()) is Outcome.INVALID


def test_beginning_anew_while_somebody_has_the_state() -> None:
    story = good()
    story.lineage = view(9)
    story.primary(9, "c")
    assert outcome(ReplicaPromise.DURABILITY, story.finished()) is Outcome.INVALID


def test_beginning_anew_when_everything_is_lost() -> None:
    story = good()
    for name in ALL:
        story.end(name)
        story.start(name)
    story.lineage = view(9)
    story.primary(9, *ALL)
    assert outcome(ReplicaPromise.DURABILITY, story.finished()) is Outcome.VALID


def test_an_earlier_view_goes_on_applying() -> None:
    story = good()
    story.primary(2, "a")
    story.apply(story.call("a", b"put k 5"), "a")
    assert outcome(ReplicaPromise.ONE_PRIMARY, story.finished()) is Outcome.INVALID


def test_an_order_against_real_time() -> None:
    story = good()
    first = story.call("a", b"put k 5")
    story.apply(first, *ALL)
    later = story.call("b", b"put k 6")
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


def test_without_a_quorum_nothing_is_owed() -> None:
    story = good()
    story.cut("a")
    story.end("b")
    assert outcome(ReplicaPromise.LIVENESS, story.finished()) is Outcome.VALID


def test_all_are_there_and_nobody_begins() -> None:
    assert outcome(ReplicaPromise.LIVENESS, Story(*ALL).finished()) is Outcome.INVALID
    assert outcome(ReplicaPromise.LIVENESS, Story(*ALL, weighted=False).finished()) is Outcome.INVALID


def test_who_held_the_state_last_is_there_and_does_not_go_on() -> None:
    story = Story(*ALL, weighted=False)
    story.primary(1, *ALL)
    story.primary(2, "a", "b")
    assert outcome(ReplicaPromise.LIVENESS, story.finished()) is Outcome.INVALID
    story.cut("b")
    assert outcome(ReplicaPromise.LIVENESS, story.finished()) is Outcome.VALID


def test_a_record_that_was_cut_short_says_nothing_of_liveness() -> None:
    assert outcome(ReplicaPromise.LIVENESS, good().events) is Outcome.UNKNOWN


# Reads that have no place of their own


def with_read(count: int, result: bytes, *, called_last: bool = True) -> list[ReplicaEvent]:
    """The good history, and at its end a read of k that saw so many commands; or one that was called at its start."""
    story = good()
    events = story.finished(*ALL)
    last = events[-1]
    called_at = last.at if called_last else Instant(0)
    read = Read(last.at, story.lives["a"], called_at, b"get k", view(1), count, result)
    return [*events[:-1], read, last]


def test_a_read_sees_the_state_after_as_many_commands() -> None:
    assert outcome(ReplicaPromise.LINEARISABLE, with_read(3, b"3")) is Outcome.VALID
    assert outcome(ReplicaPromise.LINEARISABLE, with_read(3, b"1")) is Outcome.INVALID


def test_a_read_sees_all_that_was_confirmed_before_its_call() -> None:
    assert outcome(ReplicaPromise.LINEARISABLE, with_read(1, b"1")) is Outcome.INVALID
    assert outcome(ReplicaPromise.LINEARISABLE, with_read(1, b"1", called_last=False)) is Outcome.VALID
    assert outcome(ReplicaPromise.LINEARISABLE, with_read(0, b"", called_last=False)) is Outcome.VALID


def test_a_read_does_not_see_commands_that_nobody_applied() -> None:
    assert outcome(ReplicaPromise.LINEARISABLE, with_read(9, b"3")) is Outcome.INVALID


@pytest.mark.parametrize(
    ("operations", "results"),
    [
        (["set k a", "get k", "compare k a b", "get k"], ["yes", "a", "yes", "b"]),
        (["compare k - a", "compare k - b", "compare k b c"], ["yes", "no a", "no a"]),
    ],
)
def test_the_judges_dictionary_knows_set_and_compare(operations: list[str], results: list[str]) -> None:
    dictionary = SequentialDictionary()
    assert [dictionary.result(operation.encode()).decode() for operation in operations] == results
