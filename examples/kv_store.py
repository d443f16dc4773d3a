"""A replicated key-value store with an HTTP front. Run one beside each daemon; ask any of them.

    python examples/kv_store.py --name kv --daemon n1 --voters kv@n1,kv@n2,kv@n3 --port 8001

    curl -X PUT --data-binary 'hello' localhost:8001/greeting      confirmed when it answers; X-Position: its place
    curl localhost:8001/greeting                                   the copy that is here, at once
    curl localhost:8001/greeting?latest                            with everything that was confirmed anywhere before
    curl -X DELETE localhost:8001/greeting
    curl localhost:8001/                                           all keys

A minority answers reads from its copy (X-Current: no) and refuses writes with 503 and the reason.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import ordercast
from ordercast.replicated import Dictionary, DictionaryFront, Majority, NotPrimary, Replica

VALUE_SIZE_MAX = 1 << 20
PATIENCE_S = 30.0


class Reply(NamedTuple):
    status: HTTPStatus
    body: bytes = b""
    position: int | None = None


class Store:
    """What the requests do, on the event loop."""

    def __init__(self, entries: DictionaryFront) -> None:
        self.entries = entries

    async def get(self, key: str, query: str) -> Reply:
        if query == "latest":
            await self.entries.synced()
        if not key:
            return Reply(HTTPStatus.OK, "".join(f"{name!s}\n" for name, _ in self.entries.items()).encode())
        value = self.entries.get(key)
        if value is None:
            return Reply(HTTPStatus.NOT_FOUND, b"no such key\n")
        return Reply(HTTPStatus.OK, value if isinstance(value, bytes) else value.encode())

    async def put(self, key: str, value: bytes) -> Reply:
        return Reply(HTTPStatus.NO_CONTENT, position=await self.entries.set(key, value))

    async def delete(self, key: str) -> Reply:
        return Reply(HTTPStatus.NO_CONTENT if await self.entries.delete(key) else HTTPStatus.NOT_FOUND)


class Handler(BaseHTTPRequestHandler):
    """One request, in a thread of its own."""

    protocol_version = "HTTP/1.1"

    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop, *arguments: Any) -> None:
        self.store, self.loop = store, loop
        super().__init__(*arguments)

    def do_GET(self) -> None:
        self._answer(lambda key, query: self.store.get(key, query))

    def do_PUT(self) -> None:
        size = self.headers.get("Content-Length", "")
        if not size.isdigit() or int(size) > VALUE_SIZE_MAX:
            self.close_connection = True
            self._reply(Reply(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, b"a value is at most 1 MiB, with its length\n"))
            return
        value = self.rfile.read(int(size))
        self._answer(lambda key, query: self.store.put(key, value))

    def do_DELETE(self) -> None:
        self._answer(lambda key, query: self.store.delete(key))

    def _answer(self, work: Callable[[str, str], Coroutine[Any, Any, Reply]]) -> None:
        url = urlsplit(self.path)
        running = asyncio.run_coroutine_threadsafe(work(unquote(url.path[1:]), url.query), self.loop)
        try:
            reply = running.result(PATIENCE_S)
        except NotPrimary as error:
            reply = Reply(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n".encode())
        except TimeoutError:
            running.cancel()
            reply = Reply(HTTPStatus.GATEWAY_TIMEOUT, b"not confirmed in time: it may be yet\n")
        self._reply(reply)

    def _reply(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("X-Current", "yes" if self.store.entries.age.is_current else "no")
        if reply.position is not None:
            self.send_header("X-Position", str(reply.position))
        if reply.status is not HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


async def serve(daemon: str | None, name: str, voters: list[str], port: int, on_port: Callable[[int], None]) -> None:
    """Until it is cancelled."""
    quorum = Majority(dict.fromkeys(voters, 1))
    async with (
        ordercast.connect(daemon, name=name, reconnect=True) as me,
        Replica(me, "kv-store", Dictionary(), quorum=quorum) as entries,
    ):
        loop = asyncio.get_running_loop()
        server = ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, Store(entries), loop))
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            on_port(server.server_port)
            await loop.create_future()
        finally:
            await asyncio.to_thread(server.shutdown)
            server.server_close()


def main() -> None:
    parser = argparse.ArgumentParser(description="A replicated key-value store with an HTTP front.")
    parser.add_argument("--daemon", help="where it is: a name, unix:///PATH or tcp://HOST:PORT")
    parser.add_argument("--name", default="kv")
    parser.add_argument("--voters", required=True, help="full names of all stores, such as kv@n1,kv@n2,kv@n3")
    parser.add_argument("--port", type=int, default=8001)
    options = parser.parse_args()
    told = partial(print, "serving at port", flush=True)
    try:
        asyncio.run(serve(options.daemon, options.name, options.voters.split(","), options.port, told))
    except ordercast.Error as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(f"port {options.port} cannot be served: {error.strerror}; choose another --port")


if __name__ == "__main__":
    main()
