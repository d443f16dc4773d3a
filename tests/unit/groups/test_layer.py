"""The layer's own matters: sessions, routes, runs and counters. What the paper says is in `conformance/groups`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ordercast.groups.envelope import Head, Kind, encode_head
from ordercast.groups.layer import (
    ROUTES_MAX,
    Announce,
    Changed,
    Confirmed,
    Groups,
    MessageRun,
    Output,
    PassedOver,
    Relisted,
    Warned,
    data_head,
    disconnect_payload,
    join_payload,
    leave_payload,
    roster_payload,
)
from ordercast.groups.snapshot import PIECE_SIZE_MAX, decode_snapshot, encode_snapshot
from ordercast.groups.table import Notice
from ordercast.model.configuration import ConfigurationKind
from ordercast.model.effects import Deliver, Parcel
from ordercast.model.errors import UsageError
from ordercast.model.ids import ConfigurationId, Incarnation, NodeId, Places, ProcessId, process_id_from, process_text
from ordercast.model.roster import Roster
from ordercast.model.service import Service

from .stage import Stage, heard_in, messages_of, parcel_of, text_of, view_of

ME, OTHER = ProcessId(1), ProcessId(2)
RING, NEXT = ConfigurationId(8, ME), ConfigurationId(12, ME)
HEAD = data_head("b@n2", ("g",))


def started(*clients: str) -> Groups:
    """Two daemons in a configuration; these clients are here, in g."""
    groups = Groups(ME, "n1")
    groups.install(view_of(ConfigurationKind.REGULAR, ConfigurationId(4, ME), (ME,), (ME,)))
    for session, client in enumerate(clients, 1):
        groups.connect(client, session)
        give(groups, parcel_of(session, ME, join_payload(f"{client}@n1", ["g"])))
    groups.install(view_of(ConfigurationKind.TRANSITIONAL, ConfigurationId(6, ME), (ME,), (ME,)))
    (announce,) = groups.install(view_of(ConfigurationKind.REGULAR, RING, (ME, OTHER), (ME,)))
    assert isinstance(announce, Announce)
    empty = encode_head(Head(Kind.GROUPS, "n2", ())) + b"\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0\x01\x01"
    give(groups, parcel_of(1, ME, *announce.payloads))
    give(groups, parcel_of(2, OTHER, empty))
    assert groups.is_steady
    return groups


def give(groups: Groups, *parcels: Parcel) -> list[Output]:
    return groups.deliver(Deliver(RING, RING, list(parcels)))


def heard(outputs: list[Output]) -> list[tuple[int, str]]:
    return [(session, text_of(item)) for session, item in heard_in(outputs)]


# Clients


def test_a_client_is_called_after_its_daemon_from_connecting_to_disconnection() -> None:
    groups = started()
    assert groups.connect("alice", 5) == "alice@n1"
    assert groups.is_connected("alice@n1") and not groups.is_connected("bob@n1")
    give(groups, parcel_of(9, ME, disconnect_payload("alice@n1")))
    assert not groups.is_connected("alice@n1")


def test_a_name_in_use_is_refused_until_the_disconnection_is_ordered() -> None:
    groups = started()
    groups.connect("alice", 5)
    with pytest.raises(UsageError) as caught:
        groups.connect("alice", 6)
    assert str(caught.value) == "the name 'alice' is in use at n1: choose another, or wait until it is free"
    give(groups, parcel_of(9, ME, disconnect_payload("alice@n1")))
    assert groups.connect("alice", 6) == "alice@n1"


def test_a_bad_name_is_refused() -> None:
    with pytest.raises(UsageError, match="the client name 'a b' has ' ' in it"):
        started().connect("a b", 5)


@pytest.mark.parametrize("daemon", ["", "höhle", "two words", "a@b", "d" * 65])
def test_a_daemon_whose_name_cannot_travel_is_refused_at_once(daemon: str) -> None:
    """Otherwise nobody could read its snapshots, and every merge would wait for them for ever."""
    with pytest.raises(UsageError, match="daemon name"):
        Groups(ME, daemon)


def test_only_its_own_daemon_disconnects_a_client() -> None:
    groups = started("alice")
    give(groups, parcel_of(9, OTHER, disconnect_payload("alice@n1")))
    assert groups.is_connected("alice@n1")
    assert groups.table.members_of("g") == ("alice@n1",)


# Routes


def test_messages_with_one_head_in_a_row_are_one_run_in_columns() -> None:
    groups = started("alice", "carol")
    payloads = [HEAD + text for text in (b"x", b"y", b"z", b"")]
    (run,) = give(groups, parcel_of(5, OTHER, *payloads, packets=2, service=Service.SAFE))
    assert run == MessageRun((1, 2), HEAD, Places(RING, 5, 0, 2, 0), (5, 5, 5, 5), tuple(payloads))
    assert isinstance(run, MessageRun)
    assert [(m.position.number, m.position.slot, m.data) for m in messages_of(run)] == [
        (5, 0, b"x"),
        (5, 1, b"y"),
        (6, 0, b"z"),
        (6, 1, b""),
    ]


def test_another_head_begins_another_run_and_positions_go_on() -> None:
    groups = started("alice")
    other = data_head("d@n2", ("g",))
    runs = give(groups, parcel_of(5, OTHER, HEAD + b"1", HEAD + b"2", other + b"3", HEAD + b"4", packets=2))
    positions = [
        (message.data, message.position.number, message.position.slot)
        for run in runs
        if isinstance(run, MessageRun)
        for message in messages_of(run)
    ]
    assert len(runs) == 3
    assert positions == [(b"1", 5, 0), (b"2", 5, 1), (b"3", 6, 0), (b"4", 6, 1)]


def test_a_message_for_nobody_here_makes_no_run() -> None:
    groups = started("alice")
    nobody = data_head("b@n2", ("h",))
    assert give(groups, parcel_of(5, OTHER, nobody + b"1", nobody + b"2")) == []
    assert give(groups, parcel_of(6, OTHER, nobody + b"3")) == []


def test_a_message_to_several_groups_comes_once_to_each_client() -> None:
    groups = started("alice", "carol")
    give(groups, parcel_of(5, ME, join_payload("alice@n1", ["h"])))
    head = data_head("b@n2", ("h", "g", "alice@n1"))
    assert heard(give(groups, parcel_of(6, OTHER, head + b"once"))) == [(1, "once"), (2, "once")]


def test_sessions_are_in_the_order_of_their_numbers() -> None:
    groups = started()
    for seq, session in enumerate((8, 1, 16), 5):
        groups.connect(f"c{session}", session)
        give(groups, parcel_of(seq, ME, join_payload(f"c{session}@n1", ["g"])))
    (run,) = give(groups, parcel_of(9, OTHER, HEAD + b"m"))
    assert isinstance(run, MessageRun) and run.sessions == (1, 8, 16)


def test_a_message_to_a_client_comes_to_it_alone() -> None:
    groups = started("alice", "carol")
    head = data_head("b@n2", ("carol@n1", "dora@n2"))
    assert heard(give(groups, parcel_of(5, OTHER, head + b"psst"))) == [(2, "psst")]


def test_a_client_that_connects_is_found_by_messages_that_found_nobody_before() -> None:
    groups = started()
    head = data_head("b@n2", ("alice@n1",))
    assert give(groups, parcel_of(5, OTHER, head + b"too early")) == []
    groups.connect("alice", 5)
    assert heard(give(groups, parcel_of(6, OTHER, head + b"hello"))) == [(5, "hello")]


def test_a_route_is_forgotten_when_somebody_joins_or_leaves() -> None:
    groups = started("alice")
    groups.connect("carol", 2)
    said = HEAD + b"m"
    join, leave = join_payload("carol@n1", ["g"]), leave_payload("alice@n1", ["g"])
    outputs = give(groups, parcel_of(5, OTHER, said), parcel_of(6, ME, join), parcel_of(7, OTHER, said))
    assert [text for text in heard(outputs) if text[1] == "m"] == [(1, "m"), (1, "m"), (2, "m")]
    outputs = give(groups, parcel_of(8, ME, leave), parcel_of(9, OTHER, said), parcel_of(10, ME, said))
    assert [text for text in heard(outputs) if text[1] == "m"] == [(2, "m"), (2, "m")]


def test_a_sender_may_do_without_its_own_message() -> None:
    groups = started("alice", "carol")
    head = data_head("alice@n1", ("g",), self_discard=True)
    assert heard(give(groups, parcel_of(5, ME, head + b"m"))) == [(2, "m")]
    assert heard(give(groups, parcel_of(6, OTHER, head + b"m"))) == [(1, "m"), (2, "m")], (
        "not its own: another daemon's"
    )


def test_a_sender_may_ask_for_the_places_of_its_messages() -> None:
    groups = started("alice", "carol")
    head = data_head("carol@n1", ("g",), confirm=True)
    run, confirmed = give(groups, parcel_of(5, ME, head + b"1", head + b"2"))
    assert isinstance(run, MessageRun) and run.sessions == (1, 2)
    assert confirmed == Confirmed(2, run)
    nobody = data_head("carol@n1", ("nobody",), confirm=True)
    (confirmed,) = give(groups, parcel_of(6, ME, nobody + b"3"))
    assert isinstance(confirmed, Confirmed) and confirmed.session == 2
    assert [message.position.number for message in messages_of(confirmed.run)] == [6]
    (run,) = give(groups, parcel_of(7, OTHER, head + b"4"))
    assert isinstance(run, MessageRun), "another daemon confirms its own"
    (run,) = give(groups, parcel_of(8, ME, data_head("carol@n1", ("g",)) + b"5"))
    assert isinstance(run, MessageRun), "it has not asked"


def test_more_heads_than_are_remembered_are_routed_all_the_same() -> None:
    groups = started("alice")
    heads = [data_head(f"{number}@n2", ("g",)) for number in range(ROUTES_MAX + 2)]
    outputs = give(groups, parcel_of(5, OTHER, *(head + b"m" for head in heads)))
    assert heard(outputs) == [(1, "m")] * len(heads)


# Messages that are kept


def gathering(*clients: str) -> tuple[Groups, list[bytes]]:
    """As `started`, with the other daemon's snapshot missing; and that snapshot."""
    groups = started(*clients)
    groups.install(view_of(ConfigurationKind.TRANSITIONAL, ConfigurationId(10, ME), (ME,), (ME,)))
    (announce,) = groups.install(view_of(ConfigurationKind.REGULAR, NEXT, (ME, OTHER), (ME,)))
    assert isinstance(announce, Announce)
    groups.deliver(Deliver(NEXT, NEXT, [parcel_of(1, ME, *announce.payloads)]))
    head = encode_head(Head(Kind.GROUPS, "n2", ()))
    return groups, [head + piece for piece in encode_snapshot(NEXT, {})]


def test_what_is_kept_comes_in_the_runs_in_which_it_was_ordered() -> None:
    groups, snapshot = gathering("alice", "carol")
    payloads = tuple(HEAD + text for text in (b"x", b"y", b"z", b""))
    kept = Deliver(NEXT, NEXT, [parcel_of(5, OTHER, *payloads, packets=2, service=Service.SAFE)])
    assert groups.deliver(kept) == []
    runs = groups.deliver(Deliver(NEXT, NEXT, [parcel_of(9, OTHER, *snapshot)]))
    assert runs == [MessageRun((1, 2), HEAD, Places(NEXT, 5, 0, 2, 0), (5, 5, 5, 5), payloads)]


def test_a_snapshot_among_other_messages_cuts_them_at_its_place_and_the_rest_is_not_kept() -> None:
    groups, snapshot = gathering("alice")
    before, behind = [HEAD + b"1", HEAD + b"2", HEAD + b"3"], [HEAD + b"4", HEAD + b"5"]
    parcel = parcel_of(5, OTHER, *before, *snapshot, *behind, packets=2)
    one, two = groups.deliver(Deliver(NEXT, NEXT, [parcel]))
    assert one == MessageRun((1,), HEAD, Places(NEXT, 5, 0, 3, 0), (4, 4, 4), tuple(before))
    assert two == MessageRun((1,), HEAD, Places(NEXT, 5, 0, 3, 4), (4, 4), tuple(behind))
    assert isinstance(two, MessageRun)
    assert [(message.position.number, message.position.slot) for message in messages_of(two)] == [(6, 1), (6, 2)]


def test_what_is_kept_in_an_exchange_that_is_given_up_comes_in_runs_without_the_joins_of_strangers() -> None:
    groups, _ = gathering("alice")
    payloads = [HEAD + b"1", HEAD + b"2", join_payload("b@n2", ["g"]), HEAD + b"3", b"\0\x07\x01\0\x01\xe9\0"]
    groups.deliver(Deliver(NEXT, NEXT, [parcel_of(5, OTHER, *payloads)]))
    groups.install(view_of(ConfigurationKind.TRANSITIONAL, ConfigurationId(14, ME), (ME,), (ME,)))
    *outputs, announce = groups.install(view_of(ConfigurationKind.REGULAR, ConfigurationId(16, ME), (ME,), (ME,)))
    assert isinstance(announce, Announce)
    assert [(run.places.first, len(run.payloads)) for run in outputs if isinstance(run, MessageRun)] == [(0, 2), (3, 1)]
    assert outputs[2:] == [PassedOver(OTHER, "a group message whose head is wrong")]
    assert groups.malformed == 1


def test_a_join_of_a_daemon_that_was_never_met_is_not_even_a_bad_message_in_an_exchange_that_is_given_up() -> None:
    groups, new = started("alice"), ProcessId(9)
    groups.install(view_of(ConfigurationKind.TRANSITIONAL, ConfigurationId(10, ME), (ME, OTHER), (ME, OTHER)))
    groups.install(view_of(ConfigurationKind.REGULAR, NEXT, (ME, OTHER, new), (ME, OTHER)))
    groups.deliver(Deliver(NEXT, NEXT, [parcel_of(5, new, join_payload("x@n9", ["g"]))]))
    groups.install(view_of(ConfigurationKind.TRANSITIONAL, ConfigurationId(14, ME), (ME,), (ME,)))
    outputs = groups.install(view_of(ConfigurationKind.REGULAR, ConfigurationId(16, ME), (ME,), (ME,)))
    assert not any(isinstance(output, PassedOver) for output in outputs) and groups.malformed == 0
    assert groups.table.members_of("g") == ("alice@n1",)


# Bad messages


@pytest.mark.parametrize("bad", [b"", b"\0", b"\xff\xff", b"\0\x07\x09\0\x01a\0", b"\0\x07\0\0\x01\xe9\0"])
def test_a_message_that_cannot_be_read_is_counted_and_passed_over(bad: bytes) -> None:
    groups = started("alice")
    assert heard(give(groups, parcel_of(5, OTHER, HEAD + b"1", bad, HEAD + b"2"))) == [(1, "1"), (1, "2")]
    assert groups.malformed == 1


def test_a_snapshot_that_cannot_be_read_is_counted() -> None:
    stage = Stage("n1", "n2")
    stage.form("n1", "n2")
    stage.order("n2", encode_head(Head(Kind.GROUPS, "n2", ())) + b"short")
    assert stage["n1"].malformed == stage["n2"].malformed == 1
    stage.exchange("n1", "n2")
    assert stage["n1"].is_steady


@pytest.mark.parametrize("ask", [join_payload, leave_payload, lambda full, groups: disconnect_payload(full)])
def test_a_daemon_that_speaks_for_the_clients_of_another_is_ignored_by_all_alike(
    ask: Callable[[str, list[str]], bytes],
) -> None:
    stage = Stage("n1", "n2")
    stage.together("n1", "n2")
    stage.join("a@n1", "g")
    stage.join("b@n2", "g")
    stage.forget()
    for victim in ("a@n1", "ghost@n1", "x@n3"):
        stage.order("n2", ask(victim, ["g"]))
    assert stage.told("a@n1") == []
    for daemon in ("n1", "n2"):
        assert stage[daemon].malformed == 3
        assert stage[daemon].table.members_of("g") == ("a@n1", "b@n2")


def test_a_daemon_speaks_for_its_own_clients_after_others_are_gone_and_after_they_are_back() -> None:
    stage = Stage("n1", "n2", "n3")
    stage.together("n1", "n2", "n3")
    stage.end("n1", "n2")
    stage.join("a@n1", "g", to=("n1", "n2"))
    stage.form("n1", "n2")
    stage.join("b@n2", "g", to=("n1", "n2"))
    stage.order("n2", join_payload("ghost@n3", ["g"]), to=("n1", "n2"))
    assert stage["n1"].table.members_of("g") == ("a@n1", "b@n2")
    assert stage["n1"].malformed == stage["n2"].malformed == 1


def test_a_daemon_that_calls_itself_otherwise_in_the_middle_of_a_snapshot_is_not_believed() -> None:
    groups, _ = gathering("alice")
    part = encode_head(Head(Kind.GROUPS, "n2", ())) + encode_snapshot(NEXT, {"g": ["b@n2"]})[0][:16] + b"\0"
    renamed = encode_head(Head(Kind.GROUPS, "n9", ())) + encode_snapshot(NEXT, {"g": ["b@n9"]})[0]
    outputs = groups.deliver(Deliver(NEXT, NEXT, [parcel_of(5, OTHER, part), parcel_of(6, OTHER, renamed)]))
    assert outputs == [PassedOver(OTHER, "a snapshot of groups that is wrong")]
    assert not groups.is_steady


def test_a_snapshot_in_steady_times_changes_nothing() -> None:
    stage = Stage("n1", "n2")
    stage.join("a@n1", "g")
    stage.form("n1", "n2")
    payloads = list(stage.daemons["n1"].announced)
    stage.exchange("n1", "n2")
    stage.forget()
    stage.leave("a@n1", "g")
    stage.order("n1", *payloads)
    assert stage.members("g") == ["", ""]


# Twins


def test_a_node_list_is_taken_from_the_daemon_that_says_it_in_its_own_name() -> None:
    groups, roster = started(), Roster(3, (), is_ordered=True)
    assert give(groups, parcel_of(5, OTHER, roster_payload("n2", roster))) == [Relisted(roster)]
    (output,) = give(groups, parcel_of(6, OTHER, roster_payload("n1", roster)))
    assert isinstance(output, PassedOver) and groups.malformed == 1


def snapshot_of(daemon: str, told: dict[str, list[str]], ring: ConfigurationId) -> bytes:
    (piece,) = encode_snapshot(ring, told)
    return encode_head(Head(Kind.GROUPS, daemon, ())) + piece


def met(groups: Groups, ring: ConfigurationId, *daemons: tuple[ProcessId, str]) -> list[Output]:
    """This daemon and these have come together; what the last snapshot brings."""
    before = ConfigurationId(ring.seq - 2, ME)
    groups.install(view_of(ConfigurationKind.TRANSITIONAL, before, (ME,), (ME,)))
    (announce,) = groups.install(
        view_of(ConfigurationKind.REGULAR, ring, (ME, *(process for process, _ in daemons)), (ME,))
    )
    assert isinstance(announce, Announce)
    theirs = [parcel_of(9, process, snapshot_of(name, {}, ring)) for process, name in daemons]
    return groups.deliver(Deliver(ring, ring, [parcel_of(1, ME, *announce.payloads), *theirs]))


def test_daemons_of_one_name_are_told_once_while_they_are_together() -> None:
    groups = started()
    twin = (process_id_from(NodeId(4), Incarnation(1)), "n1")
    other = (process_id_from(NodeId(5), Incarnation(1)), "n5")
    (warned,) = met(groups, ConfigurationId(12, ME), twin, other)
    assert isinstance(warned, Warned)
    assert warned.text == (
        "2 processes are called n1: n0'1 and n4. Clients of one name there take each other's places in groups, and "
        "their joins may never return: give each daemon a name of its own"
    ).replace("n0'1", process_text(ME))
    assert met(groups, ConfigurationId(16, ME), twin, other) == [], "known already"
    assert met(groups, ConfigurationId(20, ME), other) == []
    assert met(groups, ConfigurationId(24, ME), twin) == [warned], "they had parted"


def test_a_daemon_of_the_same_name_does_not_end_the_session_of_a_client_here() -> None:
    groups, twin = started("alice"), ProcessId(9)
    met(groups, NEXT, (twin, "n1"))
    groups.deliver(Deliver(NEXT, NEXT, [parcel_of(20, twin, disconnect_payload("alice@n1"))]))
    assert groups.is_connected("alice@n1")


def alone(me: ProcessId, name: str) -> Groups:
    """A daemon by itself, with a client a in g."""
    groups, ring = Groups(me, name), ConfigurationId(4, me)
    groups.install(view_of(ConfigurationKind.REGULAR, ring, (me,), (me,)))
    groups.connect("a", 1)
    groups.deliver(Deliver(ring, ring, [parcel_of(1, me, join_payload(f"a@{name}", ["g"]))]))
    return groups


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1)], ids=["in their order", "the last first"])
def test_all_daemons_decide_alike_whose_client_stays_of_two_with_one_name(order: tuple[int, ...]) -> None:
    """Two daemons of one name, and a third, whichever snapshot comes first: the lower one's client has the name."""
    daemons = {ProcessId(1): alone(ME, "other"), ProcessId(2): alone(OTHER, "twin")}
    daemons[ProcessId(3)] = alone(ProcessId(3), "twin")
    told: dict[ProcessId, tuple[bytes, ...]] = {}
    for me, groups in daemons.items():
        groups.install(view_of(ConfigurationKind.TRANSITIONAL, ConfigurationId(6, me), (me,), (me,)))
        (announce,) = groups.install(view_of(ConfigurationKind.REGULAR, NEXT, tuple(daemons), (me,)))
        assert isinstance(announce, Announce)
        told[me] = tuple(announce.payloads)
    parcels = [parcel_of(seq, ProcessId(daemon), *told[ProcessId(daemon)]) for seq, daemon in enumerate(order, 1)]
    outputs = {me: groups.deliver(Deliver(NEXT, NEXT, list(parcels))) for me, groups in daemons.items()}
    assert {groups.table.members_of("g") for groups in daemons.values()} == {("a@other", "a@twin")}
    assert {groups.table.joined_by("a@twin", OTHER) for groups in daemons.values()} == {("g",)}
    assert [(1, "left g") in heard(outputs[me]) for me in daemons] == [False, False, True]


def test_daemons_with_names_of_their_own_are_nothing_to_warn_of() -> None:
    assert met(started(), ConfigurationId(12, ME), (OTHER, "n2"), (ProcessId(3), "n3")) == []


def joining(groups: Groups, ring: ConfigurationId, daemon: ProcessId, member: str) -> list[Output]:
    return groups.deliver(Deliver(ring, ring, [parcel_of(20, daemon, join_payload(member, ["g"]))]))


def test_what_a_daemon_had_sent_before_it_left_concerns_nobody_until_it_is_back() -> None:
    groups = started("alice")
    groups.install(view_of(ConfigurationKind.TRANSITIONAL, ConfigurationId(10, ME), (ME,), (ME,)))
    groups.install(view_of(ConfigurationKind.REGULAR, NEXT, (ME,), (ME,)))
    assert joining(groups, NEXT, OTHER, "b@n2") == [] and groups.malformed == 0
    assert joining(groups, NEXT, ProcessId(9), "x@n9") and groups.malformed == 1, "a stranger is another matter"
    assert groups.table.members_of("g") == ("alice@n1",)
    met(groups, ConfigurationId(16, ME), (OTHER, "n2"))
    joining(groups, ConfigurationId(16, ME), OTHER, "b@n2")
    assert groups.table.members_of("g") == ("alice@n1", "b@n2")


# Snapshots


def test_a_daemon_with_many_clients_announces_several_pieces_and_all_are_awaited() -> None:
    stage = Stage("n1", "n2")
    clients = [f"{number:032}@n1" for number in range(1_500)]
    for client in clients:
        stage.join(client, "g")
    stage.form("n1", "n2")
    announced = list(stage.daemons["n1"].announced)
    assert len(announced) == 2
    assert all(len(payload) < PIECE_SIZE_MAX + 100 for payload in announced)
    stage.exchange("n2")
    stage.order("n1", announced[0])
    assert not stage["n2"].is_steady, "the last piece is missing"
    stage.order("n1", announced[1])
    assert stage["n2"].table.members_of("g") == stage["n1"].table.members_of("g") == tuple(clients)


def test_a_snapshot_has_what_was_known_when_the_configuration_came() -> None:
    stage = Stage("n1", "n2")
    stage.join("a@n1", "g")
    ring = stage.form("n1", "n2")
    stage.join("c@n1", "g")
    (payload,) = stage.daemons["n1"].announced
    head = encode_head(Head(Kind.GROUPS, "n1", ()))
    assert payload.startswith(head)
    assert decode_snapshot(payload[len(head) :], "n1") == (ring, True, {"g": ["a@n1"]}, set())


def test_clients_are_asked_to_wait_while_snapshots_are_awaited() -> None:
    stage = Stage("n1", "n2")
    steady = [stage["n1"].is_steady]
    stage.form("n1", "n2")
    steady.append(stage["n1"].is_steady)
    stage.exchange("n1")
    steady.append(stage["n1"].is_steady)
    stage.exchange("n2")
    steady.append(stage["n1"].is_steady)
    assert steady == [True, False, False, True]


def test_early_messages_of_a_weaker_service_do_not_wait_for_snapshots() -> None:
    stage = Stage("n1", "n2")
    stage.join("a@n1", "g")
    ring = stage.form("n1", "n2")
    parcel = parcel_of(1, OTHER, data_head("b@n2", ("g",)) + b"early", service=Service.FIFO)
    outputs = stage["n1"].deliver(Deliver(ring, ring, [parcel], ordered=False))
    assert heard(outputs) == [(1, "early")]


def test_a_regular_configuration_that_follows_no_transitional_one_is_our_own_mistake() -> None:
    stage = Stage("n1", "n2")
    stage.form("n1", "n2")
    with pytest.raises(AssertionError, match="a regular configuration follows a transitional one"):
        stage["n1"].install(view_of(ConfigurationKind.REGULAR, ConfigurationId(99, ME), (ME,), (ME,)))


def test_news_and_messages_are_put_out_in_the_order_of_the_stream() -> None:
    groups = started("alice")
    join = join_payload("b@n2", ["g"])
    kinds = [type(output) for output in give(groups, parcel_of(5, OTHER, HEAD + b"1", join, HEAD + b"2"))]
    assert kinds == [MessageRun, Notice, MessageRun]


# What the engine should bring here


def changes(outputs: list[Output]) -> list[Changed]:
    return [output for output in outputs if isinstance(output, Changed)]


def test_changes_of_own_clients_are_told_with_their_groups_when_they_come() -> None:
    groups = started("a")
    assert changes(give(groups, parcel_of(3, ME, join_payload("a@n1", ("h", "i"))))) == [Changed(("h", "i"), True)]
    assert changes(give(groups, parcel_of(4, OTHER, join_payload("b@n2", ("h",))))) == []
    assert changes(give(groups, parcel_of(5, ME, leave_payload("a@n1", ("h",))))) == [Changed(("h",), False)]
    assert changes(give(groups, parcel_of(6, ME, disconnect_payload("a@n1")))) == [Changed(("g", "i"), False)]


def test_a_client_whose_name_another_daemon_takes_leaves_its_groups() -> None:
    groups = started("a")
    groups.install(view_of(ConfigurationKind.TRANSITIONAL, ConfigurationId(10, ME), (ME,), (ME,)))
    (announce,) = groups.install(view_of(ConfigurationKind.REGULAR, NEXT, (ProcessId(0), ME), (ME,)))
    assert isinstance(announce, Announce)
    (twin,) = encode_snapshot(NEXT, {"g": ["a@n1"]})
    payloads = (encode_head(Head(Kind.GROUPS, "n1", ())) + twin,)
    groups.deliver(Deliver(NEXT, NEXT, [parcel_of(1, ME, *announce.payloads)]))
    outputs = groups.deliver(Deliver(NEXT, NEXT, [parcel_of(2, ProcessId(0), *payloads)]))
    assert changes(outputs) == [Changed(("g",), False)]


def test_who_comes_with_another_daemon_changes_nothing_of_the_clients_here() -> None:
    groups, _ = gathering("a")
    outputs = groups.deliver(Deliver(NEXT, NEXT, [parcel_of(9, OTHER, snapshot_of("n2", {"g": ["b@n2"]}, NEXT))]))
    assert groups.table.members_of("g") == ("a@n1", "b@n2") and heard(outputs)
    assert changes(outputs) == []


# Early delivery


def early(groups: Groups, *payloads: bytes, service: Service = Service.RELIABLE) -> list[Output]:
    parcel = parcel_of(9, OTHER, *payloads, service=service)
    return groups.deliver(Deliver(NEXT, NEXT, [parcel], ordered=False))


def test_early_messages_pass_while_snapshots_are_awaited_and_ordered_ones_wait() -> None:
    groups = started("a")
    groups.install(view_of(ConfigurationKind.TRANSITIONAL, ConfigurationId(10, ME), (ME,), (ME,)))
    assert heard(early(groups, HEAD + b"in between")) == [(1, "in between")]
    groups.install(view_of(ConfigurationKind.REGULAR, NEXT, (ME, OTHER), (ME,)))
    assert not groups.is_steady
    kept = groups.deliver(Deliver(NEXT, NEXT, [parcel_of(1, OTHER, HEAD + b"later")]))
    assert (heard(kept), heard(early(groups, HEAD + b"now"))) == ([], [(1, "now")])


def test_an_early_message_that_is_fifo_waits_behind_what_its_daemon_sent_before() -> None:
    groups, snapshot = gathering("a")
    assert heard(early(groups, HEAD + b"0", service=Service.FIFO)) == [(1, "0")]
    groups.deliver(Deliver(NEXT, NEXT, [parcel_of(5, OTHER, HEAD + b"1")]))
    assert heard(early(groups, HEAD + b"2", service=Service.FIFO)) == []
    assert heard(early(groups, HEAD + b"reliable")) == [(1, "reliable")]
    outputs = groups.deliver(Deliver(NEXT, NEXT, [parcel_of(10, OTHER, *snapshot)]))
    assert heard(outputs) == [(1, "1"), (1, "2")]


def test_a_change_of_groups_that_comes_early_is_passed_over() -> None:
    groups = started("a")
    (output,) = early(groups, leave_payload("b@n2", ("g",)))
    assert output == PassedOver(OTHER, "a change of groups that came out of order")
