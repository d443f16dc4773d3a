"""What an operator is told of the clients of a daemon. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class ClientTold(NamedTuple):
    name: str  # in full
    place: str  # a host, or a user of this machine
    seconds: float  # since it connected
    groups: tuple[str, ...]
    policy: str  # what happens when it reads too slowly
    waiting_size: int  # bytes that it has not taken
    waiting_max: int  # beyond which the policy decides
    sent: int  # messages
    given: int
    dropped: int
    is_holding: bool  # all wait for it


def client_documents(before: Iterable[ClientTold], now: Iterable[ClientTold], seconds: float) -> list[dict[str, Any]]:
    """Return a document for each client, by name, with its rates over the time between two looks."""
    earlier = {client.name: client for client in before}
    return [
        {
            **client._asdict(),
            "sent_per_second": _rate(client.sent, earlier.get(client.name), "sent", seconds),
            "given_per_second": _rate(client.given, earlier.get(client.name), "given", seconds),
        }
        for client in sorted(now)
    ]


def _rate(count: int, earlier: ClientTold | None, what: str, seconds: float) -> float:
    """A count that has fallen is that of another client of the same name, which began since."""
    known = 0 if earlier is None else int(getattr(earlier, what))
    return round((count - known if count >= known else count) / seconds, 1)
