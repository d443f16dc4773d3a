"""A payload in parts that came in one read is taken at once, or packet by packet: nobody can tell the two apart."""

from __future__ import annotations

from random import Random

import pytest

from ordercast.model.ids import MILLISECOND, Instant, ProcessId
from ordercast.order.links.codec import LINK_HEAD_SIZE
from ordercast.order.links.config import NEAR
from ordercast.order.links.link import Link, Tags
from ordercast.order.links.packing import PART_HEAD_SIZE

CLUSTER = b"together"
NOW = Instant(MILLISECOND)


def _link(me: int, peer: int) -> Link:
    return Link(NEAR, CLUSTER, ProcessId(me), ProcessId(peer), Tags(5, 5), NOW)


def _burst(payload: bytes) -> tuple[bytes, int]:
    sender = _link(1, 2)
    sender.send([payload])
    (burst,) = sender.flush(NOW)
    return burst


def _one_by_one(link: Link, data: bytes, size: int) -> list[bytes]:
    return [one for at in range(0, len(data), size) for one in link.receive(data[at : at + size], NOW).payloads]


@pytest.mark.parametrize("length", [1500, 2810, 5000, 32_000])
def test_a_run_brings_what_its_packets_bring(length: int) -> None:
    payload = Random(length).randbytes(length)
    data, size = _burst(payload)
    assert len(data) > size
    at_once, slowly = _link(2, 1), _link(2, 1)
    brought = at_once.receive_run(data, size, NOW)
    assert brought is not None and brought.payloads == [payload] == _one_by_one(slowly, data, size)
    assert at_once.flush(Instant(NOW + NEAR.ack_ns)) == slowly.flush(Instant(NOW + NEAR.ack_ns))
    assert at_once.figures() == slowly.figures()
    at_once.check_invariants()


def test_a_byte_changed_in_any_head_is_no_run() -> None:
    data, size = _burst(bytes(5000))
    link = _link(2, 1)
    for start in range(0, len(data), size):
        for at in range(start, start + LINK_HEAD_SIZE + PART_HEAD_SIZE):
            changed = data[:at] + bytes((data[at] ^ 0x21,)) + data[at + 1 :]
            assert link.receive_run(changed, size, NOW) is None, at - start
    assert link.receive_run(data, size, NOW) is not None, "and nothing has changed"


def test_packets_missing_doubled_or_swapped_are_no_run() -> None:
    data, size = _burst(bytes(range(250)) * 30)
    packets = [data[at : at + size] for at in range(0, len(data), size)]
    link = _link(2, 1)
    for wrong in (packets[1:], packets[:-1], [*packets[:2], *packets[1:]], [packets[1], packets[0], *packets[2:]]):
        assert link.receive_run(b"".join(wrong), size, NOW) is None
    assert link.receive_run(data, size, NOW) is not None
    assert link.receive_run(data, size, NOW) is None, "it came before"


def test_a_run_behind_a_gap_waits_packet_by_packet() -> None:
    sender, link = _link(1, 2), _link(2, 1)
    sender.send([b"first"])
    (first,) = sender.flush(NOW)
    payload = bytes(4000)
    sender.send([payload])
    ((data, size),) = sender.flush(NOW)
    assert link.receive_run(data, size, NOW) is None
    assert _one_by_one(link, data, size) == []
    assert link.receive(first[0], NOW).payloads == [b"first", payload]
