"""Journal: the sequence of commands of one replica on disk. It knows how, and in which order, bytes are written and
made safe; the disk itself is a `Folder` (`disk/folder.py`), live or simulated. What is written, and what waits for it,
the desk decides (`book.py`).

    FOLDER/NUMBER.journal    what the replica is called, a picture of its state, and what came behind it
    FOLDER/NUMBER.new        the next one, while it is written

A file is a row of frames, a frame is one write:

    magic (4) | size of the body (4) | checksum (4) | kind (1) | number of the write (8) | safe (8) | body

`safe` is how much of the file was safe when the frame was written. At the end of a file a power failure may leave
anything: what does not have its checksum there is cut off, with all behind it. A frame that was safe, and does not have
its checksum, is damage, and nothing is cut: the replica does not begin.

A new file is whole, and safe, before it gets its name; its name is safe before the one before is removed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from ordercast.disk.folder import Folder
from ordercast.model.errors import UsageError, WireError
from ordercast.replicated.effects import Note
from ordercast.replicated.spill import decode_block, encode_block
from ordercast.replicated.stance import KeptPicture, Remembered, Stance, decode_stance, encode_stance
from ordercast.replicated.track import DIGEST_SIZE, Held, chained
from ordercast.replicated.wire import decode_preface

MAGIC: Final = b"OCJ1"
FRAME: Final = Struct("!4sIIBQQ")
PART: Final = Struct("!BI")  # kind and size of a note within a frame
OPENING, NOTES, PICTURE, PIECE, END = range(1, 6)  # kinds of frames
STANCE, COMMANDS = 1, 2  # kinds of notes
JOURNAL, NEW = ".journal", ".new"


def stance_note(stance: Stance) -> Note:
    return Note(STANCE, encode_stance(stance))


def commands_note(commands: Iterable[Held]) -> Note:
    return Note(COMMANDS, encode_block(commands)[8:])


class JournalOwner(NamedTuple):
    """Whose journal it is."""

    group: str
    name: str  # in full
    memory: int  # what the journal is called: a number that no other has


class JournalFrame(NamedTuple):
    kind: int
    number: int
    safe: int
    body: bytes
    end: int  # where the next one begins


def frame_bytes(kind: int, body: bytes, number: int = 0, safe: int = 0) -> bytes:
    head = FRAME.pack(MAGIC, len(body), 0, kind, number, safe)
    checksum = zlib.crc32(body, zlib.crc32(head[12:]))
    return FRAME.pack(MAGIC, len(body), checksum, kind, number, safe) + body


def frame_at(data: bytes, at: int) -> JournalFrame | None:
    """None: there is no whole one."""
    if len(data) - at < FRAME.size:
        return None
    magic, size, checksum, kind, number, safe = FRAME.unpack_from(data, at)
    end = at + FRAME.size + size
    if magic != MAGIC or end > len(data):
        return None
    body = data[at + FRAME.size : end]
    if zlib.crc32(body, zlib.crc32(data[at + 12 : at + FRAME.size])) != checksum:
        return None
    return JournalFrame(kind, number, safe, body, end)


def whole_frames(data: bytes) -> tuple[list[JournalFrame], int]:
    """Return the frames up to the first that is torn, and where they end. UsageError when that one had been safe."""
    frames, at = list[JournalFrame](), 0
    while (frame := frame_at(data, at)) is not None:
        frames.append(frame)
        at = frame.end
    behind = data.find(MAGIC, at + 1)
    while behind >= 0:
        later = frame_at(data, behind)
        if later is not None and later.safe > at:
            raise UsageError(
                f"the journal is damaged at byte {at:,}, which had been safe: put back a copy of it, or move it away, "
                "and the replica fetches the state from the others, without a vote until it has it"
            )
        behind = data.find(MAGIC, behind + 1)
    return frames, at


def notes_of(body: bytes) -> Iterator[Note]:
    at = 0
    while at < len(body):
        kind, size = PART.unpack_from(body, at)
        at += PART.size
        yield Note(kind, body[at : at + size])
        at += size


def notes_bytes(notes: Sequence[Note]) -> bytes:
    return b"".join(PART.pack(note.kind, len(note.body)) + note.body for note in notes)


@dataclass(slots=True)
class JournalReading:
    """What a file says, frame by frame. WireError when it contradicts itself."""

    owner: JournalOwner | None = None
    stance: Stance | None = None
    picture: KeptPicture | None = None
    held: list[Held] = field(default_factory=list)
    count: int = 0  # of commands, those in the picture included
    digest: bytes = bytes(DIGEST_SIZE)
    is_whole: bool = True  # the picture at its beginning is
    _pieces: list[bytes] = field(default_factory=list)

    def take(self, frame: JournalFrame) -> None:
        match frame.kind:
            case 1:  # OPENING
                found = json.loads(frame.body)
                self.owner = JournalOwner(str(found["group"]), str(found["name"]), int(found["memory"]))
            case 3:  # PICTURE
                self.stance, self.is_whole = decode_stance(frame.body), False
            case 4:  # PIECE
                self._pieces.append(frame.body)
            case 5:  # END
                self._end_picture()
            case _:
                for note in notes_of(frame.body):
                    self._take_note(note)

    def _end_picture(self) -> None:
        if self.stance is None or not self._pieces:
            raise WireError("a picture without a stance")
        preface, *pieces = self._pieces
        self.picture = KeptPicture(self.stance, preface, tuple(pieces))
        applied, digest, _, held = decode_preface(preface)
        self.count, self.digest, self.is_whole = applied, digest, True
        self._extend(held)
        self.held.clear()  # they are in the preface

    def _take_note(self, note: Note) -> None:
        if note.kind == COMMANDS:
            commands = decode_block(note.body)
            self._extend(commands)
            return
        self.stance = decode_stance(note.body)
        rank = self.stance.rank
        if rank is None or not rank.length:
            self.held, self.count, self.digest, self.picture = [], 0, bytes(DIGEST_SIZE), None
        elif (rank.length, rank.digest) != (self.count, self.digest):
            raise WireError(f"a sequence of {self.count} commands, which is said to have {rank.length}")

    @property
    def remembered(self) -> Remembered:
        assert self.owner is not None
        stance = self.stance
        if stance is not None and stance.rank is not None:
            stance = stance._replace(rank=stance.rank._replace(length=self.count, digest=self.digest))
        return Remembered(self.owner.memory, stance, self.picture, tuple(self.held))

    def _extend(self, commands: Iterable[Held]) -> None:
        for held in commands:
            self.held.append(held)
            self.count += 1
            self.digest = chained(self.digest, held)


def read_journal(data: bytes) -> tuple[JournalReading, int]:
    """What a file says, and where that ends. UsageError when it is damaged."""
    frames, end = whole_frames(data)
    reading = JournalReading()
    try:
        for frame in frames:
            reading.take(frame)
    except (WireError, StructError, ValueError, KeyError) as error:
        raise UsageError(f"the journal contradicts itself: {error}") from None
    return reading, end


class Journal:
    def __init__(self, folder: Folder, group: str, name: str, memory: int) -> None:
        """Read what is there, and cut off what a crash left half written; or begin, under the name `memory`."""
        self._folder = folder
        self.owner = JournalOwner(group, name, memory)
        self.remembered = Remembered(memory, None, None, ())
        self._number = 0  # of the file
        self._size = self._safe = 0  # of the file, and of what is safe of it
        self._last = self._last_safe = 0  # numbers of writes
        self._new_size = self._new_safe = -1  # of the next file; -1: there is none
        self._old: str | None = None  # a file that is to be removed when the name of the next one is safe
        self._tail_from = 0  # what is behind this place in the file comes behind the picture in the next one
        self._recover()

    @property
    def size(self) -> int:
        return self._size

    def _name(self, number: int, suffix: str = JOURNAL) -> str:
        return f"{number:08d}{suffix}"

    def _recover(self) -> None:
        names = self._folder.names()
        found = [name for name in names if name.endswith(JOURNAL)]
        for name in [*(name for name in names if name.endswith(NEW)), *found[:-1]]:
            self._folder.remove(name)
        if found:
            self._number = int(found[-1][: -len(JOURNAL)])
            data = self._folder.read(found[-1])
            reading, end = read_journal(data)
            if reading.owner is None or not reading.is_whole:
                raise UsageError(f"{found[-1]} is not whole: it is no journal, or its disk has lost what was safe")
            self._check(reading.owner)
            self.owner = reading.owner
            self.remembered = reading.remembered
            if end < len(data):
                self._folder.truncate(found[-1], end)
            self._folder.sync(found[-1])  # what a kill left in the system's memory is remembered from now on
            self._size = self._safe = end
            return
        self._number = 1
        self._folder.create(self._name(1, NEW))
        self._folder.append(self._name(1, NEW), self._opening())
        self._folder.sync(self._name(1, NEW))
        self._folder.rename(self._name(1, NEW), self._name(1))
        self._folder.sync_names()
        self._size = self._safe = len(self._opening())

    def _check(self, owner: JournalOwner) -> None:
        if owner[:2] != self.owner[:2]:
            raise UsageError(
                f"it is the journal of {owner.name} in {owner.group}, not of {self.owner.name} in {self.owner.group}: "
                "give each replica a folder of its own"
            )

    def _opening(self) -> bytes:
        return frame_bytes(OPENING, json.dumps(self.owner._asdict()).encode())

    # What comes behind

    def append(self, number: int, notes: Sequence[Note]) -> None:
        """One write. What has been written, by its number, is not written again."""
        if number <= self._last:
            return
        data = frame_bytes(NOTES, notes_bytes(notes), number, self._safe)
        self._folder.append(self._name(self._number), data)
        self._size += len(data)
        self._last = number

    def sync(self) -> None:
        """Everything that was written is safe."""
        if self._size > self._safe:
            self._folder.sync(self._name(self._number))
            self._safe, self._last_safe = self._size, self._last
        if self._new_size > self._new_safe:
            self._folder.sync(self._name(self._number + 1, NEW))
            self._new_safe = self._new_size
        if self._old is not None:
            self._folder.sync_names()
            self._folder.remove(self._old)
            self._old = None

    def back(self) -> None:
        """After an OSError: everything is as it was when it was last safe."""
        self._folder.truncate(self._name(self._number), self._safe)
        self._size, self._last = self._safe, self._last_safe
        if self._new_safe >= 0:
            self._folder.truncate(self._name(self._number + 1, NEW), self._new_safe)
            self._new_size = self._new_safe

    # The next file

    def begin(self, stance: bytes) -> None:
        """Begin a picture that has everything that was written so far. Its pieces follow, the preface first."""
        name = self._name(self._number + 1, NEW)
        self._folder.create(name)
        self._new_size, self._new_safe = 0, 0
        self._tail_from = self._size
        self._add(self._opening())
        self._add(frame_bytes(PICTURE, stance))

    def add(self, piece: bytes) -> None:
        self._add(frame_bytes(PIECE, piece))

    def finish(self, number: int = 0) -> int:
        """The picture is complete, and counts from now on: with what was written since it was begun; or, with a number
        of its own, in place of all that. Return the size of the picture."""
        if self._new_size < 0:
            return 0
        old, new = self._name(self._number), self._name(self._number + 1)
        writing = self._name(self._number + 1, NEW)
        self._add(frame_bytes(END, b""))
        size = self._new_size
        if number:
            self._last = number
        else:
            self._copy_tail(self._folder.read(old)[self._tail_from : self._size])
        self._folder.sync(writing)
        self._folder.rename(writing, new)
        self._number += 1
        self._size = self._safe = self._new_size
        self._last_safe = self._last
        self._new_size = self._new_safe = -1
        self._old = old
        return size

    def _copy_tail(self, tail: bytes) -> None:
        for frame in whole_frames(tail)[0]:
            self._add(frame_bytes(NOTES, frame.body, frame.number))

    def _add(self, data: bytes) -> None:
        self._folder.append(self._name(self._number + 1, NEW), data)
        self._new_size += len(data)
