"""What is known of electorates when several say what they know, and who wins one."""

from __future__ import annotations

from ordercast.checker.replicated.electorates import Electorate, Known, Stint, together

from .stories import term

A, B, C, D = (Stint(life, 0) for life in range(1, 5))
LAST = Electorate(term(1), 4, (A, B, C, D))
ATTEMPT = Electorate(term(2), 2, (B, C))


def test_what_one_knows_all_know() -> None:
    words = [(A, Known(LAST)), (B, Known(LAST, frozenset({ATTEMPT})))]
    assert together(words).all() == [LAST, ATTEMPT]


def test_an_attempt_fails_where_one_of_its_holders_does_not_know_of_it() -> None:
    words = [(A, Known(LAST, frozenset({ATTEMPT}))), (C, Known(LAST))]
    assert together(words).all() == [LAST]
    again = [(A, Known(LAST, frozenset({ATTEMPT}))), (Stint(C.life, 1), Known(LAST))]
    assert together(again).all() == [LAST, ATTEMPT]  # who has missed something refutes nothing


def test_what_was_formed_later_ends_attempts_before_it() -> None:
    later = Electorate(term(3), 1, (B,))
    words = [(A, Known(LAST, frozenset({ATTEMPT}))), (B, Known(later))]
    assert together(words).all() == [later]


def test_who_wins() -> None:
    assert LAST.is_won_by({B, C, D})
    assert LAST.is_won_by({A, B})
    assert not LAST.is_won_by({C, D})
    assert not LAST.is_won_by({A})
    assert not LAST.is_won_by({A, Stint(B.life, 1)})
