"""After the orderly leave: nothing is heard and nothing is said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import Broadcast, LeaveDone
from ordercast.order.membership.ring import Ring
from ordercast.order.membership.states import moves
from ordercast.order.membership.states.base import State
from ordercast.order.membership.step import Facts, Step
from ordercast.order.membership.timers import Timer
from ordercast.wire.codec import encode
from ordercast.wire.messages import Announcement, CommitToken, Join, Leave, Token, Wake
from ordercast.wire.run import PacketRun

FAREWELLS = 3  # sent at once: nobody is left to repeat a lost one, and losing all costs the others a token loss timeout


@dataclass(slots=True)
class Gone(State):
    name: ClassVar[str] = moves.GONE

    @classmethod
    def enter(cls, origin: State, step: Step) -> Gone:
        facts = step.facts
        step.moved(origin.name, cls.name, ChangeReason.LEFT, "everything of mine is received by all")
        facts.timers.only()
        farewell = encode(facts.cluster, Leave(facts.installed.id, facts.me))
        step.effects.append(Broadcast([(farewell, len(farewell))] * FAREWELLS))
        step.effects.append(LeaveDone())
        return cls()

    def accepting(self, facts: Facts) -> Ring | None:
        return None

    def on_data(self, fresh: list[PacketRun], step: Step) -> State:
        return self

    def on_token(self, token: Token, step: Step) -> State:
        return self

    def on_commit(self, token: CommitToken, step: Step) -> State:
        return self

    def on_join(self, join: Join, step: Step) -> State:
        return self

    def on_announcement(self, announcement: Announcement, step: Step) -> State:
        return self

    def on_wake(self, wake: Wake, step: Step) -> State:
        return self

    def on_leave(self, leave: Leave, step: Step) -> State:
        return self

    def on_timer(self, timer: Timer, step: Step) -> State:
        return self

    def on_submission(self, step: Step) -> State:
        return self

    def on_persisted(self, step: Step) -> State:
        return self
