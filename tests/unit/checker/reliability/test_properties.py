"""The judge of guarantees: for each a history that keeps it, and some that do not."""

from __future__ import annotations

import pytest

from ordercast.checker.reliability.events import Happening, Kind, Multicasted, SiteHistory
from ordercast.checker.reliability.properties import GUARANTEES, Case, p3
from ordercast.checker.reliability.states import States

NETWORK, END, BOUND = 10, 1_000, 50
KINDS = {kind.value: kind for kind in Kind}


def _history(text: str) -> SiteHistory:
    """Read events: time, kind and site, then a message, a copy or whom it is sent to (S 1 is copy 1, s.1 a message)."""
    events = []
    for line in filter(None, map(str.strip, text.split(";"))):
        time, kind, site, *words = line.split()
        message = next((Multicasted(*_parts(word)) for word in words if "." in word), None)
        copy = next((int(word) for word in words if word.isdigit()), -1)
        to = next((word for word in words if word in ("a", "b", "s")), "")
        events.append(Happening(int(time), KINDS[kind], site, message, copy, to))
    return SiteHistory(events, ("a", "b"), NETWORK, END)


def _parts(word: str) -> tuple[str, int]:
    source, number = word.split(".")
    return source, int(number)


def _is_kept(name: str, text: str) -> bool | None:
    """Return the ruling; None where nothing was asked."""
    case = Case.of(_history(text), {"a": None, "b": "a"})
    ruling = GUARANTEES[name](case, BOUND)
    return ruling.is_kept if ruling.applied else None


SENT = "5 S s 1 a s.1; 5 S s 2 b s.1; 5 M s s.1"
GOT = "8 G a 1 s.1; 9 G b 2 s.1"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("P1", f"{SENT}; {GOT}; 20 D a s.1; 21 D b s.1", True),
        ("P1", f"{SENT}; {GOT}; 20 D a s.1; 61 D b s.1", False),
        ("P1", f"{SENT}; {GOT}; 20 D a s.1", False),
        ("P1", f"{SENT}; {GOT}; 20 D a s.1; 30 F b", True),
        ("P2", f"{SENT}; {GOT}; 20 D a s.1; 55 D b s.1", True),
        ("P2", f"{SENT}; {GOT}; 20 D a s.1; 56 D b s.1", False),
        ("P2", f"{SENT}; 8 G a 1 s.1; 20 D a s.1", True),  # b's copy was lost: no reach
        ("P2", f"{SENT}; 8 G a 1 s.1; 16 G b 2 s.1; 20 D a s.1", True),  # it came late
        ("P2", f"2 F b; 3 A b; {SENT}; {GOT}; 20 D a s.1", True),  # b is awake, and not up
        ("P2", f"2 F b; 3 A b; 4 R b; {SENT}; {GOT}; 20 D a s.1", False),
        ("P2", f"{SENT}; 40 F s", None),
        ("P2", "960 M s s.1", None),  # the end comes first
        ("P4", f"{SENT}; {GOT}; 20 D a s.1; 21 D b s.1", True),
        ("P4", f"{SENT}; {GOT}; 20 D a s.1", False),
        ("P4", f"{SENT}; 8 G a 1 s.1; 20 D a s.1; 6 F b; 100 A b; 200 R b; 250 D b s.1", True),
        ("P4", f"{SENT}; 8 G a 1 s.1; 20 D a s.1; 6 F b; 100 A b; 200 R b; 251 D b s.1", False),
        ("Q1", "20 D a s.1; 70 D b s.1", True),
        ("Q1", "20 D a s.1; 71 D b s.1", False),
        ("Q1", "20 D a s.1; 30 F a", None),
        ("Q1", "15 S a 3 b; 20 D a s.1; 30 S a 4 b", None),  # what a says does not reach b
        ("Q2", f"{SENT}; 20 D a s.1; 7 F b; 90 A b; 100 R b; 150 D b s.1", True),
        ("Q2", f"{SENT}; 20 D a s.1; 7 F b; 90 A b; 100 R b; 151 D b s.1", False),
        ("Q2", f"{SENT}; 7 F b; 90 A b; 100 R b", None),  # nobody has delivered it
        ("Q3", "5 M s s.1; 20 D a s.1; 70 D b s.1", True),
        ("Q3", "5 M s s.1; 20 D a s.1; 71 D b s.1", False),
        ("Q3", "5 M s s.1; 20 D a s.1; 30 F a; 100 A a; 150 D b s.1", True),
        ("Q3", "5 M s s.1; 20 D a s.1; 30 F a; 100 A a; 151 D b s.1", False),
        ("R1", "1 D a s.1; 2 D a s.2; 1 D b s.1; 2 D b s.2", True),
        ("R1", "1 D a s.1; 2 D a s.2; 1 D b s.2; 2 D b s.1", False),
        ("R1", "1 D a s.1; 2 D a s.1", False),
        ("R1", "1 D a s.1; 2 D a s.2; 3 F a; 4 D b s.2; 5 D b s.1", False),
        ("R2", "1 D a s.1; 2 D a s.2; 3 F a; 4 D b s.2; 5 D b s.1", True),
        ("R2", "1 D a s.1; 2 D a s.2; 6 F a; 4 D b s.2; 5 D b s.1", False),
        ("R2", "1 D b s.2; 2 D b s.1; 3 F b; 4 D a s.1; 5 D a s.2", True),
        ("R2", "1 D a s.1; 3 F a; 4 D a s.1", False),  # twice
        ("R3", "1 D a s.1; 2 D a s.2; 3 F a; 4 D b s.2; 5 D b s.1", None),  # a never comes back
        ("R3", "1 D a s.1; 2 D a s.2; 3 F a; 4 D b s.2; 5 D b s.1; 6 A a; 7 R a", False),
        ("R3", "1 D a s.1; 2 D a s.2; 3 F a; 4 D b s.2; 5 D b s.1; 6 A a; 7 D a s.1; 8 R a", True),  # rolled back
    ],
)
def test_guarantees(name: str, text: str, expected: bool | None) -> None:
    assert _is_kept(name, text) is expected


def test_a_majority_within_reach_is_asked_for() -> None:
    case = Case.of(_history(f"{SENT}; {GOT}; 20 D a s.1"))
    assert not p3(case, BOUND).is_kept
    assert p3(case, BOUND, needed=2).applied == 0


def test_states_of_a_site() -> None:
    states = States(_history("10 F a; 20 A a; 30 R a; 40 F a; 50 A a; 60 F a; 70 A a; 80 R a"))
    assert [states.awake("a", time, 0) for time in (5, 10, 15, 20, 39, 45, 55, 65, 75)] == [
        *(True, False, False, True, True, False, True, False, True)
    ]
    assert [states.up("a", time, 0) for time in (5, 25, 30, 55, 75, 80)] == [True, False, True, False, False, True]
    assert not states.awake("a", 5, 5)


def test_a_sentence_says_what_was_broken() -> None:
    case = Case.of(_history(f"{SENT}; {GOT}; 20 D a s.1"))
    assert GUARANTEES["P2"](case, BOUND).broken == ["b delivers s.1 never, not within 50 of 5, when it was multicast"]
