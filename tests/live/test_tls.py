"""Clients over TLS on real sockets: who is let in, what the others are told, and what a daemon writes down of it."""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

import ordercast
from ordercast import UsageError
from ordercast.api.credentials import read_credentials
from ordercast.daemon import authority
from ordercast.daemon.authority import CertificateKind, issue, new_authority, new_token, renew
from ordercast.daemon.clients.certificates import Certificates
from ordercast.daemon.clients.door import Door
from ordercast.daemon.clients.server import ClientServer
from ordercast.daemon.config.node import ClientsConfig
from ordercast.daemon.host import GroupHost
from ordercast.session.counters import ClientRefusal
from ordercast.session.rights import AccessRule
from tests.live.stage import joined, live, local, messages_until, quick_ring

HOSTS = ("127.0.0.1", "localhost")


def made(folder: Path) -> Path:
    """A folder with an authority and a certificate of the daemon."""
    new_authority(folder, "alice")  # as one of the clients
    issue(folder, "n1", CertificateKind.DAEMON, HOSTS)
    return folder


def client_file(folder: Path, name: str, days: int = 365) -> Path:
    return issue(folder, name, CertificateKind.CLIENT, (), days)[0]


@asynccontextmanager
async def serving(folder: Path, certs: Path | None, *rules: AccessRule) -> AsyncIterator[tuple[ClientServer, str]]:
    host = GroupHost(local(quick_ring(), name="n1"))
    await host.start()
    try:
        door = Door(None if certs is None else Certificates(certs, "n1"), rules)
        async with ClientServer(host, ClientsConfig(folder=folder, port=0), door=door) as server:
            yield server, str(server.addresses[1])
    finally:
        await host.leave()


@live
async def test_clients_with_certificates_and_tokens_speak_with_everybody(tmp_path: Path) -> None:
    certs = made(tmp_path / "certs")
    alice, billing = client_file(certs, "alice"), new_token(certs, "billing")
    async with serving(tmp_path, certs) as (server, address), ordercast.connect(f"unix://{tmp_path}/n1.sock") as here:
        there = address.replace("127.0.0.1", "localhost")
        async with (
            ordercast.connect(address, credentials=alice) as one,
            ordercast.connect(there, credentials=billing) as two,
        ):
            await joined((here, one, two), "orders")
            large = os.urandom(3 << 20)
            await one.send("orders", large, confirm=True)
            await two.send("orders", b"from a token", confirm=True)
            for member in (here, one, two):
                found = await messages_until(member, b"from a token")
                assert [message.data for message in found] == [large, b"from a token"]
            assert sorted(server.sessions_by_identity) == ["cert:alice", "token:billing", "user:" + _me()]
        assert await asyncio.to_thread(_sent_blocking, address, alice)


def _sent_blocking(address: str, credentials: Path) -> bool:
    with ordercast.connect(address, credentials=credentials) as me:
        sent = me.send("orders", b"blocking", confirm=True)
        assert me.run(me.member.send("orders", b"on an event loop", confirm=True)) is not None
        return sent is not None


def _me() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name


@live
async def test_whoever_cannot_be_known_gets_one_sentence_and_the_daemon_writes_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    certs, strange = made(tmp_path / "certs"), made(tmp_path / "strange")
    monkeypatch.setattr(authority, "SKEW", timedelta(days=3))
    expired = client_file(certs, "late", days=-1)
    (tmp_path / "more").mkdir()
    cases = [
        (client_file(strange, "mallory"), "is not signed by the authority in these credentials"),
        (
            _half_strange(client_file(strange, "eve"), certs),
            "refuses this client: the certificate .* another authority",
        ),
        (expired, "refuses this client: the certificate of this client has expired: renew it with `ordercast certs"),
        (certs / "n1.pem", "refuses this client: the certificate of this client is not a client's"),
        (_without_certificate(new_token(strange, "nobody"), certs), "refuses this client: it wants to know who"),
    ]
    caplog.set_level(logging.INFO, "ordercast.audit")
    async with serving(tmp_path, certs) as (server, address):
        host = server.host
        for credentials, sentence in cases:
            with pytest.raises(UsageError, match=sentence):
                await ordercast.connect(address, credentials=credentials).__aenter__()
        with pytest.raises(UsageError, match=r"this daemon speaks TLS .* `ordercast certs client FOLDER NAME`"):
            await ordercast.connect(address).__aenter__()
        with pytest.raises(UsageError, match="is for other names: connect under a name that it has"):
            (certs / "n1.pem").unlink()
            issue(certs, "n1", CertificateKind.DAEMON, ("10.0.0.1",))
            server.reread()
            await ordercast.connect(address, credentials=client_file(certs, "bob")).__aenter__()
        counters = host.counters.clients
        assert counters.refusals[ClientRefusal.TLS] >= len(cases)
        reasons = {"strange authority", "expired certificate", "no certificate", "no TLS", "not a client's"}
        assert reasons <= set(counters.insecure)
        lines = [record for record in caplog.records if record.getMessage().startswith("a client at")]
        assert len(lines) == len(counters.insecure)  # equal ones are one line


def _half_strange(path: Path, certs: Path) -> Path:
    """Somebody who knows the authority, and is signed by another one."""
    own = path.read_text().partition("-----END CERTIFICATE-----\n")
    known = (certs / "n1.pem").read_text().partition("-----END CERTIFICATE-----\n")[2]
    path.write_text(own[0] + own[1] + known)
    return path


def _without_certificate(path: Path, certs: Path) -> Path:
    token = path.read_text().partition("-----BEGIN CERTIFICATE")[0]
    path.write_text(token + (certs / "n1.pem").read_text().partition("-----END CERTIFICATE-----\n")[2])
    return path


@live
async def test_renewed_certificates_are_taken_without_a_restart_and_sessions_go_on(tmp_path: Path) -> None:
    certs = made(tmp_path / "certs")
    alice = client_file(certs, "alice")
    async with serving(tmp_path, certs) as (server, address), ordercast.connect(address, credentials=alice) as before:
        await joined((before,), "orders")
        assert not server.reread()
        renew(certs / "n1.pem", certs, days=30)
        renew(alice, certs)
        assert server.reread()
        async with ordercast.connect(address, credentials=alice) as after:
            await after.send("orders", b"to who was here before", confirm=True)
        assert (await messages_until(before, b"to who was here before"))[-1].data == b"to who was here before"
        assert server.certificate_days in (29, 30)
        (certs / "n1.pem").write_text("nothing")
        with pytest.raises(UsageError, match="has no certificate"):
            server.reread()
        async with ordercast.connect(address, credentials=alice):
            pass


@live
async def test_noise_half_handshakes_and_cut_connections_harm_nobody(tmp_path: Path) -> None:
    certs = made(tmp_path / "certs")
    alice = client_file(certs, "alice")
    context = read_credentials(alice).context
    async with serving(tmp_path, certs) as (server, address):
        port = int(address.rpartition(":")[2])
        async with ordercast.connect(address, credentials=alice) as me:
            await joined((me,), "orders")
            for noise in (b"\x16\x03\x01\xff\xff" + os.urandom(3000), b"\x16", b"GET / HTTP/1.0\r\n\r\n", bytes(600)):
                with socket.create_connection(("127.0.0.1", port)) as stranger:
                    stranger.sendall(noise)
                    await me.send("orders", b"x", confirm=True)
            old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            old.check_hostname, old.verify_mode, old.maximum_version = False, ssl.CERT_NONE, ssl.TLSVersion.TLSv1_2
            for each in (old, context):  # an older TLS; and one who says nothing behind the handshake
                with socket.create_connection(("127.0.0.1", port)) as plain:
                    try:
                        await asyncio.to_thread(_shaken, each, plain)
                    except ssl.SSLError:
                        assert each is old
            await me.send("orders", b"still here", confirm=True)
        assert server.host.counters.clients.insecure["not TLS 1.3"] >= 1


def _shaken(context: ssl.SSLContext, sock: socket.socket) -> None:
    context.wrap_socket(sock, server_hostname="localhost").close()


@live
async def test_credentials_at_a_daemon_without_tls_say_what_to_do(tmp_path: Path) -> None:
    certs = made(tmp_path / "certs")
    async with serving(tmp_path, None) as (_, address):
        with pytest.raises(UsageError, match="does not speak TLS: write certificates = FOLDER in"):
            await ordercast.connect(address, credentials=client_file(certs, "alice")).__aenter__()
        with pytest.raises(UsageError, match="there is no file of credentials"):
            await ordercast.connect(address, credentials=tmp_path / "none").__aenter__()
