"""Connections that do not say who they are: bounded, and in nobody's way."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ordercast.daemon.clients.strangers import Strangers


def _strangers(count_max: int = 3) -> Strangers[str]:
    return Strangers(count_max, 10.0, 2.0)


def test_whoever_comes_is_let_in_and_the_oldest_goes() -> None:
    strangers = _strangers()
    assert [strangers.come(f"s{number}", 0, number) for number in range(5)] == [None, None, None, "s0", "s1"]
    assert len(strangers) == 3


def test_the_silent_connections_of_one_user_push_out_each_other() -> None:
    strangers = _strangers(4)
    strangers.come("root", 0, 0.0)
    gone = [strangers.come(f"s{number}", 65534, 1.0 + number) for number in range(10)]
    assert gone == [None, None, None, *(f"s{number}" for number in range(7))]
    assert strangers.come("root again", 0, 20.0) == "s7"


def test_who_greets_or_goes_makes_room() -> None:
    strangers = _strangers(2)
    for name in ("a", "b"):
        strangers.come(name, 0, 0.0)
    strangers.gone("a")
    strangers.gone("a")  # it is not there any more
    assert strangers.come("c", 0, 1.0) is None
    assert strangers.come("b", 0, 2.0) is None  # it is closed now, and is the newest
    assert strangers.come("d", 0, 3.0) == "c"


def test_a_greeting_is_due_sooner_when_there_are_many() -> None:
    strangers = _strangers(4)
    for number in range(2):
        strangers.come(f"s{number}", 0, number)
    assert (strangers.overdue(10.0), strangers.overdue(10.1), strangers.overdue(11.1)) == ([], ["s0"], ["s0", "s1"])
    strangers.come("s2", 0, 2.0)
    assert strangers.are_many
    assert (strangers.overdue(2.0), strangers.overdue(3.1)) == ([], ["s0", "s1"])


def test_a_time_in_which_nobody_could_be_heard_is_not_counted() -> None:
    strangers = _strangers()
    strangers.come("a", 0, 0.0)
    strangers.forgive(60.0)
    assert (strangers.overdue(69.0), strangers.overdue(70.1)) == ([], ["a"])


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20), st.integers(0, 3)), max_size=80), st.integers(1, 6))
def test_nobody_goes_whose_user_has_not_the_most(steps: list[tuple[bool, int, int]], count_max: int) -> None:
    strangers = _strangers(count_max)
    there: dict[str, int] = {}  # and where from, the oldest first
    for now, (comes, number, place) in enumerate(steps):
        who = f"s{number}"
        there.pop(who, None)
        if not comes:
            strangers.gone(who)
            continue
        there[who] = place
        goes = strangers.come(who, place, now)
        assert (goes is None) == (len(there) <= count_max)
        if goes is not None:
            places = list(there.values())
            assert places.count(there[goes]) == max(map(places.count, places))
            assert goes == next(other for other in there if there[other] == there[goes])
            del there[goes]
        assert len(strangers) == len(there)
