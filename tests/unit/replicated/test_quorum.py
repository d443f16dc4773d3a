"""Who may go on, and who may begin."""

from __future__ import annotations

import pytest

from ordercast.model.errors import UsageError
from ordercast.model.lineage import Term
from ordercast.replicated.effects import Point
from ordercast.replicated.quorum import Electorate, LastMajority, Life, Majority

from .stage import view_id


def lives(*names: str, life: int = 1) -> tuple[Life, ...]:
    return tuple(Life(name, life, 0) for name in names)


def electorate(*names: str) -> Electorate:
    return Electorate(Point(Term(0, view_id(1)), 0), lives(*names))


def test_more_than_half_of_the_weights() -> None:
    rule = Majority({"a": 2, "b": 1, "c": 1})
    assert rule.is_quorum(lives("a", "b"), ())
    assert not rule.is_quorum(lives("a"), ()) and not rule.is_quorum(lives("b", "c"), ())
    assert not rule.is_quorum(lives("a", "x"), ()) and rule.weight("x") == 0


def test_with_weights_all_who_have_one_must_be_there_to_begin() -> None:
    rule = Majority({"a": 1, "b": 1, "c": 0})
    assert set(rule.beginners({"a": False, "b": True, "x": False})) == {"a", "b"}
    assert not rule.beginners({"a": True, "c": True})


@pytest.mark.parametrize("weights", [{}, {"a": 0}, {"a": 2, "b": -1}])
def test_weights_that_make_no_sense(weights: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        Majority(weights)


def test_more_than_half_of_the_last_or_half_with_the_first() -> None:
    rule = LastMajority(frozenset({"a"}))
    last = electorate("a", "b", "c", "d")
    assert rule.is_quorum(lives("b", "c", "d"), [last]) and rule.is_quorum(lives("a", "d"), [last])
    assert not rule.is_quorum(lives("b", "c"), [last]) and not rule.is_quorum(lives("a"), [last])
    assert not rule.is_quorum(lives("a", "b", "c", life=2), [last]), "another life is somebody else"


def test_what_may_have_been_decided_since_must_agree() -> None:
    rule = LastMajority(frozenset({"a"}))
    assert not rule.is_quorum(lives("a", "c"), [electorate("a", "b", "c"), electorate("b", "c")])
    assert rule.is_quorum(lives("a", "b"), [electorate("a", "b", "c"), electorate("b", "c")])
    assert not rule.is_quorum(lives("a"), [])


def test_founders_begin_in_their_first_lives() -> None:
    rule = LastMajority(frozenset({"a", "b"}))
    assert set(rule.beginners({"a": True, "b": True, "c": False})) == {"a", "b"}
    assert not rule.beginners({"a": True, "b": False}) and not rule.beginners({"a": True})
    with pytest.raises(UsageError):
        LastMajority(frozenset())
