"""Places in an archive, and the names that archivers use beside those of the groups.

A place is a branch and a number. Along a branch numbers rise by one, and a branch goes on with the numbers of the one
that it begins at: so numbers rise along every history.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ordercast.groups.names import GROUP_SIZE_MAX, SINK, checked_group
from ordercast.model.errors import UsageError
from ordercast.model.events import ViewId
from ordercast.model.ids import NO_CONFIGURATION, NO_POSITION, ConfigurationId, Position, ProcessId, node_of

NO_VIEW = ViewId(NO_CONFIGURATION, NO_POSITION)
# What reading a document that somebody else wrote may raise.
UNREADABLE = (
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
    UsageError,
)

_BRANCH = re.compile(r"[0-9a-f]{16}")
_PLACE = re.compile(rf"({_BRANCH.pattern}):([0-9]{{1,20}})")
_POSITION = re.compile(r"(\d+)\.(\d+):(\d+)\.(\d+)")
_SHORT = re.compile(r"(\d+)\.n(\d+):(\d+)\.(\d+)")
_VIEW = re.compile(rf"(?:(\d+)\.(\d+)/)?({_POSITION.pattern})")


class Place(NamedTuple):
    """In the archive of one group. Number 0 is before the first entry."""

    branch: str
    number: int

    def __str__(self) -> str:
        return f"{self.branch}:{self.number}"


def checked_branch(name: object) -> str:
    """The name of a branch, which is also that of its folder. ValueError for anything else, whoever says it."""
    if not isinstance(name, str) or not _BRANCH.fullmatch(name):
        raise ValueError(f"{str(name)[:40]!r} is no name of a branch: that has 16 hexadecimal digits")
    return name


def place_from(text: str) -> Place:
    found = _PLACE.fullmatch(text)
    if found is None:
        raise UsageError(
            f"{text!r} is no place in an archive: write BRANCH:NUMBER, as `ordercast archive list` shows it"
        )
    return Place(found[1], int(found[2]))


def position_text(position: Position) -> str:
    """Return a position as one word."""
    (seq, representative), number, slot = position
    return f"{seq}.{representative}:{number}.{slot}"


def position_of_text(text: str) -> Position:
    found = _POSITION.fullmatch(text)
    if found is None:
        raise UsageError(f"{text!r} is no position: write SEQ.PROCESS:NUMBER.SLOT, as the archive shows it")
    seq, representative, number, slot = map(int, found.groups())
    return Position(ConfigurationId(seq, ProcessId(representative)), number, slot)


class ShortPosition(NamedTuple):
    """A position as people read and write it, with the node of the process alone: `12.n1:4.0`."""

    seq: int
    node: int
    number: int
    slot: int


def short_position(position: Position) -> ShortPosition:
    (seq, representative), number, slot = position
    return ShortPosition(seq, node_of(representative), number, slot)


def short_position_of_text(text: str) -> ShortPosition:
    found = _SHORT.fullmatch(text)
    if found is None:
        raise UsageError(f"{text!r} is no position: write SEQ.nNODE:NUMBER.SLOT, as `ordercast send --confirm` does")
    return ShortPosition(*map(int, found.groups()))


def view_text(view: ViewId) -> str:
    """Return a view's id as one word: its position, and before it the configuration where that is another than the
    origin of the position. Branches have their names from this word, so it never changes."""
    configuration, position = view
    if configuration == position.origin:
        return position_text(position)
    return f"{configuration.seq}.{configuration.representative}/{position_text(position)}"


def view_id_of_text(text: str) -> ViewId:
    found = _VIEW.fullmatch(text)
    if found is None:
        raise UsageError(f"{text!r} is no id of a view: write it as the archive shows it")
    position = position_of_text(found[3])
    if found[1] is None:
        return ViewId(position.origin, position)
    return ViewId(ConfigurationId(int(found[1]), ProcessId(int(found[2]))), position)


def checked_archived(group: str) -> str:
    """UsageError when its archive could not be told from what archivers and sinks say to each other."""
    if checked_group(group).startswith("$"):
        raise UsageError(
            f"the group {group!r} cannot be archived: names that begin with $ are those of archivers and sinks"
        )
    return group


def sink_group(sink: str) -> str:
    """UsageError when it is no name for a sink."""
    name = SINK + sink
    if not sink or len(name) > GROUP_SIZE_MAX:
        raise UsageError(f"the sinkId {sink!r} has {len(sink)} characters: 1 to {GROUP_SIZE_MAX - len(SINK)}")
    try:
        return checked_group(name)
    except UsageError:
        raise UsageError(
            f"the sinkId {sink!r} has something else in it than letters, digits and punctuation of ASCII: "
            'no blanks, and none of ! " # @'
        ) from None
