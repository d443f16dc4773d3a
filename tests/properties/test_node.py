"""Nothing that comes from the network makes a node raise: not noise, not real packets that were damaged on the way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.model.effects import Broadcast, Deliver, Delivered, Effect, Persist, SendTo
from ordercast.model.ids import NOBODY, ConfigurationId, Incarnation, Instant, NodeId, Seq
from ordercast.model.inputs import Packet, Submission
from ordercast.model.service import Service
from ordercast.order.membership.bounds import RING_SEQ_LEAP, RING_SEQ_MAX
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.node import RingNode
from ordercast.wire.codec import CONTROL, NUMBER_MAX, decode, encode
from ordercast.wire.head import KIND_AT, with_head
from ordercast.wire.header import DESCRIPTOR_SIZE, HEADER_SIZE, SAFE, Heading, MessageKind
from ordercast.wire.messages import Announcement, CommitToken, Join, Token, WireMessage
from ordercast.wire.run import build_data
from tests.property_sizes import scaled

from .cluster import CLUSTER, Cluster, Moment, moments
from .strategies import messages

AFTER = 6  # how many timers may fire after a bad packet


def _started() -> RingNode:
    node = RingNode(NodeId(1), RingConfig())
    node.start({}, Incarnation(1), Instant(0))
    node.persisted("configuration_seq", Instant(0))
    return node


def _receive(node: RingNode, packet: bytes, now: Instant) -> None:
    _store(node, node.receive([Packet(packet, len(packet))], now), now)


def _store(node: RingNode, effects: list[Effect], now: Instant) -> None:
    """A disk that is never late."""
    node.check_invariants()
    for effect in effects:
        if isinstance(effect, Persist):
            _store(node, node.persisted(effect.key, now), now)


def _live_on(node: RingNode, now: Instant) -> None:
    """The damage may show later: let some timers fire."""
    for _ in range(AFTER):
        deadline = node.next_deadline()
        if deadline is None:
            return
        now = max(now, deadline)
        _store(node, node.wake(now), now)


@given(st.lists(st.tuples(st.binary(max_size=300), st.integers(1, 300)), max_size=4))
def test_noise_is_survived(drawn: list[tuple[bytes, int]]) -> None:
    node = _started()
    node.receive([Packet(data, size) for data, size in drawn], Instant(1))
    _live_on(node, Instant(1))


@given(
    st.binary(max_size=120),
    st.one_of(st.sampled_from(MessageKind), st.integers(0, 255)),
    st.booleans(),
    st.integers(1, 200),
)
def test_noise_behind_a_good_head_is_survived(data: bytes, kind: int, own: bool, size: int) -> None:
    node = _started()
    ring = node.ring.id if own else ConfigurationId(8, node.process)
    is_data = kind == MessageKind.DATA
    told = Heading(CLUSTER, ring, (node.process,)).ring if is_data else CONTROL.pack(kind, *ring)
    node.receive([Packet(with_head(CLUSTER, node.process, told + data), size)], Instant(1))
    _live_on(node, Instant(1))


@given(st.lists(messages, min_size=1, max_size=4))
def test_any_well_formed_messages_are_survived(drawn: list[WireMessage]) -> None:
    node = _started()
    for message in drawn:
        _receive(node, encode(CLUSTER, message), Instant(1))
    _live_on(node, Instant(1))


@st.composite
def damaged(draw: st.DrawFn, moment: Moment) -> bytes:
    """One byte changed; or a stretch of it all zeros or all ones, as a whole field would be; or cut short."""
    packet = bytearray(moment.packet)
    at = draw(st.integers(28, len(packet) - 1))
    how = draw(st.sampled_from(("byte", "byte", "zeros", "ones", "cut")))
    if how == "byte":
        packet[at] = draw(st.integers(0, 255))
    elif how == "cut":
        del packet[at:]
    else:
        size = min(draw(st.sampled_from((1, 2, 4, 8))), len(packet) - at)
        packet[at : at + size] = (b"\0" if how == "zeros" else b"\xff") * size
    return bytes(packet)


@settings(max_examples=scaled(250))
@given(st.data())
def test_real_packets_damaged_on_the_way_are_survived_in_every_state(data: st.DataObject) -> None:
    moment = data.draw(st.sampled_from(moments()))
    packet = data.draw(damaged(moment))
    node = moment.copied()
    _receive(node, packet, moment.now)
    _receive(node, moment.packet, moment.now)
    if node.state_name != "Gone":
        node.submit([Submission(b"life goes on")], moment.now)
    _live_on(node, moment.now)


# Numbers at their ends: nothing is raised, and nothing is stored or said that others would refuse.


EXTREME = st.sampled_from(
    (0, 1, 1 << 16, 1 << 24, (1 << 24) + 1, 1 << 32, 1 << 33, RING_SEQ_MAX, RING_SEQ_MAX + 1, NUMBER_MAX)
)
SMALL_EXTREME = st.sampled_from((0, 1, 0xFFFF, 0xFFFFFFFF))


@st.composite
def poisoned(draw: st.DrawFn, message: WireMessage) -> WireMessage:
    """A control message with any of its numbers at an end of what it can be."""
    changes: dict[str, Any] = {}
    match message:
        case Token():
            for name in ("round", "token_seq", "timestamp"):
                changes[name] = draw(st.just(getattr(message, name)) | EXTREME)
            for name in ("retransmitted", "budget", "waiting"):
                changes[name] = draw(st.just(getattr(message, name)) | SMALL_EXTREME)
            changes["behind"] = draw(st.sampled_from((message.behind, 1, 0xFFFF)))
            changes["counted"] = (draw(SMALL_EXTREME), draw(SMALL_EXTREME), draw(st.sampled_from((0, 0xFFFF))))
            changes["seq"] = Seq(draw(st.sampled_from((message.seq, message.seq + 1, NUMBER_MAX))))
            changes["aru"] = Seq(draw(st.sampled_from((0, message.aru, changes["seq"]))))
            changes["aru_id"] = draw(st.sampled_from((message.aru_id, message.sender, NOBODY, NUMBER_MAX)))
            changes["exchanging"] = draw(st.booleans())
        case CommitToken():
            ring = message.ring
            changes["ring"] = ConfigurationId(draw(st.just(ring.seq) | EXTREME), ring.representative)
            changes["timestamp"] = draw(EXTREME)
            old = ConfigurationId(draw(EXTREME), ring.representative)
            members = [replace(member, old_aru=Seq(draw(EXTREME))) for member in message.members]
            changes["members"] = tuple(replace(member, old_ring=old) for member in members)
        case Join():
            changes = {"number": draw(EXTREME), "ring_seq": draw(EXTREME), "forwards": draw(SMALL_EXTREME)}
        case Announcement():
            changes = {"ring": ConfigurationId(draw(EXTREME), message.ring.representative)}
    return replace(message, **changes)


WITHOUT_NUMBERS = (MessageKind.DATA, MessageKind.PIECE)  # of rings and tokens


def _bounded(node: RingNode, before: int, effects: list[Effect]) -> None:
    """What is stored is not far above what was; what is sent can be read, and its numbers are within their bounds."""
    for effect in effects:
        if isinstance(effect, Persist):
            assert int.from_bytes(effect.value, "big") <= before + 3 * RING_SEQ_LEAP
        packets = effect.packets if isinstance(effect, Broadcast) else []
        packets = [effect.packet] if isinstance(effect, SendTo) else packets
        for packet in packets:
            if packet[KIND_AT] not in WITHOUT_NUMBERS:
                said = decode(packet, CLUSTER)
                assert not isinstance(said, Join) or said.ring_seq <= before + 3 * RING_SEQ_LEAP
                assert not isinstance(said, Token | CommitToken) or said.timestamp < NUMBER_MAX


@settings(max_examples=scaled(250))
@given(st.data())
def test_numbers_at_their_ends_are_survived_and_neither_stored_nor_sent_on(data: st.DataObject) -> None:
    moment = data.draw(
        st.sampled_from([moment for moment in moments() if moment.packet[KIND_AT] not in WITHOUT_NUMBERS])
    )
    message = data.draw(poisoned(decode(moment.packet, CLUSTER)))
    node, now = moment.copied(), moment.now
    before = node.ring.id.seq
    packets = (encode(CLUSTER, message), moment.packet)
    for packet in packets:
        effects = node.receive([Packet(packet, len(packet))], now)
        _bounded(node, before, effects)
        _store(node, effects, now)
    for _ in range(AFTER):
        now = max(now, node.next_deadline() or now)
        effects = node.wake(now)
        _bounded(node, before, effects)
        _store(node, effects, now)


SIZE = 120  # of every packet in a read of several: the network card cuts them evenly


@st.composite
def numbered(draw: st.DrawFn, node: RingNode) -> bytes:
    """A data packet that the ring may number next, or soon; some of them are another ring's, some are damaged."""
    ring = node.ring
    seq = Seq(max(1, ring.store.high + draw(st.integers(-1, 6))))
    size = SIZE - HEADER_SIZE - draw(st.sampled_from((DESCRIPTOR_SIZE, 2 * DESCRIPTOR_SIZE)))
    service = draw(st.sampled_from((Service.AGREED, Service.SAFE)))
    entries = [(1, size, int(service), f"{seq}".encode().ljust(size))]
    if size < SIZE - HEADER_SIZE - DESCRIPTOR_SIZE:
        entries.append((2, 0, int(service), b""))
    flags = SAFE if service is Service.SAFE else 0
    is_own = draw(st.integers(0, 9))
    heading = ring.heading if is_own else Heading(CLUSTER, ConfigurationId(4, node.process), ring.members)
    packet = build_data(heading, flags, entries, ring.members[-1], seq, 1, 1).packet(seq)
    return packet if draw(st.integers(0, 9)) else _changed(packet, HEADER_SIZE + 5, b"\xff")


def _held(node: RingNode) -> list[object]:
    """Each packet in the store, and what was understood of it."""
    return [(seq, run.packet(seq), run.is_safe, run.part) for seq, run in node.ring.store.held_after(Seq(0))]


def _waiting(node: RingNode, delivered: Seq) -> list[object]:
    """The messages of packets that were not delivered yet."""
    held = node.ring.store.held_after(delivered)
    parcels = [run.parcel_of(seq, seq) for seq, run in held if run.parcel is not None]
    return list(Deliver(node.ring.id, node.ring.id, parcels).messages())


def _deliveries(effects: list[Effect]) -> list[Delivered]:
    return [message for effect in effects if isinstance(effect, Deliver) for message in effect.messages()]


@given(st.data())
def test_packets_in_one_read_are_the_same_as_packets_one_by_one(data: st.DataObject) -> None:
    moment = data.draw(st.sampled_from(_moments_of("Operational: DATA of own ring")))
    drawn = data.draw(st.lists(numbered(moment.node), min_size=1, max_size=12))
    together, one_by_one = moment.copied(), moment.copied()
    effects = together.receive([Packet(memoryview(b"".join(drawn)), SIZE)], moment.now)
    single: list[Effect] = []
    for packet in drawn:
        single += one_by_one.receive([Packet(packet, SIZE)], moment.now)
    for node in (together, one_by_one):
        node.check_invariants()
    assert _deliveries(effects) == _deliveries(single)
    assert _held(together) == _held(one_by_one)
    delivered = max((message[0] for message in _deliveries(effects)), default=moment.node.ring.store.aru)
    assert _waiting(together, Seq(delivered)) == _waiting(one_by_one, Seq(delivered))
    assert together.ring.store.aru == one_by_one.ring.store.aru
    assert together.next_deadline() == one_by_one.next_deadline()


def test_the_real_packets_cover_every_state_and_every_kind() -> None:
    situations = {moment.situation for moment in moments()}
    assert {situation.partition(":")[0] for situation in situations} >= {"Operational", "Gather", "Commit", "Recovery"}
    for kind in MessageKind:
        assert any(f" {kind.name} " in situation for situation in situations), kind
    assert "Recovery: recovered DATA of another ring" in situations


# What the property above has found, one by one, and what it would need luck to find.

COMMIT_MEMBERS_AT, COMMIT_MEMBER_SIZE = 60, 41


def _moments_of(situation: str) -> list[Moment]:
    found = [moment for moment in moments() if moment.situation == situation]
    assert found
    return found


def _changed(packet: bytes, at: int, piece: bytes) -> bytes:
    return packet[:at] + piece + packet[at + len(piece) :]


def test_a_second_rotation_that_names_other_members_is_survived() -> None:
    for moment in _moments_of("Commit: COMMIT of another ring"):
        for at in range(COMMIT_MEMBERS_AT, len(moment.packet) - 8, COMMIT_MEMBER_SIZE):
            node = moment.copied()
            _receive(node, _changed(moment.packet, at, b"\x00\x63"), moment.now)
            _live_on(node, moment.now)


def test_a_second_rotation_that_tells_of_a_promise_never_made_is_survived() -> None:
    for moment in _moments_of("Commit: COMMIT of another ring"):
        packet = moment.packet
        for at in range(COMMIT_MEMBERS_AT + 8, len(packet), COMMIT_MEMBER_SIZE):
            packet = _changed(packet, at, b"\x03")
        node = moment.copied()
        _receive(node, packet, moment.now)
        _live_on(node, moment.now)


def test_a_recovered_packet_with_an_absurd_old_seq_is_survived() -> None:
    for moment in _moments_of("Recovery: recovered DATA of another ring"):
        node = moment.copied()
        _receive(node, _changed(moment.packet, HEADER_SIZE + 8, b"\x7f"), moment.now)
        _live_on(node, moment.now)


@pytest.mark.parametrize(
    ("field", "at", "size"), [("round", 55, 8), ("timestamp", 63, 8), ("retransmitted", 87, 4), ("budget", 91, 10)]
)
def test_a_token_whose_counters_are_at_their_end_is_survived(field: str, at: int, size: int) -> None:
    for moment in [*_moments_of("Operational: TOKEN of own ring"), *_moments_of("Recovery: TOKEN of another ring")]:
        node = moment.copied()
        node.submit([Submission(b"one more")], moment.now)
        _receive(node, _changed(moment.packet, at, b"\xff" * size), moment.now)
        _live_on(node, moment.now)


def test_a_count_of_retransmissions_at_its_end_is_survived_when_more_are_asked_for() -> None:
    tried = 0
    for moment in _moments_of("Operational: TOKEN of own ring"):
        token = decode(moment.packet, CLUSTER)
        held = [seq for seq, _ in moment.node.ring.store.held_after(Seq(0))]
        assert isinstance(token, Token)
        if held and held[0] <= token.seq:
            tried += 1
            asked = replace(token, requests=(held[0],), retransmitted=0xFFFFFFFF)
            node = moment.copied()
            _receive(node, encode(CLUSTER, asked), moment.now)
            _live_on(node, moment.now)
    assert tried


def test_a_join_whose_ring_seq_is_at_its_end_is_survived() -> None:
    for state in ("Operational", "Gather"):
        for moment in _moments_of(f"{state}: JOIN of another ring"):
            node = moment.copied()
            _receive(node, _changed(moment.packet, 47, b"\xff" * 8), moment.now)
            _receive(node, moment.packet, moment.now)
            _live_on(node, moment.now)


def test_a_disk_slower_than_the_token_loss_timeout_is_survived_alone() -> None:
    """The write before a ring of one is formed takes longer than `token_loss_ns`: the same proposal comes up again."""
    cluster = Cluster(2)
    cluster.run_until(cluster.is_one_ring)
    first, second = cluster.nodes
    cluster.crash(second)
    node = cluster.nodes[first]
    cluster.run_until(lambda: node.state_name == "Commit")
    now = cluster.now
    for _ in range(20):
        now = max(now, node.next_deadline() or now)
        node.wake(now)
    node.check_invariants()
