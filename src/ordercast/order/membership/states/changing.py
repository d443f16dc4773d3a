"""What the states have in common in which a ring is being formed: the old one is not worked on any more."""

from __future__ import annotations

from ordercast.order.membership.ring import Ring
from ordercast.order.membership.states.base import State
from ordercast.order.membership.step import Facts, Step
from ordercast.wire.messages import Announcement, Token, Wake
from ordercast.wire.run import PacketRun


class Changing(State):
    def accepting(self, facts: Facts) -> Ring | None:
        return None if facts.is_frozen else facts.installed

    def on_data(self, fresh: list[PacketRun], step: Step) -> State:
        step.facts.past.advance(step.effects)
        return self

    def on_token(self, token: Token, step: Step) -> State:
        step.ignored(token, "no ring is installed")
        return self

    def on_announcement(self, announcement: Announcement, step: Step) -> State:
        return self  # noted by the node; newcomers are merged once a ring is installed

    def on_wake(self, wake: Wake, step: Step) -> State:
        step.ignored(wake, "no ring is installed")
        return self

    def on_submission(self, step: Step) -> State:
        return self  # it waits in the outbox

    def on_persisted(self, step: Step) -> State:
        return self  # a write that an abandoned ring had asked for
