"""The shape of a state.

Rules: a state is entered only through its `enter`, which records the move with its reason, sets the timers of the new
state and cancels the rest, then sends. A handler returns the next state (itself when nothing moves). A state holds no
reference to the node; what outlives it is in `step.facts`. Every handler is abstract, so that the type checker reports
a forgotten pair of state and message. What a state does not act on it says in one line.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from ordercast.order.membership.ring import Ring
from ordercast.order.membership.step import Facts, Step
from ordercast.order.membership.timers import Timer
from ordercast.wire.messages import Announcement, CommitToken, Join, Leave, Token, Wake
from ordercast.wire.run import PacketRun


class State(ABC):
    name: ClassVar[str]

    @abstractmethod
    def accepting(self, facts: Facts) -> Ring | None:
        """The one ring whose data packets are kept now."""

    @abstractmethod
    def on_data(self, fresh: list[PacketRun], step: Step) -> State:
        """New packets of the accepting ring are in its store."""

    @abstractmethod
    def on_token(self, token: Token, step: Step) -> State: ...

    @abstractmethod
    def on_commit(self, token: CommitToken, step: Step) -> State: ...

    @abstractmethod
    def on_join(self, join: Join, step: Step) -> State: ...

    @abstractmethod
    def on_announcement(self, announcement: Announcement, step: Step) -> State: ...

    @abstractmethod
    def on_wake(self, wake: Wake, step: Step) -> State: ...

    @abstractmethod
    def on_leave(self, leave: Leave, step: Step) -> State: ...

    @abstractmethod
    def on_timer(self, timer: Timer, step: Step) -> State: ...

    @abstractmethod
    def on_submission(self, step: Step) -> State:
        """There is something in the outbox that was not there before, or this process wants to leave."""

    @abstractmethod
    def on_persisted(self, step: Step) -> State:
        """A write to stable storage was confirmed."""
