"""NATS beside the sites engine: a cluster of servers in each site, gateways between the sites, a client at each server.

`nats-server` comes from the distribution. As a program this module is one client: it reads a JSON line with what it is,
then one with each thing to do, as `sites_node.py` does, and answers likewise.
"""

from __future__ import annotations

import asyncio
import json
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rig.hosts import Hosts
from rig.programs import kill

from bench.live_node import tell

CLIENT_PORT, CLUSTER_PORT, GATEWAY_PORT = 4222, 6222, 7222
SUBJECT = b"load"
HEAD = struct.Struct("=Iq")  # number of the client, monotonic time in ns
BEGIN_S = 20.0


def server_file(number: int, sites: Sequence[Sequence[int]], near: Sequence[str], wide: Sequence[str]) -> str:
    """Return the configuration of a server. `sites`: the numbers of each one's servers, from 1; `near`, `wide`: the
    addresses of all servers, in their sites and between these."""
    site = next(index for index, numbers in enumerate(sites) if number in numbers)
    routes = _urls(near, [other for other in sites[site] if other != number], CLUSTER_PORT)
    remote = ", ".join(
        f"{{name: s{index}, urls: [{_urls(wide, numbers, GATEWAY_PORT)}]}}" for index, numbers in enumerate(sites)
    )
    return (
        f"server_name: n{number}\n"
        f"listen: {near[number - 1]}:{CLIENT_PORT}\n"
        f"cluster {{name: s{site}, listen: {near[number - 1]}:{CLUSTER_PORT}, routes: [{routes}]}}\n"
        f"gateway {{name: s{site}, listen: {wide[number - 1]}:{GATEWAY_PORT}, gateways: [{remote}]}}\n"
    )


def _urls(addresses: Sequence[str], numbers: Sequence[int], port: int) -> str:
    return ", ".join(f"nats://{addresses[number - 1]}:{port}" for number in numbers)


@contextmanager
def servers(hosts: Hosts, sites: Sequence[Sequence[int]], wide_segment: int, folder: Path) -> Iterator[None]:
    """Run a server on each host."""
    near = [host.address() for host in hosts]
    wide = [host.address(segment=wide_segment) for host in hosts]
    programs: list[subprocess.Popen[bytes]] = []
    try:
        for host in hosts:
            path = folder / f"nats-{host.number}.conf"
            path.write_text(server_file(host.number, sites, near, wide))
            programs.append(
                host.run(["nats-server", "-c", str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
        yield
    finally:
        kill(programs)


class Client:
    """A client that speaks as much of the protocol as a load needs."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._number = number
        self._reader, self._writer = reader, writer
        self.took_ms: list[float] = []

    async def listen(self) -> None:
        """Subscribe, and note how long each message of others took."""
        self._writer.write(b'CONNECT {"verbose":false,"echo":false}\r\nSUB %s 1\r\nPING\r\n' % SUBJECT)
        while line := await self._reader.readline():
            if line.startswith(b"MSG "):
                data = await self._reader.readexactly(int(line.split()[-1]) + 2)
                now = time.monotonic_ns()
                sender, at = HEAD.unpack_from(data)
                if sender != self._number:
                    self.took_ms.append((now - at) / 1e6)
            elif line.startswith(b"PING"):
                self._writer.write(b"PONG\r\n")

    async def load(self, order: dict[str, Any]) -> dict[str, Any]:
        """Send at a rate for some seconds."""
        rate, size, sent, began = order["rate"], order["size"], 0, time.monotonic()
        while time.monotonic() < began + order["seconds"]:
            for _ in range(int((time.monotonic() - began) * rate) - sent):
                data = HEAD.pack(self._number, time.monotonic_ns()).ljust(size)
                self._writer.write(b"PUB %s %d\r\n%s\r\n" % (SUBJECT, size, data))
                sent += 1
            await asyncio.sleep(0.002)
        return {"sent": sent}

    def report(self) -> dict[str, Any]:
        took, self.took_ms = self.took_ms, []
        return {"took_ms": took}


async def _connected(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    end = time.monotonic() + BEGIN_S
    while True:
        try:
            return await asyncio.open_connection(address, CLIENT_PORT)
        except OSError:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.1)


async def work(task: dict[str, Any]) -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    client = Client(task["node"], *await _connected(task["address"]))
    listening = asyncio.create_task(client.listen())
    tell({"ready": task["node"]})
    while line := await lines.readline():
        order = json.loads(line)
        tell(await client.load(order) if order["do"] == "load" else client.report())
    listening.cancel()


if __name__ == "__main__":
    asyncio.run(work(json.loads(sys.stdin.readline())))
