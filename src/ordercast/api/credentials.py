"""Credentials of a client: a file with its certificate and key, or a token, and the authority that signs daemons'.

Read whenever a connection begins, so that renewed ones are taken without a restart. Nothing but `ssl` is needed.
"""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import NamedTuple

from ordercast.disk.secret_files import read_secret_file
from ordercast.model.errors import UsageError
from ordercast.session.pem import CERTIFICATE, TOKEN, TOKEN_SIZE, blocks_of, pem_bytes

VARIABLE = "ORDERCAST_CREDENTIALS"


class Credentials(NamedTuple):
    context: ssl.SSLContext
    token: bytes | None


def credentials_file(given: str | os.PathLike[str] | None) -> Path | None:
    """The file that is meant: what is given, or what the environment says."""
    found = given if given is not None else os.environ.get(VARIABLE)
    return Path(found).expanduser() if found else None


def read_credentials(path: Path) -> Credentials:
    """UsageError says what is wrong with the file. Nothing of what it says is repeated."""
    blocks = blocks_of(_text(path))
    certificates = [text for kind, text in blocks if kind == CERTIFICATE]
    tokens = [pem_bytes(text) for kind, text in blocks if kind == TOKEN]
    has_key = any(kind.endswith("PRIVATE KEY") for kind, _ in blocks)
    authorities = certificates[1:] if has_key else certificates
    if not authorities or (not has_key and not tokens) or any(len(token) != TOKEN_SIZE for token in tokens):
        raise UsageError(
            f"the credentials {path} are not what `ordercast certs client` or `ordercast certs token` writes"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_verify_locations(cadata="".join(authorities))
        if has_key:
            context.load_cert_chain(path)
    except (ssl.SSLError, ValueError):
        raise UsageError(f"the credentials {path} cannot be used: certificate and key do not fit") from None
    return Credentials(context, tokens[0] if tokens else None)


def _text(path: Path) -> str:
    advice = "make one with `ordercast certs client FOLDER NAME`"
    return read_secret_file(path, "file of credentials", advice).decode("ascii", "replace")
