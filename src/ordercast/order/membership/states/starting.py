"""Before the first view: the ring seq is being raised and stored, so that this life's rings come after those of the
last. (Paper, start-up; deviations, E7)"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ordercast.model.effects import Install
from ordercast.order.attached import RingChange
from ordercast.order.membership.configurations import first_configuration
from ordercast.order.membership.ring import Ring
from ordercast.order.membership.states import moves
from ordercast.order.membership.states.base import State
from ordercast.order.membership.step import Facts, Step
from ordercast.order.membership.timers import Timer
from ordercast.wire.messages import Announcement, CommitToken, Join, Leave, Token, Wake
from ordercast.wire.run import PacketRun

_NOT_YET = "not started"


@dataclass(slots=True)
class Starting(State):
    name: ClassVar[str] = moves.STARTING

    @classmethod
    def enter(cls, step: Step) -> Starting:
        step.persist(step.facts.ring_seq)
        step.arm(Timer.STORAGE, step.facts.config.storage_patience_ns)
        return cls()

    def on_persisted(self, step: Step) -> State:
        facts = step.facts
        is_stored = facts.storage.has(facts.ring_seq) and facts.clock.covers(facts.clock.tick + 1)
        return self._begin(step) if is_stored else self

    def _begin(self, step: Step) -> State:
        facts = step.facts
        facts.timers.cancel(Timer.STORAGE)
        first = first_configuration(facts.installed)
        if facts.parts.attached:
            facts.installed.birth = facts.clock.tick + 1
            facts.clock.hear(facts.installed.birth)
            step.effects.append(RingChange(first, [], facts.installed.birth))
        else:
            step.effects.append(Install(first))
        return facts.parts.begin(self, step)

    def accepting(self, facts: Facts) -> Ring | None:
        return None

    def on_data(self, fresh: list[PacketRun], step: Step) -> State:
        return self

    def on_token(self, token: Token, step: Step) -> State:
        step.ignored(token, _NOT_YET)
        return self

    def on_commit(self, token: CommitToken, step: Step) -> State:
        step.ignored(token, _NOT_YET)
        return self

    def on_join(self, join: Join, step: Step) -> State:
        step.ignored(join, _NOT_YET)
        return self

    def on_announcement(self, announcement: Announcement, step: Step) -> State:
        return self  # heard and noted by the node: it will be of use soon

    def on_wake(self, wake: Wake, step: Step) -> State:
        step.ignored(wake, _NOT_YET)
        return self

    def on_leave(self, leave: Leave, step: Step) -> State:
        step.ignored(leave, _NOT_YET)
        return self

    def on_timer(self, timer: Timer, step: Step) -> State:
        facts = step.facts  # no other timer is armed
        if not facts.storage.has(facts.ring_seq):
            step.go_without_storage()
        if not facts.clock.covers(facts.clock.tick + 1):
            step.go_without_clock()
        return self._begin(step)

    def on_submission(self, step: Step) -> State:
        return self  # it waits in the outbox
