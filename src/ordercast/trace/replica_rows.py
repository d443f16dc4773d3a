"""The table of what replicas were asked, answered and did: its columns and kinds. Pure."""

from __future__ import annotations

from ordercast.model.lineage import Lineage, Term
from ordercast.trace.client_records import Calm
from ordercast.trace.columns import Column, RowKind
from ordercast.trace.event_rows import (
    AT,
    EventTable,
    Part,
    joined,
    names,
    number,
    plain,
    processes,
    view_id,
    word,
)
from ordercast.trace.records import Ended, Gap, Healed, Unrecorded
from ordercast.trace.replica_records import (
    Applied,
    Believed,
    Called,
    ComponentChanged,
    GotPicture,
    JournalKept,
    Looked,
    Refused,
    ReplicaEnded,
    ReplicaEvent,
    ReplicaKnown,
    ReplicaStarted,
    Returned,
    Stage,
    StreamBack,
    StreamCut,
)


def _term(prefix: str, meaning: str) -> Part:
    era = plain(f"{prefix}_era", "int64", f"{meaning}: its era", repeats=True)
    return joined((era, view_id(prefix, f"the view in {meaning}")), tuple, Term)


_LINEAGE = joined(
    (_term("lineage", "the lineage"), plain("lineage_side", "int64", "which side, of several that met", repeats=True)),
    tuple,
    Lineage,
)
_WEIGHTS = Part(
    {
        "weight_names": Column("names", "those who have configured voices", repeats=True),
        "weights": Column("processes", "how many voices each of them has"),
    },
    lambda values: {
        "weight_names": [[name for name, _ in weights] for weights in values],
        "weights": [[weight for _, weight in weights] for weights in values],
    },
    lambda cells: tuple(zip(cells["weight_names"], cells["weights"], strict=True)),
)

REPLICAS: EventTable[ReplicaEvent] = EventTable(
    "replicas",
    ("life", "n"),
    {
        RowKind.REPLICA_STARTED: ReplicaStarted,
        RowKind.CALLED: Called,
        RowKind.RETURNED: Returned,
        RowKind.REFUSED: Refused,
        RowKind.APPLIED: Applied,
        RowKind.GOT_PICTURE: GotPicture,
        RowKind.LOOKED: Looked,
        RowKind.COMPONENT_CHANGED: ComponentChanged,
        RowKind.STREAM_CUT: StreamCut,
        RowKind.STREAM_BACK: StreamBack,
        RowKind.BELIEVED: Believed,
        RowKind.REPLICA_ENDED: ReplicaEnded,
        RowKind.REPLICA_KNOWN: ReplicaKnown,
        RowKind.JOURNAL_KEPT: JournalKept,
        RowKind.CALM: Calm,
        RowKind.HEALED: Healed,
        RowKind.ENDED: Ended,
        RowKind.UNRECORDED: Unrecorded,
    },
    {
        "at": AT,
        "process": number("process", "unrecorded: whose events; 0: those of no daemon", repeats=True),
        "life": number("life", "which life of which replica; null for events of the whole cluster", repeats=True),
        "name": plain("name", "string", "the replica's member, in full", repeats=True),
        "weights": _WEIGHTS,
        "founders": names("founders", "who must be there at a beginning"),
        "structure": plain("structure", "string", "what is replicated, and what it was made with", repeats=True),
        "group": plain("group", "string", "the group of the replicated state; null: there is one state", repeats=True),
        "memory": number("memory", "what the journal of the replica is called"),
        "request": plain("request", "int64", "number of the call in the caller's life; 0: nobody waits for it"),
        "operation": plain("operation", "binary", "the command; empty: a place in the order, to read there"),
        "lineage": _LINEAGE,
        "position": plain("position", "int64", "place among all commands of applications"),
        "result": plain("result", "binary", "the result of the command", repeats=True),
        "is_certain": plain("is_certain", "bool", "refused: nobody has applied it, and nobody will"),
        "term": _term("term", "the term"),
        "caller": number("caller", "life of the replica whose command was applied", repeats=True),
        "chain": number("chain", "digest of the state, or of all commands in it", repeats=True),
        "question": plain("question", "binary", "what was asked of the copy", repeats=True),
        "answer": plain("answer", "binary", "what the copy answered", repeats=True),
        "stage": word("stage", Stage, "how far a view of the group has come: view, decision, loaded, …"),
        "view": view_id("view", "the view of the group"),
        "is_primary": plain("is_primary", "bool", "the component is a primary one"),
        "decided": plain("decided", "bool", "it is one by a decision of just now"),
        "elects": plain("elects", "bool", "its holders are those whose majority is asked for next"),
        "is_holder": plain("is_holder", "bool", "the replica holds the state"),
        "holders": names("holders", "members that hold the state"),
        "members": names("members", "members of the group"),
        "count": plain("count", "int64", "commands of applications in the state"),
        "why": plain("why", "string", "a sentence", repeats=True),
        "era": plain("era", "int64", "era of the replica", repeats=True),
        "excluded": names("excluded", "members that have not answered"),
        "round": plain("round", "int64", "round of asking who has what, in this view", repeats=True),
        "is_current": plain(
            "is_current", "bool", "the copy is the state of a primary component, by the replica's word"
        ),
        "holds": plain("holds", "bool", "the replica has the lock or the lead, by its word"),
        "waiting": plain("waiting", "int64", "requests without an answer"),
        "pictures": plain("pictures", "int64", "states that are kept for others"),
        "ghosts": plain("ghosts", "int64", "owners of parts of the state who are not in the group"),
        "alive": processes("alive", "healed: all daemons that run"),
        "complete": plain("complete", "bool", "ended: the record was not cut short"),
        "gap": word("gap", Gap, "unrecorded: what is not in the record"),
    },
    {},
)
