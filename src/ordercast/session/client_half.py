"""The daemon as a client sees it: frames in, pieces of the ordered stream out; and how much may be sent."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Any, NamedTuple

from ordercast.groups.envelope import Head, data_head, decode_head
from ordercast.groups.names import RESERVED
from ordercast.model.errors import UsageError, WireError
from ordercast.model.events import Batch, Left, Piece, Reason, View
from ordercast.model.service import Service
from ordercast.session.batches import (
    Confirm,
    Messages,
    decode_confirm,
    decode_dropped,
    decode_messages,
    encode_send,
)
from ordercast.session.frames import (
    VERSION,
    DeniedSend,
    Hello,
    Listing,
    Members,
    Refused,
    SlowPolicy,
    Welcome,
    decode_closing,
    decode_denied,
    decode_document,
    decode_listing,
    decode_members,
    decode_number,
    decode_refused,
    decode_welcome,
    encode_hello,
    encode_list,
    encode_names,
    encode_number,
)
from ordercast.session.news import Change, decode_change, decode_left, decode_transition, decode_view
from ordercast.session.pieces import HEADER, FrameKind, frame

RECEIVE_CREDIT = 4 << 20  # bytes that may be under way to the application
HEADS_MAX = 1000  # that are remembered
BATCH_SIZE_MAX = 1 << 17  # bytes of messages in one frame, when they are many


class Closing(NamedTuple):
    """The daemon ends this session."""

    why: str


class Managed(NamedTuple):
    """What came of an operator's question."""

    document: dict[str, Any]


News = Welcome | Closing | Confirm | Listing | Members | Refused | DeniedSend | Managed | Piece


class ClientHalf:
    def __init__(
        self, name: str, policy: SlowPolicy, receive_credit: int | None = None, token: bytes | None = None
    ) -> None:
        """`token`: what it shows to a daemon that would not know it otherwise."""
        self.name = ""  # in full, once we are welcome
        self.credit = 0  # bytes that may be sent
        self.message_size_max = 0  # with its head
        self._window = 0  # credit at first
        self._room = RECEIVE_CREDIT if receive_credit is None else receive_credit
        self._hello = Hello(name, policy, self._room)
        self._token = token
        self.sends = 0  # frames with messages so far
        self._members: dict[str, list[str]] = {}  # of our groups, sorted
        self._heads: dict[bytes, Head] = {}  # of messages that came
        self._own_heads: dict[tuple[tuple[str, ...], bool, bool, bool], bytes] = {}
        self._taken = 0  # bytes that the application took and the daemon does not know of

    # From the daemon

    def receive(self, kind: int, body: bytes) -> News | None:
        """WireError when this is no daemon of ours."""
        if not self.name and kind not in (FrameKind.WELCOME, FrameKind.CLOSING):
            raise WireError("this is not a daemon of Ordercast")
        match kind:
            case FrameKind.MESSAGES:
                return self._batch(decode_messages(body))
            case FrameKind.CHANGE:
                return self._changed(decode_change(body))
            case FrameKind.VIEW:
                return self._viewed(decode_view(body))
            case FrameKind.TRANSITION:
                return decode_transition(body)
            case FrameKind.LEFT:
                return self._left(decode_left(body))
            case FrameKind.DROPPED:
                return decode_dropped(body)
            case FrameKind.CONFIRM:
                return decode_confirm(body)
            case FrameKind.CREDIT:
                self.credit += decode_number(body)
            case FrameKind.LISTING:
                return decode_listing(body)
            case FrameKind.MEMBERS:
                return decode_members(body)
            case FrameKind.MANAGED:
                return Managed(decode_document(body))
            case FrameKind.REFUSED:
                return decode_refused(body)
            case FrameKind.DENIED:
                return decode_denied(body)
            case FrameKind.CLOSING:
                return Closing(decode_closing(body))
            case FrameKind.WELCOME:
                return self._welcomed(decode_welcome(body))
            case FrameKind.PING | FrameKind.PONG:
                pass
            case _:
                raise WireError(f"a daemon does not send frames of kind {kind}")
        return None

    def _welcomed(self, welcome: Welcome) -> Welcome:
        if welcome.version != VERSION:
            raise WireError(f"the daemon speaks version {welcome.version} of the protocol, this client {VERSION}")
        self.name = welcome.name
        self.credit = self._window = welcome.credit
        self.message_size_max = welcome.message_size_max
        return welcome

    def _batch(self, messages: Messages) -> Batch:
        head = self._heads.get(messages.head)
        if head is None:
            if len(self._heads) >= HEADS_MAX:
                self._heads.clear()
            head = self._heads[messages.head] = decode_head(messages.head)
        raw, services, places = messages.data, messages.services, messages.places
        return Batch(head.groups, head.sender, raw, services, places, head.is_headed)

    def _viewed(self, view: View) -> View:
        self._members[view.group] = list(view.members)
        return view

    def _changed(self, change: Change) -> View:
        members = self._members.get(change.group)
        if members is None:
            raise WireError(f"a change in {change.group}, which this client is not in")
        before = tuple(members)
        place = bisect_left(members, change.who)
        is_member = place < len(members) and members[place] == change.who
        if change.reason is Reason.JOIN and not is_member:
            insort(members, change.who)
        elif change.reason in (Reason.LEAVE, Reason.DISCONNECT) and is_member:
            del members[place]
        else:
            raise WireError(f"a change in {change.group} that does not fit its members")
        after = tuple(members)
        shared = before if change.reason is Reason.JOIN else after
        return View(change.group, after, shared, change.reason, (change.who,), change.id)

    def _left(self, left: Left) -> Left:
        self._members.pop(left.group, None)
        return left

    # To the daemon

    def hello(self) -> bytes:
        shown = b"" if self._token is None else frame(FrameKind.TOKEN, self._token)
        return shown + encode_hello(self._hello)

    def join(self, groups: Sequence[str]) -> bytes:
        """Groups where parts of Ordercast meet are entered: it says that this is one."""
        is_part = any(group.startswith(RESERVED) for group in groups)
        return encode_names(FrameKind.ENTER if is_part else FrameKind.JOIN, groups)

    def leave(self, groups: Sequence[str]) -> bytes:
        return encode_names(FrameKind.LEAVE, groups)

    def list_groups(self, after: str = "") -> bytes:
        return encode_list(after)

    def members_of(self, group: str, after: str = "") -> bytes:
        return encode_names(FrameKind.MEMBERS_OF, (group, after) if after else (group,))

    def head(self, groups: tuple[str, ...], *, self_discard: bool, confirm: bool, headed: bool = False) -> bytes:
        key = groups, self_discard, confirm, headed
        found = self._own_heads.get(key)
        if found is None:
            if len(self._own_heads) >= HEADS_MAX:
                self._own_heads.clear()
            found = data_head(self.name, groups, self_discard=self_discard, confirm=confirm, headed=headed)
            self._own_heads[key] = found
        return found

    def check_sizes(self, head: bytes, data: Sequence[bytes]) -> None:
        largest = max(map(len, data), default=0)
        if largest + len(head) > self.message_size_max:
            raise UsageError(
                f"a message of {largest:,} bytes is too large, at most {self.message_size_max - len(head):,} go to "
                "these groups: cut it up"
            )

    def send(self, service: Service, head: bytes, data: Sequence[bytes]) -> bytes:
        """Uses credit, which must suffice for it."""
        encoded = encode_send(service, head, data)
        self.credit -= len(encoded)
        self.sends += 1
        return encoded

    def want(self, size: int) -> bytes | None:
        """What is to be said before one waits for the credit for a frame of this size. Credit comes back in portions:
        of a frame that needs nearly a window, or more, the daemon must know."""
        return encode_number(FrameKind.WANT, size) if size > self._window // 2 else None

    def took(self, size: int) -> bytes | None:
        """The application took so many bytes of the stream; perhaps it is time to tell the daemon."""
        self._taken += size
        if self._taken < self._room // 4:
            return None
        taken, self._taken = self._taken, 0
        return encode_number(FrameKind.CREDIT, taken)


def cost_of(kind: int, body: bytes) -> int:
    """What a frame takes of the credit that the client gave."""
    return 0 if kind in _FREE else len(body) + HEADER.size


_FREE = frozenset(
    (
        FrameKind.WELCOME,
        FrameKind.CLOSING,
        FrameKind.CREDIT,
        FrameKind.PING,
        FrameKind.PONG,
        FrameKind.CONFIRM,
        FrameKind.LISTING,
        FrameKind.MEMBERS,
        FrameKind.MANAGED,
        FrameKind.REFUSED,
        FrameKind.DENIED,
    )
)
BYE = frame(FrameKind.BYE)
PING = frame(FrameKind.PING)
PONG = frame(FrameKind.PONG)
