"""Certificates of a cluster: an authority, one for each daemon and each client; tokens for those who have none.

Everything is in one folder. `authority.pem` signs, and stays where certificates are made; whoever is called NAME has
`NAME.pem`: the private key, the certificate and the authority's certificate, so that one file is all that is needed.
Files are 0600, are never written over by a new one, and are replaced at once, or not at all, by a renewed one. No error
that this module raises has a secret in it.
"""

from __future__ import annotations

import hashlib
import secrets
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ordercast.disk.secret_files import read_secret_file, replace_secret_file, write_new_secret_file
from ordercast.groups.names import checked_client, checked_daemon
from ordercast.model.errors import UsageError
from ordercast.session.pem import TOKEN, TOKEN_SIZE, blocks_of, pem_text, token_hash

AUTHORITY = "authority.pem"
TOKENS = "tokens.toml"  # hashes of those that are accepted
SUFFIX = ".pem"
AUTHORITY_DAYS = 3650
DAYS = 365
_TOKEN_TITLE = "# Token "  # of a file, before the name
SKEW = timedelta(days=1)  # by which clocks may differ

Signer = Ed25519PrivateKey | EllipticCurvePrivateKey  # of an authority; the second is of earlier versions


class CertificateKind(Enum):
    AUTHORITY = "authority"
    DAEMON = "daemon"
    CLIENT = "client"
    TOKEN = "token"


_MAKERS = {CertificateKind.DAEMON: "server", CertificateKind.CLIENT: "client"}  # the commands that make one


@dataclass(frozen=True)
class CertificateTold:
    """What a certificate says; of a file with a token, whose it is, and what the certificate of the authority says."""

    name: str
    kind: CertificateKind
    hosts: tuple[str, ...]
    begins: datetime
    ends: datetime
    authority: str  # the first digits of its fingerprint, by which people compare

    def days_left(self, now: datetime) -> int:
        return (self.ends - now).days


# Making


def new_authority(folder: Path, name: str) -> CertificateTold:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = Ed25519PrivateKey.generate()
    # Nobody else is called so: a certificate with the name of its authority would count as signed by itself.
    subject = _named(f"authority {secrets.token_hex(4)} of {name}")
    certificate = (
        _begun(subject, subject, key.public_key(), AUTHORITY_DAYS)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(key, None)
    )
    _write_new(folder / AUTHORITY, _pem(key, certificate))
    return _told(certificate, certificate)


def issue(
    folder: Path, name: str, kind: CertificateKind, hosts: Sequence[str] = (), days: int = DAYS
) -> tuple[Path, CertificateTold]:
    """Make a certificate and its key. UsageError when there is one of that name already."""
    _check(name, kind, hosts)
    path = folder / f"{name}{SUFFIX}"
    text, told = _issued(folder, name, kind, hosts, days)
    _write_new(path, text)
    return path, told


def renew(path: Path, folder: Path, days: int = DAYS, hosts: Sequence[str] = ()) -> CertificateTold:
    """Put another certificate, with a key of its own, in the place of this one. It has the same name, and the same
    hosts unless there are others."""
    before = read_certificate(path)
    if before.kind is CertificateKind.TOKEN:
        raise UsageError(f"{path} has a token, which has no end: make another with `ordercast certs token`")
    if before.kind is CertificateKind.AUTHORITY:
        raise UsageError(f"{path} is an authority: make another in a folder of its own, and certificates with that")
    text, told = _issued(folder, before.name, before.kind, hosts or before.hosts, days)
    if told.authority != before.authority:
        raise UsageError(
            f"{path} is of the authority {before.authority}, and {folder} has {told.authority}: name the folder of its "
            f"own, or make a new file with `ordercast certs {_MAKERS[before.kind]} {folder} {before.name}`"
        )
    replace_secret_file(path, text)
    return told


def new_token(folder: Path, name: str) -> Path:
    """Make a token for a client: its file has the token and the authority, and the daemons' list a hash of it."""
    checked_client(name)
    _, certificate = _authority(folder)
    tokens = read_tokens(folder)
    if name in tokens:
        raise UsageError(f"there is a token {name} already: take its line out of {folder / TOKENS}, or choose another")
    token = secrets.token_bytes(TOKEN_SIZE)
    path = folder / f"{name}{SUFFIX}"
    _write_new(path, f"{_TOKEN_TITLE}{name}\n" + pem_text(TOKEN, token) + _text_of(certificate))
    replace_secret_file(folder / TOKENS, tokens_text({**tokens, name: token_hash(token)}))
    return path


def tokens_text(tokens: dict[str, str]) -> str:
    lines = [f'"{name}" = "{digest}"' for name, digest in sorted(tokens.items())]
    return (
        "# Hashes of tokens that clients show. Take a line out, and reload, to refuse one.\n" + "\n".join(lines) + "\n"
    )


def _issued(
    folder: Path, name: str, kind: CertificateKind, hosts: Sequence[str], days: int
) -> tuple[str, CertificateTold]:
    signer, authority = _authority(folder)
    key = Ed25519PrivateKey.generate()  # OpenSSL checks it in less time than keys on other curves
    purpose = ExtendedKeyUsageOID.SERVER_AUTH if kind is CertificateKind.DAEMON else ExtendedKeyUsageOID.CLIENT_AUTH
    begun = (
        _begun(_named(name), authority.subject, key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if hosts:
        begun = begun.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
    certificate = begun.sign(signer, None if isinstance(signer, Ed25519PrivateKey) else hashes.SHA256())
    told = _told(certificate, authority)
    title = f"# {kind.value.capitalize()} {name}, until {told.ends.date()}. Whoever has this file is {name}.\n"
    return title + _pem(key, certificate, authority), told


def _begun(subject: x509.Name, issuer: x509.Name, key: Ed25519PublicKey, days: int) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + timedelta(days=days))
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _check(name: str, kind: CertificateKind, hosts: Sequence[str]) -> None:
    (checked_daemon if kind is CertificateKind.DAEMON else checked_client)(name)
    if "/" in name or name + SUFFIX == AUTHORITY:
        raise UsageError(f"{name!r} cannot be the name of a file here: choose another")
    if kind is CertificateKind.DAEMON and not hosts:
        raise UsageError(
            f"under which names and addresses do clients reach {name}? Give each: --host 10.0.0.1 --host {name}.example"
        )
    for host in hosts:
        if not host.isascii() or not host or set(host) & set("/@ :") - ({":"} if _is_address(host) else set()):
            raise UsageError(f"{host!r} is no name or address of a host: write it without a port")


def _is_address(host: str) -> bool:
    return isinstance(_host(host), x509.IPAddress)


def _authority(folder: Path) -> tuple[Signer, x509.Certificate]:
    path = folder / AUTHORITY
    if not path.exists():
        raise UsageError(f"there is no authority in {folder}: make one with `ordercast certs new {folder}`")
    data = _private(path)
    try:
        key = serialization.load_pem_private_key(data, None)
        certificate = x509.load_pem_x509_certificate(data)
    except ValueError:
        raise UsageError(f"{path} is not what `ordercast certs new` writes") from None
    if not isinstance(key, Signer):
        raise UsageError(f"{path} is not what `ordercast certs new` writes")
    return key, certificate


# Reading


def read_certificate(path: Path) -> CertificateTold:
    """UsageError when there is none in the file. Nothing of what the file says is repeated."""
    return certificate_from(_private(path), path)


def certificate_from(data: bytes, path: Path) -> CertificateTold:
    try:
        certificates = x509.load_pem_x509_certificates(data)
        told = _told(certificates[0], certificates[-1])
    except ValueError:
        raise UsageError(f"{path} has no certificate: make one with `ordercast certs`") from None
    text = data.decode("ascii", "replace")
    if not any(kind == TOKEN for kind, _ in blocks_of(text)):
        return told
    first = text.partition("\n")[0]
    name = first.removeprefix(_TOKEN_TITLE) if first.startswith(_TOKEN_TITLE) else path.stem
    return replace(told, name=name, kind=CertificateKind.TOKEN)


def read_tokens(folder: Path) -> dict[str, str]:
    """Return the hash of each token that is accepted, by its name; none without a list."""
    path = folder / TOKENS
    if not path.exists():
        return {}
    try:
        document = tomllib.loads(_private(path).decode("ascii"))
    except (ValueError, RecursionError):
        raise UsageError(f"{path} is not what `ordercast certs token` writes") from None
    if not all(
        isinstance(digest, str) and len(digest) == 2 * hashlib.sha256().digest_size for digest in document.values()
    ):
        raise UsageError(f"{path} has something that is no hash of a token: make tokens with `ordercast certs token`")
    return {checked_client(name): str(digest) for name, digest in document.items()}


def _told(certificate: x509.Certificate, authority: x509.Certificate) -> CertificateTold:
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if not names:
        raise ValueError("a certificate without a name")
    return CertificateTold(
        str(names[0].value),
        _kind(certificate),
        _hosts(certificate),
        certificate.not_valid_before_utc,
        certificate.not_valid_after_utc,
        authority.fingerprint(hashes.SHA256()).hex()[:16],
    )


def _kind(certificate: x509.Certificate) -> CertificateKind:
    with suppress(x509.ExtensionNotFound):
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        return CertificateKind.DAEMON if ExtendedKeyUsageOID.SERVER_AUTH in usage else CertificateKind.CLIENT
    return CertificateKind.AUTHORITY


def _hosts(certificate: x509.Certificate) -> tuple[str, ...]:
    with suppress(x509.ExtensionNotFound):
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return tuple(str(name.value) for name in names)
    return ()


def _private(path: Path) -> bytes:
    """What a file says that nobody else may read."""
    return read_secret_file(path, "file of certificates", "make one with `ordercast certs`")


# Writing


def _pem(key: Ed25519PrivateKey, *certificates: x509.Certificate) -> str:
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return secret.decode() + "".join(map(_text_of, certificates))


def _text_of(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _write_new(path: Path, text: str) -> None:
    write_new_secret_file(path, text, f"see `ordercast certs show {path}`")
