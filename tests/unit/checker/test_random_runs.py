"""Random runs that are right by construction must be VALID: loss, partitions, merges, crashes, restarts, safe messages.

`Model` follows the recovery rules of the paper on whole sets of messages (section 4.3, steps 1 to 6), without packets,
tokens or timeouts: those who come along from an old ring pool what they have, deliver in the old configuration up to
the first gap or the first message not known to be safe, then in the transitional configuration the rest up to the first
gap, and beyond it what members of that configuration originated.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from ordercast.checker import Outcome, check
from ordercast.model.ids import ConfigurationId
from ordercast.model.service import Service
from ordercast.trace.records import DeliveredBatch, Event, MessageId

from .histories import Story, assert_valid


@dataclass
class State:
    """One process on its ring."""

    ring: ConfigurationId
    received: set[MessageId] = field(default_factory=set)
    done: int = 0  # how many of the ring's messages were delivered
    waiting: list[MessageId] = field(default_factory=list)  # submitted, not yet originated


class Model:
    def __init__(self, seed: int, count: int) -> None:
        self.rng = random.Random(seed)
        self.story = Story(count)
        self.orders: dict[ConfigurationId, list[MessageId]] = {}
        self.members: dict[ConfigurationId, set[int]] = {}
        self.states: dict[int, State] = {}
        for node in range(count):
            self._begin(node)

    def _begin(self, node: int) -> None:
        ring = self.story.members[node].ring
        self.states[node] = State(ring)
        self.orders.setdefault(ring, [])
        self.members.setdefault(ring, {node})

    def _is_safe(self, message: MessageId) -> bool:
        return self.story.submissions[message].service == Service.SAFE

    # Steps of normal operation.

    def send(self, node: int) -> None:
        service = self.rng.choice((Service.AGREED, Service.AGREED, Service.SAFE))
        sender, size = self.rng.randrange(2), self.rng.choice((50, 5_000))
        self.states[node].waiting.append(self.story.send(node, service=service, sender=sender, size=size))

    def originate(self, node: int, loss: float) -> None:
        state = self.states[node]
        for message in state.waiting:
            self.story.number(message, node)
            self.orders[state.ring].append(message)
            for other, theirs in self.states.items():
                if theirs.ring == state.ring and (other == node or self.rng.random() >= loss):
                    theirs.received.add(message)
        state.waiting = []

    def repair(self, node: int) -> None:
        self.states[node].received.update(self.orders[self.states[node].ring])

    def deliver(self, node: int) -> None:
        state = self.states[node]
        order = self.orders[state.ring]
        while state.done < len(order) and order[state.done] in state.received:
            message = order[state.done]
            if self._is_safe(message) and not self._have_all(state.ring, order[: state.done + 1]):
                return
            self.story.deliver(message, at=(node,))
            state.done += 1

    def _have_all(self, ring: ConfigurationId, messages: list[MessageId]) -> bool:
        """Every member of the ring, be it dead by now, is known to have all of these."""
        here = {node: state for node, state in self.states.items() if state.ring == ring}
        return self.members[ring] <= set(here) and all(set(messages) <= state.received for state in here.values())

    # Steps of membership and recovery.

    def change(self, nodes: list[int]) -> None:
        companies: dict[ConfigurationId, list[int]] = {}
        for node in nodes:
            companies.setdefault(self.states[node].ring, []).append(node)
        for ring, company in companies.items():
            self._end_regular(ring, company)
        self.story.transitional(*nodes)
        for ring, company in companies.items():
            self._end_transitional(ring, company)
        self.story.regular(*nodes)
        for node in nodes:
            waiting = self.states[node].waiting
            self._begin(node)
            self.states[node].waiting = waiting
            self.members[self.states[node].ring] = set(nodes)

    def _end_regular(self, ring: ConfigurationId, company: list[int]) -> None:
        pool = set().union(*(self.states[node].received for node in company))
        delivered_by_some = max(self.states[node].done for node in company)
        order = self.orders[ring]
        for node in company:
            state = self.states[node]
            state.received = pool
            while state.done < len(order) and order[state.done] in pool:
                if self._is_safe(order[state.done]) and state.done >= delivered_by_some:
                    break
                self.story.deliver(order[state.done], at=(node,))
                state.done += 1

    def _end_transitional(self, ring: ConfigurationId, company: list[int]) -> None:
        ids = {self.story.id(node) for node in company}
        order = self.orders[ring]
        for node in company:
            state = self.states[node]
            gap = False
            for message in order[state.done :]:
                gap = gap or message not in state.received
                if message in state.received and (not gap or message.process in ids):
                    self.story.deliver(message, at=(node,))

    def crash(self, node: int) -> None:
        self.story.crash(node)
        del self.states[node]

    # A whole run.

    def run(self, steps: int) -> list[Event]:
        for _ in range(steps):
            self._step()
        everyone = sorted(self.states)
        self.change(everyone)
        for node in everyone:
            self.originate(node, loss=0)
        for node in everyone:
            self.deliver(node)
        return self.story.finished()

    def _step(self) -> None:
        node = self.rng.choice(sorted(self.states))
        dice = self.rng.random()
        if dice < 0.35:
            self.send(node)
        elif dice < 0.55:
            self.originate(node, loss=0.3)
        elif dice < 0.65:
            self.repair(node)
        elif dice < 0.95:
            self.deliver(node)
        elif dice < 0.985:
            self.change(self.rng.sample(sorted(self.states), self.rng.randint(1, len(self.states))))
        elif len(self.states) > 1:
            self.crash(node)
        else:
            self._restart()

    def _restart(self) -> None:
        for node in sorted(self.story.lives):
            if node not in self.states:
                self.story.start(node)
                self._begin(node)


@pytest.mark.parametrize("seed", [*range(40), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(40, 150))])
def test_a_run_that_follows_the_paper_is_valid(seed: int) -> None:
    assert_valid(Model(seed, count=2 + seed % 4).run(steps=300))


def test_in_such_runs_no_delivery_can_be_forged_repeated_or_moved_between_two_others() -> None:
    for seed in range(25):
        events = Model(seed, count=3).run(steps=200)
        rng = random.Random(seed)
        batches = [index for index, event in enumerate(events) if isinstance(event, DeliveredBatch)]
        chosen = rng.choice(batches)
        again = [*events[: chosen + 1], events[chosen], *events[chosen + 1 :]]
        assert check(again).outcome is Outcome.INVALID, f"seed {seed}: repeated"
        process = events[chosen].process  # type: ignore[union-attr]
        mine = [index for index in batches if events[index].process == process]  # type: ignore[union-attr]
        if len(mine) > 1:
            first, second = rng.sample(mine, 2)
            swapped = list(events)
            swapped[first], swapped[second] = swapped[second], swapped[first]
            assert check(swapped).outcome is Outcome.INVALID, f"seed {seed}: swapped"
