"""SessionDesk: one client of a daemon, from its greeting to its end. Pure: the daemon and the simulator drive it.

Inputs: frames of the client (`receive`), what the stream has for it (`give`, `confirm`), that its request was submitted
(`accepted` of a turn), and time (`look`). Outputs: what may be written (`take`), and an `Ending` when the client has to
go: the driver writes its reason and closes. What the client may say is decided by its half (`daemon_half.py`), what
happens to what it does not take by its policy (`outbound.py`); what is done with each request, and who has to go when,
is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

from ordercast.groups.desk import GroupDesk
from ordercast.groups.layer import MessageRun, join_payload, leave_payload
from ordercast.groups.names import AT, GROUPS_MAX
from ordercast.model.errors import UsageError, WireError
from ordercast.model.ids import Instant
from ordercast.model.service import Service
from ordercast.session.batches import Send, encode_confirm
from ordercast.session.counters import ClientCounters, ClientRefusal
from ordercast.session.daemon_half import DaemonHalf
from ordercast.session.frames import (
    PAGE_MAX,
    DeniedSend,
    Hello,
    Listing,
    Members,
    Refused,
    SlowPolicy,
    encode_listing,
    encode_members,
)
from ordercast.session.handouts import Handout, Session
from ordercast.session.outbound import HOLD_MAX_NS, UNLIMITED
from ordercast.session.pieces import HEADER, FrameKind
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
from ordercast.session.rights import Denied, Granted, Shares

CHANGES_MAX = 100  # joins and leaves of one client that wait to be ordered before no more is read from it
COSTLY = frozenset(
    (FrameKind.JOIN, FrameKind.ENTER, FrameKind.LEAVE, FrameKind.LIST, FrameKind.MEMBERS_OF, FrameKind.MANAGE)
)  # small, and much work
ANSWER_WORK = 250  # a page of names is as much work as so many groups that are joined


@dataclass(frozen=True, slots=True)
class ClientRules:
    """What the clients of a daemon may do, and how much is kept for them. None: as usual."""

    message_size_max: int
    sessions_max: int
    queue_size_max: int | None = None  # bytes that may wait for a client before its policy decides
    hold_ns: int = HOLD_MAX_NS  # in which a client for which all wait must have read half of what waits for it
    still_ns: int | None = None  # a client that takes nothing for so long is waited for no longer
    send_credit: int | None = None  # bytes of messages that a client may have under way


class Ending(NamedTuple):
    """The client has to go."""

    why: str  # a sentence for it; empty when it is its own wish
    is_warned: bool = False  # it has done nothing wrong, but costs too much: a person should know


Outcome = Hello | Manage | Ending  # of a frame: it is welcome now, it asks as an operator, or it has to go


class SessionHost(Protocol):
    """The daemon, as its sessions see it."""

    @property
    def desk(self) -> GroupDesk: ...
    @property
    def sessions(self) -> Sized: ...
    def open_session(self, session: Session, name: str) -> tuple[int, str]:
        """Return number and full name. UsageError when the name is bad, or in use."""

    def close_session(
        self, number: int, full: str, groups: int = 0, accepted: Callable[[], None] | None = None
    ) -> None: ...
    def request(
        self,
        number: int,
        payloads: Sequence[bytes],
        service: Service = Service.AGREED,
        accepted: Callable[[], None] | None = None,
        changes: int = 0,
    ) -> None: ...


class SessionGate(Protocol):
    """Who lets clients in, and is told what they were not allowed."""

    @property
    def shares(self) -> Shares: ...
    def admit(self, token: bytes | None) -> Granted:
        """Return what this client may do. Denied when it may not even connect."""

    def on_denied(self, right: str, groups: Sequence[str], why: str) -> None: ...
    def on_joined(self, groups: Sequence[str]) -> None: ...


class SessionDesk:
    def __init__(
        self,
        session: Session,
        host: SessionHost,
        rules: ClientRules,
        quota: Quota,
        counters: ClientCounters,
        gate: SessionGate | None = None,
    ) -> None:
        """`session`: whom the host tells, which is the driver of this. Without a gate everybody may do everything."""
        self.half = DaemonHalf(rules.message_size_max, quota, rules.send_credit)
        self.number = 0  # of its session, while it has one
        self.work = 0  # groups that it asked to join or leave, or as much other work; the driver takes it away
        self._session = session
        self._host = host
        self._rules = rules
        self._counters = counters
        self._gate = gate
        self._token: bytes | None = None  # that it has shown
        self._has_chosen_name = False  # the daemon did not find it one
        self._changes = 0  # joins and leaves that are not submitted yet
        self.sent = 0  # messages that the client has sent
        self.given = 0  # messages that came for it

    # From the client

    def receive(self, kind: int, body: bytes) -> Outcome | None:
        """Do what a frame asks for. What an operator asks for is left to the driver. WireError: see `wrong`."""
        request = self.half.receive(kind, body)
        return None if request is None else self._carry_out(request, len(body) + HEADER.size)

    def wrong(self, error: WireError) -> Ending:
        """Send away a client that has said something wrong."""
        return self._refuse(ClientRefusal.WRONG, str(error))

    @property
    def may_change(self) -> bool:
        """Messages wait within the credit of the client; joins and leaves within what is read: when this is false, no
        more of them is read until some are submitted."""
        return self._changes < CHANGES_MAX

    def _carry_out(self, request: Request, size: int) -> Outcome | None:
        match request:
            case Send():
                self.sent += len(request.payloads)
                accepted = partial(self.half.accepted, size)
                self._host.request(self.number, request.payloads, request.service, accepted)
            case DeniedSend():
                self.deny(self.half.lacking, request.groups, request.why)
            case JoinGroups():
                if self._gate is not None:
                    self._gate.on_joined(request.groups)
                self._change(join_payload(self.half.name, request.groups), len(request.groups))
            case LeaveGroups():
                self._change(leave_payload(self.half.name, request.groups), len(request.groups))
            case Refused():
                self.work += len(request.groups)
                if self.half.lacking:
                    self.deny(self.half.lacking, request.groups, request.why)
                else:
                    self._counters.refusals[ClientRefusal.GROUPS] += 1
            case ListGroups():
                self._answer(encode_listing(Listing(*self._host.desk.groups.table.page(request.after, PAGE_MAX))))
            case ListMembers():
                page = self._host.desk.groups.table.members_page(request.group, request.after, PAGE_MAX)
                self._answer(encode_members(Members(*page)))
            case ShownToken():
                self._token = request.token
            case Hello():
                return self._greet(request)
            case Manage():
                return request
            case Bye():
                return Ending("")
        return None

    def _greet(self, hello: Hello) -> Hello | Ending:
        rules = self._rules
        if len(self._host.sessions) >= rules.sessions_max:
            why = "this daemon has as many clients as it may: raise sessions_max in [clients]"
            return self._refuse(ClientRefusal.FULL, why)
        try:
            if self._gate is not None:
                self._let_in(hello, self._gate)
            self.number, name = self._host.open_session(self._session, hello.name)
        except Denied as error:
            self.deny(error.right, (), str(error))
            return Ending(str(error))
        except UsageError as error:
            return self._refuse(ClientRefusal.NAME, str(error))
        self._has_chosen_name = bool(hello.name)
        self.half.welcome(name, hello, rules.queue_size_max, rules.hold_ns, rules.still_ns)
        return hello

    def _let_in(self, hello: Hello, gate: SessionGate) -> None:
        granted = gate.admit(self._token)
        granted.check_name(hello.name)
        if hello.policy is SlowPolicy.HOLD:
            granted.check_hold()
        self.half.let_in(granted, gate.shares)

    def deny(self, right: str, groups: Sequence[str], why: str) -> None:
        self._counters.refusals[ClientRefusal.RIGHTS] += 1
        self._counters.denials[right] += 1
        if self._gate is not None:
            self._gate.on_denied(right, groups, why)

    def regrant(self) -> Ending | None:
        """The rules have changed: what this client may do is asked for again. It has to go when it may not be here."""
        if self._gate is None or not self.number:
            return None
        try:
            granted = self._gate.admit(self._token)
            granted.check_name(self.half.name.partition(AT)[0] if self._has_chosen_name else "")
            if self.half.outbound.policy is SlowPolicy.HOLD:
                granted.check_hold()
        except Denied as error:
            self.deny(error.right, (), str(error))
            return Ending(str(error))
        leaves = self.half.regrant(granted)
        groups = () if leaves is None else leaves.groups
        for start in range(0, len(groups), GROUPS_MAX):
            part = groups[start : start + GROUPS_MAX]
            self._change(leave_payload(self.half.name, part), len(part))
        return None

    def _refuse(self, kind: ClientRefusal, why: str) -> Ending:
        self._counters.refusals[kind] += 1
        return Ending(why)

    def _answer(self, page: bytes) -> None:
        self.work += ANSWER_WORK
        self.half.urge(page)

    def _change(self, payload: bytes, groups: int) -> None:
        self._changes += 1
        self.work += groups
        self._host.request(self.number, (payload,), accepted=self._changed, changes=groups)

    def _changed(self) -> None:
        self._changes -= 1

    # To the client

    def give(self, handout: Handout) -> Ending | None:
        outbound = self.half.outbound
        self.given += handout.messages
        dropped = outbound.dropped.messages
        why = outbound.put(handout.frame(), handout.messages)
        self._counters.messages_dropped += outbound.dropped.messages - dropped
        if why is None:
            return None
        self._counters.too_slow += 1
        return Ending(why, is_warned=True)

    def confirm(self, run: MessageRun) -> None:
        self.half.urge(encode_confirm(run))

    @property
    def is_holding(self) -> bool:
        """All should wait for this client."""
        return self.number != 0 and self.half.outbound.is_holding

    def look(self, now: Instant) -> Ending | None:
        """Judge a client for which all wait: when it begins to hold, and a few times a second while it does."""
        why = self.half.outbound.look(now)
        if why is None:
            return None
        self._counters.held_too_long += 1
        return Ending(why, is_warned=True)

    def take(self, size_max: int = UNLIMITED) -> list[bytes]:
        """Return what may be written now."""
        return self.half.take(size_max)

    def debt(self, received: int) -> int:
        """Return all bytes that are kept for it: what it has not taken, what is not sent yet, and, being `received`,
        what it has not said to the end; room that was granted for that is taken."""
        half = self.half
        return half.waiting_size + max(received, half.extra) + self._host.desk.requests_size_of(self.number)

    # The end

    def end(self, accepted: Callable[[], None] | None = None) -> int:
        """Have it gone from its groups. Return the number that its session had."""
        number, self.number = self.number, 0
        if number:
            self._host.close_session(number, self.half.name, len(self.half.joined), accepted)
        self.half.forget()
        return number

    def forget(self) -> None:
        """The daemon has ended: there is nobody to be told."""
        self.number = 0
