"""Groups over an engine that takes its time to subscribe: joins wait for it, and nothing else does.

The engine is a ring that answers a wish only when a timer has run out after it, and not at all if the group was given
up meanwhile. It prunes nothing, but says that it does, so that what is wanted is recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ordercast.checker.verdict import Outcome
from ordercast.groups.envelope import destinations_of, joins_of
from ordercast.model.effects import Effect, Subscribed
from ordercast.model.ids import MILLISECOND, Instant, NodeId
from ordercast.model.inputs import Interest, Submission, Submissions
from ordercast.model.promises import Promises
from ordercast.order.ring.node import RingNode
from ordercast.sim.options import SimOptions
from ordercast.sim.run import simulate
from ordercast.sim.swarm import hostile_group_options
from ordercast.trace.records import STAMP_SIZE, Event, Submitted, Wanted

DELAY_NS = 3 * MILLISECOND


class Slow(RingNode):
    def __init__(self, node: NodeId, options: SimOptions) -> None:
        super().__init__(node, options.ring, beneath=options.networks.in_words)
        self._asked: dict[str, int] = {}  # when an answer is due
        self.wanted: set[str] = set()
        self.joins = 0

    @property
    def promises(self) -> Promises:
        return replace(super().promises, prunes=True)

    def interest(self, changes: Sequence[Interest], now: Instant) -> list[Effect]:
        for change in changes:
            if change.is_wanted:
                assert change.group not in self._asked.keys() | self.wanted, "nothing is asked for twice"
                self._asked[change.group] = now + DELAY_NS
            else:
                assert change.group in self._asked.keys() | self.wanted, "nothing is given up that was not wanted"
                self._asked.pop(change.group, None)
                self.wanted.discard(change.group)
        return []

    def next_deadline(self) -> Instant | None:
        deadlines = [super().next_deadline(), *map(Instant, self._asked.values())]
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def wake(self, now: Instant) -> list[Effect]:
        due = tuple(group for group, at in self._asked.items() if at <= now)
        for group in due:
            del self._asked[group]
        self.wanted.update(due)
        return [*([Subscribed(due)] if due else []), *super().wake(now)]

    def submit(self, submissions: Sequence[Submission | Submissions], now: Instant) -> list[Effect]:
        for submission in submissions:
            assert isinstance(submission, Submission)
            payload = submission.data[STAMP_SIZE:]
            assert submission.destinations == destinations_of(payload)
            joined = joins_of(payload)
            assert self.wanted.issuperset(joined), "a join was submitted before the engine was subscribed"
            self.joins += len(joined)
        return super().submit(submissions, now)


@pytest.mark.parametrize("seed", [1, 4, 7])
def test_no_join_is_submitted_before_the_engine_is_subscribed(seed: int) -> None:
    options = hostile_group_options(seed)
    engines: list[Slow] = []
    events: list[Event] = []

    def make(node: NodeId) -> Slow:
        engines.append(Slow(node, options))
        return engines[-1]

    result = simulate(options, seed, make_engine=make, observer=events.append)
    assert result.settled and sum(engine.joins for engine in engines) > 5
    assert result.verdict.outcome is Outcome.VALID, str(result.verdict)
    wanted = [event for event in events if isinstance(event, Wanted)]
    assert {event.begins for event in wanted} == {True, False}
    assert any(event.destinations for event in events if isinstance(event, Submitted))
