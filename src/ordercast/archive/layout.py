"""Where things lie in the folder of an archive.

    FOLDER/lock                               held by the archiver that writes here
    FOLDER/GROUP/tip                          the last place of the archiver's own history that is safe on disk
    FOLDER/GROUP/own                          the branches that it has written to as they came, in order
    FOLDER/GROUP/BRANCH/branch.json           where the branch begins, and why
    FOLDER/GROUP/BRANCH/NUMBER.segment        frames, from this number on
    FOLDER/GROUP/BRANCH/NUMBER.index          where some of them are: made anew when it is missing or wrong

A segment begins with what has to be known where it begins: the view, and what was seen of sinks.

    opening    magic (4) | size (4) | checksum (4) | JSON
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from struct import error as StructError
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from ordercast.archive.branches import Branch, branch_from
from ordercast.archive.places import NO_VIEW, UNREADABLE, Place, place_from, view_id_of_text, view_text
from ordercast.model.errors import UsageError, WireError
from ordercast.model.events import ViewId
from ordercast.model.ids import ConfigurationId, Position, ProcessId

SEGMENT, INDEX, DESCRIPTION, TIP, OWN, LOCK = ".segment", ".index", "branch.json", "tip", "own", "lock"
MAGIC: Final = b"OCS1"
OPENING: Final = Struct("!4sII")
ENTRY: Final = Struct("!QQq QQQH")  # number, where its frame begins, time; position
CHECKED: Final = Struct("!I")
ENTRY_SIZE: Final = ENTRY.size + CHECKED.size
TIP_SIZE: Final = 64  # padded with blanks: written over in place, at once


@dataclass(frozen=True, slots=True)
class Start:
    """What a segment begins with."""

    first: int  # number
    view: ViewId
    sinks: Mapping[str, Any]


class Mark(NamedTuple):
    """An entry of an index: the frame at `offset` begins with `number`."""

    number: int
    offset: int
    time_ns: int
    position: Position


def group_folder(folder: Path, group: str) -> Path:
    return folder / quote(group, safe="").replace(".", "%2E")


def group_of(folder: Path) -> str:
    return unquote(folder.name)


def segment_path(branch: Path, first: int) -> Path:
    return branch / f"{first:020d}{SEGMENT}"


def segments_of(branch: Path) -> list[tuple[int, Path]]:
    """First numbers and files, in order."""
    try:
        names = os.listdir(branch)
    except FileNotFoundError:
        return []
    return sorted((int(name[: -len(SEGMENT)]), branch / name) for name in names if name.endswith(SEGMENT))


def start_bytes(start: Start) -> bytes:
    document = {"first": start.first, "view": view_text(start.view), "sinks": start.sinks}
    body = json.dumps(document, separators=(",", ":")).encode()
    return OPENING.pack(MAGIC, len(body), zlib.crc32(body)) + body


def start_from(data: bytes | memoryview) -> tuple[Start, int]:
    """Read a segment's opening, and where its first frame begins. WireError when the opening is not whole."""
    try:
        magic, size, checksum = OPENING.unpack_from(data)
        body = bytes(memoryview(data)[OPENING.size : OPENING.size + size])
        if magic != MAGIC or len(body) != size or zlib.crc32(body) != checksum:
            raise WireError("a segment's opening is not whole")
        found = json.loads(body)
        start = Start(int(found["first"]), view_id_of_text(found["view"]), found["sinks"])
    except (StructError, *UNREADABLE) as error:
        raise WireError(f"a segment's opening cannot be read: {error}") from None
    return start, OPENING.size + size


def opening_size(path: Path) -> int:
    """Where the frames of a segment begin. WireError when it has no opening."""
    with path.open("rb") as file:
        head = file.read(OPENING.size)
    if len(head) < OPENING.size or head[:4] != MAGIC:
        raise WireError(f"{path} is no segment")
    return OPENING.size + int(OPENING.unpack(head)[1])


def mark_bytes(mark: Mark) -> bytes:
    body = ENTRY.pack(mark.number, mark.offset, mark.time_ns, *mark.position[0], *mark.position[1:])
    return body + CHECKED.pack(zlib.crc32(body))


def marks_from(data: bytes) -> list[Mark]:
    """Up to the first that is not whole."""
    marks = []
    for at in range(0, len(data) - ENTRY_SIZE + 1, ENTRY_SIZE):
        body = data[at : at + ENTRY.size]
        if CHECKED.unpack_from(data, at + ENTRY.size)[0] != zlib.crc32(body):
            break
        number, offset, time_ns, seq, representative, place, slot = ENTRY.unpack(body)
        position = Position(ConfigurationId(seq, ProcessId(representative)), place, slot)
        marks.append(Mark(number, offset, time_ns, position))
    return marks


def tip_bytes(place: Place) -> bytes:
    text = str(place)
    return f"{text} {zlib.crc32(text.encode()):08x}".ljust(TIP_SIZE - 1).encode() + b"\n"


def tip_from(data: bytes) -> Place | None:
    """None while it is being written."""
    text, _, checksum = data.decode("ascii", "replace").strip().partition(" ")
    try:
        return place_from(text) if f"{zlib.crc32(text.encode()):08x}" == checksum else None
    except UsageError:
        return None


def tree_of(folder: Path) -> dict[str, Branch]:
    """The branches of a group's folder."""
    tree = {}
    for path in sorted(folder.glob(f"*/{DESCRIPTION}")):
        try:
            branch = branch_from(path.read_bytes(), group_of(folder))
        except UNREADABLE:
            continue  # it was being written when the archiver was killed: nothing is in it yet
        if path.parent.name == branch.name:
            tree[branch.name] = branch
    return tree


def own_of(folder: Path) -> list[str]:
    try:
        return (folder / OWN).read_text().split()
    except FileNotFoundError:
        return []


EMPTY: Final = Start(1, NO_VIEW, {})
