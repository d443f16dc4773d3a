"""GGATHER: daemons have come together, and tell each other who is there. (Paper, section 6.4.6, Figures 6.23 to 6.25)

a and d are at n1, b at n2, c at n3. The exchange ends when the last snapshot is ordered.
"""

from __future__ import annotations

from ordercast.groups.layer import data_head, join_payload
from ordercast.model.events import Message, ViewId
from ordercast.model.ids import Position, Seq
from ordercast.model.service import Service
from tests.unit.groups.stage import Stage

BOTH = ("n1", "n2")
ALL = ("n1", "n2", "n3")


def apart(*clients: str) -> Stage:
    """Three daemons, each alone; these clients are in g."""
    stage = Stage(*ALL)
    for client in clients:
        stage.join(client, "g")
    stage.forget()
    return stage


# Figure 6.23


def test_snapshots_of_another_configuration_are_ignored() -> None:
    """Figure 6.23, lines 11 and 12: `cascaded EVS-S view changes could cause several versions of GROUPS messages`."""
    stage = apart("a@n1", "b@n2")
    stage.form(*BOTH)
    late = list(stage.daemons["n2"].announced)
    stage.form(*BOTH)
    stage.exchange("n1")
    stage.order("n2", *late)
    assert not stage["n1"].is_steady
    stage.exchange("n2")
    assert stage.members("g")[:2] == ["a b", "a b"]


def test_the_exchange_ends_with_the_last_snapshot_of_all_at_the_same_place_everywhere() -> None:
    """Figure 6.23, lines 13 to 18: one from every server in the new sview."""
    stage = apart("a@n1", "b@n2", "c@n3")
    stage.form(*ALL)
    for name in ("n3", "n1"):
        stage.exchange(name)
        assert [stage[other].is_steady for other in ALL] == [False] * 3
        assert stage.told("a@n1") == stage.told("b@n2") == stage.told("c@n3") == []
    stage.exchange("n2")
    assert [stage[other].is_steady for other in ALL] == [True] * 3
    assert stage.members("g") == ["a b c"] * 3


def test_a_snapshot_that_comes_twice_counts_once() -> None:
    """Figure 6.23, line 14: the size of a set."""
    stage = apart("a@n1", "b@n2")
    stage.form(*BOTH)
    (payload,) = stage.daemons["n1"].announced
    stage.order("n1", payload)
    stage.order("n1", payload)
    assert not stage["n1"].is_steady
    stage.exchange("n2")
    assert stage.members("g")[:2] == ["a b", "a b"]


def test_ordered_messages_that_come_before_the_last_snapshot_follow_the_merged_view() -> None:
    """Figure 6.23, lines 2 to 9, has them impossible: see deviations. They keep their order and their positions."""
    stage = apart("a@n1", "b@n2")
    ring = stage.form(*BOTH)
    stage.exchange("n1")
    first = stage.send("b@n2", ["g"], "1")
    stage.join("d@n1", "g")
    stage.leave("a@n1", "g")
    stage.send("b@n2", ["g"], "2", service=Service.SAFE)
    assert stage.told("a@n1") == stage.told("b@n2") == stage.told("d@n1") == []
    stage.exchange("n2")
    heard = list(stage.heard["b@n2"])
    assert stage.told("b@n2") == [
        "g = a b; with b; network",
        "1",
        "g = a b d; with a b; join d",
        "g = b d; with b d; leave a",
        "2",
    ]
    assert stage.told("a@n1") == ["g = a b; with a; network", "1", "g = a b d; with a b; join d", "left g"]
    assert stage.told("d@n1") == ["g = a b d; with d; join d", "g = b d; with b d; leave a", "2"]
    messages = [(item.position, item.service) for item in heard if isinstance(item, Message)]
    assert messages == [
        (Position(ring, first, 0), Service.AGREED),
        (Position(ring, Seq(first + 3), 0), Service.SAFE),
    ]


def test_messages_that_share_a_packet_keep_their_places_in_it() -> None:
    stage = apart("a@n1", "b@n2")
    ring = stage.form(*BOTH)
    stage.exchange("n1")
    head = data_head("b@n2", ("g",))
    seq = stage.order("n2", head + b"1", head + b"2", join_payload("f@n2", ["g"]))
    stage.exchange("n2")
    positions = [item.position for item in stage.heard["a@n1"] if isinstance(item, Message)]
    assert positions == [Position(ring, seq, 0), Position(ring, seq, 1)]
    assert stage.last_view("a@n1").id == ViewId(ring, Position(ring, seq, 2))


# Figure 6.24


def test_a_group_that_was_unknown_here_is_created() -> None:
    """Figure 6.24, lines 3 to 7, and it is added to the table (G23)."""
    stage = apart("a@n1")
    stage.together(*ALL)
    assert stage.members("g") == ["a", "a", "a"]


def test_members_are_all_that_were_reported() -> None:
    """Figure 6.24, line 14."""
    stage = apart("a@n1", "b@n2", "c@n3")
    stage.join("d@n1", "g")
    stage.together(*ALL)
    assert stage.members("g") == ["a b c d"] * 3


def test_those_come_along_who_came_from_the_same_view() -> None:
    """Figure 6.24, lines 11 and 12, and 21."""
    stage = Stage(*ALL)
    stage.together(*BOTH)
    for client in ("a@n1", "b@n2", "c@n3"):
        stage.join(client, "g")
    stage.forget()
    stage.together(*ALL)
    assert stage.told("a@n1") == stage.told("b@n2") == ["g = a b c; with a b; network"]
    assert stage.told("c@n3") == ["g = a b c; with c; network"]


def test_a_group_that_others_had_members_in_changes() -> None:
    """Figure 6.24, line 13."""
    stage = apart("a@n1", "b@n2")
    ring = stage.together(*BOTH)
    assert stage.last_view("a@n1").id == stage.last_view("b@n2").id == ViewId(ring, Position(ring, 0, 0))


def test_a_group_that_lost_members_changes() -> None:
    """Figure 6.24, lines 15 and 16: also when nobody new is in it."""
    stage = Stage(*ALL)
    stage.together("n1", "n3")
    stage.join("a@n1", "g")
    stage.join("c@n3", "g")
    stage.forget()
    stage.together(*BOTH)
    assert stage.told("a@n1") == ["g ends; a remain", "g = a; with a; network"]


def test_a_group_in_which_nothing_changed_keeps_its_view() -> None:
    """Figure 6.24, line 17, for each group by itself (G23)."""
    stage = apart("a@n1", "b@n2")
    stage.join("d@n1", "h")
    last = stage.last_view("d@n1").id
    stage.forget()
    stage.together(*BOTH)
    assert stage.told("d@n1") == []
    stage.join("b@n2", "h")
    assert stage.last_view("d@n1").id > last
    assert stage.told("d@n1") == ["h = b d; with d; join b"]


def test_merged_members_are_established() -> None:
    """Figure 6.24 (G23): they come along with the next view."""
    stage = apart("a@n1", "b@n2")
    stage.together(*BOTH)
    stage.forget()
    stage.join("d@n1", "g")
    assert stage.told("b@n2") == ["g = a b d; with a b; join d"]


def test_the_snapshots_of_one_exchange_are_not_used_in_the_next() -> None:
    """Figure 6.24, line 22."""
    stage = apart("a@n1", "b@n2")
    stage.together(*BOTH)
    stage.leave("b@n2", "g")
    stage.join("c@n3", "g")
    stage.form(*ALL)
    stage.exchange("n3")
    stage.exchange("n1")
    assert not stage["n1"].is_steady
    stage.exchange("n2")
    assert stage.members("g") == ["a c"] * 3


def test_daemons_that_merged_have_known_the_same_from_there_on() -> None:
    """What was merged counts as together: the next merge has them all in the transitional set."""
    stage = apart("a@n1", "b@n2", "c@n3")
    stage.together(*BOTH)
    stage.forget()
    stage.together(*ALL)
    assert stage.told("a@n1") == stage.told("b@n2") == ["g = a b c; with a b; network"]


# Figure 6.25


def test_a_signal_during_the_exchange_is_held_until_it_is_known_which_view_it_ends() -> None:
    """Figure 6.25, lines 2 to 15, signals at once, in a view that others never were signalled in: see deviations."""
    stage = apart("a@n1", "b@n2", "c@n3")
    stage.form(*ALL)
    stage.exchange("n1", "n2")
    stage.end(*BOTH)
    assert stage.told("a@n1") == stage.told("b@n2") == []
    assert not stage["n1"].is_steady


def test_members_of_lost_daemons_are_removed_when_the_attempt_is_over() -> None:
    """Figure 6.25, lines 6 to 11."""
    stage = Stage(*ALL)
    stage.together(*BOTH)
    stage.join("a@n1", "g")
    stage.join("b@n2", "g", "h")
    stage.form(*ALL)
    stage.forget()
    stage.end("n1")
    assert stage.members("g")[0] == "a b"
    stage.begin("n1")
    assert stage.told("a@n1") == ["g ends; a remain"]
    assert stage["n1"].table.groups() == {"g": 1}
    stage.exchange("n1")
    assert stage.told("a@n1") == ["g = a; with a; network"]


def test_a_group_that_was_signalled_before_the_exchange_is_not_signalled_again() -> None:
    """Figure 6.25, line 13; Theorem 6.27(a)."""
    stage = Stage(*ALL)
    stage.together(*ALL)
    for client in ("a@n1", "b@n2", "c@n3"):
        stage.join(client, "g")
    stage.start("n4")
    stage.forget()
    stage.form("n1", "n2", "n4")
    assert stage.told("a@n1") == ["g ends; a b remain"]
    stage.form("n1", "n4")
    assert stage.told("a@n1") == []
    stage.exchange("n1", "n4")
    assert stage.told("a@n1") == ["g = a; with a; network"]


def test_clients_may_connect_during_the_exchange() -> None:
    """Figure 6.25, lines 18 to 27, has them disabled: see deviations."""
    stage = apart("a@n1", "b@n2")
    stage.form(*BOTH)
    stage.connect("d@n1")
    stage.join("d@n1", "g")
    stage.exchange(*BOTH)
    assert stage.told("d@n1") == ["g = a b d; with d; join d"]
