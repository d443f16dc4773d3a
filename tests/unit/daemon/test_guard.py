"""Where other hosts reach the status, it is for those who show its token."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from ordercast.cli.main import run
from ordercast.cli.status import fetch
from ordercast.daemon.config.node import NodeConfig, SecurityConfig, StatusConfig
from ordercast.daemon.status.bearer import new_bearer_file, read_bearer_file
from ordercast.daemon.status.guard import StatusGuard, guard_of
from ordercast.daemon.status.http import StatusServer
from ordercast.model.errors import UsageError
from tests.unit.daemon.fake_node import FakeNode

AWAY = StatusConfig(address="10.0.0.1", port=4790)


@pytest.fixture
def token(tmp_path: Path) -> Path:
    assert run(["certs", "bearer", str(tmp_path / "token")]) == 0
    return tmp_path / "token"


def test_where_other_hosts_reach_it_a_token_is_asked_for_or_said_not_to_be(token: Path) -> None:
    with pytest.raises(UsageError, match="ordercast certs bearer FILE"):
        guard_of(NodeConfig(status=AWAY))
    with pytest.raises(UsageError, match=r"there is no file of a token .*nowhere"):
        guard_of(NodeConfig(status=replace(AWAY, token=token.with_name("nowhere"))))
    assert guard_of(NodeConfig(status=replace(AWAY, insecure=True))) is None
    assert guard_of(NodeConfig(status=AWAY, security=SecurityConfig(insecure=True))) is None
    assert guard_of(NodeConfig(status=StatusConfig(port=4790))) is None
    assert guard_of(NodeConfig(status=replace(AWAY, port=None))) is None
    assert guard_of(NodeConfig(status=replace(AWAY, token=token))) is not None


def test_a_file_is_private_and_never_written_over(token: Path) -> None:
    before = read_bearer_file(token)
    with pytest.raises(UsageError, match="is there already"):
        new_bearer_file(token)
    assert read_bearer_file(token) == before and token.stat().st_mode & 0o777 == 0o600
    token.chmod(0o644)
    with pytest.raises(UsageError, match=f"chmod 600 {token}"):
        StatusGuard(token)


@pytest.mark.parametrize("text", ["", "short", "two words that are long enough", "\x00" * 40, "\xe9" * 40])
def test_what_is_no_token_is_refused_and_not_repeated(token: Path, text: str) -> None:
    token.write_text(text, "latin-1")
    with pytest.raises(UsageError, match="ordercast certs bearer") as error:
        read_bearer_file(token)
    assert not text or text not in str(error.value)


def test_who_shows_the_token_reads_and_who_does_not_learns_nothing(
    token: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        node = FakeNode()
        node.begin()
        async with StatusServer(node, "127.0.0.1", 0, (), StatusGuard(token)) as server:

            async def ask(path: str, *headers: str) -> tuple[int, str]:
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                lines = (f"GET {path} HTTP/1.1", "Host: localhost", *headers)
                writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
                answer = (await reader.read()).decode()
                writer.close()
                return int(answer.split()[1]), answer.partition("\r\n\r\n")[2]

            shown = f"Authorization: Bearer {read_bearer_file(token)}"
            for path in ("/status", "/metrics"):
                assert (await ask(path, shown))[0] == 200
                for wrong in ((), ("Authorization: Bearer wrong",), ("Authorization: Basic eDp5",), (shown, shown)):
                    code, body = await ask(path, *wrong)
                    assert code == 401 and "alpha" not in body
            assert await ask("/healthz") == (200, "ok\n") == await ask("/readyz")
            assert "members" in (await ask("/readyz", shown))[1]
            with pytest.raises(UsageError, match="ORDERCAST_STATUS_TOKEN"):
                await asyncio.to_thread(fetch, "127.0.0.1", server.port)
            monkeypatch.setenv("ORDERCAST_STATUS_TOKEN", str(token))
            assert (await asyncio.to_thread(fetch, "127.0.0.1", server.port))["me"]["name"] == "alpha"
            await asyncio.to_thread(token.write_text, "another-token-that-counts-from-now-on\n")
            assert (await ask("/status", shown))[0] == 401
            await asyncio.to_thread(token.unlink)
            assert (await ask("/status", shown))[0] == 401

    asyncio.run(play())
