"""Bytes of links: what was written is read again, what is damaged is a WireError, and a link that meets it is as it was
before."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.effects import packets_of
from ordercast.model.errors import WireError
from ordercast.model.ids import Instant
from ordercast.order.links.codec import (
    HORIZON,
    LINK_HEAD_SIZE,
    LinkHead,
    LinkKind,
    decode_link,
    decode_ranges,
    encode_link,
    encode_ranges,
)
from ordercast.order.links.config import FAR, NEAR, LinkConfig
from ordercast.order.links.link import Link
from ordercast.order.links.packing import Packer, PartStore, payloads_of
from ordercast.wire.codec import NUMBER_MAX
from tests.unit.order.links.pair import CLUSTER, ENDS, make_link

numbers = st.integers(1, NUMBER_MAX)
stamps = st.integers(0, 0xFFFF_FFFF)
heads = st.builds(
    LinkHead,
    kind=st.sampled_from(LinkKind),
    flags=st.just(0),
    tag=st.integers(0, (1 << 64) - 1),
    number=numbers,
    aru=st.integers(0, NUMBER_MAX),
    beyond=st.integers(0, 0xFFFF),
    sent=stamps,
    echo=stamps,
)
payload_lists = st.lists(st.binary(min_size=1, max_size=900), max_size=20)


@given(heads, st.binary(max_size=16), st.binary(max_size=100))
def test_a_packet_is_read_as_it_was_written(head: LinkHead, rider: bytes, body: bytes) -> None:
    packet = encode_link(CLUSTER, ENDS[0], head, rider, body)
    assert len(packet) == LINK_HEAD_SIZE + len(rider) + len(body)
    assert decode_link(packet, len(rider)) == (head, rider, body)


@given(st.integers(0, 1 << 40), st.lists(st.tuples(st.integers(1, 500), st.integers(1, 500)), max_size=64))
def test_missing_ranges_are_read_as_they_were_written(aru: int, steps: list[tuple[int, int]]) -> None:
    ranges, at = [], aru
    for gap, length in steps:
        ranges.append((at + gap, at + gap + length - 1))
        at += gap + length
    assert decode_ranges(aru, at, encode_ranges(aru, ranges)) == tuple(ranges)


@given(payload_lists, st.lists(st.booleans(), min_size=20, max_size=20))
def test_what_is_packed_is_unpacked(payloads: list[bytes], urgencies: list[bool]) -> None:
    packer, parts = Packer(300, 1000), PartStore(1000)
    for payload, is_urgent in zip(payloads, urgencies, strict=False):
        packer.put([payload], is_urgent)
    came: list[bytes] = []
    number = 0
    while packer:
        number += 1
        body, is_part = packer.take()
        assert len(body) <= 300
        if is_part:
            parts.check(number, body)
            came += [whole for whole in [parts.add(number, body)] if whole is not None]
        else:
            came += payloads_of(body)
    assert packer.waiting == parts.size == len(parts) == 0
    order = sorted(range(len(payloads)), key=lambda at: not urgencies[at])
    assert [one for one in came if one in payloads] == came
    assert sorted(came) == sorted(payloads)
    if len({len(payload) > 298 for payload in payloads}) < 2:
        assert came == [payloads[at] for at in order]


@given(st.binary(max_size=400), st.integers(0, 16))
def test_any_bytes_are_read_or_refused(data: bytes, rider_size: int) -> None:
    for read in (
        lambda: decode_link(data, rider_size),
        lambda: decode_ranges(0, 100, data),
        lambda: payloads_of(data),
        lambda: PartStore(1000).check(1, data),
    ):
        try:
            read()
        except WireError:
            continue


def _state(link: Link) -> tuple[object, ...]:
    sender, receiver = link.sender, link.receiver
    return (
        *(link.failure, link.heard_at, link.next_deadline, vars(link.path) if hasattr(link.path, "__dict__") else None),
        *(sender.high, sender.aru, sender.kept, sender.under_way, sender.resent),
        *(receiver.next, receiver.aru, receiver.beyond, receiver.kept, receiver.duplicates, receiver.missing),
    )


def _talk(config: LinkConfig) -> tuple[Link, list[bytes]]:
    """Return one end that has sent and received, and further packets that it could receive."""
    one, other = make_link(config, 0), make_link(config, 1)
    one.send([b"a" * 500, b"b" * 900, b"c"])
    other.send([b"x" * 700, b"y" * 3000, b"z"])
    for packet in packets_of(one.flush(Instant(1000)))[1:]:
        other.receive(packet, Instant(2000))
    packets = packets_of(other.flush(Instant(3000)))
    one.receive(packets[0], Instant(4000))
    return one, [*packets[1:], *packets_of(other.flush(Instant(40_000_000)))]


@given(st.sampled_from([FAR, NEAR, replace(FAR, rider_size=16)]), st.data())
def test_a_damaged_packet_changes_nothing_or_is_taken(config: LinkConfig, data: st.DataObject) -> None:
    """No authentication yet: damage that still makes sense is taken. Whatever else comes is refused, and leaves no
    trace."""
    link, packets = _talk(config)
    packet = bytearray(data.draw(st.sampled_from(packets)))
    for _ in range(data.draw(st.integers(1, 4))):
        packet[data.draw(st.integers(0, len(packet) - 1))] = data.draw(st.integers(0, 255))
    packet = packet[: data.draw(st.one_of(st.just(len(packet)), st.integers(0, len(packet))))]
    before = _state(link)
    try:
        link.receive(bytes(packet), Instant(5000))
    except WireError:
        assert _state(link) == before
    link.check_invariants()
    link.flush(Instant(6000))
    link.check_invariants()


def _packet(kind: LinkKind, number: int, body: bytes, aru: int = 0, beyond: int = 0, tag: int = 7) -> bytes:
    return encode_link(CLUSTER, ENDS[1], LinkHead(kind, 0, tag, number, aru, beyond, 1, 0), b"", body)


@pytest.mark.parametrize(
    ("packet", "problem"),
    [
        (_packet(LinkKind.DATA, 1, b"", tag=6), "another epoch"),
        (_packet(LinkKind.DATA, HORIZON + 1, b""), "further ahead than a window"),
        (_packet(LinkKind.STATUS, HORIZON + 1, b"\0"), "further ahead than a window"),
        (_packet(LinkKind.DATA, 1, b"", aru=3), "packet 3 is acknowledged, and 2 was the last"),
        (_packet(LinkKind.DATA, 1, b"", aru=1, beyond=2), "packet 3 is acknowledged"),
        (_packet(LinkKind.STATUS, 0, encode_ranges(0, [(1, 3)])), "never sent"),
        (_packet(LinkKind.STATUS, 0, b"\x41" + bytes(6 * 65)), "65 missing ranges"),
        (_packet(LinkKind.STATUS, 0, b"\1" + bytes(6)), "do not ascend"),
        (_packet(LinkKind.STATUS, 0, b"\0\0"), "1 bytes too many"),
        (_packet(LinkKind.STATUS, 0, b""), "cut short"),
        (_packet(LinkKind.DATA, 0, b""), "beyond all bounds"),
        (_packet(LinkKind.DATA, 1, b"\0"), "within a length"),
        (_packet(LinkKind.DATA, 1, b"\0\0"), "empty or longer"),
        (_packet(LinkKind.DATA, 1, b"\0\3ab"), "empty or longer"),
        (encode_link(CLUSTER, ENDS[0], LinkHead(32, 0, 7, 1, 0, 0, 1, 0), b"", b""), "another process"),
        (encode_link(bytes(8), ENDS[1], LinkHead(32, 0, 7, 1, 0, 0, 1, 0), b"", b""), "another cluster"),
        (encode_link(CLUSTER, ENDS[1], LinkHead(9, 0, 7, 1, 0, 0, 1, 0), b"", b""), "no packets of kind 9"),
        (encode_link(CLUSTER, ENDS[1], LinkHead(32, 2, 7, 1, 0, 0, 1, 0), b"", b""), "flags"),
        (encode_link(CLUSTER, ENDS[1], LinkHead(33, 1, 7, 1, 0, 0, 1, 0), b"", b"\0"), "flags"),
        (encode_link(CLUSTER, ENDS[1], LinkHead(32, 1, 7, 1, 0, 0, 1, 0), b"", b"\0\1\0\2x"), "part 1 of 2"),
        (encode_link(CLUSTER, ENDS[1], LinkHead(32, 1, 7, 1, 0, 0, 1, 0), b"", b"\0\0\0\2"), "a part without bytes"),
        (encode_link(CLUSTER, ENDS[1], LinkHead(32, 1, 7, 1, 0, 0, 1, 0), b"", b"\0\0\x0f\xff" + bytes(900)), "4095"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(packet: bytes, problem: str) -> None:
    link = make_link(FAR, 0)
    link.send([b"a" * 1200, b"b" * 1200])
    link.flush(Instant(0))
    before = _state(link)
    with pytest.raises(WireError, match=problem):
        link.receive(packet, Instant(1))
    assert _state(link) == before
    assert link.counts.dropped == 1


def test_parts_that_contradict_each_other_are_refused() -> None:
    link = make_link(FAR, 0)
    head = LinkHead(32, 1, 7, 1, 0, 0, 1, 0)
    link.receive(encode_link(CLUSTER, ENDS[1], head, b"", b"\0\0\0\3abc"), Instant(0))
    with pytest.raises(WireError, match="contradict"):
        link.receive(encode_link(CLUSTER, ENDS[1], head._replace(number=2), b"", b"\0\1\0\2abc"), Instant(0))
