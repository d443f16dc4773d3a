"""The status server answers well-formed requests, refuses the rest, and keeps nothing for those who dawdle."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus

import pytest

from ordercast.daemon.status import http
from ordercast.daemon.status.http import HttpAnswer, StatusServer
from ordercast.model.errors import UsageError
from ordercast.model.ids import SECOND, Instant
from ordercast.model.inputs import Submission
from tests.unit.daemon.fake_node import FakeNode

UNREAD_SIZE = 50_000  # of an answer

Ask = Callable[[bytes], Awaitable[tuple[int, dict[str, str], str]]]


def served(scene: Callable[[FakeNode, Ask], Awaitable[None]], node: FakeNode | None = None) -> None:
    async def play() -> None:
        fake = node or FakeNode()
        if node is None:
            fake.begin()
        async with StatusServer(fake, "127.0.0.1", 0, ["alpha.example"]) as server:

            async def ask(request: bytes) -> tuple[int, dict[str, str], str]:
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(request)
                if not request.endswith(b"\r\n\r\n"):
                    writer.write_eof()
                answer = (await reader.read()).decode()
                writer.close()
                head, _, body = answer.partition("\r\n\r\n")
                first, *lines = head.split("\r\n")
                return int(first.split()[1]), dict(line.split(": ", 1) for line in lines), body

            await scene(fake, ask)

    asyncio.run(play())


def get(path: str, method: str = "GET", host: str = "localhost") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


def test_status_is_a_json_document_with_warnings() -> None:
    async def scene(node: FakeNode, ask: Ask) -> None:
        status, headers, body = await ask(get("/status?x=1"))
        assert (status, headers["Content-Type"]) == (200, "application/json")
        assert int(headers["Content-Length"]) == len(body.encode())
        document = json.loads(body)
        assert document["me"]["name"] == "alpha"
        assert document["warnings"] == ["not in the configuration: beta, gamma"]

    served(scene)


def test_metrics_and_head() -> None:
    async def scene(node: FakeNode, ask: Ask) -> None:
        status, headers, body = await ask(get("/metrics"))
        assert status == 200
        assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert "# TYPE ordercast_members gauge" in body
        status, headers, body = await ask(get("/healthz", "HEAD"))
        assert (status, body) == (200, "")
        assert headers["Content-Length"] == "12"

    served(scene)


def test_a_node_is_healthy_before_it_is_ready() -> None:
    async def scene(node: FakeNode, ask: Ask) -> None:
        assert (await ask(get("/healthz")))[0] == 200
        assert (await ask(get("/readyz")))[0] == 503
        node.begin()
        assert (await ask(get("/readyz")))[::2] == (200, "operational, 1 members\n")

    served(scene, FakeNode())


def test_a_node_that_may_not_send_what_waits_is_not_ready_and_says_why() -> None:
    async def scene(node: FakeNode, ask: Ask) -> None:
        node.begin()
        node.engine.behind(True, Instant(0))
        node.engine.submit([Submission(b"waits")], Instant(0))
        assert (await ask(get("/readyz")))[0] == 200
        for tenth in range(1, 11):
            node.engine.wake(Instant(tenth * SECOND // 10))
        status, _, text = await ask(get("/readyz"))
        assert status == 503 and "the application of this process does not take its deliveries" in text
        assert json.loads((await ask(get("/status")))[2])["flow"]["stalled"] in text
        assert "ordercast_stalled 1\n" in (await ask(get("/metrics")))[2]
        node.engine.behind(False, Instant(SECOND + 1))
        node.engine.wake(Instant(SECOND + 2))
        assert (await ask(get("/readyz")))[0] == 200

    served(scene, FakeNode())


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (get("/"), 404),
        (get("/statusx"), 404),
        (get("/status", "POST"), 405),
        (b"hello\r\n\r\n", 400),
        (b"GET /status SPDY/3\r\n\r\n", 400),
        (b"GET /status", 400),
        (b"GET /status HTTP/1.1\r\nX: " + b"a" * 2 * http.REQUEST_SIZE_MAX, 431),
    ],
)
def test_what_is_not_served_is_refused(request_bytes: bytes, status: int) -> None:
    async def scene(node: FakeNode, ask: Ask) -> None:
        answered, headers, _ = await ask(request_bytes)
        assert answered == status
        assert headers["Connection"] == "close"
        assert (status == 405) == ("Allow" in headers)

    served(scene)


def test_who_says_nothing_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "REQUEST_TIME_MAX_S", 0.01)

    async def play() -> None:
        async with StatusServer(FakeNode(), "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            assert await reader.read() == b""
            writer.close()

    asyncio.run(play())


def test_a_status_that_fails_is_a_500_and_nothing_ends(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(node: FakeNode, ask: Ask) -> None:
        del node.loop_lag_ns
        assert (await ask(get("/status")))[0] == 500
        assert (await ask(get("/healthz")))[0] == 200

    served(scene)
    assert "/status could not be answered" in caplog.text


def test_a_port_that_is_taken_and_an_address_that_is_not_ours() -> None:
    async def play() -> None:
        async with StatusServer(FakeNode(), "127.0.0.1", 0) as server:
            with pytest.raises(UsageError, match=r"is taken by another process: choose another with --status-port"):
                await StatusServer(FakeNode(), "127.0.0.1", server.port).__aenter__()
        with pytest.raises(UsageError, match=r"192\.0\.2\.77 is not an address of this host"):
            await StatusServer(FakeNode(), "192.0.2.77", 0).__aenter__()

    asyncio.run(play())


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LocalHost:4790", 200),
        ("127.0.0.1:4790", 200),
        ("10.0.0.1", 200),
        ("[::1]:4790", 200),
        ("[2001:db8::1]", 200),
        ("Alpha.Example:4790", 200),
        ("alpha.example.", 200),
        ("evil.example", 403),
        ("evil.example:4790", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("[evil.example]", 403),
        ("", 403),
        ("localhost\r\nHost: evil.example", 403),
    ],
)
@pytest.mark.parametrize("path", ["/status", "/metrics", "/healthz"])
def test_a_web_page_that_calls_this_host_by_its_own_name_reads_nothing(host: str, status: int, path: str) -> None:
    async def scene(node: FakeNode, ask: Ask) -> None:
        answered, _, body = await ask(get(path, host=host))
        assert answered == status
        if status == 403:
            assert body == http.FOREIGN_HOST

    served(scene)


def test_who_speaks_the_old_protocol_need_not_name_the_host() -> None:
    async def scene(node: FakeNode, ask: Ask) -> None:
        assert (await ask(b"GET /healthz HTTP/1.0\r\n\r\n"))[0] == 200

    served(scene)


def test_half_requests_keep_nobody_out() -> None:
    """Three times as many as there may be, all still open: health is told, and the latest of them have their place."""

    async def play() -> None:
        node = FakeNode()
        node.begin()
        errors: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        async with StatusServer(node, "127.0.0.1", 0) as server:
            half = []
            for _ in range(3 * http.CONNECTIONS_MAX):
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(b"GET /status HTTP/1.1\r\n")
                half.append((reader, writer))
            for path in ("/healthz", "/readyz"):
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(get(path))
                assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
                writer.close()
            for reader, _ in half[: http.CONNECTIONS_MAX]:
                with suppress(ConnectionError):
                    assert await reader.read() == b"", "the oldest are gone"
            reader, writer = half[-1]
            writer.write(b"Host: localhost\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
            for _, writer in half:
                writer.close()
        assert not errors, "who has to go is no error"

    asyncio.run(play())


# Who takes no answer

Taking = Callable[[], Awaitable[socket.socket]]  # connects, asks, and reads nothing


def with_those_who_read_nothing(
    monkeypatch: pytest.MonkeyPatch, scene: Callable[[StatusServer, Taking], Awaitable[None]]
) -> None:
    """Play with a server whose answers the kernel does not hold, though they are below asyncio's usual buffers."""
    monkeypatch.setattr(StatusServer, "_on_status", lambda server: HttpAnswer(HTTPStatus.OK, "x" * UNREAD_SIZE))

    async def play() -> None:
        node, asked = FakeNode(), []
        node.begin()
        async with StatusServer(node, "127.0.0.1", 0) as server:
            assert server._server is not None
            server._server.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)

            async def ask() -> socket.socket:
                asking = socket.socket()
                asked.append(asking)
                asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
                asking.setblocking(False)
                await asyncio.get_running_loop().sock_connect(asking, ("127.0.0.1", server.port))
                await asyncio.get_running_loop().sock_sendall(asking, get("/status"))
                return asking

            await scene(server, ask)
            for asking in asked:
                asking.close()

    asyncio.run(asyncio.wait_for(play(), 30))


async def is_whole(asking: socket.socket) -> bool:
    """Read what is there until the connection ends: whether it is all of the answer."""
    came = b""
    with suppress(ConnectionError):
        while data := await asyncio.get_running_loop().sock_recv(asking, UNREAD_SIZE):
            came += data
    return came.endswith(b"x" * UNREAD_SIZE)


def test_who_takes_no_answer_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "REQUEST_TIME_MAX_S", 0.1)

    async def scene(server: StatusServer, ask: Taking) -> None:
        asking = await ask()
        await asyncio.get_running_loop().sock_recv(asking, 1)  # it is being served
        await asyncio.gather(*server.connections)
        assert not await is_whole(asking), "nothing is kept for it any more"

    with_those_who_read_nothing(monkeypatch, scene)


def test_those_who_take_no_answer_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "REQUEST_TIME_MAX_S", 60)

    async def scene(server: StatusServer, ask: Taking) -> None:
        asking = [await ask() for _ in range(http.CONNECTIONS_MAX)]
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(get("/healthz"))
        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
        writer.close()
        assert [await is_whole(one) for one in asking].count(False) == 1, "one of them had to go"

    with_those_who_read_nothing(monkeypatch, scene)
