"""NOT EXERCISED: of a promise that the history gave nobody a chance to break nothing is said but that."""

from __future__ import annotations

import pytest

from ordercast.checker import Outcome
from ordercast.model.promises import Promise
from ordercast.model.service import Service

from .histories import Story, judge, panel_of

OF_VIEWS = {
    Promise.VIRTUAL_SYNCHRONY,
    Promise.TRANSITIONAL_SETS,
    Promise.TRUTHFUL_SETS,
    Promise.VIEW_AGREEMENT,
    Promise.VIEW_MONOTONY,
    Promise.LIVENESS,
}


def _exercised(story: Story) -> set[Promise]:
    verdicts = panel_of(story.finished()).verdicts()
    assert {verdict.outcome for verdict in verdicts} <= {Outcome.VALID, Outcome.NOT_EXERCISED}
    kept = {verdict.promise for verdict in verdicts if verdict.outcome is Outcome.VALID}
    return {promise for promise in kept if isinstance(promise, Promise)}


def test_without_messages_only_views_are_judged() -> None:
    story = Story(2)
    story.change(0, 1)
    story.change(0, 1)
    assert _exercised(story) == OF_VIEWS


def test_one_process_alone_that_left_gives_nothing_to_judge() -> None:
    story = Story(1)
    story.leave(0)
    verdict = panel_of(story.finished()).verdict()
    assert (verdict.outcome, verdict.sentence) == (Outcome.VALID, "0 promises kept, 16 not exercised")


def test_a_life_that_came_back_exercises_monotony() -> None:
    story = Story(1)
    story.crash(0)
    story.start(0)
    assert _exercised(story) == {Promise.VIEW_MONOTONY, Promise.LIVENESS}


@pytest.mark.parametrize(
    ("service", "judged"),
    [
        (Service.RELIABLE, set()),
        (Service.FIFO, {Promise.FIFO}),
        (Service.CAUSAL, {Promise.FIFO, Promise.CAUSAL}),
        (Service.AGREED, {Promise.FIFO, Promise.CAUSAL, Promise.TOTAL_ORDER, Promise.AGREED_DELIVERY}),
        (
            Service.SAFE,
            {Promise.FIFO, Promise.CAUSAL, Promise.TOTAL_ORDER, Promise.AGREED_DELIVERY, Promise.SAFE_DELIVERY},
        ),
    ],
)
def test_order_is_judged_where_messages_asked_for_it(service: Service, judged: set[Promise]) -> None:
    story = Story(2)
    story.change(0, 1)
    story.round(0, 1, service=service)
    any_message = {Promise.INTEGRITY, Promise.NO_DUPLICATES, Promise.SELF_DELIVERY, Promise.WHOLE_MESSAGES}
    views = OF_VIEWS - {Promise.VIRTUAL_SYNCHRONY}  # both came alone
    assert _exercised(story) == {*any_message, *judged, *views}


def test_what_is_wrong_is_told_even_where_little_can_be() -> None:
    story = Story(2)
    story.change(0, 1)
    story.send(0)
    assert judge(Promise.LIVENESS, story.finished()).outcome is Outcome.INVALID
