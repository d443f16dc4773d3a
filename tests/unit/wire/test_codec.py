"""What the codec refuses, rule by rule. What it accepts is pinned in the vectors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.model.errors import WireError
from ordercast.model.ids import NOBODY, ConfigurationId, ProcessId, Seq
from ordercast.wire.codec import DIGESTS_MAX, REQUESTS_MAX, decode, encode
from ordercast.wire.head import KIND_AT, OtherVersion, cluster_id_from, kind_of, transmitter_of
from ordercast.wire.header import MessageKind
from ordercast.wire.messages import EXTENSION_SIZE_MAX, MEMBERS_MAX, CommitEntry, Leave, Wake, WireMessage

from .vectors import ANNOUNCEMENT, CLUSTER, COMMIT, JOIN, RING, SEVERAL, TOKEN, VECTORS, process

WAKE = encode(CLUSTER, Wake(RING, process(2)))


def _patched(packet: bytes, at: int, piece: bytes) -> bytes:
    return packet[:at] + piece + packet[at + len(piece) :]


def _refused(message: WireMessage, why: str) -> None:
    with pytest.raises(WireError, match=why):
        decode(encode(CLUSTER, message), CLUSTER)


def test_a_packet_says_what_it_is_and_of_which_ring() -> None:
    assert kind_of(WAKE, CLUSTER) == MessageKind.WAKE
    assert transmitter_of(WAKE) == process(2) and decode(WAKE, CLUSTER).ring == RING


def test_clusters_are_told_apart_by_eight_bytes() -> None:
    assert len(CLUSTER) == 8 and cluster_id_from("vectors2") != CLUSTER
    with pytest.raises(WireError, match="another cluster's packet"):
        kind_of(WAKE, cluster_id_from("vectors2"))


@pytest.mark.parametrize(
    ("packet", "why"),
    [
        (WAKE[:22], "shorter than a head"),
        (WAKE[:2], "shorter than a head"),
        (b"", "not an Ordercast packet"),
        (_patched(WAKE, 0, b"xx"), "not an Ordercast packet"),
        (_patched(WAKE, 2, b"\x04"), "wire version 4, we speak 3"),
        (_patched(WAKE, 2, b"\x01"), "another cluster's packet, in another wire version"),
        (_patched(WAKE, 3, b"\x01"), "sealed with key 1, and this process has no keys"),
        (WAKE + b"\0", "the head says 39 bytes, 40 came"),
        (WAKE[:-1], "the head says 39 bytes, 38 came"),
        (_patched(WAKE, 14, bytes(8)), "a packet that nobody sent"),
    ],
)
def test_strangers_are_refused_by_their_first_bytes(packet: bytes, why: str) -> None:
    with pytest.raises(WireError, match=why):
        kind_of(packet, CLUSTER)
    with pytest.raises(WireError, match=why):
        decode(packet, CLUSTER)


def test_the_packets_of_older_versions_are_named_with_their_sender() -> None:
    """Versions 1 and 2 had cluster and transmitter elsewhere."""
    old = b"oC\x02\x06" + CLUSTER + bytes(20) + process(7).to_bytes(8, "big") + bytes(32)
    with pytest.raises(OtherVersion, match="wire version 2, we speak 3") as caught:
        kind_of(old, CLUSTER)
    assert (caught.value.version, caught.value.transmitter) == (2, process(7))
    with pytest.raises(OtherVersion) as caught:
        kind_of(old[:30], CLUSTER)
    assert caught.value.transmitter is None
    with pytest.raises(WireError, match="another cluster's packet, in another wire version"):
        kind_of(old, cluster_id_from("vectors2"))


@pytest.mark.parametrize(
    ("packet", "why"),
    [
        (_patched(WAKE + b"\0", 4, b"\0\x28"), "1 bytes too many"),
        (_patched(WAKE, KIND_AT, b"\x00"), "message kind 0 does not exist"),
        (_patched(WAKE, KIND_AT, b"\x63"), "message kind 99 does not exist"),
        (_patched(WAKE, KIND_AT, b"\xff"), "a probe of one of several networks, and this process knows one alone"),
        (_patched(WAKE, KIND_AT + 1, b"\xff"), "a number beyond all bounds"),
    ],
)
def test_a_control_message_has_a_kind_a_ring_and_its_exact_length(packet: bytes, why: str) -> None:
    with pytest.raises(WireError, match=why):
        decode(packet, CLUSTER)


def test_a_data_packet_is_no_control_message() -> None:
    packet = next(vector for vector in VECTORS if vector.message == SEVERAL).encode()
    with pytest.raises(WireError):
        decode(packet, CLUSTER)
    with pytest.raises(WireError, match="a data packet where a control message was expected"):
        decode(_patched(WAKE, KIND_AT, bytes([MessageKind.DATA])), CLUSTER)


@pytest.mark.parametrize("message", [TOKEN, COMMIT, JOIN, ANNOUNCEMENT], ids=lambda message: type(message).__name__)
def test_a_body_cut_short_is_refused_at_every_length(message: WireMessage) -> None:
    packet = encode(CLUSTER, message)
    for size in range(23, len(packet)):
        with pytest.raises(WireError):
            decode(_patched(packet[:size], 4, size.to_bytes(2, "big")), CLUSTER)


def test_a_token_that_contradicts_itself_is_refused() -> None:
    for token in (
        replace(TOKEN, aru=Seq(42)),
        replace(TOKEN, requests=(Seq(42),)),
    ):
        _refused(token, "the token contradicts itself")
    packet = encode(CLUSTER, TOKEN)
    with pytest.raises(WireError, match="the token contradicts itself"):
        decode(_patched(packet, 111, b"\x02"), CLUSTER)


def test_requests_that_do_not_ascend_are_refused() -> None:
    _refused(replace(TOKEN, requests=(Seq(33), Seq(31))), "requests are not ascending")
    _refused(replace(TOKEN, requests=(Seq(31), Seq(31))), "requests are not ascending")


def test_adjacent_requests_travel_as_one_run() -> None:
    few = encode(CLUSTER, replace(TOKEN, requests=(Seq(31),)))
    many = encode(CLUSTER, replace(TOKEN, requests=tuple(map(Seq, range(31, 42)))))
    assert len(few) == len(many)


def test_counts_are_limited() -> None:
    highest = replace(TOKEN, seq=Seq(100_000))
    allowed = replace(highest, requests=tuple(map(Seq, range(1, REQUESTS_MAX + 1))))
    assert decode(encode(CLUSTER, allowed), CLUSTER) == allowed
    _refused(replace(highest, requests=tuple(map(Seq, range(1, REQUESTS_MAX + 2)))), "more than the limit of 4096")
    _refused(replace(highest, requests=tuple(map(Seq, range(2, 9000, 2)))), "more than the limit of 4096")
    _refused(replace(TOKEN, extension=bytes(EXTENSION_SIZE_MAX + 1)), "bytes of extension, more than the limit of 512")
    _refused(replace(COMMIT, extension=bytes(EXTENSION_SIZE_MAX + 1)), "bytes of extension, more than the limit of 512")
    _refused(replace(JOIN, digests=(1,) * (DIGESTS_MAX + 1)), "65 digests, more than the limit of 64")
    crowd = tuple(process(1, number) for number in range(1, MEMBERS_MAX + 2))
    _refused(replace(JOIN, candidates=crowd), "1001 processes, more than the limit of 1000")
    _refused(replace(ANNOUNCEMENT, heard=crowd), "1001 processes, more than the limit of 1000")
    _refused(replace(COMMIT, members=tuple(map(CommitEntry, crowd))), "1001 members, more than the limit of 1000")


def test_the_largest_memberships_fit() -> None:
    crowd = tuple(process(1, number) for number in range(1, MEMBERS_MAX + 1))
    for message in (
        replace(COMMIT, members=tuple(map(CommitEntry, crowd)), extension=bytes(EXTENSION_SIZE_MAX)),
        replace(JOIN, sender=crowd[0], candidates=crowd, failed=crowd[1:]),
        replace(ANNOUNCEMENT, sender=crowd[0], members=crowd, heard=crowd),
    ):
        assert decode(encode(CLUSTER, message), CLUSTER) == message


@pytest.mark.parametrize(
    "members",
    [
        (),
        (CommitEntry(process(2)), CommitEntry(process(1))),
        (CommitEntry(process(1)), CommitEntry(process(2)), CommitEntry(process(2))),
    ],
)
def test_a_commit_token_lists_each_member_once_and_the_representative_first(members: tuple[CommitEntry, ...]) -> None:
    _refused(replace(COMMIT, members=members), "members contradict its ring")


def test_a_commit_token_knows_no_other_flags_and_reasons() -> None:
    packet = encode(CLUSTER, COMMIT)
    with pytest.raises(WireError, match="flags that do not exist"):
        decode(_patched(packet, 68, b"\x04"), CLUSTER)
    with pytest.raises(WireError, match="reason 200 does not exist"):
        decode(_patched(packet, 55, b"\xc8"), CLUSTER)


@pytest.mark.parametrize(
    ("candidates", "failed"),
    [
        ((process(1),), ()),
        ((process(1), process(2)), (process(2),)),
        ((process(1), process(2)), (process(3),)),
    ],
)
def test_a_join_whose_sets_contradict_each_other_is_refused(
    candidates: tuple[ProcessId, ...], failed: tuple[ProcessId, ...]
) -> None:
    _refused(replace(JOIN, candidates=candidates, failed=failed), "the Join's sets contradict each other")


def test_an_announcer_is_on_its_own_ring() -> None:
    _refused(replace(ANNOUNCEMENT, members=(process(1),)), "the announcer is not on its own ring")


def test_nobody_sends_nothing() -> None:
    _refused(Leave(ConfigurationId(1, process(1)), NOBODY), "a packet that nobody sent")
