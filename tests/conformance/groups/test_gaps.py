"""Where the figures say nothing, or contradict the paper's properties: our readings, by their numbers in deviations."""

from __future__ import annotations

from dataclasses import fields

from ordercast.groups.layer import data_head, join_payload
from ordercast.model.effects import Deliver
from ordercast.model.events import Left, View
from ordercast.model.service import Service
from tests.unit.groups.stage import Stage, heard_in, parcel_of, process_of, text_of

BOTH = ("n1", "n2")
ALL = ("n1", "n2", "n3")


def merged(*names: str) -> Stage:
    stage = Stage(*names)
    stage.together(*names)
    return stage


# G2


def test_leaving_is_an_event_of_its_own_and_no_view() -> None:
    """G2: a view with no members would break self inclusion, P2.2."""
    stage = merged(*BOTH)
    stage.join("a@n1", "g")
    stage.join("b@n2", "g")
    stage.leave("a@n1", "g")
    assert stage.heard["a@n1"][-1] == Left("g")
    assert [field.name for field in fields(Left)] == ["group"]
    assert all("a@n1" in heard.members for heard in stage.heard["a@n1"] if isinstance(heard, View))


# G3


def test_the_first_view_of_a_member_has_itself_in_its_transitional_set() -> None:
    """G3: {self}, as P2.4(3) wants with q = p; also after having left, and after a merge."""
    stage = merged(*BOTH)
    stage.join("b@n2", "g")
    stage.join("a@n1", "g")
    assert stage.last_view("a@n1").transitional == ("a@n1",)
    stage.leave("a@n1", "g")
    stage.forget()
    stage.join("a@n1", "g")
    assert stage.last_view("a@n1").transitional == ("a@n1",)


def test_the_transitional_set_of_every_other_view_has_the_reader_in_it() -> None:
    stage = merged(*ALL)
    for client in ("a@n1", "b@n2", "c@n3"):
        stage.join(client, "g")
    stage.form(*BOTH)
    stage.form("n3")
    stage.together(*ALL)
    stage.leave("b@n2", "g")
    for client in ("a@n1", "c@n3"):
        views = [heard for heard in stage.heard[client] if isinstance(heard, View)]
        assert len(views) >= 4
        assert all(client in view.transitional for view in views)


# G10


def test_those_who_go_on_together_have_the_same_views_with_the_same_ids_whatever_comes_last() -> None:
    """G10: a JOIN is handled in the same state at both, since the stream has the signal at the same place."""
    stage = merged(*ALL)
    for client in ("a@n1", "b@n2", "c@n3"):
        stage.join(client, "g")
    stage.forget()
    stage.end(*BOTH)
    stage.join("f@n3", "g", to=BOTH)
    stage.join("d@n1", "g", to=BOTH)
    stage.send("c@n3", ["g"], "m", to=BOTH)
    stage.begin(*BOTH)
    assert stage.heard["a@n1"] == stage.heard["b@n2"]
    assert len(stage.heard["a@n1"]) == 7


# G22


def test_weaker_messages_that_come_early_are_delivered_in_the_view_that_is_there() -> None:
    """G22: a message that does not ask for order does not wait for snapshots."""
    stage = Stage(*BOTH)
    stage.join("a@n1", "g")
    stage.join("b@n2", "g")
    ring = stage.form(*BOTH)
    parcel = parcel_of(1, process_of("n2"), data_head("b@n2", ("g",)) + b"early", service=Service.RELIABLE)
    for is_interrupted in (False, True):
        if is_interrupted:
            stage.end(*BOTH)
        outputs = stage["n1"].deliver(Deliver(ring, ring, [parcel], ordered=False))
        assert [text_of(heard) for _, heard in heard_in(outputs)] == ["early"]


def test_ordered_data_during_the_exchange_is_not_lost() -> None:
    """G22, the other half: an engine whose order carries everything brings data then, too."""
    stage = Stage(*BOTH)
    stage.join("a@n1", "g")
    stage.join("b@n2", "g")
    stage.form(*BOTH)
    stage.forget()
    stage.send("b@n2", ["g"], "m", service=Service.RELIABLE)
    stage.exchange(*BOTH)
    assert stage.told("a@n1") == ["g = a b; with a; network", "m"]


# G23


def both_lose_some() -> Stage:
    """{n1, n3} and {n2, n4}; all have members in g. Then n1 meets n2, and each has lost its companion."""
    stage = Stage("n1", "n2", "n3", "n4")
    stage.together("n1", "n3")
    stage.together("n2", "n4")
    for client in ("a@n1", "c@n3", "b@n2", "e@n4"):
        stage.join(client, "g")
    stage.forget()
    return stage


def test_two_sides_that_both_lost_members_do_not_come_along_with_each_other() -> None:
    """G23: in Figure 6.22 both label the group (RMemb_id, -1), and Figure 6.24 puts each into the other's T."""
    stage = both_lose_some()
    stage.together(*BOTH)
    assert stage.told("a@n1") == ["g ends; a remain", "g = a b; with a; network"]
    assert stage.told("b@n2") == ["g ends; b remain", "g = a b; with b; network"]


def test_a_set_completed_after_the_signal_has_the_same_transitional_set_as_one_completed_before() -> None:
    """G23: the signal's set counts only when its own configuration comes."""
    stage = Stage(*ALL)
    stage.together(*BOTH)
    for client in ("a@n1", "b@n2", "c@n3"):
        stage.join(client, "g")
    stage.form(*ALL)
    stage.forget()
    stage.exchange("n2", "n3")
    last = list(stage.daemons["n1"].announced)
    stage.order("n1", *last, to=("n2", "n3"))
    stage.end("n1")
    stage.order("n1", *last, to=("n1",))
    before, after = stage.last_view("b@n2"), stage.last_view("a@n1")
    assert before == after
    assert after.transitional == ("a@n1", "b@n2")


def test_who_went_another_way_between_two_attempts_does_not_come_along() -> None:
    """G23: the accumulated set. n1 and n2 begin an exchange together with n3, part, and meet in another one."""
    stage = Stage(*ALL)
    stage.together(*BOTH)
    for client in ("a@n1", "b@n2", "c@n3"):
        stage.join(client, "g")
    stage.form(*ALL)
    stage.forget()
    stage.form("n2")
    stage.form("n1", "n3")
    stage.together(*ALL)
    assert stage.told("a@n1") == ["g ends; a remain", "g = a b c; with a; network"]
    assert stage.told("b@n2") == ["g ends; b remain", "g = a b c; with b; network"]
    assert stage.told("c@n3") == ["g = a b c; with c; network"]


def test_whether_a_group_changed_is_asked_for_each_group_anew() -> None:
    """G23: `changed` is never reset in Figure 6.24."""
    stage = Stage(*BOTH)
    stage.join("a@n1", "a", "z")
    stage.join("b@n2", "a")
    stage.forget()
    stage.together(*BOTH)
    assert stage.told("a@n1") == ["a = a b; with a; network"]


# G24


def test_a_safe_message_comes_to_both_sides_under_views_with_other_ids() -> None:
    """G24: n3 has the join and the message only after its signal. Both deliver the message; the ids differ."""
    stage = merged(*ALL)
    for client in ("a@n1", "b@n2", "c@n3"):
        stage.join(client, "g")
    stage.forget()
    ring = stage.daemons["n1"].ring
    joined = stage.join("d@n1", "g", to=BOTH)
    said = stage.send("a@n1", ["g"], "safe", to=BOTH, service=Service.SAFE)
    stage.end("n3")
    configuration = stage.daemons["n3"].configuration
    parcels = [
        parcel_of(joined, process_of("n1"), join_payload("d@n1", ["g"])),
        parcel_of(said, process_of("n1"), data_head("a@n1", ("g",)) + b"safe", service=Service.SAFE),
    ]
    outputs = stage["n3"].deliver(Deliver(configuration, ring, parcels))
    stage.heard["c@n3"] += [heard for _, heard in heard_in(outputs)]
    assert stage.last_view("c@n3").members == stage.last_view("a@n1").members
    assert stage.last_view("c@n3").id.configuration == configuration
    assert stage.last_view("a@n1").id.configuration == ring
    assert stage.told("a@n1") == ["g = a b c d; with a b c; join d", "safe"]
    assert stage.told("c@n3") == ["g ends; c remain", "g = a b c d; with c; join d", "g ends; c remain", "safe"]


# G25


def test_joining_twice_changes_nothing() -> None:
    """G25: unspecified in the paper."""
    stage = merged(*BOTH)
    stage.join("a@n1", "g")
    stage.join("b@n2", "g")
    stage.forget()
    stage.join("a@n1", "g")
    assert stage.told("a@n1") == stage.told("b@n2") == []
    assert stage.members("g") == ["a b", "a b"]


def test_leaving_without_being_a_member_changes_nothing() -> None:
    """G25."""
    stage = merged(*BOTH)
    stage.join("a@n1", "g")
    stage.connect("b@n2")
    stage.forget()
    stage.leave("b@n2", "g", "unknown")
    stage.disconnect("b@n2")
    assert stage.told("a@n1") == stage.told("b@n2") == []
    assert stage.members("g") == ["a", "a"]


def test_joining_twice_and_leaving_once_is_having_left() -> None:
    """G25: members are a set."""
    stage = merged(*BOTH)
    stage.join("a@n1", "g", "g")
    stage.join("a@n1", "g")
    stage.leave("a@n1", "g", "g")
    assert stage.members("g") == ["", ""]
    assert stage.told("a@n1") == ["g = a; with a; join a", "left g"]


# G26


def test_a_disconnection_during_the_exchange_takes_effect_after_it() -> None:
    """G26: ordered like anything else, and kept."""
    stage = Stage(*BOTH)
    stage.join("a@n1", "g")
    stage.join("b@n2", "g")
    stage.form(*BOTH)
    stage.forget()
    stage.disconnect("a@n1")
    assert stage["n1"].is_connected("a@n1"), "its name is not free before"
    stage.exchange(*BOTH)
    assert not stage["n1"].is_connected("a@n1")
    assert stage.told("b@n2") == ["g = a b; with b; network", "g = b; with b; disconnect a"]


def test_a_disconnection_in_an_exchange_that_is_given_up_takes_effect_before_the_next_snapshot() -> None:
    """G26."""
    stage = Stage(*BOTH)
    stage.join("a@n1", "g")
    stage.form(*BOTH)
    stage.disconnect("a@n1")
    stage.form(*BOTH)
    assert not stage["n1"].is_connected("a@n1")
    stage.exchange(*BOTH)
    assert stage.members("g") == ["", ""]
