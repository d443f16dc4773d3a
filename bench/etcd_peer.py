"""etcd beside the replicated dictionary: its members on loopback, and writers that speak HTTP to them.

etcd comes from the distribution (Debian: etcd-server), and is looked for on the path, or where $ETCD says.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from urllib.request import Request, urlopen

CONNECTIONS_MAX = 100  # of one writer: each has one command underway
BEGIN_S = 30.0


def etcd_path() -> str | None:
    return os.environ.get("ETCD") or shutil.which("etcd")


def start_etcd(stack: ExitStack, folder: Path, ports: Sequence[int]) -> tuple[list[int], list[int]]:
    """Members, two ports each: their processes, and where clients go."""
    path = etcd_path()
    assert path is not None
    clients, peers = ports[::2], ports[1::2]
    everybody = ",".join(f"m{number}=http://127.0.0.1:{port}" for number, port in enumerate(peers))
    programs = []
    for number, (client, peer) in enumerate(zip(clients, peers, strict=True)):
        words = [path, "--name", f"m{number}", "--data-dir", str(folder / f"m{number}"), "--logger", "zap"]
        words += ["--initial-cluster", everybody, "--log-outputs", "/dev/null"]
        for flag in ("--listen-client-urls", "--advertise-client-urls"):
            words += [flag, f"http://127.0.0.1:{client}"]
        for flag in ("--listen-peer-urls", "--initial-advertise-peer-urls"):
            words += [flag, f"http://127.0.0.1:{peer}"]
        program = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(_end, program)
        programs.append(program)
    for port in clients:
        _wait_for(port)
    return [program.pid for program in programs], list(clients)


def _end(program: subprocess.Popen[bytes]) -> None:
    program.kill()
    program.wait()


def _wait_for(port: int) -> None:
    end = time.monotonic() + BEGIN_S
    request = Request(f"http://127.0.0.1:{port}/v3/kv/put", json.dumps(_put("begin", b"")).encode())
    while True:
        try:
            with urlopen(request, timeout=BEGIN_S):
                return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def _put(key: str, value: bytes) -> dict[str, str]:
    return {"key": base64.b64encode(key.encode()).decode(), "value": base64.b64encode(value).decode()}


class EtcdWriter:
    """One connection, one command at a time."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def __aenter__(self) -> EtcdWriter:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *how: object) -> None:
        self._writer.close()

    async def set(self, key: str, value: bytes) -> None:
        body = json.dumps(_put(key, value)).encode()
        head = f"POST /v3/kv/put HTTP/1.1\r\nHost: etcd\r\nContent-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 200"):
            raise OSError(answer.splitlines()[0].decode())
        size = next(int(line[15:]) for line in answer.lower().splitlines() if line.startswith(b"content-length:"))
        await self._reader.readexactly(size)
