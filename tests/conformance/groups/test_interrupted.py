"""GGT: the configuration ends while snapshots are awaited. (Paper, section 6.4.7, Figures 6.26 and 6.27)

a and d are at n1, b at n2, c at n3, e at n4.
"""

from __future__ import annotations

from ordercast.model.events import Transition, ViewId
from ordercast.model.ids import Position
from tests.unit.groups.stage import Stage

BOTH = ("n1", "n2")
ALL = ("n1", "n2", "n3")


def gathering() -> Stage:
    """n1 and n2 have been together and come together with n3; a, b, c are in g. No snapshot has been ordered."""
    stage = Stage(*ALL)
    stage.together(*BOTH)
    for client in ("a@n1", "b@n2", "c@n3"):
        stage.join(client, "g")
    stage.form(*ALL)
    stage.forget()
    return stage


# Figure 6.26


def test_a_set_that_is_completed_after_the_signal_gives_the_view_and_then_the_signal() -> None:
    """Figure 6.26, lines 13 to 19: `some other server may have received the GROUPS messages prior to the transitional
    signal and also delivered the view`."""
    stage = gathering()
    merged = stage.daemons["n1"].ring
    stage.exchange("n1", "n2")
    stage.end(*BOTH)
    assert stage.told("a@n1") == []
    stage.exchange("n3", to=BOTH)
    assert stage.view_ids("a@n1") == [ViewId(merged, Position(merged, 0, 0))]
    assert stage.heard["a@n1"][-1] == Transition("g", ("a@n1", "b@n2"), ViewId(merged, Position(merged, 0, 0)))
    assert stage.told("a@n1") == stage.told("b@n2") == ["g = a b c; with a b; network", "g ends; a b remain"]


def test_after_the_replayed_signal_everything_is_as_in_any_transitional_configuration() -> None:
    """Figure 6.26, line 19: GTRANS, and no exchange if nobody new comes."""
    stage = gathering()
    stage.exchange("n1", "n2")
    stage.end(*BOTH)
    stage.exchange("n3", to=BOTH)
    stage.forget()
    stage.join("d@n1", "g", to=BOTH)
    assert stage.told("a@n1") == ["g = a b c d; with a b; join d", "g ends; a b d remain"]
    stage.begin(*BOTH)
    assert stage.told("a@n1") == ["g = a b d; with a b d; network"]
    assert stage["n1"].is_steady
    assert stage.daemons["n1"].announced == []


def test_messages_before_the_signal_come_before_it_and_those_behind_it_after() -> None:
    """Figure 6.26: the signal is replayed at its place."""
    stage = gathering()
    stage.send("c@n3", ["g"], "before")
    stage.exchange("n1", "n2")
    stage.end(*BOTH)
    stage.send("b@n2", ["g"], "after", to=BOTH)
    stage.exchange("n3", to=BOTH)
    assert stage.told("a@n1") == ["g = a b c; with a b; network", "before", "g ends; a b remain", "after"]


def test_snapshots_of_another_configuration_are_ignored_here_too() -> None:
    """Figure 6.26, lines 11 and 12."""
    stage = gathering()
    late = list(stage.daemons["n3"].announced)
    stage.form(*ALL)
    stage.exchange("n1", "n2")
    stage.end(*BOTH)
    stage.order("n3", *late, to=BOTH)
    assert not stage["n1"].is_steady


# Figure 6.27


def test_a_new_configuration_starts_the_exchange_over() -> None:
    """Figure 6.27, lines 4 to 9: what was gathered is flushed, and everybody tells again."""
    stage = gathering()
    stage.exchange("n1", "n2")
    stage.form(*BOTH)
    assert [len(stage.daemons[name].announced) for name in BOTH] == [1, 1]
    stage.exchange("n1")
    assert not stage["n1"].is_steady, "n2's former snapshot does not count"
    stage.exchange("n2")
    assert stage["n1"].is_steady


def test_an_attempt_that_was_given_up_leaves_no_view_behind() -> None:
    """Section 6.4.7: nobody who goes on with us can have completed it."""
    stage = gathering()
    stage.exchange("n1", "n2")
    stage.form(*BOTH)
    stage.exchange(*BOTH)
    assert stage.told("a@n1") == stage.told("b@n2") == [], "g lost nobody: c was never in it here"
    stage.form("n3")
    stage.exchange("n3")
    assert stage.told("c@n3") == []


def test_the_next_attempt_may_have_others() -> None:
    """Figure 6.27: any number of times, and then one view."""
    stage = gathering()
    stage.start("n4")
    stage.join("e@n4", "g")
    stage.forget()
    stage.exchange("n1")
    stage.form("n1", "n2", "n4")
    stage.exchange("n4")
    stage.form("n1", "n2", "n3", "n4")
    stage.exchange("n1", "n2", "n3", "n4")
    assert stage.told("a@n1") == stage.told("b@n2") == ["g = a b c e; with a b; network"]
    assert stage.told("c@n3") == ["g = a b c e; with c; network"]
    assert stage.told("e@n4") == ["g = a b c e; with e; network"]


def test_what_was_kept_is_delivered_in_the_transitional_configuration_when_the_attempt_is_given_up() -> None:
    """Nothing is kept in the paper: see deviations. Before the signal or behind it makes no difference any more."""
    stage = gathering()
    stage.send("c@n3", ["g"], "1")
    stage.join("d@n1", "g")
    stage.end("n1", "n3")
    stage.send("a@n1", ["g"], "2", to=("n1", "n3"))
    stage.begin("n1", "n3")
    assert stage.told("a@n1") == [
        "g ends; a remain",
        "1",
        "g = a b d; with a; join d",
        "g ends; a d remain",
        "2",
    ]
    stage.exchange("n1", "n3")
    assert stage.told("a@n1") == ["g = a c d; with a d; network"]


def test_joins_of_those_who_were_not_together_with_us_are_left_to_their_next_snapshot() -> None:
    stage = gathering()
    stage.join("f@n3", "g")
    stage.leave("c@n3", "g")
    stage.form("n1", "n3")
    assert stage.told("a@n1") == ["g ends; a remain"]
    assert stage.told("c@n3") == ["g = c f; with c; join f", "left g"]
    assert stage.told("f@n3") == ["g = c f; with f; join f", "g = f; with f; leave c"]
    stage.exchange("n1", "n3")
    assert stage.told("a@n1") == ["g = a f; with a; network"]
    assert stage.told("f@n3") == ["g = a f; with f; network"]


def test_joins_of_those_who_were_together_with_us_and_are_lost_are_as_in_any_transitional_configuration() -> None:
    stage = gathering()
    stage.join("h@n2", "g")
    stage.form("n1")
    assert stage.told("a@n1") == ["g ends; a remain", "g = a b h; with a; join h", "g ends; a remain"]
    stage.exchange("n1")
    assert stage.told("a@n1") == ["g = a; with a; network"]


def test_view_ids_grow_through_interrupted_exchanges() -> None:
    """Theorem 6.17."""
    stage = gathering()
    stage.join("d@n1", "g")
    stage.form("n1", "n3")
    stage.join("k@n1", "g")
    stage.form(*ALL)
    stage.exchange(*ALL)
    ids = stage.view_ids("a@n1")
    assert len(ids) == 3
    assert ids == sorted(set(ids))
