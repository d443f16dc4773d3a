"""GTRANS: what still comes in the transitional configuration, and the regular one behind it. (Paper, section 6.4.5,
Figures 6.20 to 6.22)

n1 and n2 go on together from a configuration with n3. a and d are at n1, b at n2, c at n3.
"""

from __future__ import annotations

import pytest

from ordercast.model.events import Transition, ViewId
from ordercast.model.ids import Position
from tests.unit.groups.stage import Stage

GO_ON = ("n1", "n2")
ALL = ("n1", "n2", "n3")


def ending(*clients: str) -> Stage:
    """These are in g; the transitional configuration of n1 and n2 has come, and n3 is on its own."""
    stage = Stage(*ALL)
    stage.together(*ALL)
    for client in clients:
        stage.join(client, "g")
    stage.forget()
    stage.end(*GO_ON)
    stage.end("n3")
    return stage


# Figure 6.20


def test_a_join_by_one_who_remains_to_a_group_that_lost_nobody_is_as_ever() -> None:
    """Figure 6.20, lines 19 to 24."""
    stage = ending("a@n1", "b@n2")
    stage.join("d@n1", "g", to=GO_ON)
    assert stage.told("a@n1") == stage.told("b@n2") == ["g = a b d; with a b; join d"]
    assert stage.told("d@n1") == ["g = a b d; with d; join d"]


def test_a_join_by_one_who_remains_to_a_group_that_lost_some_is_a_view_and_at_once_a_signal() -> None:
    """Figure 6.20, lines 25 to 31: T = the established members."""
    stage = ending("a@n1", "b@n2", "c@n3")
    assert stage.told("a@n1") == ["g ends; a b remain"]
    stage.join("d@n1", "g", to=GO_ON)
    assert stage.told("a@n1") == ["g = a b c d; with a b; join d", "g ends; a b d remain"]
    assert stage.told("d@n1") == ["g = a b c d; with d; join d", "g ends; a b d remain"]
    assert stage.told("b@n2") == ["g ends; a b remain", "g = a b c d; with a b; join d", "g ends; a b d remain"]


def test_one_who_remains_and_joined_meanwhile_is_established() -> None:
    """Figure 6.20, line 32: it stays, and comes along from the next join on."""
    stage = ending("a@n1", "c@n3")
    stage.join("d@n1", "g", to=GO_ON)
    stage.forget()
    stage.join("b@n2", "g", to=GO_ON)
    assert stage.told("a@n1") == ["g = a b c d; with a d; join b", "g ends; a b d remain"]
    stage.forget()
    stage.begin(*GO_ON)
    assert stage.told("a@n1") == stage.told("b@n2") == ["g = a b d; with a b d; network"]


def test_a_join_by_one_who_is_lost_is_a_view_of_those_established_and_at_once_a_signal() -> None:
    """Figure 6.20, lines 33 to 40, on a group that lost some already."""
    stage = ending("a@n1", "b@n2", "c@n3")
    stage.forget()
    stage.join("e@n3", "g", to=GO_ON)
    assert stage.told("a@n1") == stage.told("b@n2") == ["g = a b c e; with a b; join e", "g ends; a b remain"]


def test_a_join_by_one_who_is_lost_marks_a_group_that_lost_nobody_before() -> None:
    """Figure 6.20, lines 34 and 35."""
    stage = ending("a@n1", "b@n2")
    assert stage.told("a@n1") == []
    stage.join("e@n3", "g", to=GO_ON)
    assert stage.told("a@n1") == ["g = a b e; with a b; join e", "g ends; a b remain"]
    stage.begin(*GO_ON)
    assert stage.told("a@n1") == ["g = a b; with a b; network"]


def test_a_lost_one_that_creates_a_group_leaves_nothing_behind() -> None:
    """Figure 6.20, lines 3 to 9 and 33; Figure 6.22, lines 13 and 14."""
    stage = ending()
    stage.join("e@n3", "h", to=GO_ON)
    assert stage.members("h")[:2] == ["e", "e"]
    stage.begin(*GO_ON)
    assert len(stage["n1"].table) == len(stage["n2"].table) == 0


def test_a_group_that_one_who_remains_creates_is_not_signalled() -> None:
    """Figure 6.20, line 8, has index -1 here, so that a signal follows at once and a view later: see deviations."""
    stage = ending()
    stage.join("a@n1", "h", to=GO_ON)
    stage.begin(*GO_ON)
    assert stage.told("a@n1") == ["h = a; with a; join a"]


def test_each_signal_names_the_view_that_it_is_in() -> None:
    """Figure 6.20, lines 31 and 40; Theorem 6.27(a): never two in one view."""
    stage = ending("a@n1", "c@n3")
    stage.join("e@n3", "g", to=GO_ON)
    stage.join("d@n1", "g", to=GO_ON)
    heard = stage.heard["a@n1"]
    signals = [item.view for item in heard if isinstance(item, Transition)]
    assert len(signals) == len(set(signals)) == 3
    assert signals[1:] == stage.view_ids("a@n1")


# Figure 6.21


@pytest.mark.parametrize("is_leave", [True, False])
def test_a_departure_from_a_group_that_lost_nobody_is_as_ever(is_leave: bool) -> None:
    """Figure 6.21, lines 12 to 15 and 23 to 26."""
    stage = ending("a@n1", "b@n2", "d@n1")
    if is_leave:
        stage.leave("a@n1", "g", to=GO_ON)
    else:
        stage.disconnect("a@n1", to=GO_ON)
    assert stage.told("a@n1") == (["left g"] if is_leave else [])
    assert stage.told("b@n2") == [f"g = b d; with b d; {'leave' if is_leave else 'disconnect'} a"]


@pytest.mark.parametrize("is_leave", [True, False])
@pytest.mark.parametrize("member", ["a@n1", "c@n3"])
def test_a_departure_from_a_group_that_lost_some_shows_in_the_coming_view(is_leave: bool, member: str) -> None:
    """Figure 6.21, lines 12 and 23 (G25): `the delivery of the view … is unnecessary`."""
    stage = ending("a@n1", "b@n2", "c@n3")
    stage.forget()
    if is_leave:
        stage.leave(member, "g", to=GO_ON)
    else:
        stage.disconnect(member, to=GO_ON)
    assert stage.told("b@n2") == []
    assert stage.told("a@n1") == (["left g"] if is_leave and member == "a@n1" else [])
    assert stage.told("c@n3") == []
    stage.begin(*GO_ON)
    stay = "b" if member == "a@n1" else "a b"
    assert stage.told("b@n2") == [f"g = {stay}; with {stay}; network"]


def test_who_has_left_gets_nothing_more() -> None:
    """Section 6.4.5: `a leaving member expects nothing subsequent to their leave`."""
    stage = ending("a@n1", "b@n2", "c@n3")
    stage.forget()
    stage.leave("a@n1", "g", to=GO_ON)
    stage.send("b@n2", ["g"], "m", to=GO_ON)
    stage.begin(*GO_ON)
    assert stage.told("a@n1") == ["left g"]


@pytest.mark.parametrize("sender", ["b@n2", "c@n3"])
def test_data_comes_to_the_current_members_before_or_after_the_signal(sender: str) -> None:
    """Figure 6.21, lines 27 to 29; `all data messages received … must be delivered to all members of the group`."""
    stage = ending("a@n1", "b@n2", "c@n3")
    stage.join("d@n1", "h", to=GO_ON)
    stage.forget()
    stage.send(sender, ["g", "h"], "m", to=GO_ON)
    assert stage.told("a@n1") == stage.told("d@n1") == ["m"]


def test_clients_are_not_blocked_since_the_two_configurations_come_in_one_step() -> None:
    """Figure 6.21, lines 30 to 39, has them disabled: see deviations."""
    stage = ending("a@n1")
    stage.connect("d@n1")
    assert stage["n1"].is_steady


# Figure 6.22


def test_nobody_new_means_no_exchange() -> None:
    """Figure 6.22, lines 7 to 19: `no additional communication`."""
    stage = ending("a@n1", "b@n2", "c@n3")
    stage.forget()
    ring = stage.begin(*GO_ON)
    assert stage.daemons["n1"].announced == stage.daemons["n2"].announced == []
    assert stage["n1"].is_steady and stage["n2"].is_steady
    assert stage.view_ids("a@n1") == stage.view_ids("b@n2") == [ViewId(ring, Position(ring, 0, 0))]
    assert stage.told("a@n1") == stage.told("b@n2") == ["g = a b; with a b; network"]


def test_a_group_that_was_not_signalled_keeps_its_view() -> None:
    """Figure 6.22, line 9."""
    stage = ending("a@n1", "b@n2")
    stage.begin(*GO_ON)
    assert stage.told("a@n1") == stage.told("b@n2") == []


def test_a_group_is_signalled_again_in_its_next_view() -> None:
    """Figure 6.22, line 16: the mark is gone with the view."""
    stage = ending("a@n1", "b@n2", "c@n3")
    stage.begin(*GO_ON)
    stage.forget()
    stage.form("n1")
    assert stage.told("a@n1") == ["g ends; a remain", "g = a; with a; network"]


def test_a_group_whose_members_are_all_lost_is_gone() -> None:
    """Figure 6.22, lines 13 and 14."""
    stage = ending("c@n3")
    stage.begin(*GO_ON)
    assert stage.members("g") == ["", "", "c"]


def test_somebody_new_means_that_all_tell_who_is_there_and_nothing_is_told_yet() -> None:
    """Figure 6.22, lines 20 to 33."""
    stage = ending("a@n1", "b@n2", "c@n3")
    stage.begin(*GO_ON)
    stage.begin("n3")
    stage.forget()
    stage.form(*ALL)
    assert [len(stage.daemons[name].announced) for name in ALL] == [1, 1, 1]
    assert [stage[name].is_steady for name in ALL] == [False] * 3
    assert stage.told("a@n1") == stage.told("c@n3") == []


def test_members_that_were_lost_are_gone_before_the_exchange() -> None:
    """Figure 6.22, lines 22 to 27; Lemma 6.15."""
    stage = Stage(*ALL)
    stage.together("n1", "n3")
    stage.join("a@n1", "g")
    stage.join("c@n3", "g")
    stage.form("n1", "n2")
    assert stage.members("g")[:2] == ["a", ""]
    assert stage["n1"].table.report() == {"g": ["a@n1"]}


def test_a_restarted_daemon_is_somebody_new_under_an_old_name() -> None:
    """Its clients' names may be those of its former life: these are lost, and the new ones do not come along."""
    stage = Stage(*GO_ON)
    stage.together(*GO_ON)
    stage.join("a@n1", "g")
    stage.join("b@n2", "g")
    stage.start("n2", stage.daemons["n2"].process + 100)  # type: ignore[arg-type]
    del stage.heard["b@n2"]
    stage.join("b@n2", "g")
    stage.forget()
    stage.together(*GO_ON)
    assert stage.told("a@n1") == ["g ends; a remain", "g = a b; with a; network"]
    assert stage.told("b@n2") == ["g = a b; with b; network"]
