"""Every event that a history can hold, with the numbers that break naive files: 64 bits, zero, none, empty."""

from __future__ import annotations

from dataclasses import fields

from hypothesis import strategies as st

from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.events import Reason, Transition, View, ViewId
from ordercast.model.ids import ConfigurationId, Instant, Position, ProcessId, Seq
from ordercast.model.lineage import Lineage, Term
from ordercast.model.notes import (
    Distributed,
    Evidence,
    Ignored,
    Marked,
    Moved,
    NetworkState,
    NetworkTurned,
    Note,
    Occurred,
    Occurrence,
    Opened,
    PacketDropped,
    Release,
    TokenReleased,
    Visited,
)
from ordercast.model.promises import GroupPromise, Promise, Promises, ReplicaPromise
from ordercast.model.service import Service
from ordercast.trace.client_records import ClientId, End, KnownGroups, Sent
from ordercast.trace.client_rows import CLIENTS
from ordercast.trace.event_rows import EventT, EventTable
from ordercast.trace.records import (
    Crashed,
    DeliveredBatch,
    DeliveredMessage,
    Departed,
    Ended,
    Event,
    Gap,
    Healed,
    Installed,
    MessageId,
    Noted,
    Saturated,
    Started,
    StorageTurned,
    Submitted,
    SubmittedMessage,
    Unrecorded,
    Wanted,
)
from ordercast.trace.replica_records import (
    Applied,
    ComponentChanged,
    GotPicture,
    Looked,
    ReplicaStarted,
    Returned,
    Stage,
)
from ordercast.trace.replica_rows import REPLICAS

WORD = st.integers(0, (1 << 64) - 1)
SMALL = st.integers(0, 0xFFFF)
TEXT = st.text(max_size=12)
AT = st.integers(0, (1 << 62)).map(Instant)
PROCESS = WORD.map(ProcessId)
PROCESSES = st.lists(PROCESS, max_size=4).map(tuple)
RING = st.builds(ConfigurationId, WORD, PROCESS)
DIGEST = st.integers(0, (1 << 63) - 1)
SERVICE = st.integers(0, 5)
MESSAGE = st.builds(MessageId, PROCESS, st.integers(0, (1 << 32) - 1), WORD)

NOTES: st.SearchStrategy[Note] = st.one_of(
    st.builds(Moved, TEXT, TEXT, st.none() | st.sampled_from(ChangeReason), TEXT),
    st.builds(Visited, RING, WORD, WORD, WORD, WORD, SMALL, SMALL, SMALL),
    st.builds(Ignored, TEXT, TEXT),
    st.builds(PacketDropped, TEXT),
    st.builds(Occurred, st.sampled_from(Occurrence), SMALL, st.none() | PROCESS),
    st.builds(
        NetworkTurned, SMALL, st.sampled_from(NetworkState), st.sampled_from(Evidence), st.none() | PROCESS, TEXT
    ),
    st.builds(Distributed, RING, SMALL, WORD, WORD, st.lists(SMALL, min_size=1).map(tuple)),
    st.builds(Marked, RING, WORD, WORD, WORD, WORD, SMALL),
    st.builds(TokenReleased, RING, WORD, WORD, st.sampled_from(Release), SMALL),
    st.builds(Opened, RING, SMALL, st.lists(st.sampled_from(("a", "b", "c")), max_size=3).map(tuple)),
)
VIEWS = st.builds(
    Configuration,
    st.sampled_from(ConfigurationKind),
    RING,
    PROCESSES,
    RING,
    PROCESSES,
    st.sampled_from(ChangeReason),
    st.builds(Position, RING, WORD.map(Seq), SMALL),
)
SERVICES = st.frozensets(st.sampled_from(Service))
PROMISES = st.builds(
    Promises,
    TEXT,
    st.frozensets(st.sampled_from(Promise)),
    SERVICES,
    SMALL,
    SERVICES,
    st.booleans(),
    st.frozensets(st.sampled_from(GroupPromise)),
    st.frozensets(st.sampled_from(ReplicaPromise)),
)
NAMES = st.lists(TEXT, max_size=3).map(tuple)
SUBMITTED = st.lists(st.builds(SubmittedMessage, MESSAGE, DIGEST, SERVICE, SMALL), max_size=3).map(tuple)
DELIVERED = st.lists(
    st.builds(DeliveredMessage, st.none() | MESSAGE, DIGEST, SERVICE, SMALL, WORD, SMALL), max_size=3
).map(tuple)

EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(Started, AT, PROCESS, PROMISES, st.booleans()),
    st.builds(Submitted, AT, PROCESS, SUBMITTED, NAMES),
    st.builds(DeliveredBatch, AT, PROCESS, RING, RING, DELIVERED),
    st.builds(Installed, AT, PROCESS, VIEWS),
    st.builds(Crashed, AT, PROCESS),
    st.builds(Departed, AT, PROCESS),
    st.builds(Noted, AT, PROCESS, NOTES),
    st.builds(Healed, AT, PROCESSES),
    st.builds(Saturated, AT, PROCESSES, st.booleans()),
    st.builds(Ended, AT, st.booleans()),
    st.builds(Unrecorded, AT, PROCESS, st.sampled_from(Gap), TEXT),
    st.builds(StorageTurned, AT, PROCESS, st.booleans()),
    st.builds(Wanted, AT, PROCESS, NAMES, st.booleans()),
)
HISTORIES = st.lists(EVENTS, max_size=12)

# What clients were told and replicas did: a strategy for each field, so that no kind of event can be forgotten.
POSITION = st.builds(Position, RING, st.integers(0, (1 << 63) - 1), SMALL)
VIEW_ID = st.builds(ViewId, RING, POSITION)
TERM = st.builds(Term, SMALL, VIEW_ID)
LINEAGE = st.none() | st.builds(Lineage, TERM, SMALL)
BYTES = st.binary(max_size=6)
FIELDS: dict[str, st.SearchStrategy[object]] = {
    "at": AT,
    "client": st.builds(ClientId, PROCESS, SMALL),
    "process": PROCESS,
    "name": TEXT,
    "groups": NAMES,
    "message": st.none() | MESSAGE,
    "service": SERVICE,
    "digest": DIGEST,
    "sender": TEXT,
    "position": POSITION,
    "view": st.builds(View, TEXT, NAMES, NAMES, st.sampled_from(Reason), NAMES, VIEW_ID, TEXT),
    "transition": st.builds(Transition, TEXT, NAMES, VIEW_ID),
    "group": TEXT,
    "messages": SMALL,
    "how": st.sampled_from(End),
    "alive": PROCESSES,
    "weights": st.lists(st.tuples(TEXT, SMALL), max_size=3).map(tuple),
    "structure": TEXT,
    "lineage": LINEAGE,
    "term": st.none() | TERM,
    "stage": st.sampled_from(Stage),
    "why": TEXT,
    "gap": st.sampled_from(Gap),
    **dict.fromkeys(("self_discard", "confirm", "complete", "is_certain", "is_primary"), st.booleans()),
    **dict.fromkeys(("decided", "elects", "is_holder", "is_current", "holds"), st.booleans()),
    **dict.fromkeys(("operation", "result", "question", "answer"), BYTES),
    **dict.fromkeys(("founders", "holders", "members", "excluded"), NAMES),
    **dict.fromkeys(("life", "caller", "chain", "memory"), WORD),
    **dict.fromkeys(("request", "count", "era", "round", "waiting", "pictures", "ghosts"), SMALL),
}
SPECIAL: dict[type, dict[str, st.SearchStrategy[object]]] = {
    Sent: {"message": MESSAGE},
    KnownGroups: {"groups": st.lists(st.tuples(TEXT, NAMES), max_size=2).map(tuple)},
    ComponentChanged: {"view": st.none() | VIEW_ID},
    ReplicaStarted: {"group": st.none() | TEXT},
    **{kind: {"position": SMALL} for kind in (Applied, GotPicture, Looked, Returned)},
}


def _events(table: EventTable[EventT]) -> st.SearchStrategy[list[EventT]]:
    kinds = [shape.event for shape in table.shapes.values()]
    return st.lists(
        st.one_of(
            [
                st.builds(kind, **{each.name: (FIELDS | SPECIAL.get(kind, {}))[each.name] for each in fields(kind)})
                for kind in kinds
            ]
        ),
        max_size=12,
    )


CLIENT_HISTORIES = _events(CLIENTS)
REPLICA_HISTORIES = _events(REPLICAS)
