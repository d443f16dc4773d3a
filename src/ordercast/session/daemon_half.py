"""One client as its daemon sees it: frames in, requests out, and what waits for the client.

A wrong frame raises `WireError` with a sentence for the client: the daemon closes this session and nothing else moves.

Credit: what the client may send, what it is owed, and what is under way to the engine are together one window. A frame
larger than that is announced (WANT); when nothing is under way, the window grows for that one frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ordercast.groups.envelope import CONFIRM, HEADED, SELF_DISCARD, Kind, decode_head
from ordercast.groups.names import (
    CLIENT_SIZE_MAX,
    GROUP_SIZE_MAX,
    check_may_send,
    checked_destination,
    checked_destinations,
    checked_group,
    checked_joinable,
)
from ordercast.model.errors import UsageError, WireError
from ordercast.model.service import SERVED
from ordercast.session.batches import Send, decode_send, frame_size_max
from ordercast.session.frames import (
    VERSION,
    DeniedSend,
    Hello,
    Refused,
    Welcome,
    decode_document,
    decode_hello,
    decode_list,
    decode_names,
    decode_number,
    encode_denied,
    encode_number,
    encode_refused,
    encode_welcome,
)
from ordercast.session.outbound import HOLD_MAX_NS, UNLIMITED, Outbound
from ordercast.session.pem import TOKEN_SIZE
from ordercast.session.pieces import HEADER, NUMBER, FrameKind, frame
from ordercast.session.quota import Quota
from ordercast.session.requests import (
    Bye,
    JoinGroups,
    LeaveGroups,
    ListGroups,
    ListMembers,
    Manage,
    Request,
    ShownToken,
)
from ordercast.session.rights import EVERYTHING, Denied, Granted, Shares

SEND_CREDIT = 5 << 18  # bytes of messages that a client may have under way to its daemon
CREDIT_PORTIONS = 10  # of a window: less than one of them is not given back yet
CREDIT_PORTION = SEND_CREDIT // CREDIT_PORTIONS  # of the usual window
URGENT_SIZE_MAX = 4 << 20  # bytes of answers that may wait: more than a window of small messages has confirmations
HEADS_SIZE_MAX = 1 << 16  # bytes of heads that are remembered as checked
CHANGES_MAX = 100  # groups that are joined or left at a time
_QUESTION_SIZE_MAX = NUMBER.size + 1 + GROUP_SIZE_MAX + 1 + CLIENT_SIZE_MAX + 1 + GROUP_SIZE_MAX
_CHANGES_SIZE_MAX = NUMBER.size + CHANGES_MAX * (1 + GROUP_SIZE_MAX)
_FLAGS = SELF_DISCARD | CONFIRM | HEADED
_PONG = frame(FrameKind.PONG)


class DaemonHalf:
    def __init__(self, message_size_max: int, quota: Quota | None = None, send_credit: int | None = None) -> None:
        self.name = ""  # in full, once it is welcome
        self.joined: set[str] = set()  # groups that it has asked for
        self.granted: Granted = EVERYTHING  # what it may do
        self.shares = Shares()  # what the clients of its identity have together; the driver has one for all
        self._shares_in = False  # it has its part of that
        self.lacking = ""  # the right that it lacked, when something was refused last
        self._sends = 0  # frames with messages so far
        self._quota = quota or Quota()
        self._message_size_max = message_size_max
        self._outbound: Outbound | None = None
        self._heads: set[bytes] = set()  # that were found in order
        self._heads_size = 0
        self._urgent: list[bytes] = []  # frames that need no credit
        self._urgent_size = 0
        self._window = SEND_CREDIT if send_credit is None else send_credit
        self._credit = self._window  # that the client has, or is about to hear of
        self._owed = 0  # credit to be given back; less than nothing when it has more than a window
        self._under_way = 0  # bytes of messages that were not accepted yet
        self._wanted = 0  # the size of a frame that the client wants credit for, and has not got
        self.extra = 0  # credit beyond the window that it has got for that, and not used
        self._is_asking = False  # a question of it is being answered

    # From the client

    def receive(self, kind: int, body: bytes) -> Request | None:
        """What the client asks for; None when there is nothing to do. WireError when it must go."""
        if not self.name:
            return self._greeted(kind, body)
        if self._urgent_size > URGENT_SIZE_MAX:
            raise WireError("the client asks for more than it reads")
        match kind:
            case FrameKind.SEND:
                self._pay(len(body) + HEADER.size)
                self._sends += 1
                return self._checked_send(decode_send(body), len(body) + HEADER.size)
            case FrameKind.JOIN:
                return self._join(_changed_groups(body, checked_joinable))
            case FrameKind.ENTER:
                return self._join(_changed_groups(body))
            case FrameKind.LEAVE:
                return self._leave(_changed_groups(body))
            case FrameKind.CREDIT:
                self.outbound.add_credit(decode_number(body))
            case FrameKind.PING:
                if self._urgent[-1:] != [_PONG]:
                    self.urge(_PONG)
            case FrameKind.PONG:
                pass
            case FrameKind.LIST:
                self._asks()
                return ListGroups(_asked_after(body))
            case FrameKind.MEMBERS_OF:
                self._asks()
                return _asked_members(body)
            case FrameKind.MANAGE:
                self._asks()
                return Manage(decode_document(body))
            case FrameKind.WANT:
                self._want(decode_number(body))
            case FrameKind.BYE:
                return Bye()
            case _:
                raise WireError(f"a client does not send frames of kind {kind}")
        return None

    def admit(self, kind: int, size: int) -> None:
        """Admit a frame of so many bytes of which only the beginning is here: WireError when the rest is not worth
        waiting for."""
        if kind == FrameKind.SEND:
            self._check_credit(size)
        elif size > HEADER.size + _CHANGES_SIZE_MAX:
            raise WireError(f"a frame of kind {kind} with {size} bytes: at most {HEADER.size + _CHANGES_SIZE_MAX}")

    def _greeted(self, kind: int, body: bytes) -> Hello | ShownToken:
        if kind == FrameKind.TOKEN:
            if len(body) != TOKEN_SIZE:
                raise WireError(f"a token of {len(body)} bytes: it has {TOKEN_SIZE}")
            return ShownToken(body)
        if kind != FrameKind.HELLO:
            raise WireError("a client of Ordercast says who it is first")
        hello = decode_hello(body)
        if hello.version != VERSION:
            raise WireError(f"the client speaks version {hello.version} of the protocol, this daemon {VERSION}")
        return hello

    def _asks(self) -> None:
        """Answers are made at once, and cost far more than the questions."""
        if self._is_asking:
            raise WireError("the client asks a second question before the first was answered")
        self._is_asking = True

    def _check_credit(self, size: int) -> None:
        if size > self._credit:
            raise WireError(
                f"the client sends more than it has credit for: a frame of {size} bytes, with credit for {self._credit}"
            )

    def _pay(self, size: int) -> None:
        self._check_credit(size)
        self._credit -= size
        self._under_way += size
        self._owed -= self.extra
        self.extra = 0

    def _want(self, size: int) -> None:
        size_max = frame_size_max(self._message_size_max)
        if size > size_max:
            raise WireError(f"the client wants to send a frame of {size} bytes: at most {size_max}")
        self._wanted = size
        self._grant()

    def _grant(self) -> None:
        """The window grows for one frame, when nothing else is under way and the client is not behind."""
        if self._wanted and not self._under_way and not self.outbound.is_behind:
            more = max(0, self._wanted - self._credit - self._owed)
            self._wanted = 0
            if self._owed + more > 0:  # otherwise it has what it asks for
                self.extra += more
                self._give_credit(self._owed + more)
                self._owed = 0

    def _give_credit(self, size: int) -> None:
        self.urge(encode_number(FrameKind.CREDIT, size))
        self._credit += size

    def _checked_send(self, send: Send, size: int) -> Send | DeniedSend:
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
            try:
                self.granted.check_send(group for group in head.groups if group != self.name)  # to itself it may
            except Denied as error:
                self.accepted(size)
                self.lacking = error.right
                return self._deny(DeniedSend(self._sends, head.groups, str(error)))
            self._heads_size += len(send.head)
            if self._heads_size > HEADS_SIZE_MAX:
                self._heads.clear()
                self._heads_size = len(send.head)
            self._heads.add(send.head)
        largest = max(map(len, send.payloads))
        if largest > self._message_size_max:
            raise WireError(f"a message of {largest} bytes with its head: at most {self._message_size_max}")
        return send

    def _join(self, groups: tuple[str, ...]) -> JoinGroups | Refused:
        for group in groups:
            if group in self.joined:
                raise WireError(f"the client is already in the group {group}")
        why = self._quota.refusal(len(self.joined), len(groups))
        if why is not None:
            return self._refuse(Refused(groups, True, why))
        try:
            for group in groups:
                self.granted.check_join(group)
            self.shares.check_join(self.granted, len(groups))
        except Denied as error:
            return self._refuse(Refused(groups, True, str(error)), error.right)
        self.joined.update(groups)
        self._quota.use(len(groups))
        self.shares.join(self.granted, len(groups))
        return JoinGroups(groups)

    def _leave(self, groups: tuple[str, ...]) -> LeaveGroups | Refused:
        """Perhaps of groups that it has asked for and was refused, before it knew."""
        for group in groups:
            if group not in self.joined:
                return self._refuse(Refused(groups, False, f"the client is not in the group {group}"))
        self._gone_from(groups)
        return LeaveGroups(groups)

    def _gone_from(self, groups: tuple[str, ...]) -> None:
        self.joined.difference_update(groups)
        self._forget_heads()  # what may be sent depends on them
        self._quota.use(-len(groups))
        self.shares.leave(self.granted, len(groups))

    def _forget_heads(self) -> None:
        self._heads.clear()
        self._heads_size = 0

    def regrant(self, granted: Granted) -> LeaveGroups | None:
        """Its rights have changed: perhaps it has to leave groups, and is told why."""
        self.granted = granted
        self._forget_heads()
        gone, why = [], ""
        for group in sorted(self.joined):
            try:
                granted.check_join(group)
            except Denied as error:
                gone.append(group)
                why = why or str(error)
        if not gone:
            return None
        self._gone_from(tuple(gone))
        self._deny(DeniedSend(0, tuple(gone), why))
        return LeaveGroups(tuple(gone))

    def _deny(self, denied: DeniedSend) -> DeniedSend:
        self.urge(encode_denied(denied))
        return denied

    def _refuse(self, refused: Refused, right: str = "") -> Refused:
        self.lacking = right
        self.urge(encode_refused(refused))
        return refused

    def let_in(self, granted: Granted, shares: Shares) -> None:
        """It may be welcome, with these rights. Denied when its identity has too many sessions."""
        shares.begin(granted)
        self.granted, self.shares, self._shares_in = granted, shares, True

    # To the client

    @property
    def outbound(self) -> Outbound:
        assert self._outbound is not None, "nothing is sent to a client that is not welcome yet"
        return self._outbound

    def welcome(
        self,
        name: str,
        hello: Hello,
        queue_size_max: int | None = None,
        hold_max_ns: int = HOLD_MAX_NS,
        still_max_ns: int | None = None,
    ) -> None:
        self.name = name
        self._outbound = Outbound(hello.policy, hello.credit, queue_size_max, hold_max_ns, still_max_ns)
        self.urge(encode_welcome(Welcome(name, self._message_size_max, self._window)))

    def accepted(self, size: int) -> None:
        """A frame with messages was submitted, of so many bytes with its header: the client may send more."""
        self._owed += size
        self._under_way -= size
        self._grant()

    def urge(self, urgent: bytes) -> None:
        """A frame that needs no credit."""
        self._urgent.append(urgent)
        self._urgent_size += len(urgent)

    def forget(self) -> None:
        """Nothing more will be written, and it is in no group."""
        self._outbound, self._urgent, self._urgent_size = None, [], 0
        self._wanted = self.extra = 0
        self._quota.use(-len(self.joined))
        if self._shares_in:
            self._shares_in = False
            self.shares.end(self.granted, len(self.joined))
        self.joined.clear()

    @property
    def waiting_size(self) -> int:
        """Bytes that wait to be written."""
        return self._urgent_size + (0 if self._outbound is None else self._outbound.size)

    def take(self, size_max: int = UNLIMITED) -> list[bytes]:
        """What may be written now: answers, and of the stream not much more than so many bytes."""
        stream: list[bytes] = []
        if self._outbound is not None:
            stream = self._outbound.take(size_max)
            if not self._outbound.is_behind:
                self._pay_back()
        frames, self._urgent, self._urgent_size = self._urgent, [], 0
        self._is_asking = False
        return frames + stream if stream else frames

    def _pay_back(self) -> None:
        """Give back credit; a client that is behind does not get it until it has read."""
        if self._owed >= self._window // CREDIT_PORTIONS:
            self._give_credit(self._owed)
            self._owed = 0
        self._grant()


def _changed_groups(body: bytes, check: Callable[[str], str] = checked_group) -> tuple[str, ...]:
    groups = decode_names(body) if len(body) <= _CHANGES_SIZE_MAX else ()
    for group in groups:
        with _as_wire_errors():
            check(group)
    if len(set(groups)) != len(groups) or not 0 < len(groups) <= CHANGES_MAX:
        raise WireError(f"a client joins or leaves 1 to {CHANGES_MAX} groups at a time, each once")
    return groups


def _asked_after(body: bytes) -> str:
    after = decode_list(body)
    with _as_wire_errors():
        return checked_group(after) if after else ""


def _asked_members(body: bytes) -> ListMembers:
    names = decode_names(body) if len(body) <= _QUESTION_SIZE_MAX else ()
    if not 1 <= len(names) <= 2:
        raise WireError("a client asks for the members of one group at a time")
    with _as_wire_errors():
        group, *after = checked_group(names[0]), *names[1:]
        return ListMembers(group, *map(checked_destination, after))


@contextmanager
def _as_wire_errors() -> Iterator[None]:
    """What the client library should have refused."""
    try:
        yield
    except UsageError as error:
        raise WireError(str(error)) from None
