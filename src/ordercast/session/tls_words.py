"""What went wrong between two ends of TLS, in a sentence that says what to do."""

from __future__ import annotations

import ssl
from typing import NamedTuple

from ordercast.session.tls import TlsRefused

# Codes of X.509 verification (RFC 5280, as OpenSSL numbers them)
NOT_YET_VALID = 9
EXPIRED = 10
WRONG_PURPOSE = 26
WRONG_HOST = (62, 64)  # a name, an address


class _Words(NamedTuple):
    reason: str
    advice: str


_SHOWN = "show the certificate with `ordercast certs show FILE`"
_NEW = "make one with `ordercast certs client FOLDER NAME`, and give it as credentials"
_STRANGE = _Words(
    "strange authority", f"the certificate of this client is signed by another authority: {_NEW}; {_SHOWN}"
)

# What a daemon says of a client, as alerts, by what OpenSSL calls them.
_ALERTS = {
    "CERTIFICATE_REQUIRED": _Words("no certificate", f"it wants to know who this client is: {_NEW}"),
    "CERTIFICATE_EXPIRED": _Words(
        "expired certificate",
        "the certificate of this client has expired: renew it with `ordercast certs renew FILE --authority FOLDER`",
    ),
    "UNKNOWN_CA": _STRANGE,
    "DECRYPT_ERROR": _STRANGE,  # another authority of the same name
    "BAD_CERTIFICATE": _Words("bad certificate", f"the certificate of this client is not a client's: {_NEW}"),
    "UNSUPPORTED_CERTIFICATE": _Words("bad certificate", f"the certificate of this client is not a client's: {_NEW}"),
    "CERTIFICATE_UNKNOWN": _Words("bad certificate", f"the certificate of this client cannot be used there: {_SHOWN}"),
    "PROTOCOL_VERSION": _Words("not TLS 1.3", "it speaks TLS 1.3 alone: bring this Python up to date"),
}


def refused_by_daemon(error: ssl.SSLError, where: str) -> TlsRefused:
    """Why a client has no secure connection to the daemon there."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _wrong_daemon(error, where)
    name = error.reason or ""
    for alert, words in _ALERTS.items():
        if "ALERT" in name and alert in name:
            return TlsRefused(f"the daemon at {where} refuses this client: {words.advice}", words.reason)
    if name in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"):
        return TlsRefused(
            f"the daemon at {where} does not speak TLS: write certificates = FOLDER in [clients] of its file, or "
            "connect without credentials if everybody may read and send there",
            "no TLS",
        )
    return TlsRefused(f"there is no secure connection to the daemon at {where}: {_spoken(error)}", "TLS")


def _wrong_daemon(error: ssl.SSLCertVerificationError, where: str) -> TlsRefused:
    match error.verify_code:
        case code if code in WRONG_HOST:
            return TlsRefused(
                f"the certificate of the daemon at {where} is for other names: connect under a name that it has, or "
                "make it another one with `ordercast certs server FOLDER NAME --host HOST`",
                "wrong name",
            )
        case code if code == EXPIRED:
            return TlsRefused(
                f"the certificate of the daemon at {where} has expired: renew it there with `ordercast certs renew "
                "FILE --authority FOLDER`, then `ordercast reload`",
                "expired certificate",
            )
        case code if code == NOT_YET_VALID:
            return TlsRefused(
                f"the certificate of the daemon at {where} is not valid yet: look at the clocks of both hosts",
                "certificate of the future",
            )
        case code if code == WRONG_PURPOSE:
            return TlsRefused(
                f"what answers at {where} shows a certificate that is not a daemon's: it may be a client that poses as "
                "one",
                "not a daemon",
            )
    return TlsRefused(
        f"the certificate of the daemon at {where} is not signed by the authority in these credentials: they may be of "
        "another cluster, or of an older authority; or this is not the daemon",
        "strange authority",
    )


_OF_CLIENTS = {
    EXPIRED: "expired certificate",
    NOT_YET_VALID: "certificate of the future",
    WRONG_PURPOSE: "not a client's",
}


def refused_client(error: ssl.SSLError) -> TlsRefused:
    """Why a daemon does not have a client, for its log."""
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = _OF_CLIENTS.get(error.verify_code, "strange authority")
    elif error.reason in ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "CERTIFICATE_REQUIRED"):
        reason = "no certificate"
    elif "ALERT" in (error.reason or ""):
        reason = "the client refuses this daemon's certificate"
    else:
        reason = "not TLS 1.3"
    return TlsRefused(f"a client was refused: {reason} ({_spoken(error)})", reason)


def _spoken(error: ssl.SSLError) -> str:
    return (error.reason or str(error) or "no reason").lower().replace("_", " ")
