"""TLS in memory: bytes cut anywhere, changed anywhere; what is kept until both sides know each other."""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from ordercast.api.credentials import read_credentials
from ordercast.daemon.authority import AUTHORITY, CertificateKind, issue, new_authority
from ordercast.daemon.clients.certificates import Certificates
from ordercast.disk.secret_files import write_new_secret_file
from ordercast.session.tls import TlsHalf

ROOM = memoryview(bytearray(1 << 16))


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    folder = tmp_path_factory.mktemp("certs")
    new_authority(folder, "tests")
    issue(folder, "n1", CertificateKind.DAEMON, ("10.0.0.1",))
    client: Path = issue(folder, "alice", CertificateKind.CLIENT)[0]
    return read_credentials(client).context, Certificates(folder, "n1").context


def _taken(half: TlsHalf, data: bytes, step: int) -> bytes:
    found = b""
    for start in range(0, len(data), step):
        for filled in half.receive(memoryview(data)[start : start + step], ROOM):
            found += ROOM[:filled]
    return found


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_bytes_may_come_in_any_pieces_and_early_words_wait(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext], step: int
) -> None:
    client, daemon = TlsHalf(contexts[0], "10.0.0.1"), TlsHalf(contexts[1])
    client.write(b"hello")
    client.begin()
    heard = b""
    for _ in range(3):
        heard += _taken(daemon, client.take(), step)
        _taken(client, daemon.take(), step)
    assert (heard, daemon.peer_name, client.peer_name) == (b"hello", "alice", "n1")
    large = os.urandom(200_000 if step > 1 else 20_000)
    daemon.write(large)
    daemon.finish()
    daemon.write(b"too late")
    assert _taken(client, daemon.take(), step) == large
    assert client.is_over


def test_an_authority_of_an_earlier_version_goes_on_signing(tmp_path: Path) -> None:
    """Keys were on the curve P-256 before they were Ed25519."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of before")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 7, now - timedelta(1), now + timedelta(9))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, pkcs8, clear = Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    write_new_secret_file(
        tmp_path / AUTHORITY, (key.private_bytes(pem, pkcs8, clear) + certificate.public_bytes(pem)).decode(), ""
    )
    issue(tmp_path, "n1", CertificateKind.DAEMON, ("10.0.0.1",))
    alice = issue(tmp_path, "alice", CertificateKind.CLIENT)[0]
    client = TlsHalf(read_credentials(alice).context, "10.0.0.1")
    daemon = TlsHalf(Certificates(tmp_path, "n1").context)
    client.begin()
    for _ in range(2):
        _taken(daemon, client.take(), 1 << 20)
        _taken(client, daemon.take(), 1 << 20)
    assert (daemon.peer_name, client.peer_name) == ("alice", "n1")


def test_whatever_is_changed_is_noticed_and_nothing_but_an_ssl_error_comes_of_it(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    for at in range(0, 2000, 13):
        client, daemon = TlsHalf(contexts[0], "10.0.0.1"), TlsHalf(contexts[1])
        client.write(b"secret")
        client.begin()
        heard, sent = b"", 0
        try:
            for _ in range(3):
                for one, other in ((client, daemon), (daemon, client)):
                    data = bytearray(one.take())
                    if sent <= at < sent + len(data):
                        data[at - sent] ^= 0x55
                    sent += len(data)
                    heard += _taken(other, bytes(data), 1 << 20)
        except ssl.SSLError:
            pass
        assert heard == b"" or at >= sent
