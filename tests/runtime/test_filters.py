"""What the kernel drops before anybody is woken: our own multicast, and nearly all that strangers send."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ordercast.daemon.sockets.filters import SHOWN_OF
from ordercast.daemon.sockets.lanes import LaneSocket, refused_for_room
from ordercast.model.inputs import Lane
from ordercast.sealing.packet import opening_of
from ordercast.wire.head import MAGIC

MANY = 4000
OURS = opening_of(7)


def _has_six() -> bool:
    with closing(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            return False
    return True


ADDRESSES = ["127.0.0.1", *(["::1"] if _has_six() else [])]


@pytest.fixture(params=ADDRESSES)
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[LaneSocket, socket.socket]]:
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with (
        closing(socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)) as receiver,
        closing(socket.socket(family, socket.SOCK_DGRAM)) as sender,
    ):
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        receiver.bind((request.param, 0))
        sender.bind((request.param, 0))
        sender.connect(receiver.getsockname())
        yield LaneSocket(Lane.TOKEN, receiver, "here"), sender


def came(lane: LaneSocket) -> int:
    """How many packets are there."""
    before = lane.counters.packets_received
    while lane.drain():
        pass
    return lane.counters.packets_received - before


def test_strangers_are_dropped_and_a_few_are_shown(ends: tuple[LaneSocket, socket.socket]) -> None:
    lane, sender = ends
    lane.admit([opening_of(0), OURS])
    for head, is_ours in ((OURS, True), (opening_of(0), True), (opening_of(8), False), (b"GET / HT", False)):
        shown = 0
        for _ in range(MANY // 100):
            for _ in range(100):
                sender.send(head + bytes(30))
            shown += came(lane)
        assert shown == MANY if is_ours else 0 < shown < 2 * MANY // SHOWN_OF, head
    assert lane.kernel_drops() == 0, "what strangers send is not taken for a full buffer"


def test_strangers_that_come_one_by_one_are_not_taken_for_a_full_buffer(ends: tuple[LaneSocket, socket.socket]) -> None:
    lane, sender = ends
    lane.admit([OURS])
    for _ in range(MANY):
        sender.send(opening_of(8) + bytes(30))
        lane.read_one()
    assert lane.strangers_seen > 0
    assert lane.kernel_drops() == 0


def test_a_buffer_that_is_full_is_told(ends: tuple[LaneSocket, socket.socket]) -> None:
    lane, sender = ends
    lane.admit([OURS])
    for _ in range(3 * MANY):
        sender.send(OURS + bytes(1000))
    assert lane.kernel_drops() == 3 * MANY - came(lane)


def test_what_the_kernel_does_not_count_is_not_known(tmp_path: Path) -> None:
    assert refused_for_room(tmp_path) is None
    (tmp_path / "snmp").write_text("Udp: InDatagrams RcvbufErrors MemErrors\nUdp: 9 2 3\n")
    assert refused_for_room(tmp_path) == 5
    (tmp_path / "snmp6").write_text("Udp6InDatagrams 9\nUdp6RcvbufErrors 4\n")
    assert refused_for_room(tmp_path) == 9


@pytest.mark.parametrize("packet", [b"", b"o", OURS[:3]])
def test_what_is_too_short_is_a_stranger(ends: tuple[LaneSocket, socket.socket], packet: bytes) -> None:
    lane, sender = ends
    lane.admit([OURS])
    for _ in range(160):
        sender.send(packet)
    assert came(lane) < 80


def test_without_keys_all_that_is_of_ordercast_comes(ends: tuple[LaneSocket, socket.socket]) -> None:
    lane, sender = ends
    lane.admit([MAGIC])
    for version in range(50):
        sender.send(MAGIC + bytes((version, 0)) + bytes(40))
    assert came(lane) == 50
    for _ in range(160):
        sender.send(b"xC" + bytes(40))
    assert came(lane) < 80


def test_our_own_multicast_does_not_come_back_whoever_is_admitted_later() -> None:
    with (
        closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)) as receiver,
        closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as own,
        closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as other,
    ):
        receiver.bind(("127.0.0.1", 0))
        lane = LaneSocket(Lane.DATA, receiver, "here")
        for sender in (own, other):
            sender.bind(("127.0.0.1", 0))
            sender.connect(receiver.getsockname())
        lane.admit([opening_of(9)])
        lane.drop_echoes(*own.getsockname())
        lane.admit([OURS])
        for sender in (own, other, own, other, own):
            sender.send(OURS + bytes(30))
        assert came(lane) == 2
