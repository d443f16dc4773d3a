"""What the archivers of a group say to each other, in order, in their control group."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from ordercast.archive.branches import Branch, branch_bytes, branch_from
from ordercast.archive.places import UNREADABLE, Place, place_from, view_id_of_text, view_text
from ordercast.archive.rows import Sinks
from ordercast.model.errors import WireError
from ordercast.model.events import ViewId

HOST_SIZE_MAX = 255


class Kind(Enum):
    SETTLED = "settled"  # I was at this place when this view came, and have everything up to it
    COMPLETE = "complete"  # a bid: I have fetched everything, and go on where the others are
    CLAIM = "claim"  # a bid: nobody who was here before me is left, and I begin this branch
    TIP = "tip"  # histories come together in this view: this is where mine ended


class DonorAddress(NamedTuple):
    """Where an archiver hands out what it has, and the secret that whoever asks must have."""

    host: str
    port: int
    secret: bytes


@dataclass(frozen=True, slots=True)
class Statement:
    kind: Kind
    view: ViewId  # of the archivers, of which it speaks
    place: Place  # of the speaker, when that view came
    number: int  # of the speaker's own statements: it recognises them when they come back
    side: tuple[str, ...] = ()  # TIP: who has the same history as the speaker
    branch: Branch | None = None  # the place's, so that others can tell what it is
    sinks: dict[str, Any] = field(default_factory=dict)  # what was seen of sinks, at the place
    address: DonorAddress | None = None  # where the speaker hands out what it has


def statement_bytes(statement: Statement) -> bytes:
    document = {
        "kind": statement.kind.value,
        "view": view_text(statement.view),
        "place": str(statement.place),
        "number": statement.number,
        "side": statement.side,
        "branch": None if statement.branch is None else json.loads(branch_bytes(statement.branch)),
        "sinks": statement.sinks,
        "address": None if statement.address is None else (*statement.address[:2], statement.address.secret.hex()),
    }
    return json.dumps(document, separators=(",", ":")).encode()


def statement_from(data: bytes, group: str) -> Statement:
    """Read the statement of an archiver of this group. WireError when it is none: anybody may send to any group."""
    try:
        found = json.loads(data)
        branch = None if found["branch"] is None else branch_from(json.dumps(found["branch"]).encode(), group)
        address = None if found["address"] is None else _address(found["address"])
        return Statement(
            Kind(found["kind"]),
            view_id_of_text(found["view"]),
            place_from(found["place"]),
            int(found["number"]),
            tuple(map(str, found["side"])),
            branch,
            Sinks(found["sinks"]).document(),
            address,
        )
    except UNREADABLE as error:
        raise WireError(f"this is no statement of an archiver: {error}") from None


def _address(found: Any) -> DonorAddress:
    host, port, secret = (*found, "")[:3]
    if not isinstance(host, str) or not 0 < len(host) <= HOST_SIZE_MAX or not 0 < int(port) < 65536:
        raise ValueError(f"{host!r} is no address")
    return DonorAddress(host, int(port), bytes.fromhex(secret))
