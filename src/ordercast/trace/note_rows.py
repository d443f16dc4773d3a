"""The kinds of notes that a trace can hold: one table, both ways. Pure.

Whoever adds a note adds a number to `RowKind` and a line here. Readers that skip notes ask `NOTE_KINDS`: nothing is
judged by them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import ConfigurationId, ProcessId
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
from ordercast.trace.columns import VISITED_COLUMNS, Cells, RowKind, signed, unsigned


class NoteRow(NamedTuple):
    note: type[Note]
    cells: Callable[[Any], Cells]  # of a note, without the kind
    read: Callable[[Cells], Note]


def _moved(note: Moved) -> Cells:
    reason = None if note.reason is None else int(note.reason)
    return {"reason": reason, "name": note.origin, "target": note.target, "text": note.text}


def _read_moved(cells: Cells) -> Moved:
    reason = None if cells["reason"] is None else ChangeReason(cells["reason"])
    return Moved(cells["name"], cells["target"], reason, cells["text"])


def _visited(note: Visited) -> Cells:
    return _configuration(note.ring) | {name: signed(getattr(note, name)) for name in VISITED_COLUMNS}


def _read_visited(cells: Cells) -> Visited:
    return Visited(_read_configuration(cells), *(unsigned(cells[name]) for name in VISITED_COLUMNS))


def _occurred(note: Occurred) -> Cells:
    return {"name": note.what.value, "count": note.count, "about": _about(note.process)}


def _read_occurred(cells: Cells) -> Occurred:
    return Occurred(Occurrence(cells["name"]), cells["count"], _read_about(cells))


def _network_turned(note: NetworkTurned) -> Cells:
    named = {"name": note.state.value, "target": note.evidence.value, "text": note.text}
    return {"count": note.network, "about": _about(note.process), **named}


def _read_network_turned(cells: Cells) -> NetworkTurned:
    state, evidence = NetworkState(cells["name"]), Evidence(cells["target"])
    return NetworkTurned(cells["count"], state, evidence, _read_about(cells), cells["text"])


def _token_released(note: TokenReleased) -> Cells:
    numbers = {"round": signed(note.token_seq), "seq": signed(note.seq), "count": note.brought}
    return _configuration(note.ring) | {"name": note.cause.value, **numbers}


def _read_token_released(cells: Cells) -> TokenReleased:
    numbers = unsigned(cells["round"]), unsigned(cells["seq"])
    return TokenReleased(_read_configuration(cells), *numbers, Release(cells["name"]), cells["count"])


def _opened(note: Opened) -> Cells:
    return _configuration(note.configuration) | {"count": note.birth, "destinations": note.groups}


def _read_opened(cells: Cells) -> Opened:
    return Opened(_read_configuration(cells), cells["count"], tuple(cells["destinations"] or ()))


def _distributed(note: Distributed) -> Cells:
    told = {"about": signed(note.keeper), "text": " ".join(map(str, note.weights))}
    return _configuration(note.ring) | {"count": note.number, "seq": signed(note.base), **told}


def _read_distributed(cells: Cells) -> Distributed:
    keeper, weights = ProcessId(unsigned(cells["about"])), tuple(map(int, cells["text"].split()))
    return Distributed(_read_configuration(cells), cells["count"], unsigned(cells["seq"]), keeper, weights)


def _marked(note: Marked) -> Cells:
    numbers = {"round": note.tick, "seq": note.next, "aru": note.aru, "my_aru": note.stable, "sent": note.waiting}
    return _configuration(note.ring) | {name: signed(number) for name, number in numbers.items()}


def _read_marked(cells: Cells) -> Marked:
    return Marked(_read_configuration(cells), *(unsigned(cells[name]) for name in VISITED_COLUMNS[:5]))


def _configuration(id: ConfigurationId) -> Cells:
    return {"configuration_seq": signed(id.seq), "configuration_rep": signed(id.representative)}


def _read_configuration(cells: Cells) -> ConfigurationId:
    seq, representative = unsigned(cells["configuration_seq"]), unsigned(cells["configuration_rep"])
    return ConfigurationId(seq, ProcessId(representative))


def _about(process: ProcessId | None) -> int | None:
    return None if process is None else signed(process)


def _read_about(cells: Cells) -> ProcessId | None:
    return None if cells["about"] is None else ProcessId(unsigned(cells["about"]))


NOTE_ROWS: Mapping[RowKind, NoteRow] = {
    RowKind.MOVED: NoteRow(Moved, _moved, _read_moved),
    RowKind.VISITED: NoteRow(Visited, _visited, _read_visited),
    RowKind.IGNORED: NoteRow(
        Ignored,
        lambda note: {"name": note.what, "text": note.why},
        lambda cells: Ignored(cells["name"], cells["text"]),
    ),
    RowKind.DROPPED: NoteRow(
        PacketDropped, lambda note: {"text": note.why}, lambda cells: PacketDropped(cells["text"])
    ),
    RowKind.OCCURRED: NoteRow(Occurred, _occurred, _read_occurred),
    RowKind.NETWORK_TURNED: NoteRow(NetworkTurned, _network_turned, _read_network_turned),
    RowKind.TOKEN_RELEASED: NoteRow(TokenReleased, _token_released, _read_token_released),
    RowKind.OPENED: NoteRow(Opened, _opened, _read_opened),
    RowKind.DISTRIBUTED: NoteRow(Distributed, _distributed, _read_distributed),
    RowKind.MARKED: NoteRow(Marked, _marked, _read_marked),
}
NOTE_KINDS = tuple(int(kind) for kind in NOTE_ROWS)
_KIND_OF = {row.note: kind for kind, row in NOTE_ROWS.items()}


def note_cells(note: Note) -> Cells:
    kind = _KIND_OF[type(note)]
    return {"kind": kind, **NOTE_ROWS[kind].cells(note)}


def note_from(kind: RowKind, cells: Cells) -> Note:
    """ValueError when a row of this kind holds no note."""
    if kind not in NOTE_ROWS:
        raise ValueError(f"a row of kind {kind} among the control events")
    return NOTE_ROWS[kind].read(cells)
