"""Nothing that comes from the network makes a node raise: not noise, not real packets that were damaged on the way."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.model.ids import Incarnation, Instant, NodeId, RingId
from ordercast.model.inputs import Packet, Submission
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.node import RingNode
from ordercast.wire.codec import encode
from ordercast.wire.header import MessageKind, prefix_of
from ordercast.wire.messages import Message

from .cluster import CLUSTER, Moment, moments
from .strategies import messages

AFTER = 6  # how many timers may fire after a bad packet


def _started() -> RingNode:
    node = RingNode(NodeId(1), RingConfig())
    node.start({}, Incarnation(1), Instant(0))
    node.persisted("ring_seq", Instant(0))
    return node


def _live_on(node: RingNode, now: Instant) -> None:
    """The damage may show later: let some timers fire."""
    node.check_invariants()
    for _ in range(AFTER):
        deadline = node.next_deadline()
        if deadline is None:
            return
        now = max(now, deadline)
        node.wake(now)
        node.check_invariants()


@given(st.lists(st.tuples(st.binary(max_size=300), st.integers(1, 300)), max_size=4))
def test_noise_is_survived(drawn: list[tuple[bytes, int]]) -> None:
    node = _started()
    node.receive([Packet(data, size) for data, size in drawn], Instant(1))
    _live_on(node, Instant(1))


@given(
    st.binary(max_size=120),
    st.sampled_from(MessageKind),
    st.booleans(),
    st.integers(1, 200),
)
def test_noise_behind_a_good_prefix_is_survived(data: bytes, kind: MessageKind, own: bool, size: int) -> None:
    node = _started()
    ring = node.ring.id if own else RingId(8, node.process)
    node.receive([Packet(prefix_of(kind, CLUSTER, ring) + data, size)], Instant(1))
    _live_on(node, Instant(1))


@given(st.lists(messages, min_size=1, max_size=4))
def test_any_well_formed_messages_are_survived(drawn: list[Message]) -> None:
    node = _started()
    for message in drawn:
        packet = encode(CLUSTER, message)
        node.receive([Packet(packet, len(packet))], Instant(1))
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


@settings(max_examples=600)
@given(st.data())
def test_real_packets_damaged_on_the_way_are_survived_in_every_state(data: st.DataObject) -> None:
    moment = data.draw(st.sampled_from(moments()))
    packet = data.draw(damaged(moment))
    node = moment.copied()
    node.receive([Packet(packet, len(packet))], moment.now)
    node.receive([Packet(moment.packet, len(moment.packet))], moment.now)
    if node.state_name != "Gone":
        node.submit([Submission(b"life goes on")], moment.now)
    _live_on(node, moment.now)


def test_the_real_packets_cover_every_state_and_every_kind() -> None:
    situations = {moment.situation for moment in moments()}
    assert {situation.partition(":")[0] for situation in situations} >= {"Operational", "Gather", "Commit", "Recovery"}
    for kind in MessageKind:
        assert any(f" {kind.name} " in situation for situation in situations), kind
    assert "Recovery: recovered DATA of another ring" in situations
