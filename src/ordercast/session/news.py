"""Frames about groups. A view that differs by one member is told as that difference: a thousand members need not be
told a thousand names each time that one more joins."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from ordercast.model.errors import WireError
from ordercast.model.events import Left, Reason, Transition, View, ViewId
from ordercast.model.ids import ConfigurationId, Position, ProcessId
from ordercast.session.pieces import FrameKind, frame, read_names, reading, write_names
from ordercast.wire.reader import ByteReader


class Change(NamedTuple):
    """A view that differs from the one before by one member, and that all who were in that have come to."""

    group: str
    id: ViewId
    reason: Reason
    who: str


_VIEW = Struct(">QQ QQQH B")  # configuration, position, reason
_REASONS = tuple(Reason)
_REASON_NUMBERS = {reason: number for number, reason in enumerate(_REASONS)}


class NewsEncoder:
    """For all clients of a daemon. While a group is in transition, its leaves are not told one by one: the next view
    may differ by more than its reason says, nobody could follow a difference, and it is told in full."""

    def __init__(self) -> None:
        self._in_transition: set[str] = set()

    def encode(self, news: View | Transition | Left) -> bytes:
        if isinstance(news, Transition):
            self._in_transition.add(news.group)
        elif isinstance(news, View) and news.reason is Reason.NETWORK:
            self._in_transition.clear()  # a new configuration ends the transitions of all groups
        return encode_news(news, in_full=news.group in self._in_transition)


def encode_news(news: View | Transition | Left, *, in_full: bool = False) -> bytes:
    match news:
        case View():
            return _encode_change(news) if _is_change(news) and not in_full else _encode_view(news)
        case Transition():
            return frame(FrameKind.TRANSITION, _view_id(news.view), write_names((news.group, *news.remaining)))
        case Left():
            return frame(FrameKind.LEFT, news.group.encode())


def _is_change(view: View) -> bool:
    """A joiner's own view is none: it has not seen the one before."""
    if view.reason is Reason.NETWORK or len(view.who) != 1 or view.why:
        return False
    expected = len(view.members) - (view.reason is Reason.JOIN)
    return len(view.transitional) == expected and view.who[0] not in view.transitional


def _encode_change(view: View) -> bytes:
    return frame(FrameKind.CHANGE, _view_id(view.id, view.reason), write_names((view.group, *view.who)))


def _encode_view(view: View) -> bytes:
    fixed = _view_id(view.id, view.reason)
    names = (
        write_names((view.group,)) + write_names(view.members) + write_names(view.transitional) + write_names(view.who)
    )
    return frame(FrameKind.VIEW, fixed, names, view.why.encode())


def decode_view(body: bytes) -> View:
    with reading("a view"):
        reader = ByteReader(body, what="a view")
        view_id, reason = _read_view_id(reader)
        (group,), members, transitional, who = (read_names(reader) for _ in range(4))
        return View(group, members, transitional, reason, who, view_id, str(reader.rest(), "utf-8"))


def decode_change(body: bytes) -> Change:
    with reading("a change"):
        reader = ByteReader(body, what="a change")
        view_id, reason = _read_view_id(reader)
        group, who = read_names(reader)
        reader.end()
        return Change(group, view_id, reason, who)


def decode_transition(body: bytes) -> Transition:
    with reading("a transition"):
        reader = ByteReader(body, what="a transition")
        view_id, _ = _read_view_id(reader)
        group, *remaining = read_names(reader)
        reader.end()
        return Transition(group, tuple(remaining), view_id)


def decode_left(body: bytes) -> Left:
    with reading("a leave"):
        return Left(str(body, "ascii"))


def _view_id(view: ViewId, reason: Reason = Reason.NETWORK) -> bytes:
    origin, number, slot = view.position
    return _VIEW.pack(*view.configuration, *origin, number, slot, _REASON_NUMBERS[reason])


def _read_view_id(reader: ByteReader) -> tuple[ViewId, Reason]:
    seq, representative, origin_seq, origin_representative, number, slot, reason = reader.unpack(_VIEW)
    if reason >= len(_REASONS):
        raise WireError(f"there is no reason {reason}")
    position = Position(ConfigurationId(origin_seq, ProcessId(origin_representative)), number, slot)
    return ViewId(ConfigurationId(seq, ProcessId(representative)), position), _REASONS[reason]
