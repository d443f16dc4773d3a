from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ordercast.checker import CHECKERS, Checker, Checkers, Outcome, Witness, check
from ordercast.checker.fifo import Fifo
from ordercast.checker.matters import Matter
from ordercast.model.promises import Promise
from ordercast.trace.records import Crashed, Ended, Event, Installed, Started, Submitted

from .histories import ALL, Story, edited, panel_of, process


def _events() -> list[Event]:
    story = Story(2)
    story.change(0, 1)
    story.round(0, 1)
    return story.finished()


def _outcomes(events: list[Event]) -> set[Outcome]:
    return {verdict.outcome for verdict in panel_of(events).verdicts()}


def test_every_promise_has_a_checker() -> None:
    assert list(CHECKERS) == list(Promise)
    asked = [promise for promise in Promise if promise is not Promise.MULTIPLE_GROUP_ORDER]  # total order is stronger
    assert [verdict.promise for verdict in panel_of(_events()).verdicts()] == asked


def test_a_valid_history_is_valid_as_a_whole() -> None:
    assert check(_events()).outcome is Outcome.VALID
    assert check(_events()).sentence == "13 promises kept, 3 not exercised"


def test_what_is_not_promised_is_not_judged() -> None:
    story = Story(2, replace(ALL, promises=frozenset([Promise.FIFO])))
    story.change(0, 1)
    story.round(0, 1)
    verdicts = panel_of(story.finished()).verdicts()
    assert all(
        verdict.outcome is (Outcome.VALID if verdict.promise is Promise.FIFO else Outcome.NOT_PROMISED)
        for verdict in verdicts
    )


def test_a_panel_may_be_asked_for_some_promises() -> None:
    assert [v.promise for v in Checkers([Promise.CAUSAL, Promise.FIFO]).verdicts()] == [Promise.FIFO, Promise.CAUSAL]


def test_a_checker_that_raises_is_unknown_and_the_others_are_not() -> None:
    class Broken(Checker):
        promise = Promise.CAUSAL
        rule = "nothing"
        matter = Matter.CAUSAL

        def violations(self) -> Iterator[Witness]:
            raise ZeroDivisionError("oops")

    panel = panel_of(_events(), Checkers(catalogue={**CHECKERS, Promise.CAUSAL: Broken}))
    by_promise = {verdict.promise: verdict for verdict in panel.verdicts()}
    assert by_promise[Promise.CAUSAL].outcome is Outcome.UNKNOWN
    assert "ZeroDivisionError: oops" in by_promise[Promise.CAUSAL].sentence
    assert by_promise[Promise.FIFO].outcome is Outcome.VALID
    assert panel.verdict().outcome is Outcome.UNKNOWN


def test_what_a_checker_found_before_it_raised_still_counts() -> None:
    class Broken(Checker):
        promise = Promise.CAUSAL
        rule = "nothing"
        matter = Matter.CAUSAL

        def violations(self) -> Iterator[Witness]:
            yield Witness("is wrong")
            raise ZeroDivisionError("oops")

    verdict = panel_of(_events(), Checkers([Promise.CAUSAL], {Promise.CAUSAL: Broken})).verdict()
    assert (verdict.outcome, "is wrong" in verdict.sentence) == (Outcome.INVALID, True)


def test_an_event_that_cannot_be_read_makes_all_unknown() -> None:
    events = _events()
    submitted = next(event for event in events if isinstance(event, Submitted))
    spoilt = replace(submitted, messages=(None,))  # type: ignore[arg-type]
    panel = panel_of([*events[:4], spoilt])
    assert {verdict.outcome for verdict in panel.verdicts()} == {Outcome.UNKNOWN}
    assert "could not be read" in panel.verdict().sentence


def test_verdicts_may_be_asked_before_the_end_and_again() -> None:
    panel = Checkers([Promise.FIFO, Promise.LIVENESS])
    for event in _events():
        panel.verdicts()
        panel.observe(event)
    assert panel.verdict().outcome is Outcome.VALID


def test_a_checker_can_stand_alone() -> None:
    checker = Fifo()
    for event in _events():
        checker.observe(event)
    assert checker.verdict().outcome is Outcome.VALID


# Histories that cannot be judged.


def test_an_empty_history_is_unknown() -> None:
    assert check([]).outcome is Outcome.UNKNOWN
    assert "empty" in check([]).sentence


def test_a_process_that_never_started_makes_all_unknown() -> None:
    events = _events()
    broken = edited(events, lambda event: None if isinstance(event, Started) and event.process == process(1) else event)
    assert _outcomes(broken) == {Outcome.UNKNOWN}
    assert "n1 has events but never started" in check(broken).sentence


def test_contradictory_promises_make_all_unknown() -> None:
    def change(event: Event) -> Event:
        if isinstance(event, Started) and event.process == process(1):
            return replace(event, promises=replace(ALL, engine="another"))
        return event

    assert _outcomes(edited(_events(), change)) == {Outcome.UNKNOWN}
    assert "promises something else" in check(edited(_events(), change)).sentence


@pytest.mark.parametrize(
    ("text", "extra"),
    [
        ("after it had gone", lambda events: [*events[:-2], Crashed(events[-1].at, process(1)), events[4]]),
        ("after the end", lambda events: [*events, Ended(events[-1].at)]),
        ("started after events of its own", lambda events: [*events[:-2], events[0]]),
        ("one identity", lambda events: [*events[:-2], next(e for e in events if isinstance(e, Submitted))]),
        ("does not run", lambda events: [*events[:-2], Crashed(events[-1].at, process(1)), events[-2]]),
    ],
)
def test_a_history_that_contradicts_itself_is_unknown(text: str, extra: object) -> None:
    events = _events()
    events[4] = next(e for e in events if isinstance(e, Installed) and e.process == process(1))
    broken = extra(events)  # type: ignore[operator]
    assert _outcomes(broken) == {Outcome.UNKNOWN}
    assert text in check(broken).sentence


def test_a_record_cut_short_is_unknown_but_a_violation_in_it_counts() -> None:
    story = Story(2)
    story.change(0, 1)
    message = story.round(0, 1)[0]
    assert check(story.events).outcome is Outcome.UNKNOWN
    story.deliver(message, at=(1,))
    assert check(story.events).outcome is Outcome.INVALID
    assert check([*story.events, Ended(story.now, False)]).outcome is Outcome.INVALID


def test_many_violations_give_few_witnesses() -> None:
    story = Story(2)
    story.change(0, 1)
    for message in story.round(0, 1, count=20):
        story.deliver(message, at=(1,))
    verdict = panel_of(story.finished(), Checkers([Promise.NO_DUPLICATES])).verdicts()[0]
    assert len(verdict.witnesses) == 8
    assert verdict.sentence.endswith("(and more)")
