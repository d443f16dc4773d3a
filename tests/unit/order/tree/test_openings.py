"""Openings that make no forest are refused by all alike, with an alarm; bad blocks change nothing."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest

from ordercast.model.effects import Alarm
from ordercast.model.errors import WireError
from ordercast.model.ids import ProcessId
from ordercast.order.tree.blocks import (
    BlockKind,
    Cargo,
    GivenPlace,
    Offer,
    Ordered,
    encode_close,
    encode_count,
    encode_data,
    encode_numbers,
    encode_offer,
    encode_places,
)
from ordercast.order.tree.control import Broken, Opening, Reconcile
from ordercast.order.tree.directory import Directory, InterestChange
from ordercast.order.tree.graph import Parents
from ordercast.order.tree.stream import BadBlock

from .courses import PROCESSES, A, B, C, D, Rehearsal

WANTED = {A: ["x"], B: ["x", "y"], C: ["y"]}
TREE: Parents = {A: None, B: A, C: B}
ALONE: Parents = {D: None}
STRANGER = ProcessId(9 << 48 | 1)
BAD: dict[str, tuple[Parents, ...]] = {
    "a circle": ({A: B, B: A, C: A}, ALONE),
    "a stranger in the forest": ({**TREE, STRANGER: A}, ALONE),
    "a process in two trees": (TREE, {D: None, C: D}),
    "two roots in one tree": ({A: None, B: A, C: B, D: None},),
    "a group in two trees": ({A: None, B: A}, {C: None}, ALONE),
    "a group in no tree": (TREE,),
    "a parent who is not there": ({A: None, B: STRANGER, C: B}, ALONE),
}


@pytest.mark.parametrize("born", BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("me", [A, C, D])
def test_an_opening_that_makes_no_forest_is_refused_with_an_alarm(me: ProcessId, born: tuple[Parents, ...]) -> None:
    rehearsal = Rehearsal(me, WANTED)
    effects = rehearsal.say(rehearsal.opening(*born), A)
    assert [type(effect) for effect in effects] == [Alarm]
    assert (rehearsal.course.ordered, rehearsal.course.opened) == (0, 0)
    rehearsal.say(rehearsal.opening(TREE, ALONE), A)
    assert rehearsal.course.opened == 1


def test_an_opening_for_another_directory_is_refused_with_an_alarm() -> None:
    rehearsal = Rehearsal(A, WANTED)
    effects = rehearsal.say(rehearsal.opening(TREE, ALONE)._replace(digest=bytes(8)), A)
    assert [type(effect) for effect in effects] == [Alarm] and not rehearsal.course.ordered
    rehearsal.say(rehearsal.opening(TREE, ALONE), A)
    assert rehearsal.course.opened == 1


def test_an_opening_that_closes_what_is_not_there_is_refused() -> None:
    rehearsal = Rehearsal(A, WANTED)
    effects = rehearsal.say(rehearsal.opening(TREE, ALONE, closing=[(3, B)]), A)
    assert [type(effect) for effect in effects] == [Alarm]


@pytest.mark.parametrize("control", [Opening(1, 4, bytes(8), (), (TREE,)), Reconcile(1)])
def test_only_the_first_member_changes_the_forest(control: Opening | Reconcile) -> None:
    rehearsal = Rehearsal(A, WANTED)
    assert not rehearsal.say(control, B)
    assert not rehearsal.course.boundaries


def test_a_reconciliation_ends_all_trees_and_waits_for_everybody() -> None:
    rehearsal = Rehearsal(B, WANTED)
    rehearsal.say(rehearsal.opening(TREE, ALONE), A)
    rehearsal.say(Reconcile(2), A)
    course = rehearsal.course
    assert course.is_cut and course.opened == 1 and not course.forest_ahead.trees
    assert not list(course.settle()), "not before all have reported"


def test_a_directory_is_told_by_its_digest_whatever_the_order_of_what_was_said() -> None:
    words = [InterestChange(process, names, ()) for process, names in WANTED.items()]
    one, other = Directory().after(words), Directory().after(reversed(words))
    assert one.digest == other.digest and one.groups == other.groups
    assert one.after([InterestChange(D, ("x",))]).digest != one.digest
    assert one.after([InterestChange(D, ("x",)), InterestChange(D, (), ("x",))]).digest == one.digest
    assert one.wants(B) == ("x", "y") and set(one.groups_of([C])) == {"y"}


def _blocks() -> list[bytes]:
    cargo = Cargo(A, 1, 1, 0, 2, 0, (3,), (b"payload",))
    return [
        encode_data(Ordered(1, A, 1, (1,), cargo)),
        encode_offer(Offer(1, B, cargo._replace(originator=C))),
        encode_close(1),
        encode_count(BlockKind.DONE, 1, 1),
        encode_count(BlockKind.SAFE, 1, 1),
        encode_places(1, [GivenPlace(1, 1, (1, 1))]),
        *(encode_numbers(kind, 1, [1]) for kind in (BlockKind.REFUSED, BlockKind.KNOWN, BlockKind.STABLE)),
    ]


@pytest.mark.parametrize("seed", range(3))
def test_a_process_survives_any_block(seed: int) -> None:
    """Whatever comes is taken, or refused as wrong; nothing else happens, and ranks rise all the same."""
    rng = Random(seed)
    for _ in range(40):
        rehearsal = Rehearsal(B, WANTED)
        rehearsal.say(rehearsal.opening(TREE, ALONE), A)
        for _ in range(30):
            data = bytearray(rng.choice(_blocks()))
            for _ in range(rng.choice((0, 0, 1, 2))):
                data[rng.randrange(len(data))] = rng.choice((0, 1, 2, 3, 255, rng.randrange(256)))
            with suppress(WireError, BadBlock):
                rehearsal.course.take(bytes(data), rng.choice(PROCESSES))
            rehearsal.course.enter()
            list(rehearsal.course.branch.deliver())
            rehearsal.course.flush()
            rehearsal.course.check_invariants()


def test_a_link_breaks_again_after_a_reconciliation_and_its_other_end_says_nothing_new() -> None:
    rehearsal = Rehearsal(B, WANTED)
    rehearsal.say(rehearsal.opening(TREE, ALONE), A)
    course = rehearsal.course

    def is_broken_by(broken: Broken, process: ProcessId) -> bool:
        rehearsal.say(broken, process)
        return course.is_broken

    assert is_broken_by(Broken(A, 0), B) and course.source.avoided == {A}
    rehearsal.say(Reconcile(2), A)
    list(course.open())
    course.reconciled(())
    assert not is_broken_by(Broken(B, 0), A), "that was told before"
    assert is_broken_by(Broken(B, 2), A)
