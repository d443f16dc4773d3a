"""GOP: joins, leaves, disconnections and messages while nothing changes among the daemons, and the signal that
something will. (Paper, section 6.4.4, Figures 6.18 and 6.19)"""

from __future__ import annotations

import pytest

from ordercast.groups.envelope import Kind, decode_head, head_bytes_of
from ordercast.groups.layer import disconnect_payload, join_payload, leave_payload
from ordercast.model.events import Message, Reason, Transition, ViewId
from ordercast.model.ids import Position, Seq
from ordercast.model.service import Service
from tests.unit.groups.stage import Stage


def two() -> Stage:
    stage = Stage("n1", "n2")
    stage.together("n1", "n2")
    return stage


# Figure 6.18


def test_join_leave_and_disconnect_take_effect_when_their_message_is_delivered_and_not_before() -> None:
    """Section 6.4.4: `light-weight events that are implemented as regular data messages sent in AGREED order`."""
    stage = two()
    stage.connect("a@n1")
    payloads = join_payload("a@n1", ["g"]), leave_payload("a@n1", ["g"]), disconnect_payload("a@n1")
    assert [decode_head(head_bytes_of(payload)).kind for payload in payloads] == [
        Kind.JOIN,
        Kind.LEAVE,
        Kind.DISCONNECT,
    ]
    assert stage.members("g") == ["", ""]
    stage.order("n1", payloads[0])
    assert stage.members("g") == ["a", "a"]
    stage.order("n1", payloads[1])
    assert stage.members("g") == ["", ""]
    assert stage["n1"].is_connected("a@n1")
    stage.order("n1", payloads[2])
    assert not stage["n1"].is_connected("a@n1")


def test_a_group_is_created_when_its_first_member_joins() -> None:
    """Figure 6.18, lines 3 to 9."""
    stage = two()
    stage.join("a@n1", "g")
    assert stage["n1"].table.groups() == stage["n2"].table.groups() == {"g": 1}
    assert stage.told("a@n1") == ["g = a; with a; join a"]


def test_a_member_has_the_server_that_its_join_came_from() -> None:
    """Figure 6.18, line 13."""
    stage = two()
    stage.join("a@n1", "g")
    stage.join("b@n2", "g")
    assert stage["n1"].table.report() == {"g": ["a@n1"]}
    assert stage["n2"].table.report() == {"g": ["b@n2"]}


def test_every_join_gives_a_view_id_after_any_before() -> None:
    """Figure 6.18, line 18: also when nobody who is local joins (G25)."""
    stage = two()
    for client in ("a@n1", "b@n2", "c@n1", "d@n2"):
        stage.join(client, "g")
    ids = stage.view_ids("a@n1")
    assert len(ids) == 4
    assert ids == sorted(set(ids))
    assert stage.view_ids("b@n2") == ids[1:], "the same at both daemons"


def test_old_members_see_the_new_one_and_come_from_the_old_view_together() -> None:
    """Figure 6.18, line 20: D = members, T = members - m."""
    stage = two()
    stage.join("a@n1", "g")
    stage.join("b@n2", "g")
    stage.forget()
    stage.join("c@n2", "g")
    assert stage.told("a@n1") == stage.told("b@n2") == ["g = a b c; with a b; join c"]


def test_the_joining_member_sees_all_and_comes_alone() -> None:
    """Figure 6.18, line 22: D = members, T = {c}."""
    stage = two()
    stage.join("a@n1", "g")
    stage.join("b@n2", "g")
    assert stage.told("b@n2") == ["g = a b; with b; join b"]


def test_a_member_that_joined_is_established_when_the_next_one_joins_wherever_it_is() -> None:
    """Figure 6.18, line 23, for remote members too (G25)."""
    stage = two()
    stage.join("a@n1", "g")
    stage.join("b@n2", "g")
    stage.join("c@n1", "g")
    assert stage.last_view("a@n1").transitional == ("a@n1", "b@n2")


def test_data_comes_to_each_local_client_in_the_groups_it_was_sent_to() -> None:
    """Figure 6.18, lines 24 to 26."""
    stage = two()
    for client, group in (("a@n1", "g"), ("b@n2", "g"), ("c@n2", "h"), ("d@n2", "k")):
        stage.join(client, group)
    stage.forget()
    stage.send("a@n1", ["g", "h"], "m")
    assert [stage.told(client) for client in ("a@n1", "b@n2", "c@n2", "d@n2")] == [["m"], ["m"], ["m"], []]


def test_a_client_in_several_target_groups_gets_the_message_once() -> None:
    """Theorem 6.19."""
    stage = two()
    stage.join("a@n1", "g", "h")
    stage.forget()
    stage.send("a@n1", ["g", "h"], "m")
    assert stage.told("a@n1") == ["m"]


def test_who_is_not_a_member_may_send() -> None:
    """Section 2.2.2, note: groups are open."""
    stage = two()
    stage.join("a@n1", "g")
    stage.connect("b@n2")
    stage.forget()
    stage.send("b@n2", ["g"], "m")
    assert stage.told("a@n1") == ["m"]
    assert stage.told("b@n2") == []


@pytest.mark.parametrize("service", [Service.AGREED, Service.SAFE])
def test_messages_keep_their_order_position_and_service(service: Service) -> None:
    """Lemma 6.9."""
    stage = two()
    stage.join("a@n1", "g")
    stage.join("b@n2", "g")
    stage.forget()
    for text in ("1", "2", "3"):
        stage.send("b@n2", ["g"], text, service=service)
    assert stage.heard["a@n1"] == stage.heard["b@n2"]
    ring = stage.daemons["n1"].ring
    assert [heard.position for heard in stage.heard["a@n1"] if isinstance(heard, Message)] == [
        Position(ring, Seq(seq), 0) for seq in (5, 6, 7)
    ]
    assert stage.told("a@n1") == ["1", "2", "3"]


def test_a_client_that_connects_is_in_no_group_and_hears_nothing() -> None:
    """Figure 6.18, lines 35 and 36; Theorem 6.15: no message and no signal before the first view."""
    stage = two()
    stage.join("a@n1", "g")
    stage.connect("c@n1")
    stage.send("a@n1", ["g"], "m")
    stage.form("n1")
    assert stage.told("c@n1") == []


# Figure 6.19


def test_who_leaves_is_told_where_in_the_stream_the_leave_took_effect() -> None:
    """Figure 6.19, line 5; `to notify them about where in the stream of messages their leave took effect`."""
    stage = two()
    stage.join("a@n1", "g")
    stage.join("b@n2", "g")
    stage.forget()
    stage.send("b@n2", ["g"], "before")
    stage.leave("a@n1", "g")
    stage.send("b@n2", ["g"], "after")
    assert stage.told("a@n1") == ["before", "left g"]
    assert stage.told("b@n2") == ["before", "g = b; with b; leave a", "after"]


@pytest.mark.parametrize("is_leave", [True, False])
def test_those_who_stay_come_along_together(is_leave: bool) -> None:
    """Figure 6.19, lines 7 to 12 and 17 to 22: removed also at daemons where it is not local (G25); D = T = members."""
    stage = two()
    for client in ("a@n1", "b@n2", "c@n1"):
        stage.join(client, "g")
    before = stage.view_ids("b@n2")
    stage.forget()
    if is_leave:
        stage.leave("a@n1", "g")
    else:
        stage.disconnect("a@n1")
    word = "leave" if is_leave else "disconnect"
    assert stage.last_view("b@n2").id > before[-1]
    assert stage.told("b@n2") == stage.told("c@n1") == [f"g = b c; with b c; {word} a"]
    assert stage.members("g") == ["b c", "b c"]


def test_a_group_is_destroyed_when_its_last_member_leaves() -> None:
    """Figure 6.19, lines 8, 9, 18 and 19."""
    stage = two()
    stage.join("a@n1", "g", "h")
    stage.leave("a@n1", "g")
    assert stage["n1"].table.groups() == stage["n2"].table.groups() == {"h": 1}
    stage.disconnect("a@n1")
    assert len(stage["n1"].table) == len(stage["n2"].table) == 0


def test_a_disconnection_takes_the_member_out_of_all_its_groups_without_telling_it() -> None:
    """Figure 6.19, lines 13 to 22: `the entire connection to the client has been destroyed`."""
    stage = two()
    stage.join("a@n1", "g", "h")
    stage.join("b@n2", "g", "h")
    stage.forget()
    stage.disconnect("a@n1")
    assert stage.told("a@n1") == []
    assert stage.told("b@n2") == ["g = b; with b; disconnect a", "h = b; with b; disconnect a"]


def test_a_client_comes_back_only_after_its_disconnection_and_in_a_later_view() -> None:
    """Theorem 6.22(b)."""
    stage = two()
    stage.join("b@n2", "g")
    stage.join("a@n1", "g")
    gone = stage.disconnect("a@n1")
    del stage.heard["a@n1"]
    stage.join("a@n1", "g")
    assert stage.last_view("a@n1").id > ViewId(stage.daemons["n1"].ring, Position(stage.daemons["n1"].ring, gone, 0))
    assert stage.told("a@n1") == ["g = a b; with a; join a"]


def test_a_signal_comes_to_groups_with_members_at_daemons_that_are_lost() -> None:
    """Figure 6.19, lines 23 to 33: with the id of the view that ends."""
    stage = two()
    stage.join("a@n1", "g")
    stage.join("b@n2", "g")
    last = stage.last_view("a@n1").id
    stage.forget()
    stage.end("n1")
    assert stage.heard["a@n1"] == [Transition("g", ("a@n1",), last)]
    stage.end("n2")
    assert stage.heard["b@n2"] == [Transition("g", ("b@n2",), last)]


def test_groups_without_members_there_are_not_signalled() -> None:
    """Section 6.4: they `will not need to see that any membership change occurred at all`."""
    stage = two()
    stage.join("a@n1", "g")
    stage.join("b@n2", "h")
    stage.forget()
    stage.form("n1")
    stage.form("n2")
    assert stage.told("a@n1") == stage.told("b@n2") == []


def test_a_group_is_signalled_although_nobody_local_is_in_it() -> None:
    """Figure 6.19, line 34: the group counts as changed wherever its members are (G25)."""
    stage = Stage("n1", "n2", "n3")
    stage.together("n1", "n2", "n3")
    stage.join("b@n2", "g")
    stage.join("c@n3", "g")
    stage.end("n1", "n2")
    stage.forget()
    stage.join("a@n1", "g")
    assert stage.told("a@n1") == ["g = a b c; with a; join a", "g ends; a b remain"]
    assert stage.told("b@n2") == ["g = a b c; with b; join a", "g ends; a b remain"]


def test_a_view_says_for_whom_and_why() -> None:
    stage = two()
    stage.join("a@n1", "g")
    view = stage.last_view("a@n1")
    assert (view.reason, view.who, view.why) == (Reason.JOIN, ("a@n1",), "")
