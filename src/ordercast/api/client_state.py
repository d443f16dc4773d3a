"""ClientState: what a client knows of its groups, of the stream and of those who wait. No socket and no event loop.

Both forms of clients drive it: `client.py` on an event loop, `direct.py` with a blocking socket. The form says what a
waiter waits for (`new_promise`), and a client that moves from one form to the other takes its state along.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from ordercast.api.group_inbox import GroupInbox
from ordercast.api.requests import Inquiries
from ordercast.api.waiters import Waiters
from ordercast.groups.names import GROUPS_MAX
from ordercast.model.errors import ConnectionLost, UsageError
from ordercast.model.events import Batch, Dropped, Left, Piece, Reconnected, Transition, View
from ordercast.model.ids import Position
from ordercast.session.addresses import Address
from ordercast.session.batches import Confirm
from ordercast.session.client_half import RECEIVE_CREDIT, ClientHalf, Closing, Managed, News
from ordercast.session.frames import DeniedSend, Listing, Members, Refused, Welcome


class Carrier(Protocol):
    """A connection of a session."""

    half: ClientHalf

    def write(self, data: bytes) -> None: ...


class ClientState:
    def __init__(self, name: str, new_promise: Callable[[], Any]) -> None:
        self.new_promise = new_promise
        self.name = name  # in full, once it is known
        self.address: Address | None = None  # of the daemon
        self.joined: set[str] = set()  # groups that were asked for
        self.inbox = GroupInbox(2 * RECEIVE_CREDIT, None, self.on_taken)
        self.requests = Inquiries(self._promise)
        self.waiters = Waiters(self._promise)
        self.answers: deque[Any] = deque()  # that are waited for, in the order of the questions
        self.link: Carrier | None = None
        self.is_closed = False
        self._denied: dict[tuple[str, ...], str] = {}  # why messages to these groups were not sent, untold
        self._kept_out: dict[str, str] = {}  # why it is in these groups no longer, untold
        self._again: set[tuple[str, ...]] = set()  # that a new session was asked to join together, without an answer
        self._settled = 0  # bytes in the inbox for which no credit is owed: of a former link, or given in advance
        self._last: Position | None = None  # of the last message that came

    def _promise(self) -> Any:
        return self.new_promise()

    # What is asked for

    def check_allowed(self, groups: tuple[str, ...]) -> None:
        """Messages to these groups were refused, perhaps, since somebody was last told; or the client was."""
        if self._denied and (why := self._denied.pop(groups, None)):
            raise UsageError(why)
        if self._kept_out and len(groups) == 1 and (why := self._kept_out.pop(groups[0], None)):
            raise UsageError(why)

    def changes(self, groups: tuple[str, ...], *, joins: bool) -> list[Any]:
        """Ask for a join or leave; what comes of it, in each group. While there is no session nothing needs to be
        said: the next one joins what is wanted then."""
        changes = self.waiters.changes(groups, joins=joins)
        for group in groups if joins else ():
            self._kept_out.pop(group, None)
        if self.link is not None:
            half = self.link.half
            self.link.write(half.join(groups) if joins else half.leave(groups))
            self._give_advance(self.inbox.size - self._settled)
        return changes

    # What comes

    def on_news(self, link: Carrier, news: News, size: int) -> None:
        match news:
            case Batch() | View() | Transition() | Left() | Dropped() | Reconnected():
                if isinstance(news, Batch):
                    self._last = news.last
                self._put(news, size, link.half.name)
                if self.waiters.await_changes:
                    self._give_advance(size)
                self.waiters.saw(news, link.half.name)
                if self._again and isinstance(news, View):
                    self._again = {groups for groups in self._again if news.group not in groups}
            case Confirm():
                self.waiters.confirmed(news.messages, news.places)
            case Managed():
                self._answered(news.document)
            case Listing() | Members():
                self._answered(news)
            case Refused():
                self._refused(news)
            case DeniedSend():
                self._on_denied(news)
            case Closing() | Welcome():
                pass  # the link has seen to it

    def _put(self, piece: Piece, size: int, me: str) -> None:
        """Replies are for those who wait for them, and never in the stream."""
        if not isinstance(piece, Batch) or not piece.headers or piece.groups != (me,):
            self.inbox.put(piece, size)
            return
        for rest in self.requests.without_replies(piece):
            self.inbox.put(rest, size)
            size = 0
        self.inbox.pass_by(size)

    def _answered(self, answer: Any) -> None:
        if self.answers:
            future = self.answers.popleft()
            if not future.done():
                future.set_result(answer)

    def _refused(self, refused: Refused) -> None:
        """A join that nobody waits for was made by the client itself, after it had found a daemon again: whoever sends
        there next is told why it is not there."""
        if refused.joins and len(refused.groups) > 1 and refused.groups in self._again:
            self._again.discard(refused.groups)
            refused = refused._replace(groups=self._ask_for_each(refused.groups))
        told = self.waiters.refused(refused.groups, UsageError(refused.why), joins=refused.joins)
        for group in refused.groups if refused.joins else ():
            is_told = group in told
            if group in self.joined and not self.waiters.await_join(group):
                self.joined.discard(group)
                if not is_told:
                    self._kept_out[group] = refused.why
            if not is_told:
                self.inbox.put(Left(group), 0)

    def _ask_for_each(self, groups: tuple[str, ...]) -> tuple[str, ...]:
        """Ask a new session for each group alone that it would not have us join together with others: one that is
        refused costs no other. Return those that were left meanwhile."""
        wanted = [group for group in groups if group in self.joined and not self.waiters.await_leave(group)]
        if self.link is not None:
            for group in wanted:
                self.link.write(self.link.half.join((group,)))
        return tuple(group for group in groups if group not in wanted)

    def _on_denied(self, denied: DeniedSend) -> None:
        """Whoever waits for the message is told; otherwise the next who sends there is."""
        if not denied.number:  # taken out of these groups: `Left` comes in the stream
            self.joined.difference_update(denied.groups)
            self._kept_out |= dict.fromkeys(denied.groups, denied.why)
        elif not self.waiters.denied(denied.number, UsageError(denied.why)):
            self._denied[denied.groups] = denied.why

    # Credit for the daemon

    def on_taken(self, size: int) -> None:
        settled = min(size, self._settled)
        self._settled -= settled
        self._give_credit(size - settled)

    def _give_advance(self, size: int) -> None:
        """While a join or leave is awaited: it comes behind all this, even if nobody reads meanwhile."""
        self._settled += size
        self._give_credit(size)

    def _give_credit(self, size: int) -> None:
        if self.link is not None:
            frame = self.link.half.took(size)
            if frame is not None:
                self.link.write(frame)

    # Sessions, one after the other

    def found(self, link: Carrier, address: Address) -> None:
        self.link, self.address, self.name = link, address, link.half.name

    def lost(self, error: ConnectionLost, *, may_return: bool) -> int:
        """There is no session; whoever waits for something of it is told. How many messages were not confirmed."""
        self.link = None
        self._settled = self.inbox.size
        unconfirmed = self.waiters.unconfirmed
        if may_return:
            self.waiters.fail_confirmations(error)
            self._fail_answers(error)
        else:
            self.give_up(error)
        return unconfirmed

    def begin_again(self, link: Carrier, unconfirmed: int, why: str) -> None:
        """In a new session: the stream says so, and the same groups are joined."""
        joined = tuple(sorted(self.joined))
        self.inbox.put(Reconnected(link.half.name, joined, unconfirmed, self._last, why), 0)
        self.waiters.begin_again(joined)
        parts = [joined[start : start + GROUPS_MAX] for start in range(0, len(joined), GROUPS_MAX)]
        self._again = set(parts)
        for part in parts:
            link.write(link.half.join(part))

    def give_up(self, error: ConnectionLost) -> None:
        self.waiters.fail(error)
        self._fail_answers(error)
        self.inbox.close(None if self.is_closed else error)

    def _fail_answers(self, error: ConnectionLost) -> None:
        while self.answers:
            future = self.answers.popleft()
            if not future.done():
                future.set_exception(error)
