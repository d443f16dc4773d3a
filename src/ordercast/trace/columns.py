"""The table in which a history is kept: every column with its type and meaning, and the kinds of rows. Pure.

A message submitted or delivered is one row; so is every other event. `n` numbers the events of the history: the rows of
one batch share it, and sorting by (`n`, `idx`) gives the history back exactly. `idx` numbers the rows of one process.
A column that a kind of row does not use is null. Numbers that are unsigned on the wire are kept as signed ones of the
same 64 bits, since Spark knows no others. `to_rows.py` and `from_rows.py` translate, `arrow.py` makes tables of rows,
`parquet.py` keeps finished runs and `live.py` what live nodes write as they go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple


class RowKind(IntEnum):
    """Numbers are in files: append only."""

    SUBMITTED = 1
    DELIVERED = 2
    STARTED = 3
    REGULAR_VIEW = 4
    TRANSITIONAL_VIEW = 5
    CRASHED = 6
    DEPARTED = 7
    HEALED = 8
    SATURATED = 9
    ENDED = 10
    MOVED = 11
    VISITED = 12
    IGNORED = 13
    DROPPED = 14
    OCCURRED = 15
    UNRECORDED = 16
    NETWORK_TURNED = 17
    TOKEN_RELEASED = 18
    STORAGE_TURNED = 19
    WANTED = 20
    CALM = 21
    DISTRIBUTED = 22
    MARKED = 23
    OPENED = 24

    # Of clients, in their own table: client_rows.py
    CONNECTED = 31
    ASKED_JOIN = 32
    ASKED_LEAVE = 33
    SENT = 34
    GOT_MESSAGE = 35
    GOT_CONFIRMATION = 36
    GOT_VIEW = 37
    GOT_TRANSITION = 38
    GOT_LEFT = 39
    GOT_DROPPED = 40
    GOT_REFUSAL = 41
    DISCONNECTED = 42
    KNOWN_GROUPS = 43

    # Of replicas, in their own table: replica_rows.py
    REPLICA_STARTED = 51
    CALLED = 52
    RETURNED = 53
    REFUSED = 54
    APPLIED = 55
    GOT_PICTURE = 56
    LOOKED = 57
    COMPONENT_CHANGED = 58
    STREAM_CUT = 59
    STREAM_BACK = 60
    BELIEVED = 61
    REPLICA_ENDED = 62
    REPLICA_KNOWN = 63
    JOURNAL_KEPT = 64


class Column(NamedTuple):
    type: str  # int8 to int64, bool, string, binary, or a list: processes, names, numbers
    meaning: str
    repeats: bool = False  # few different values, in no order: kept as a dictionary rather than as differences


COLUMNS: Mapping[str, Column] = {
    "run": Column("int64", "which run; the same in every row of a file"),
    "process": Column("int64", "whose event: node × 2⁴⁸ + incarnation; 0 for events of the whole cluster"),
    "idx": Column("int64", "number of the row among those of its process, from 0"),
    "n": Column("int64", "number of the event in the history, from 0; the rows of one batch share it"),
    "t": Column("int64", "nanoseconds: virtual time of a simulation, wall-clock time of a live run"),
    "kind": Column("int8", "what happened: see the kinds of rows", repeats=True),
    "configuration_seq": Column(
        "int64", "configuration in which it was delivered, which was installed, or whose token came: seq"
    ),
    "configuration_rep": Column("int64", "its representative", repeats=True),
    "origin_seq": Column("int64", "origin of the position of a message or of a configuration: seq"),
    "origin_rep": Column("int64", "its representative", repeats=True),
    "number": Column("int64", "number of the position, 63 bits"),
    "slot": Column("int32", "slot of the position, 16 bits"),
    "sender_process": Column("int64", "process that stamped the message; null: the bytes carry no stamp", repeats=True),
    "sender": Column("int64", "client within that process"),
    "counter": Column("int64", "the how-many-eth message of that client, from 1; 0: sent without a stamp"),
    "digest": Column(
        "int64", "hash of the payload, 63 bits or, live, 32; null in a batch without messages", repeats=True
    ),
    "service": Column("int16", "service asked for: 0 unreliable to 5 safe", repeats=True),
    "size": Column("int32", "bytes of the payload"),
    "destinations": Column("names", "groups and daemons that it is for, or that are wanted; null: all", repeats=True),
    "members": Column("processes", "members of a view; those alive when healed; senders that are saturated"),
    "transitional": Column("processes", "those who come to the view directly from the same configuration"),
    "previous_seq": Column("int64", "configuration that the view ends: seq"),
    "previous_rep": Column("int64", "its representative", repeats=True),
    "reason": Column("int16", "why the membership changed: a ChangeReason", repeats=True),
    "name": Column(
        "string", "engine started, state left or turned to, message ignored, occurrence, or gap", repeats=True
    ),
    "target": Column("string", "state entered; of a network the evidence", repeats=True),
    "text": Column("string", "the reason in words; of a start the promises, as JSON", repeats=True),
    "flag": Column("bool", "started: kept its storage; saturated: begins; ended: complete; storage turned: in use"),
    "about": Column("int64", "process that an occurrence or the evidence is about"),
    "count": Column("int64", "how often it occurred; which network; of a token, those that brought it, as bits"),
    "round": Column("int64", "rotation of the token, or the number of its hop"),
    "seq": Column("int64", "highest seq that the token has given out"),
    "aru": Column("int64", "aru on the token when it was forwarded"),
    "my_aru": Column("int64", "aru of the process visited"),
    "sent": Column("int64", "packets sent in this visit"),
    "retransmitted": Column("int64", "packets retransmitted in this visit"),
    "requested": Column("int64", "packets asked for in this visit"),
}
VISITED_COLUMNS = ("round", "seq", "aru", "my_aru", "sent", "retransmitted", "requested")
MESSAGE_KINDS = (int(RowKind.SUBMITTED), int(RowKind.DELIVERED))

_HALF, _WHOLE = 1 << 63, 1 << 64


def signed(number: int) -> int:
    return number - _WHOLE if number >= _HALF else number


def unsigned(number: int) -> int:
    return number + _WHOLE if number < 0 else number


class MessageRow(NamedTuple):
    """The columns that a message uses, in their order."""

    process: int
    idx: int
    n: int
    t: int
    kind: int
    configuration_seq: int | None = None
    configuration_rep: int | None = None
    origin_seq: int | None = None
    origin_rep: int | None = None
    number: int | None = None
    slot: int | None = None
    sender_process: int | None = None
    sender: int | None = None
    counter: int | None = None
    digest: int | None = None
    service: int | None = None
    size: int | None = None
    destinations: Sequence[str] | None = None


MESSAGE_COLUMNS = MessageRow._fields
Cells = dict[str, Any]


@dataclass(slots=True)
class Rows:
    """Messages as tuples, because they are many; other events by name, because no two kinds are alike."""

    messages: list[MessageRow] = field(default_factory=list)
    control: list[Cells] = field(default_factory=list)
