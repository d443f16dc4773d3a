"""One client as its daemon sees it: frames in, requests out, and what waits for the client.

A wrong frame raises `WireError` with a sentence for the client: the daemon closes this session and nothing else moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ordercast.groups.envelope import CONFIRM, SELF_DISCARD, Kind, decode_head
from ordercast.groups.names import (
    GROUP_SIZE_MAX,
    MEMBERSHIPS_MAX,
    check_may_send,
    checked_destinations,
    checked_group,
    checked_joinable,
)
from ordercast.model.errors import UsageError, WireError
from ordercast.model.service import SERVED
from ordercast.session.batches import FRAME_SIZE_MAX, Send, decode_send
from ordercast.session.frames import (
    VERSION,
    Hello,
    Welcome,
    decode_hello,
    decode_names,
    decode_number,
    encode_welcome,
)
from ordercast.session.outbound import Outbound
from ordercast.session.pieces import HEADER, NUMBER, FrameKind, frame

SEND_CREDIT = 1 << 20  # bytes of messages that a client may have under way to its daemon
URGENT_SIZE_MAX = FRAME_SIZE_MAX  # bytes of answers that may wait: one of the largest size
QUESTIONS_MAX = 16  # that may be answered in one go
HEADS_MAX = 1000  # that are remembered as checked
CHANGES_MAX = 100  # groups that are joined or left at a time
_QUESTION_SIZE_MAX = NUMBER.size + 1 + GROUP_SIZE_MAX
_CHANGES_SIZE_MAX = NUMBER.size + CHANGES_MAX * (1 + GROUP_SIZE_MAX)
_FLAGS = SELF_DISCARD | CONFIRM
_PONG = frame(FrameKind.PONG)


class Join(NamedTuple):
    groups: tuple[str, ...]


class Leave(NamedTuple):
    groups: tuple[str, ...]


class Bye(NamedTuple):
    """The client ends in order."""


class ListGroups(NamedTuple):
    """The client asks which groups there are."""


class ListMembers(NamedTuple):
    """The client asks who is in a group."""

    group: str


Request = Hello | Send | Join | Leave | Bye | ListGroups | ListMembers


class DaemonHalf:
    def __init__(self, message_size_max: int) -> None:
        self.name = ""  # in full, once it is welcome
        self.joined: set[str] = set()  # groups that it has asked for
        self._message_size_max = message_size_max
        self._outbound: Outbound | None = None
        self._heads: set[bytes] = set()  # that were found in order
        self._urgent: list[bytes] = []  # frames that need no credit
        self._urgent_size = 0
        self._credit = SEND_CREDIT  # that the client has, or is about to hear of
        self._owed = 0  # credit to be given back
        self._questions = 0  # that are being answered

    # From the client

    def receive(self, kind: int, body: bytes) -> Request | None:
        """What the client asks for; None when there is nothing to do. WireError when it must go."""
        if not self.name:
            return self._greeted(kind, body)
        if self._urgent_size > URGENT_SIZE_MAX:
            raise WireError("the client asks for more than it reads")
        match kind:
            case FrameKind.SEND:
                self._pay(len(body))
                return self._checked_send(decode_send(body))
            case FrameKind.JOIN:
                return Join(self._changed(body, joins=True, check=checked_joinable))
            case FrameKind.ENTER:
                return Join(self._changed(body, joins=True))
            case FrameKind.LEAVE:
                return Leave(self._changed(body, joins=False))
            case FrameKind.CREDIT:
                self.outbound.add_credit(decode_number(body))
            case FrameKind.PING:
                if self._urgent[-1:] != [_PONG]:
                    self.urge(_PONG)
            case FrameKind.PONG:
                pass
            case FrameKind.LIST:
                self._asks()
                return ListGroups()
            case FrameKind.MEMBERS_OF:
                self._asks()
                return ListMembers(_asked_group(body))
            case FrameKind.BYE:
                return Bye()
            case _:
                raise WireError(f"a client does not send frames of kind {kind}")
        return None

    def _greeted(self, kind: int, body: bytes) -> Hello:
        if kind != FrameKind.HELLO:
            raise WireError("a client of Ordercast says who it is first")
        hello = decode_hello(body)
        if hello.version != VERSION:
            raise WireError(f"the client speaks version {hello.version} of the protocol, this daemon {VERSION}")
        return hello

    def _asks(self) -> None:
        """Answers are made at once, and cost far more than the questions."""
        self._questions += 1
        if self._questions > QUESTIONS_MAX:
            raise WireError(f"the client asks more than {QUESTIONS_MAX} questions at once")

    def _pay(self, size: int) -> None:
        """The last frame may exceed the credit."""
        if self._credit <= 0:
            raise WireError("the client sends more than it has credit for")
        self._credit -= size + HEADER.size

    def _checked_send(self, send: Send) -> Send:
        if send.service not in SERVED:
            raise WireError(f"{send.service.name.lower()} messages are not served")
        if send.head not in self._heads:
            head = decode_head(send.head)
            if head.kind is not Kind.DATA or head.flags & ~_FLAGS or head.sender != self.name:
                raise WireError("a message that is not this client's own")
            with _as_wire_errors():
                checked_destinations(head.groups)
                check_may_send(head.groups, self.joined)
            if len(set(head.groups)) < len(head.groups):
                raise WireError("a message that names a group twice")
            if len(self._heads) >= HEADS_MAX:
                self._heads.clear()
            self._heads.add(send.head)
        largest = max(map(len, send.payloads))
        if largest > self._message_size_max:
            raise WireError(f"a message of {largest} bytes with its head: at most {self._message_size_max}")
        return send

    def _changed(self, body: bytes, *, joins: bool, check: Callable[[str], str] = checked_group) -> tuple[str, ...]:
        groups = decode_names(body) if len(body) <= _CHANGES_SIZE_MAX else ()
        for group in groups:
            with _as_wire_errors():
                check(group)
            if (group in self.joined) is joins:
                raise WireError(f"the client is {'already' if joins else 'not'} in the group {group}")
        if len(set(groups)) != len(groups) or not 0 < len(groups) <= CHANGES_MAX:
            raise WireError(f"a client joins or leaves 1 to {CHANGES_MAX} groups at a time, each once")
        if joins:
            if len(self.joined) + len(groups) > MEMBERSHIPS_MAX:
                raise WireError(f"a client is in at most {MEMBERSHIPS_MAX:,} groups")
            self.joined.update(groups)
        else:
            self.joined.difference_update(groups)
            self._heads.clear()  # what may be sent depends on them
        return groups

    # To the client

    @property
    def outbound(self) -> Outbound:
        assert self._outbound is not None, "nothing is sent to a client that is not welcome yet"
        return self._outbound

    def welcome(self, name: str, hello: Hello, queue_size_max: int | None = None) -> None:
        self.name = name
        self._outbound = Outbound(hello.policy, hello.credit, queue_size_max)
        self.urge(encode_welcome(Welcome(name, self._message_size_max, SEND_CREDIT)))

    def accepted(self, size: int) -> None:
        """A frame with messages was submitted, of so many bytes with its header: the client may send more."""
        self._owed += size

    def urge(self, urgent: bytes) -> None:
        """A frame that needs no credit."""
        self._urgent.append(urgent)
        self._urgent_size += len(urgent)

    def forget(self) -> None:
        """Nothing more will be written."""
        self._outbound, self._urgent, self._urgent_size = None, [], 0

    def take(self) -> list[bytes]:
        """What may be written now."""
        frames, self._urgent, self._urgent_size = self._urgent, [], 0
        self._questions = 0
        if self._owed >= SEND_CREDIT // 8:
            frames.append(frame(FrameKind.CREDIT, self._owed.to_bytes(4, "big")))
            self._credit += self._owed
            self._owed = 0
        if self._outbound is not None:
            frames += self._outbound.take()
        return frames


def _asked_group(body: bytes) -> str:
    groups = decode_names(body) if len(body) <= _QUESTION_SIZE_MAX else ()
    if len(groups) != 1:
        raise WireError("a client asks for the members of one group at a time")
    with _as_wire_errors():
        return checked_group(groups[0])


@contextmanager
def _as_wire_errors() -> Iterator[None]:
    """What the client library should have refused."""
    try:
        yield
    except UsageError as error:
        raise WireError(str(error)) from None
