"""Every side of a partition goes on, and what becomes of them when they meet."""

from __future__ import annotations

import pytest

from ordercast.model.errors import UsageError, WireError
from ordercast.replicated.core import Core
from ordercast.replicated.effects import Reason, StopFetching
from ordercast.replicated.quorum import EverySide
from ordercast.replicated.sessions import SESSIONS_MAX, Outcome, Session, Sessions
from ordercast.replicated.sides import covers, sides_of, united_sessions
from ordercast.replicated.track import EMPTY, Sequenced
from ordercast.replicated.wire import Preface, encode_preface

from .stage import ALL, Bag, Stage, Words

RULE = EverySide(lambda sides: sides[0].state)


def begun() -> Stage:
    stage = Stage(*ALL, rule=RULE)
    stage.view(1, *ALL)
    stage.settle(*ALL)
    stage.submit("a", b"base")
    stage.settle(*ALL)
    return stage


def parted() -> Stage:
    """a and b have gone on, and so has c."""
    stage = begun()
    stage.view(2, "a", "b")
    stage.settle("a", "b")
    stage.submit("b", b"left")
    stage.submit("b", b"more")
    stage.settle("a", "b")
    stage.view(3, "c")
    stage.settle("c")
    stage.submit("c", b"right")
    stage.settle("c")
    return stage


def united(stage: Stage) -> list[tuple[str, ...]]:
    """Who was asked to unite, and how often."""
    machines = stage.machines.items()
    return [(name,) * len(machine.united) for name, machine in machines if isinstance(machine, Bag) and machine.united]


def test_one_alone_begins_and_a_second_gets_its_state() -> None:
    stage = Stage("a", "b", rule=RULE)
    stage.view(1, "a")
    stage.settle("a")
    stage.submit("a", b"x")
    stage.settle("a")
    assert stage.confirmed("a") == [(1, 1)]
    stage.view(2, "b")
    stage.settle("b")
    stage.view(3, "a", "b")
    stage.settle("a", "b")
    assert stage.last("a").reason is Reason.ONE_SIDE  # who has applied nothing is no side
    stage.transfer("b")
    stage.settle("a", "b")
    assert stage.words("b") == [[b"x"]] and united(stage) == []


def test_every_side_confirms() -> None:
    stage = parted()
    assert stage.confirmed("b") == [(1, 2), (2, 3)] and stage.confirmed("c") == [(1, 2)]
    assert len({stage.cores[name].lineage for name in ALL}) == 2


def test_sides_that_meet_are_united_by_one_and_loaded_by_the_others() -> None:
    stage = parted()
    stage.view(4, *ALL)
    stage.settle(*ALL)
    assert stage.last("b").reason is Reason.SIDES and not any(core.is_primary for core in stage.cores.values())
    stage.transfer("a")  # the picture of c's side
    stage.settle(*ALL)
    assert united(stage) == [("a",)] and stage.last("c").reason is Reason.UNITED
    stage.transfer("b")
    stage.settle(*ALL)
    assert not stage.cores["a"].is_primary  # c still has the old state
    stage.transfer("c")
    stage.settle(*ALL)
    assert stage.words(*ALL) == [[b"base", b"left", b"more", b"right"]] * 3
    assert all(core.is_primary for core in stage.cores.values()) and stage.pictures == {}
    stage.submit("c", b"after")
    stage.settle(*ALL)
    assert stage.confirmed("c")[-1] == (2, 4)  # places rise, from the longest side's on
    assert stage.words(*ALL) == [[b"base", b"left", b"more", b"right", b"after"]] * 3


def test_the_application_is_given_all_sides_with_their_members() -> None:
    stage = parted()
    stage.view(4, *ALL)
    stage.settle(*ALL)
    stage.transfer("a")
    stage.settle(*ALL)
    machine = stage.machines["a"]
    assert isinstance(machine, Bag)
    ((mine, other),) = machine.united
    assert (mine.members, mine.pieces) == (("a", "b"), None)
    assert other.members == ("c",)


def test_commands_that_come_meanwhile_come_after_it() -> None:
    stage = parted()
    stage.view(4, *ALL)
    stage.settle(*ALL)
    stage.submit("c", b"waits")
    stage.settle(*ALL)
    assert stage.refused("c") == []
    for name in ALL:
        stage.transfer(name)
        stage.settle(*ALL)
    assert stage.words(*ALL) == [[b"base", b"left", b"more", b"right", b"waits"]] * 3
    assert len(stage.confirmed("c")) == 2


def test_a_side_whose_commands_another_has_too_is_not_asked_for() -> None:
    """c only missed some."""
    stage = begun()
    stage.view(2, "a", "b")
    stage.settle("a", "b")
    stage.submit("b", b"left")
    stage.settle("a", "b")
    stage.view(3, "c")
    stage.settle("c")
    stage.view(4, *ALL)
    stage.settle(*ALL)
    stage.transfer("a")
    stage.settle(*ALL)
    assert stage.last("a").reason is Reason.ONE_SIDE and stage.last("a").is_primary and united(stage) == []
    stage.transfer("c")
    stage.settle(*ALL)
    assert stage.words(*ALL) == [[b"base", b"left"]] * 3


def test_sides_that_did_nothing_are_one() -> None:
    stage = begun()
    stage.view(2, "a", "b")
    stage.settle("a", "b")
    stage.view(3, "c")
    stage.settle("c")
    stage.view(4, *ALL)
    stage.settle(*ALL)
    assert stage.last("c").reason is Reason.ONE_SIDE and stage.last("c").holders == ALL and stage.fetches("c") == []


def test_what_was_held_at_the_split_belongs_to_its_side() -> None:
    stage = begun()
    stage.submit("c", b"late")
    stage.signal(1, "c")
    stage.deliver("c")
    assert stage.cores["c"].held == 1
    stage.view(2, *ALL)
    stage.settle(*ALL)
    stage.transfer("c")  # the longer side's first is the uniter
    stage.settle(*ALL)
    stage.transfer("a")
    stage.transfer("b")
    stage.settle(*ALL)
    assert stage.words(*ALL) == [[b"base", b"late"]] * 3 and stage.confirmed("c") == [(1, 2)]


def test_another_view_in_the_midst_of_it_begins_it_anew() -> None:
    stage = parted()
    stage.view(4, *ALL)
    stage.settle(*ALL)
    fetch = stage.fetches("a")[-1]
    stage.view(5, *ALL)
    assert StopFetching(fetch.point) in stage.told["a"]
    stage.settle(*ALL)
    assert stage.fetches("a")[-1].point != fetch.point
    for name in ALL:
        stage.transfer(name)
        stage.settle(*ALL)
    assert stage.words(*ALL) == [[b"base", b"left", b"more", b"right"]] * 3


def test_when_the_uniter_dies_with_the_new_state_the_sides_are_united_again() -> None:
    stage = parted()
    stage.view(4, *ALL)
    stage.settle(*ALL)
    stage.transfer("a")
    stage.settle(*ALL)
    stage.submit("a", b"never confirmed")
    stage.settle(*ALL)
    assert stage.confirmed("a")[1:] == []
    stage.view(5, "b", "c")
    stage.settle("b", "c")
    for name in ("b", "c"):
        stage.transfer(name)
        stage.settle("b", "c")
    assert stage.words("b", "c") == [[b"base", b"left", b"more", b"right"]] * 2


def test_who_has_the_united_state_already_covers_who_has_not() -> None:
    stage = parted()
    stage.view(4, *ALL)
    stage.settle(*ALL)
    stage.transfer("a")
    stage.settle(*ALL)
    stage.transfer("b")
    stage.view(5, *ALL)
    stage.settle(*ALL)
    stage.transfer("a")
    stage.settle(*ALL)
    stage.transfer("c")
    stage.settle(*ALL)
    assert united(stage) == [("a",)]  # once
    assert stage.words(*ALL) == [[b"base", b"left", b"more", b"right"]] * 3


def test_a_wrong_picture_of_a_side_is_refused() -> None:
    stage = parted()
    stage.view(4, *ALL)
    stage.settle(*ALL)
    fetch = stage.fetches("a")[-1]
    picture = stage.pictures["c", fetch.point]
    with pytest.raises(WireError, match="was wanted"):
        stage.cores["a"].loaded(fetch.point, encode_preface(Preface(1, EMPTY, Sessions(), ())), picture.frozen.pieces())
    stage.transfer("a")
    stage.settle(*ALL)
    assert united(stage) == [("a",)]


def test_who_is_not_the_uniter_has_no_say() -> None:
    stage = parted()
    stage.view(4, *ALL)
    stage.settle(*ALL)
    stage.transfer("a")
    ((sender, payload),) = stage.queue
    assert sender == "a"
    stage.queue.clear()
    stage.queue.append(("b", payload))
    stage.settle(*ALL)
    assert stage.last("c").reason is Reason.SIDES


def test_a_state_that_cannot_be_united_is_refused_at_the_beginning() -> None:
    with pytest.raises(UsageError, match=r"unite\(\)"):
        Core("a", 1, Words(), RULE)


def test_equal_sequences_are_one_side_and_the_empty_one_none() -> None:
    one, two, empty = Sequenced(3, b"x"), Sequenced(5, b"y"), Sequenced(0, b"")
    sides = sides_of({"c": one, "a": one, "b": two, "d": empty})
    assert [(side.number, side.members) for side in sides] == [(1, ("b",)), (2, ("a", "c"))]
    assert [side.members for side in sides_of({"b": empty, "a": empty})] == [("a", "b")]


def sessions(**by_life: tuple[int, tuple[int, ...]]) -> Sessions:
    return Sessions(
        {
            int(life[1:]): Session(settled, {request: Outcome(request, b"") for request in requests})
            for life, (settled, requests) in by_life.items()
        }
    )


def test_what_covers_what() -> None:
    assert covers(sessions(l1=(2, (3,))), sessions(l1=(1, (2,))))
    assert covers(sessions(l1=(0, (1,)), l2=(0, (1,))), sessions(l1=(0, (1,))))
    assert not covers(sessions(l1=(0, (1,))), sessions(l1=(0, (1, 2))))
    assert not covers(sessions(l1=(0, (1,))), sessions(l2=(0, (1,))))
    assert not covers(sessions(l1=(0, (1,))), Sessions(forgotten=1))


def test_united_sessions_have_what_any_of_them_had() -> None:
    one, other = sessions(l1=(1, (2, 3)), l2=(0, (1,))), sessions(l1=(2, (3, 4)), l3=(0, (1,)))
    both = united_sessions([one, other])
    assert {life: (each.settled, tuple(each.outcomes)) for life, each in both.by_life.items()} == {
        1: (2, (3, 4)),
        2: (0, (1,)),
        3: (0, (1,)),
    }
    assert covers(both, one) and covers(both, other)


def test_too_many_united_sessions_are_forgotten_and_counted() -> None:
    many = Sessions({life: Session(1) for life in range(SESSIONS_MAX)})
    more = Sessions({life: Session(1) for life in range(SESSIONS_MAX, SESSIONS_MAX + 7)})
    both = united_sessions([many, more])
    assert (len(both.by_life), both.forgotten) == (SESSIONS_MAX, 7)


def test_who_hears_after_the_signal_that_one_side_is_enough_goes_on_with_it() -> None:
    stage = begun()
    stage.view(2, "a", "b")
    stage.settle("a", "b")
    stage.view(20, "c")
    stage.settle("c")
    stage.submit("a", b"two")
    stage.settle("a", "b")
    stage.view(30, *ALL)
    stage.deliver(*ALL)
    stage.transfer("a")
    said = list(stage.queue)
    stage.deliver("a")
    stage.submit("a", b"three")
    said += stage.queue
    stage.deliver("a")
    assert stage.words("a")[0][-1] == b"three"  # and confirmed
    stage.signal(30, "b", "c")
    stage.queue.extend(said)
    stage.deliver("b", "c")
    stage.view(40, "b", "c")  # a has died
    stage.settle("b", "c")
    stage.transfer("b")
    stage.settle("b", "c")
    stage.transfer("c")
    stage.settle("b", "c")
    assert stage.words("b", "c") == [[b"base", b"two", b"three"]] * 2
