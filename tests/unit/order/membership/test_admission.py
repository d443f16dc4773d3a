"""Who may be on a ring, as far as node lists go."""

from __future__ import annotations

import pytest

from ordercast.model.ids import Incarnation, NodeId, ProcessId, process_id_from
from ordercast.order.membership.admission import ENTRIES_MAX, KNOWN_MAX, Admission, Around
from ordercast.sim.rosters import sim_roster

A, B, C, D = (process_id_from(NodeId(node), Incarnation(1)) for node in range(4))
OLD, NEW = sim_roster(1, (0, 1, 2)), sim_roster(2, (0, 1, 2, 3))
DROPPED = sim_roster(3, (0, 1, 2))


def _at(me: ProcessId, mine: object, **others: object) -> Admission:
    """An admission that knows the lists of others, by their letters."""
    admission = Admission(me)
    admission.adopt(mine)  # type: ignore[arg-type]
    for letter, roster in others.items():
        admission.copied({"a": A, "b": B, "c": C, "d": D}[letter], roster)  # type: ignore[arg-type]
    return admission


def test_without_a_list_everybody_is_taken() -> None:
    admission = Admission(A)
    assert admission.takes(D, ()) and admission.admits([D], [A], Around())


def test_a_node_that_is_not_listed_is_a_stranger() -> None:
    admission = _at(A, OLD, d=NEW)
    assert not admission.takes(D, (D,)) and admission.takes(B, ())


def test_a_dropped_node_is_tolerated_while_somebody_with_an_older_list_names_it() -> None:
    admission = _at(A, DROPPED, b=NEW, c=DROPPED)
    assert admission.takes(D, (B, C, D))
    assert [entry.name for entry in admission.tolerated((B, C, D))] == ["n3"]
    admission.copied(B, DROPPED)
    assert not admission.takes(D, (B, C, D)) and not admission.tolerated((B, C, D))


def test_its_own_word_does_not_make_a_node_tolerated() -> None:
    admission = _at(A, DROPPED, d=NEW)
    assert not admission.takes(D, (D,)) and not admission.tolerated((D,))


def test_a_newer_list_that_names_a_node_does_not_make_it_tolerated() -> None:
    admission = _at(A, OLD, b=NEW, d=NEW)
    assert not admission.takes(D, (B, D)) and not admission.tolerated((B, D))


def test_the_list_before_is_known_of_those_who_still_have_it() -> None:
    admission = _at(A, OLD)
    admission.adopt(NEW)
    admission.claimed(B, OLD.claim)
    assert admission.roster_of(B) == OLD and admission.is_differing(B)


def test_who_was_dropped_is_new_when_it_comes_back() -> None:
    admission = _at(A, NEW)
    admission.installed([A, D])
    admission.adopt(DROPPED)
    admission.adopt(sim_roster(4, (0, 1, 2, 3)))
    assert admission.admitted == {NodeId(0)}


def test_a_newcomer_is_admitted_when_all_lists_name_it() -> None:
    assert _at(A, NEW, b=NEW, d=NEW).admits([D], [A, B], Around((B, D)))
    assert not _at(A, NEW, b=OLD, d=NEW).admits([D], [A, B], Around((B, D)))


def test_a_list_that_is_not_known_yet_is_waited_for() -> None:
    admission = _at(A, NEW, d=NEW)
    admission.claimed(B, OLD.claim._replace(digest=1))
    assert not admission.admits([D], [A, B], Around((B, D)))


@pytest.mark.parametrize("heard", [(B, D), (B, C, D)])
def test_a_newcomer_waits_for_others_who_could_be_here_and_do_not_name_it(heard: tuple[ProcessId, ...]) -> None:
    assert not _at(A, NEW, b=OLD, c=OLD, d=NEW).admits([D], [A], Around(heard))


def test_a_newcomer_waits_while_the_list_of_another_who_is_heard_is_not_known() -> None:
    admission = _at(A, NEW, d=NEW)
    admission.claimed(C, OLD.claim._replace(digest=1))
    assert not admission.admits([D], [A], Around((C, D)))


def test_who_was_dropped_here_comes_with_a_ring_that_it_is_on_and_not_alone() -> None:
    admission = _at(A, DROPPED, b=NEW, d=NEW)
    assert admission.admits([B, D], [A], Around((B, D), incumbents=(B, D)))
    assert not admission.admits([B, D], [A], Around((B, D)))


def test_who_was_dropped_does_not_come_by_being_proposed_together_with_another() -> None:
    admission = _at(B, OLD, a=sim_roster(3, (0, 1)), c=OLD)
    assert not admission.admits([A], [B, C], Around((A, C))), "C is no companion of B yet, and A has dropped it"
    admission.installed([B, C])
    assert admission.admits([A], [B, C], Around((A, C)))


def test_who_has_an_older_list_does_not_come_to_a_node_that_it_does_not_name() -> None:
    assert not _at(B, NEW, a=OLD, d=NEW).admits([A], [B, D], Around((A, D)))


def test_who_was_here_before_does_not_wait() -> None:
    admission = _at(A, NEW, b=OLD, d=NEW)
    admission.installed([A, D])
    assert admission.admits([D], [A], Around((B, D)))


def test_a_member_is_dropped_by_the_lists_of_all_others() -> None:
    assert _at(A, DROPPED, b=DROPPED, c=NEW, d=NEW).dropped([A, B, C, D]) == []
    assert _at(A, DROPPED, b=DROPPED, c=DROPPED, d=NEW).dropped([A, B, C, D]) == [D]


def test_who_was_tolerated_for_the_sake_of_one_who_failed_is_not_proposed_any_more() -> None:
    admission = _at(A, DROPPED, b=NEW, d=NEW)
    assert admission.unlisted([A, B, D], [A]) == []
    assert admission.unlisted([A, D], [A]) == [D]
    assert admission.unlisted([A, D], [A, D]) == [], "a ring that stands is left alone"
    assert Admission(A).unlisted([A, D], [A]) == []


def test_nobody_is_dropped_while_the_list_of_a_member_is_not_known_and_nobody_drops_itself() -> None:
    assert _at(A, DROPPED, c=DROPPED, d=NEW).dropped([A, B, C, D]) == []
    without = sim_roster(3, (1, 2))
    assert _at(A, NEW, b=without, c=without).dropped([A, B, C]) == []


def test_a_third_that_is_not_on_my_list_keeps_no_newcomer_waiting() -> None:
    admission = _at(A, DROPPED, c=DROPPED, d=sim_roster(1, (0, 3)))
    assert admission.admits([C], [A], Around((C, D)))


def test_what_is_remembered_of_lists_is_bounded() -> None:
    admission = _at(A, OLD, b=NEW)
    for node in range(100, 100 + KNOWN_MAX):
        admission.claimed(process_id_from(NodeId(node), Incarnation(1)), OLD.claim)
    assert admission.roster_of(B) is None


def test_differences_are_told_by_name() -> None:
    admission = _at(A, OLD, b=NEW)
    assert admission.difference(B) == "n1 has version 2 of the node list, we have 1: n3 is missing here"
    admission.adopt(NEW)
    admission.copied(B, OLD)
    assert admission.difference(B) == "n1 has version 1 of the node list, we have 2: n3 is missing there"
    admission.copied(C, sim_roster(2, (0, 1, 2, 3), "other"))
    assert admission.difference(C) == (
        "n2 has other nodes than we in version 2 of the node list: n0 is not the same in both"
    )


def test_lists_that_anybody_can_send_are_forgotten_the_oldest_first() -> None:
    admission = _at(A, OLD)
    large, count = sim_roster(2, range(1, 1000)), ENTRIES_MAX // 999
    others = [process_id_from(NodeId(1), Incarnation(number)) for number in range(1, count + 2)]
    for other in others:
        admission.copied(other, large)
    known = [admission.roster_of(other) is not None for other in others]
    assert known == [False, *[True] * count]


def test_of_many_nodes_that_differ_some_are_named() -> None:
    text = _at(A, OLD, b=sim_roster(2, range(1000))).difference(B)
    assert text.endswith("n3, n4, n5, n6, n7, n8, n9, n10, 989 more are missing here")
