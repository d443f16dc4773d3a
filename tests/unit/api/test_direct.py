"""A client in blocking form, whose daemon is played."""

from __future__ import annotations

import math
import socket
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest

from ordercast.api.awaited import Awaited
from ordercast.api.blocking_link import BlockingLink
from ordercast.api.blocking_stream import BlockingStream
from ordercast.api.direct import DirectClient, run_now
from ordercast.api.target import DaemonTarget
from ordercast.model.errors import ConnectionLost, UsageError
from ordercast.model.events import Left, Piece
from ordercast.session.addresses import Address
from ordercast.session.client_half import ClientHalf
from ordercast.session.frames import Listing, SlowPolicy, Welcome, encode_listing, encode_welcome
from ordercast.session.pieces import HEADER, FrameKind

from .wires import CREDIT, HERE, NAME


class PlayedDirect(DirectClient):
    """One that finds a daemon at once."""

    def __init__(self, *, reconnect: bool = False) -> None:
        super().__init__(DaemonTarget(lambda: (HERE,), "alice", SlowPolicy.WAIT, reconnect))
        self.daemon: socket.socket

    def _reach(self, address: Address, seconds: float) -> BlockingLink:
        half, _, words = self.target.halves(address)
        assert isinstance(half, ClientHalf)
        mine, self.daemon = socket.socketpair()
        self.daemon.sendall(encode_welcome(Welcome(NAME, 1 << 20, CREDIT)))
        link = BlockingLink(self, half, mine, None, words)
        link.greet(math.inf)
        return link

    def awaits(self, wanted: FrameKind) -> None:
        """The daemon reads until the client has said this."""
        kind = None
        while kind != wanted:
            length, kind = HEADER.unpack(self.daemon.recv(HEADER.size, socket.MSG_WAITALL))
            self.daemon.recv(length - 1, socket.MSG_WAITALL)


@contextmanager
def played(*, reconnect: bool = False) -> Iterator[PlayedDirect]:
    client = PlayedDirect(reconnect=reconnect)
    client.open()
    try:
        yield client
    finally:
        client.daemon.close()
        run_now(client.close())


def test_a_request_waits_no_longer_than_it_may_while_another_thread_waits_for_credit() -> None:
    ended: list[str] = []

    def sends() -> None:
        with pytest.raises(ConnectionLost):
            run_now(client.send("orders", bytes(2 * CREDIT)))

    def asks() -> None:
        with pytest.raises(TimeoutError, match="no reply from bob@n1"):
            run_now(client.request("bob@n1", b"", timeout=0.01))
        ended.append("asks")

    with played() as client:
        sender, asker = threading.Thread(target=sends), threading.Thread(target=asks)
        sender.start()
        client.awaits(FrameKind.WANT)
        asker.start()
        asker.join(20)
        was_in_time = ended == ["asks"]
    sender.join()
    asker.join()
    assert was_in_time


@pytest.mark.parametrize("timeout", [None, math.inf])
def test_a_request_may_wait_without_end(timeout: float | None) -> None:
    def ends_when_asked() -> None:
        client.awaits(FrameKind.SEND)
        client.daemon.shutdown(socket.SHUT_RDWR)

    with played() as client:
        daemon = threading.Thread(target=ends_when_asked)
        daemon.start()
        with pytest.raises(ConnectionLost):
            run_now(client.request("bob@n1", b"", timeout=timeout))
        daemon.join()


def test_a_request_that_is_refused_leaves_nothing() -> None:
    with played() as client:
        for to, service in (("two words", 4), ((), 4), ("$replica/x", 4), ("orders", "safe")):
            with pytest.raises(UsageError):
                run_now(client.request(to, b"", service, timeout=1))  # type: ignore[arg-type]
        assert not client.state.requests._waiting


def test_who_waits_to_ask_while_the_connection_breaks_asks_in_the_next_session() -> None:
    """Somebody has asked before, and stopped waiting."""
    found: list[dict[str, int]] = []
    with played(reconnect=True) as client:
        client.state.answers.append(Awaited())
        asker = threading.Thread(target=lambda: found.append(run_now(client.groups())), daemon=True)
        asker.start()
        while not client.turns.readings:
            threading.Event().wait(0.001)
        first = client.daemon
        first.shutdown(socket.SHUT_RDWR)
        with client.lock:
            assert client.turns.wait(lambda: client.daemon is not first and client.state.link is not None, 20)
        first.close()
        client.daemon.settimeout(20)
        client.awaits(FrameKind.LIST)
        client.daemon.sendall(encode_listing(Listing({"orders": 1}, True)))
        asker.join(20)
    assert found == [{"orders": 1}]


# On an event loop


def test_a_stream_that_somebody_else_read_can_be_read_again() -> None:
    answers: list[Future[Piece | None]] = [Future() for _ in range(2)]
    answers[0].set_exception(UsageError("somebody else is reading"))

    def start(work: Coroutine[Any, Any, Piece | None]) -> Future[Piece | None]:
        work.close()
        return answers.pop(0)

    client = PlayedDirect()
    client.has_moved = True
    stream = BlockingStream(client, client.inbox.main, start)
    with pytest.raises(UsageError, match="somebody else"):
        stream.receive()
    last = answers[0]
    for _ in range(2):
        with pytest.raises(TimeoutError):
            stream.receive(0)
    last.set_result(Left("orders"))
    assert stream.receive() == Left("orders") and not answers
