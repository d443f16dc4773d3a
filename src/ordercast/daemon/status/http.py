"""A small HTTP/1.1 server for status and metrics, on the node's own event loop, from the standard library alone.

It answers `GET` and `HEAD` of a few paths, one request per connection. Everything that a client can make it keep is
bounded: connections, bytes of a request, seconds of a request, seconds of taking its answer. Who connects and asks
nothing, or takes no answer, keeps nobody out: when there are too many, the one who has been silent for longest goes. It
binds to loopback unless configured otherwise, and answers only those who call it by an address, localhost, or a name of
the configuration: a web page that has its own name resolve to this host (DNS rebinding) reads nothing.

    /status    one JSON document
    /metrics   the same for Prometheus
    /healthz   200 as long as the node runs
    /readyz    200 when messages flow, 503 during a change or when what waits cannot be sent

Where a token is asked for (`guard.py`), whoever does not show it is told by the last two whether all is well, and
nothing else.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from ipaddress import ip_address
from typing import NamedTuple, Self

from ordercast.daemon.config.defaults import host_and_port
from ordercast.daemon.sockets.tcp import TcpServer
from ordercast.daemon.status import metrics
from ordercast.daemon.status.advice import advised
from ordercast.daemon.status.guard import StatusGuard
from ordercast.daemon.status.parts import Status
from ordercast.daemon.status.report import Meter, ObservedNode, status_of
from ordercast.model.errors import UsageError
from ordercast.model.printable import json_text

REQUEST_SIZE_MAX = 8192
REQUEST_TIME_MAX_S = 2.0  # for a whole request, and for taking the answer
CONNECTIONS_MAX = 32
SAMPLE_EVERY_S = 1.0  # rates are right for whoever asks for the first time, too
LOCALHOST = "localhost"
FOREIGN_HOST = "this host is not known by that name: ask for its address, or add the name to hosts in [status]\n"
NO_TOKEN = "this status is for those who show its token: Authorization: Bearer TOKEN\n"
OPEN_PATHS = ("/healthz", "/readyz")  # for everybody, without a reason

_log = logging.getLogger(__name__)


class HttpAnswer(NamedTuple):
    status: HTTPStatus
    body: str
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[str, ...] = ()


class StatusServer(TcpServer):
    """Serves one node's status while it is entered."""

    def __init__(
        self, node: ObservedNode, address: str, port: int, hosts: Sequence[str] = (), guard: StatusGuard | None = None
    ) -> None:
        super().__init__(address, port, REQUEST_SIZE_MAX)
        self._node = node
        self._meter = Meter()
        self._sampler: asyncio.Task[None] | None = None
        self._hosts = frozenset((LOCALHOST, *hosts))
        self._guard = guard
        self._unserved: dict[asyncio.Task[None], None] = {}  # those who have been silent for longest first

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self._sampler = asyncio.create_task(self._sample())
        return self

    async def __aexit__(self, *how: object) -> None:
        assert self._sampler is not None
        self._sampler.cancel()
        await asyncio.gather(self._sampler, return_exceptions=True)
        await super().__aexit__(*how)

    def refused(self, error: OSError) -> UsageError:
        return _bind_error(error, self.address, self.port)

    @property
    def url(self) -> str:
        return f"http://{host_and_port(self.address, self.port)}"

    def status(self) -> Status:
        return advised(status_of(self._node, self._meter))

    async def _sample(self) -> None:
        while True:
            with suppress(OSError):  # the sockets of a node that ended by itself are closed
                self.status()
            await asyncio.sleep(SAMPLE_EVERY_S)

    # One connection

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request. Who dawdles gets no answer, or no whole one."""
        task = asyncio.current_task()
        assert task is not None
        writer.transport.set_write_buffer_limits(0)  # what is not sent is waited for, all of it
        self._make_room()
        self._unserved[task] = None
        try:
            async with asyncio.timeout(REQUEST_TIME_MAX_S):
                answer, is_head = await self._handle(reader)
            del self._unserved[task]
            self._unserved[task] = None
            async with asyncio.timeout(REQUEST_TIME_MAX_S):
                writer.write(_encoded(answer, is_head))
                await writer.drain()
        finally:
            self._unserved.pop(task, None)

    def _make_room(self) -> None:
        """Whoever asks for its health is answered, though others hold as many connections as there may be."""
        if len(self._unserved) >= CONNECTIONS_MAX:
            silent = next(iter(self._unserved))
            del self._unserved[silent]
            silent.cancel()

    async def _handle(self, reader: asyncio.StreamReader) -> tuple[HttpAnswer, bool]:
        try:
            request = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return HttpAnswer(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the request is too large\n"), False
        except asyncio.IncompleteReadError as error:
            request = error.partial
        words = request.partition(b"\r\n")[0].decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return HttpAnswer(HTTPStatus.BAD_REQUEST, "this is not an HTTP/1.1 request\n"), False
        if not self._is_host(request):
            return HttpAnswer(HTTPStatus.FORBIDDEN, FOREIGN_HOST), words[0] == "HEAD"
        answer = self._answer(words[0], words[1].partition("?")[0], is_known=self._is_known(request))
        return answer, words[0] == "HEAD"

    def _is_host(self, request: bytes) -> bool:
        """Whether the request is for this host; HTTP/1.0 need not say."""
        hosts = _headers(request, "host")
        return all(_name_of(host) in self._hosts or _is_address(_name_of(host)) for host in hosts) and len(hosts) <= 1

    def _is_known(self, request: bytes) -> bool:
        """Whether whoever asks may read everything."""
        shown = _headers(request, "authorization")
        return self._guard is None or (len(shown) == 1 and self._guard.is_known(shown[0]))

    def _answer(self, method: str, path: str, *, is_known: bool) -> HttpAnswer:
        paths: dict[str, Callable[[], HttpAnswer]] = {
            "/status": self._on_status,
            "/metrics": self._on_metrics,
            "/healthz": self._on_health,
            "/readyz": self._on_readiness,
        }
        if path not in paths:
            return HttpAnswer(HTTPStatus.NOT_FOUND, f"there is {', '.join(paths)}\n")
        if method not in ("GET", "HEAD"):
            return HttpAnswer(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD\n", headers=("Allow: GET, HEAD",))
        if not is_known and path not in OPEN_PATHS:
            return HttpAnswer(HTTPStatus.UNAUTHORIZED, NO_TOKEN, headers=("WWW-Authenticate: Bearer",))
        try:
            found = paths[path]()
            return found if is_known else found._replace(body=f"{found.status.phrase.lower()}\n")
        except Exception:  # a status that cannot be told must not end the node
            _log.exception("%s could not be answered", path)
            return HttpAnswer(HTTPStatus.INTERNAL_SERVER_ERROR, "the status could not be told; see the log\n")

    def _on_status(self) -> HttpAnswer:
        text = json_text(self.status().document(), indent=2) + "\n"
        return HttpAnswer(HTTPStatus.OK, text, "application/json")

    def _on_metrics(self) -> HttpAnswer:
        return HttpAnswer(HTTPStatus.OK, metrics.metrics_text(self.status()), metrics.CONTENT_TYPE)

    def _on_health(self) -> HttpAnswer:
        engine = self._node.engine
        status = HTTPStatus.SERVICE_UNAVAILABLE if engine.is_gone else HTTPStatus.OK
        return HttpAnswer(status, f"{engine.state_name.lower()}\n")

    def _on_readiness(self) -> HttpAnswer:
        engine = self._node.engine
        stalled = engine.stalled(self._node.now())
        is_ready = engine.is_ready and stalled is None
        roster = engine.roster
        if roster is not None and self._node.config.node not in roster:
            is_ready = False
            stalled = f"removed from the cluster: version {roster.version} of the node list does not have this node"
        text = stalled or f"{engine.state_name.lower()}, {len(engine.configuration.members)} members"
        return HttpAnswer(HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE, f"{text}\n")


def _headers(request: bytes, wanted: str) -> list[str]:
    """Return what the headers of this name say."""
    lines = request.decode("latin-1").split("\r\n")[1:]
    return [value.strip() for name, _, value in (line.partition(":") for line in lines) if name.lower() == wanted]


def _name_of(host: str) -> str:
    """Return the name without the port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower().rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _encoded(answer: HttpAnswer, is_head: bool) -> bytes:
    body = answer.body.encode()
    lines = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
        f"Content-Type: {answer.content_type}",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "Connection: close",
        *answer.headers,
        "\r\n",
    )
    return "\r\n".join(lines).encode("latin-1") + (b"" if is_head else body)


def _bind_error(error: OSError, address: str, port: int) -> UsageError:
    place = f"{address} port {port} (status)"
    if error.errno == errno.EADDRINUSE:
        return UsageError(f"{place} is taken by another process: choose another with --status-port, or 0 for none")
    if error.errno == errno.EADDRNOTAVAIL:
        return UsageError(f"{address} is not an address of this host: correct the address of status")
    if error.errno == errno.EACCES:
        return UsageError(f"this user may not open {place}: choose a port above 1023")
    return UsageError(f"{place} cannot be opened: {error.strerror or error}")
