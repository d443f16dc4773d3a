"""The table of what clients asked for and were told: its columns and kinds. Pure."""

from __future__ import annotations

import json
from typing import Any

from ordercast.model.events import Reason, Transition, View, ViewId
from ordercast.model.ids import ProcessId
from ordercast.trace.client_records import (
    AskedJoin,
    AskedLeave,
    Calm,
    ClientEvent,
    ClientId,
    Connected,
    Disconnected,
    End,
    GotConfirmation,
    GotDropped,
    GotLeft,
    GotMessage,
    GotRefusal,
    GotTransition,
    GotView,
    KnownGroups,
    Sent,
)
from ordercast.trace.columns import Column, RowKind
from ordercast.trace.event_rows import (
    AT,
    EventTable,
    configuration,
    joined,
    names,
    number,
    plain,
    position,
    processes,
    single,
    word,
)
from ordercast.trace.records import Ended, Gap, Healed, MessageId, Unrecorded

_PROCESS = number("process", "the client's daemon, or whose word it is: node × 2⁴⁸ + incarnation", repeats=True)
_SESSION = plain("session", "int64", "which client of that daemon's life", repeats=True)
_NAME = plain("name", "string", "a client, in full: who connected, or who sent the message", repeats=True)
_GROUP = plain("group", "string", "the group of a view, of a signal, or that was left", repeats=True)
_WHY = plain("why", "string", "a sentence on what happened to the network, or on what is missing", repeats=True)
_MEMBERS = names("members", "members of a view, or those who remain after a signal")
_POSITION = position("", "the position of a message or of a group's view")
_VIEW_ID = joined((configuration("configuration", "configuration of a group's view"), _POSITION), tuple, ViewId)


def _view_apart(view: View) -> tuple[Any, ...]:
    return view.id, view.group, view.members, view.transitional, view.reason, view.who, view.why


def _view_together(id: ViewId, group: str, members: Any, transitional: Any, reason: Reason, who: Any, why: str) -> View:
    return View(group, members, transitional, reason, who, id, why)


def _known(groups: tuple[tuple[str, tuple[str, ...]], ...]) -> str:
    return json.dumps(groups, ensure_ascii=False)


def _read_known(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((group, tuple(members)) for group, members in json.loads(text))


_VIEW = joined(
    (
        _VIEW_ID,
        _GROUP,
        _MEMBERS,
        names("transitional", "those who came to the view with the reader from the same view before"),
        word("reason", Reason, "why a group's view changed: join, leave, disconnect or network"),
        names("who", "whose joining, leaving or disconnection it was"),
        _WHY,
    ),
    _view_apart,
    _view_together,
)
_TRANSITION = joined(
    (_VIEW_ID, _GROUP, _MEMBERS),
    lambda signal: (signal.view, signal.group, signal.remaining),
    lambda view, group, remaining: Transition(group, remaining, view),
)
_MESSAGE = joined(
    (
        number(
            "sender_process",
            "process that the stamp in the message names; null: the bytes carry no stamp",
            repeats=True,
        ),
        plain("sender", "int64", "session that it names", repeats=True),
        number("counter", "the how-many-eth message of that client, from 1"),
    ),
    tuple,
    lambda process, sender, counter: MessageId(ProcessId(process), sender, counter),
)

CLIENTS: EventTable[ClientEvent] = EventTable(
    "clients",
    ("n",),
    {
        RowKind.CONNECTED: Connected,
        RowKind.ASKED_JOIN: AskedJoin,
        RowKind.ASKED_LEAVE: AskedLeave,
        RowKind.SENT: Sent,
        RowKind.GOT_MESSAGE: GotMessage,
        RowKind.GOT_CONFIRMATION: GotConfirmation,
        RowKind.GOT_VIEW: GotView,
        RowKind.GOT_TRANSITION: GotTransition,
        RowKind.GOT_LEFT: GotLeft,
        RowKind.GOT_DROPPED: GotDropped,
        RowKind.GOT_REFUSAL: GotRefusal,
        RowKind.DISCONNECTED: Disconnected,
        RowKind.KNOWN_GROUPS: KnownGroups,
        RowKind.CALM: Calm,
        RowKind.HEALED: Healed,
        RowKind.ENDED: Ended,
        RowKind.UNRECORDED: Unrecorded,
    },
    {
        "at": AT,
        "client": joined((_PROCESS, _SESSION), tuple, lambda process, session: ClientId(ProcessId(process), session)),
        "process": _PROCESS,
        "name": _NAME,
        "groups": names("groups", "groups that were asked for or refused; all that a message is for"),
        "message": _MESSAGE,
        "service": plain("service", "int16", "service asked for: 0 unreliable to 5 safe", repeats=True),
        "digest": plain("digest", "int64", "63 bits of a hash of the payload", repeats=True),
        "self_discard": plain("self_discard", "bool", "the sender does not want it back"),
        "confirm": plain("confirm", "bool", "the sender wants to know its place in the order"),
        "sender": _NAME,
        "position": _POSITION,
        "view": _VIEW,
        "transition": _TRANSITION,
        "group": _GROUP,
        "messages": plain("count", "int64", "messages that were dropped"),
        "how": word("how", End, "how a client ended: orderly, crashed, daemon crashed, daemon left or sent away"),
        "alive": processes("alive", "healed: all daemons that run"),
        "complete": plain("complete", "bool", "ended: the record was not cut short"),
        "gap": word("gap", Gap, "unrecorded: what is not in the record"),
        "why": _WHY,
    },
    {
        KnownGroups: {
            "groups": single(
                "text",
                Column("string", "known groups: each group and its members, as JSON", repeats=True),
                _known,
                _read_known,
            )
        }
    },
)
