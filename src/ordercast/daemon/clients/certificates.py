"""Certificates: what a daemon shows to clients over TCP, and what it wants to see of them. Read again while it runs."""

from __future__ import annotations

import hmac
import ssl
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path

from ordercast.daemon.authority import TOKENS, CertificateTold, read_certificate, read_tokens
from ordercast.daemon.config.node import NodeConfig
from ordercast.model.errors import UsageError
from ordercast.session.pem import CERTIFICATE, blocks_of, token_hash

DAYS_WARNED = 7  # before the end of a certificate


class Certificates:
    """The certificates of one daemon."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._path = folder / f"{name}.pem"
        self._stamps: tuple[object, ...] = ()
        self.context: ssl.SSLContext
        self.told: CertificateTold
        self._tokens: dict[str, str] = {}
        self.read()

    def read(self) -> bool:
        """Take what the files say now; tell whether that is something new. UsageError, and nothing changed, when they
        cannot be used. Connections that are there go on."""
        stamps = self._seen()
        told, tokens = read_certificate(self._path), read_tokens(self._folder)
        context = _context(self._path, has_tokens=bool(tokens))
        is_new = bool(self._stamps) and stamps != self._stamps
        self.context, self.told, self._tokens, self._stamps = context, told, tokens, stamps
        return is_new

    def _seen(self) -> tuple[object, ...]:
        return tuple(_stamp(path) for path in (self._path, self._folder / TOKENS))

    @property
    def are_stale(self) -> bool:
        """The files have changed since they were read."""
        return self._seen() != self._stamps

    def days_left(self) -> int:
        return self.told.days_left(datetime.now(UTC))

    def warning(self) -> str | None:
        """What a person should know of the end of the certificate."""
        left = self.days_left()
        if left >= DAYS_WARNED:
            return None
        when = f"ends in {left} days" if left > 0 else "ends today" if left == 0 else "has ended"
        return (
            f"the certificate {self._path} {when}, on {self.told.ends.date()}, and no client connects without it: "
            f"renew it with `ordercast certs renew {self._path} --authority FOLDER`"
        )

    def name_of_token(self, token: bytes) -> str | None:
        """Whose token this is; None when it is nobody's."""
        digest, found = token_hash(token), None
        for name, known in self._tokens.items():  # all of them, whichever it is
            if hmac.compare_digest(known, digest):
                found = name
        return found


def _stamp(path: Path) -> object:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _context(path: Path, *, has_tokens: bool) -> ssl.SSLContext:
    authorities = [text for kind, text in blocks_of(path.read_text(encoding="ascii")) if kind == CERTIFICATE][1:]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0  # a session that is resumed would not show its certificate again
    context.verify_mode = ssl.CERT_OPTIONAL if has_tokens else ssl.CERT_REQUIRED
    try:
        context.load_cert_chain(path)
        context.load_verify_locations(cadata="".join(authorities))
    except (ssl.SSLError, ValueError):
        raise UsageError(
            f"{path} cannot be used: make it with `ordercast certs server FOLDER NAME --host HOST`"
        ) from None
    return context


def certificates_of(config: NodeConfig) -> Certificates | None:
    """Return what a daemon shows its clients over TCP; None when they speak in the clear. UsageError says what is wrong
    with the files, or that other hosts reach its port and nobody said what protects it from strangers."""
    clients = config.clients
    if clients.port is None:
        return None
    if clients.certificates is not None:
        return Certificates(clients.certificates, config.name)
    if not (clients.insecure or config.security.insecure or ip_address(clients.address).is_loopback):
        host = "HOST" if ip_address(clients.address).is_unspecified else clients.address
        raise UsageError(
            f"other hosts reach the port of clients at {clients.address}, and this daemon has no certificate: run "
            f"`ordercast certs new FOLDER` and `ordercast certs server FOLDER {config.name} --host {host}`, "
            'and write certificates = "FOLDER" in [clients]; or write insecure = true there, if everybody there may '
            "read and send"
        )
    return None
