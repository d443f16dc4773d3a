"""The layer survives any payloads in any state, and how the stream is cut into batches makes no difference."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.groups.envelope import Head, Kind, decode_head, encode_head, head_bytes_of
from ordercast.groups.layer import Groups, data_head, disconnect_payload, join_payload, leave_payload
from ordercast.groups.snapshot import decode_snapshot, encode_snapshot
from ordercast.model.configuration import ConfigurationKind
from ordercast.model.effects import Deliver, Parcel
from ordercast.model.errors import WireError
from ordercast.model.events import Left, Message, Reason, View, ViewId
from ordercast.model.ids import ConfigurationId, Position, ProcessId, Seq
from ordercast.model.service import Service
from tests.property_sizes import scaled
from tests.unit.groups.stage import Heard, Stage, heard_in, parcel_of, view_of

from .group_strategies import any_payloads

ME, OTHER, THIRD = ProcessId(1), ProcessId(2), ProcessId(3)
RING, TRANSITIONAL, NEXT = ConfigurationId(8, ME), ConfigurationId(10, ME), ConfigurationId(12, ME)
AGREED = int(Service.AGREED)
HERE = {"a@n1": 1, "b@n1": 2}
NOISE = (b"", b"\0\7noise")

# Noise


def _stage(state: str) -> Stage:
    """Three daemons; n1 and n2 were together. a, b, c are in g. In the last two states n3's snapshot is missing."""
    stage = Stage("n1", "n2", "n3")
    stage.together("n1", "n2")
    for client in ("a@n1", "b@n2", "c@n3"):
        stage.join(client, "g")
    stage.form("n1", "n2", "n3")
    if state in ("steady", "transitional"):
        stage.exchange("n1", "n2", "n3")
    else:
        stage.exchange("n1", "n2")
    if state in ("transitional", "interrupted"):
        stage.end("n1", "n2")
    stage.forget()
    return stage


def _live_on(stage: Stage, state: str) -> list[list[str]]:
    if state in ("gathering", "interrupted"):
        stage.exchange("n3", to=("n1", "n2", "n3") if state == "gathering" else ("n1", "n2"))
    stage.send("b@n2", ["g"], "after", to=("n1", "n2"))
    stage.form("n1", "n2")
    stage.exchange("n1", "n2")
    return [stage.told(client) for client in ("a@n1", "b@n2")]


def _can_be_read(payload: bytes) -> bool:
    with suppress(WireError):
        head = head_bytes_of(payload)
        read = decode_head(head)
        if read.kind is Kind.GROUPS:
            decode_snapshot(payload[len(head) :], read.sender)
        return True
    return False


payloads = st.lists(
    st.tuples(st.sampled_from(["n1", "n2"]), any_payloads(ConfigurationId(20, ME))), min_size=1, max_size=5
)
states = pytest.mark.parametrize("state", ["steady", "transitional", "gathering", "interrupted"])


@states
@given(payloads)
def test_any_payloads_are_survived_and_leave_all_alike(state: str, drawn: list[tuple[str, bytes]]) -> None:
    stage = _stage(state)
    for daemon, payload in drawn:
        stage.order(daemon, payload, to=("n1", "n2"))
    _live_on(stage, state)
    one, two = stage["n1"].table, stage["n2"].table
    assert one.groups() == two.groups()
    assert all(one.members_of(group) == two.members_of(group) for group in one.groups())


@states
@given(payloads)
def test_payloads_that_cannot_be_read_are_counted_and_change_nothing(
    state: str, drawn: list[tuple[str, bytes]]
) -> None:
    noise = [(daemon, payload) for daemon, payload in drawn if not _can_be_read(payload)]
    stage = _stage(state)
    assert stage.daemons["n1"].ring == ConfigurationId(20, ME)
    for daemon, payload in noise:
        stage.order(daemon, payload, to=("n1", "n2"))
    assert [stage.told(client) for client in ("a@n1", "b@n2", "c@n3")] == [[], [], []]
    assert _live_on(stage, state) == _expected(state)
    if state in ("gathering", "interrupted"):
        assert stage["n1"].malformed == stage["n2"].malformed == len(noise)


@cache
def _expected(state: str) -> list[list[str]]:
    return _live_on(_stage(state), state)


# Batches


class Packet(NamedTuple):
    originator: ProcessId
    payloads: tuple[bytes, ...]


def _payloads(originator: ProcessId, *names: str) -> list[bytes]:
    """What clients of this daemon may have said; half of it messages."""
    targets = [("g",), ("h",), ("g", "h"), ("a@n1",), ("b@n1", "g"), ("nobody",)]
    data = [data_head(name, to) + body for name in names for to in targets for body in (b"", b"1", b"22")]
    control = [
        ask(name, groups) for name in names for ask in (join_payload, leave_payload) for groups in ("g", "h", "gh")
    ]
    if originator != ME:
        control += map(disconnect_payload, names)
    return [*data, *control * (len(data) // len(control)), *NOISE]


PACKETS = [
    st.builds(Packet, st.just(originator), st.lists(st.sampled_from(said), min_size=1, max_size=3).map(tuple))
    for originator, said in (
        (ME, _payloads(ME, *HERE)),
        (OTHER, _payloads(OTHER, "c@n2", "d@n2")),
        (THIRD, _payloads(THIRD, "e@n3")),
    )
]
streams = st.lists(st.one_of(PACKETS), max_size=14)


def _started(*, is_gathering: bool) -> Groups:
    """a is in g, with b connected, and n2 has c in g."""
    groups = Groups(ME, "n1")
    groups.install(view_of(ConfigurationKind.REGULAR, ConfigurationId(4, ME), (ME,), (ME,)))
    for full, session in HERE.items():
        groups.connect(full.partition("@")[0], session)
    groups.deliver(
        Deliver(ConfigurationId(4, ME), ConfigurationId(4, ME), [parcel_of(1, ME, join_payload("a@n1", ["g"]))])
    )
    groups.install(view_of(ConfigurationKind.TRANSITIONAL, ConfigurationId(6, ME), (ME,), (ME,)))
    groups.install(view_of(ConfigurationKind.REGULAR, RING, (ME, OTHER, THIRD), (ME,)))
    if not is_gathering:
        parcels = [parcel_of(seq, packet.originator, *packet.payloads) for seq, packet in enumerate(SNAPSHOTS, 1)]
        groups.deliver(Deliver(RING, RING, parcels))
    return groups


SNAPSHOTS = [
    Packet(process, (encode_head(Head(Kind.GROUPS, name, ())) + encode_snapshot(RING, told)[0],))
    for process, name, told in ((ME, "n1", {"g": ["a@n1"]}), (OTHER, "n2", {"g": ["c@n2"]}), (THIRD, "n3", {}))
]


def _parcels(packets: Sequence[Packet], seq: int) -> list[Parcel]:
    """Packets in a row from one process with equally many messages are one parcel, as engines give them."""
    parcels: list[Parcel] = []
    for number, packet in enumerate(packets, seq):
        payloads, each = packet.payloads, len(packet.payloads)
        if parcels and parcels[-1][1] == packet.originator and parcels[-1][5] == each:
            first, _, _, _, before, *_ = parcels.pop()
            payloads, number = (*before, *payloads), first
        count = len(payloads)
        parcels.append((number, packet.originator, (0,) * count, bytes([AGREED]) * count, payloads, each, 0))
    return parcels


def _fed(
    groups: Groups, packets: list[Packet], cuts: Sequence[int], first: int, view: ConfigurationId
) -> list[tuple[int, Heard]]:
    heard: list[tuple[int, Heard]] = []
    edges = sorted({0, len(packets), *(cut % (len(packets) + 1) for cut in cuts)})
    for start, end in pairwise(edges):
        outputs = groups.deliver(Deliver(view, RING, _parcels(packets[start:end], first + start)))
        heard += heard_in(outputs)
        groups.check_invariants()
    return heard


@settings(max_examples=scaled(80))
@given(streams, st.lists(st.integers(0, 20), max_size=5))
def test_any_batches_of_a_steady_stream_give_what_message_by_message_is_to_be_heard(
    stream: list[Packet], cuts: list[int]
) -> None:
    assert _fed(_started(is_gathering=False), stream, cuts, 4, RING) == Reference().fed(stream, 4)


@settings(max_examples=scaled(80))
@given(streams, st.permutations(SNAPSHOTS), st.lists(st.integers(0, 14), min_size=3, max_size=3), streams, st.data())
def test_any_batches_of_a_stream_with_snapshots_in_it_give_the_same(
    stream: list[Packet], snapshots: list[Packet], places: list[int], behind: list[Packet], data: st.DataObject
) -> None:
    """Also when the configuration ends before all snapshots are here, with the rest behind it."""
    for place, snapshot in zip(sorted(places, reverse=True), snapshots, strict=True):
        stream = [*stream[:place], snapshot, *stream[place:]]
    end = data.draw(st.integers(0, len(stream)))
    cuts = data.draw(st.lists(st.integers(0, 20), max_size=5))
    results = []
    for chosen in (cuts, [], list(range(40))):
        groups = _started(is_gathering=True)
        heard = _fed(groups, stream[:end], chosen, 1, RING)
        heard += heard_in(
            groups.install(view_of(ConfigurationKind.TRANSITIONAL, TRANSITIONAL, (ME, OTHER), (ME, OTHER)))
        )
        heard += _fed(groups, [*stream[end:], *behind], chosen, 1 + end, TRANSITIONAL)
        heard += heard_in(groups.install(view_of(ConfigurationKind.REGULAR, NEXT, (ME, OTHER), (ME, OTHER))))
        results.append(heard)
    assert results[0] == results[1] == results[2]


class Reference:
    """What the clients of n1 hear in steady times, said as simply as possible."""

    def __init__(self) -> None:
        self.members: dict[str, dict[str, ProcessId]] = {"g": {"a@n1": ME, "c@n2": OTHER}, "h": {}}

    def fed(self, stream: list[Packet], first: int) -> list[tuple[int, Heard]]:
        heard: list[tuple[int, Heard]] = []
        for seq, packet in enumerate(stream, first):
            for slot, payload in enumerate(packet.payloads):
                heard += self._message(packet.originator, payload, Seq(seq), slot)
        return heard

    def _message(self, originator: ProcessId, payload: bytes, seq: Seq, slot: int) -> list[tuple[int, Heard]]:
        size = int.from_bytes(payload[:2], "big")
        if payload in NOISE:
            return []
        _, who, *groups = _split(payload[3:size])
        return self._known(payload[2], originator, who, groups, payload[size:], (seq, slot))

    def _known(
        self, kind: int, daemon: ProcessId, who: str, groups: list[str], body: bytes, place: tuple[Seq, int]
    ) -> list[tuple[int, Heard]]:
        at = ViewId(RING, Position(RING, *place))
        if kind == 0:
            members = {name for group in groups for name in self.members.get(group, [group] if "@" in group else [])}
            message = Message(tuple(groups), who, body, Position(RING, *place), Service.AGREED)
            return [(HERE[name], message) for name in sorted(members & HERE.keys())]
        heard: list[tuple[int, Heard]] = []
        for group in sorted(self.members) if kind == 3 else groups:
            members_now = self.members[group]
            if kind == 1 and who not in members_now:
                before = tuple(sorted(members_now))
                members_now[who] = daemon
                after = tuple(sorted(members_now))
                heard += [
                    (HERE[n], View(group, after, before, Reason.JOIN, (who,), at)) for n in _here(members_now, who)
                ]
                if who in HERE:
                    heard.append((HERE[who], View(group, after, (who,), Reason.JOIN, (who,), at)))
            elif kind in (2, 3) and who in members_now:
                if kind == 2 and who in HERE:
                    heard.append((HERE[who], Left(group)))
                del members_now[who]
                after = tuple(sorted(members_now))
                reason = Reason.LEAVE if kind == 2 else Reason.DISCONNECT
                heard += [(HERE[n], View(group, after, after, reason, (who,), at)) for n in _here(members_now, who)]
        return heard


def _here(members: dict[str, ProcessId], but: str) -> list[str]:
    """In the order of their joining."""
    return [name for name in members if name in HERE and name != but]


def _split(data: bytes) -> list[str]:
    """The flags, the sender, the groups."""
    parts = [str(data[0])]
    at = 1
    while at < len(data):
        if len(parts) == 2:
            at += 1  # how many groups
            if at == len(data):
                break
        size = data[at]
        parts.append(data[at + 1 : at + 1 + size].decode())
        at += 1 + size
    return parts
