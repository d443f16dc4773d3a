"""Groups on an engine that signals them one by one, and tells the places of messages that are not for clients here."""

from __future__ import annotations

from ordercast.groups.envelope import CONFIRM, Head, Kind, encode_head
from ordercast.groups.layer import Confirmed, Groups, MessageRun, PassedOver, data_head, join_payload
from ordercast.model.effects import Deliver, Placed
from ordercast.model.events import View
from ordercast.model.ids import ConfigurationId, Position, ProcessId
from ordercast.model.service import Service

from .stage import Stage, parcel_of, process_of


def _pair() -> Stage:
    """Clients of two daemons, both in g and in h."""
    stage = Stage("n1", "n2")
    stage.together("n1", "n2")
    stage.join("a@n1", "g", "h")
    stage.join("b@n2", "g", "h")
    stage.forget()
    return stage


def test_a_group_is_signalled_when_the_engine_says_so() -> None:
    stage = _pair()
    stage.end("n1", parts=True)
    assert stage.told("a@n1") == []
    stage.part("n1", groups=("h",))
    stage.send("a@n1", ["g"], "before", to=["n1"])
    stage.send("a@n1", ["h"], "after", to=["n1"])
    assert stage.told("a@n1") == ["h ends; a remain", "before", "after"]
    stage.part("n1")
    assert stage.told("a@n1") == ["g ends; a remain"]
    stage.part("n1", groups=("g",))
    assert stage.told("a@n1") == [], "all have ended before"
    stage.begin("n1")
    assert stage.told("a@n1") == ["g = a; with a; network", "h = a; with a; network"]


def test_a_join_to_a_group_that_is_not_signalled_is_as_in_the_regular_configuration() -> None:
    stage = _pair()
    stage.end("n1", parts=True)
    stage.part("n1", groups=("h",))
    stage.join("c@n1", "g", "h", to=["n1"])
    assert stage.told("a@n1") == [
        "h ends; a remain",
        "g = a b c; with a b; join c",
        "h = a b c; with a; join c",
        "h ends; a c remain",
    ]


def test_who_does_not_remain_joins_what_is_not_signalled_without_an_end() -> None:
    stage = _pair()
    stage.end("n1", parts=True)
    stage.part("n1", groups=("h",))
    stage.forget()
    stage.join("d@n2", "g", "h", to=["n1"])
    assert stage.told("a@n1") == ["g = a b d; with a b; join d", "h = a b d; with a; join d", "h ends; a remain"]


def test_views_of_what_is_not_late_name_the_configuration_that_ends() -> None:
    stage = _pair()
    daemon, regular = stage.daemons["n1"], stage.daemons["n1"].ring
    stage.end("n1", parts=True)
    daemon.groups.connect("c", 2)
    daemon.names[2], stage.heard["c@n1"] = "c@n1", []
    parcel = parcel_of(9, daemon.process, join_payload("c@n1", ("g",)))
    stage._take(daemon, daemon.groups.deliver(Deliver(daemon.configuration, regular, [parcel], views_of=regular)))
    assert stage.last_view("c@n1").id.configuration == regular != daemon.configuration


def test_a_view_behind_the_end_of_its_group_is_not_that_of_those_who_had_it_before() -> None:
    """A lost daemon may have taken the same join before it lost this one: its clients know of no end."""
    stage = _pair()
    daemon, regular = stage.daemons["n1"], stage.daemons["n1"].ring
    stage.end("n1", parts=True)
    stage.part("n1", groups=("g",))
    daemon.groups.connect("c", 2)
    daemon.names[2], stage.heard["c@n1"] = "c@n1", []
    parcel = parcel_of(9, daemon.process, join_payload("c@n1", ("g", "h")))
    stage._take(daemon, daemon.groups.deliver(Deliver(daemon.configuration, regular, [parcel], views_of=regular)))
    views = {view.group: view for view in stage.heard["c@n1"] if isinstance(view, View)}
    assert views["g"].id.configuration == daemon.configuration and views["h"].id.configuration == regular
    assert views["g"].id.position == views["h"].id.position


def _uneven() -> Stage:
    """n1 has taken the join of its client to g, and n2 takes it behind the end of g: both lose n3, whose client was in
    all groups."""
    stage = Stage("n1", "n2", "n3")
    stage.together("n1", "n2", "n3")
    for client in ("b@n2", "c@n3"):
        stage.join(client, "g", "h")
    joined = stage.join("a@n1", "g", to=["n1", "n3"])
    behind, regular = stage.daemons["n2"], stage.daemons["n2"].ring
    stage.end("n1", "n2", parts=True)
    stage.part("n2", groups=("g",))
    parcel = parcel_of(joined, process_of("n1"), join_payload("a@n1", ("g",)))
    stage._take(behind, behind.groups.deliver(Deliver(behind.configuration, regular, [parcel], views_of=regular)))
    stage.part("n1", "n2")
    return stage


def test_who_had_another_view_of_a_group_did_not_come_along_in_it() -> None:
    """The view of n1's client is of the configuration that ended, that of n2's was made behind its end."""
    stage = _uneven()
    assert stage.last_view("a@n1").id != stage.last_view("b@n2").id
    stage.forget()
    stage.begin("n1", "n2", is_uneven=True)
    assert stage.told("a@n1") == [], "snapshots are awaited"
    stage.exchange("n1", "n2")
    assert stage.told("a@n1") == ["g = a b; with a; network"]
    assert stage.told("b@n2") == ["g = a b; with b; network", "h = b; with b; network"]
    stage.form("n1", "n2", "n3")
    stage.exchange("n1", "n2", "n3")
    assert stage.told("a@n1") == ["g = a b c; with a b; network"], "they had the same view since"


def test_other_views_are_remembered_until_snapshots_are_complete() -> None:
    stage = _uneven()
    stage.begin("n1", "n2", is_uneven=True)
    stage.forget()
    stage.form("n1", "n2")
    stage.exchange("n1", "n2")
    assert stage.told("a@n1") == ["g = a b; with a; network"]
    assert stage.told("b@n2") == ["g = a b; with b; network", "h = b; with b; network"]


def test_a_view_that_both_have_later_makes_up_for_it() -> None:
    """While snapshots are awaited another client joins, and the configuration ends: all take that join in its end."""
    stage = _uneven()
    stage.begin("n1", "n2", is_uneven=True)
    stage.forget()
    stage.join("d@n2", "g")
    stage.form("n1", "n2")
    assert stage.view_ids("a@n1") == stage.view_ids("b@n2")
    stage.forget()
    stage.exchange("n1", "n2")
    assert stage.told("a@n1") == ["g = a b d; with a b d; network"]


def test_signals_are_kept_in_their_places_while_snapshots_are_awaited() -> None:
    stage = Stage("n1", "n2")
    stage.join("a@n1", "g")
    stage.join("b@n2", "g")
    stage.form("n1", "n2")
    stage.forget()
    stage.end("n1", parts=True)
    stage.exchange("n1", to=["n1"])
    stage.send("a@n1", ["g"], "before", to=["n1"])
    stage.part("n1", groups=("g",))
    stage.send("a@n1", ["g"], "after", to=["n1"])
    assert stage.told("a@n1") == []
    stage.exchange("n2", to=["n1"])
    assert stage.told("a@n1") == ["g = a b; with a; network", "before", "g ends; a remain", "after"]


def test_who_is_not_to_get_its_message_is_told_its_place() -> None:
    groups, origin = Groups(process_of("n1"), "n1"), ConfigurationId(8, ProcessId(1))
    groups.connect("a", 1)
    asked, silent = data_head("a@n1", ("g",), confirm=True), data_head("a@n1", ("g",))
    parcels = [parcel_of(5, ProcessId(1), silent + b"x", asked + b"y", asked + b"z")]
    (confirmed,) = groups.placed(Placed(origin, parcels))
    assert isinstance(confirmed, Confirmed)
    assert (confirmed.session, len(confirmed.run.payloads)) == (1, 2)
    assert confirmed.run.places.at(0) == Position(origin, 5, 1)
    assert confirmed.run.last == Position(origin, 5, 2)


def test_a_place_of_what_cannot_be_a_message_is_refused() -> None:
    groups, origin = Groups(process_of("n1"), "n1"), ConfigurationId(8, ProcessId(1))
    groups.connect("a", 1)
    asked = data_head("a@n1", ("g",), confirm=True) + b"x"
    outputs = groups.placed(Placed(origin, [parcel_of(5, ProcessId(1), asked, b"?", asked)]))
    assert [type(output) for output in outputs] == [Confirmed, PassedOver, Confirmed]
    assert [output.run.last.slot for output in outputs if isinstance(output, Confirmed)] == [0, 2]


def test_the_places_of_changes_are_not_confirmed() -> None:
    groups, origin = Groups(process_of("n1"), "n1"), ConfigurationId(8, ProcessId(1))
    groups.connect("a", 1)
    change = encode_head(Head(Kind.JOIN, "a@n1", ("g",), CONFIRM))
    assert groups.placed(Placed(origin, [parcel_of(5, ProcessId(1), change)])) == []


def test_messages_of_one_head_in_a_row_are_passed_up_together() -> None:
    groups, origin = Groups(process_of("n1"), "n1"), ConfigurationId(8, ProcessId(1))
    groups.connect("a", 1)
    rows = [data_head(sender, ("a@n1",)) + b"x" for sender in ("b@n2", "b@n2", "b@n2", "c@n2", "c@n2")]
    runs = groups.deliver(Deliver(origin, origin, [parcel_of(5, ProcessId(2), *rows)]))
    assert [len(run.payloads) for run in runs if isinstance(run, MessageRun)] == [3, 2]


def test_a_snapshot_that_comes_too_late_is_no_change_of_a_client() -> None:
    groups, origin = Groups(process_of("n1"), "n1"), ConfigurationId(8, ProcessId(1))
    late = parcel_of(5, process_of("n1"), encode_head(Head(Kind.GROUPS, "n1", ())))
    assert groups.deliver(Deliver(origin, origin, [late])) == [] and groups.own_changes == 0


def test_what_is_early_waits_only_for_what_its_own_sender_sent() -> None:
    """Snapshots are awaited: a message of n1 and the end of a configuration are kept, and n3 has nothing there."""
    stage = Stage("n1", "n2", "n3")
    stage.join("a@n1", "g")
    stage.form("n1", "n2", "n3")
    stage.exchange("n1", to=["n1"])
    stage.send("a@n1", ["g"], "kept", to=["n1"])
    stage.end("n1")
    daemon = stage.daemons["n1"]
    early = parcel_of(9, process_of("n3"), data_head("c@n3", ("g",)) + b"early", service=Service.FIFO)
    outputs = daemon.groups.deliver(Deliver(daemon.configuration, daemon.ring, [early], ordered=False))
    assert [run.payloads[0][-5:] for run in outputs if isinstance(run, MessageRun)] == [b"early"]
