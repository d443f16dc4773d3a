"""What an application wants to send, checked before anything is sent."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from ordercast.model.content import Content
from ordercast.model.errors import UsageError
from ordercast.model.headers import checked_headers, header_block
from ordercast.model.service import SERVED, Service

MESSAGE_OVERHEAD = 64  # what a waiting message costs beside its bytes, so that empty ones are bounded too


def checked_service(service: Service, served: Collection[Service] = SERVED) -> Service:
    if not isinstance(service, Service) or service not in served:
        raise UsageError(f"{service!r} is not a service that is served here: use one of ordercast.Service")
    return service


Payload = bytes | bytearray | memoryview  # what may be sent
Sendable = Payload | Content  # by a member of groups


def checked_payloads(payloads: Sequence[Payload]) -> list[bytes]:
    """As bytes that nobody changes any more; UsageError for what cannot be sent."""
    if isinstance(payloads, bytes | bytearray | memoryview | str):
        raise UsageError("several payloads are expected here: give a list of bytes, or use the method for one")
    checked = cast("list[bytes]", list(payloads))
    if not set(map(type, checked)) <= {bytes}:
        checked = [_bytes_from(data) for data in checked]
    return checked


def checked_contents(payloads: Sequence[Sendable], headers: Mapping[str, str] | None) -> tuple[list[bytes], bool]:
    """As `checked_payloads`, and whether each begins with headers: those for all, and what it brings itself."""
    if headers is None and not any(isinstance(one, Content) for one in payloads):
        return checked_payloads(cast("Sequence[Payload]", payloads)), False
    common = checked_headers(headers or {})
    contents = [one if isinstance(one, Content) else Content(_bytes_from(one)) for one in payloads]
    if not common and not any(content.headers for content in contents):
        return [content.data for content in contents], False
    return [header_block({**common, **content.headers}) + content.data for content in contents], True


def _bytes_from(data: object) -> bytes:
    if isinstance(data, bytes):
        return data
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    raise UsageError(f"a payload is bytes, not {type(data).__name__}: encode it first")
