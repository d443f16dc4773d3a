"""One change to a good history, at random, must never pass: that is what the panel is for."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from ordercast.checker import Outcome, combined
from ordercast.model.ids import ProcessId
from ordercast.model.service import Service
from ordercast.trace.records import DeliveredBatch, Event, Installed

from .histories import Story, assert_valid, panel_of

Mutation = Callable[[list[Event], random.Random], list[Event]]


@cache
def _story(seed: int) -> list[Event]:
    """Three processes, a split, a merge, 110 messages, some of them safe and some large."""
    rng = random.Random(seed)
    story = Story(3)
    for nodes in ((0, 1, 2), (0, 1), (0, 1, 2)):
        if nodes == (0, 1):
            story.change(2)
        story.change(*nodes)
        for _ in range(36 // len(nodes)):
            for node in nodes:
                service = rng.choice((Service.AGREED, Service.SAFE))
                message = story.send(node, service=service, size=rng.choice((40, 100, 9_000)))
                story.deliver(message, at=rng.sample(nodes, len(nodes)))
    return story.finished()


def _batches(events: list[Event]) -> list[int]:
    return [index for index, event in enumerate(events) if isinstance(event, DeliveredBatch)]


def _views(events: list[Event]) -> list[int]:
    return [index for index, event in enumerate(events) if isinstance(event, Installed)]


def _process(event: Event) -> ProcessId:
    assert isinstance(event, DeliveredBatch | Installed)
    return event.process


def drop(events: list[Event], rng: random.Random) -> list[Event]:
    chosen = rng.choice(_batches(events))
    return events[:chosen] + events[chosen + 1 :]


def duplicate(events: list[Event], rng: random.Random) -> list[Event]:
    chosen = rng.choice(_batches(events))
    return [*events[: chosen + 1], events[chosen], *events[chosen + 1 :]]


def swap(events: list[Event], rng: random.Random) -> list[Event]:
    """Two deliveries at one process, neighbours or not."""
    first = rng.choice(_batches(events))
    others = [
        index for index in _batches(events) if index != first and _process(events[index]) == _process(events[first])
    ]
    second = rng.choice(others)
    result = list(events)
    result[first], result[second] = result[second], result[first]
    return result


def alter(field: str) -> Mutation:
    def mutation(events: list[Event], rng: random.Random) -> list[Event]:
        chosen = rng.choice(_batches(events))
        batch = events[chosen]
        assert isinstance(batch, DeliveredBatch)
        delivered = batch.messages[0]
        altered = delivered._replace(**{field: getattr(delivered, field) + rng.choice((-1, 1))})
        return [*events[:chosen], replace(batch, messages=(altered,)), *events[chosen + 1 :]]

    mutation.__name__ = f"alter_{field}"
    return mutation


def misname_view(events: list[Event], rng: random.Random) -> list[Event]:
    chosen = rng.choice(_batches(events))
    batch = events[chosen]
    assert isinstance(batch, DeliveredBatch)
    return [
        *events[:chosen],
        replace(batch, configuration=batch.configuration._replace(seq=batch.configuration.seq + 4)),
        *events[chosen + 1 :],
    ]


def misname_ring(events: list[Event], rng: random.Random) -> list[Event]:
    chosen = rng.choice(_batches(events))
    batch = events[chosen]
    assert isinstance(batch, DeliveredBatch)
    return [
        *events[:chosen],
        replace(batch, origin=batch.origin._replace(seq=batch.origin.seq + 4)),
        *events[chosen + 1 :],
    ]


def move_behind_a_view(events: list[Event], rng: random.Random) -> list[Event]:
    """A delivery slips behind the next view of its process."""
    last = {_process(events[index]): index for index in _views(events)}
    chosen = rng.choice([index for index in _batches(events) if index < last[_process(events[index])]])
    process = _process(events[chosen])
    view = next(index for index in _views(events) if index > chosen and _process(events[index]) == process)
    installed = events[view]
    assert isinstance(installed, Installed)
    batch = events[chosen]
    assert isinstance(batch, DeliveredBatch)
    moved = replace(batch, configuration=installed.configuration.id)
    return [*events[:chosen], *events[chosen + 1 : view + 1], moved, *events[view + 1 :]]


def drop_view(events: list[Event], rng: random.Random) -> list[Event]:
    chosen = rng.choice(_views(events))
    return events[:chosen] + events[chosen + 1 :]


def drop_member(events: list[Event], rng: random.Random) -> list[Event]:
    chosen = rng.choice(_views(events))
    installed = events[chosen]
    assert isinstance(installed, Installed)
    members = list(installed.configuration.members)
    members.remove(rng.choice(members))
    view = replace(installed.configuration, members=tuple(members))
    return [*events[:chosen], replace(installed, configuration=view), *events[chosen + 1 :]]


def drop_companion(events: list[Event], rng: random.Random) -> list[Event]:
    chosen = rng.choice(_views(events))
    installed = events[chosen]
    assert isinstance(installed, Installed)
    companions = list(installed.configuration.transitional)
    companions.remove(rng.choice(companions))
    view = replace(installed.configuration, transitional=tuple(companions))
    return [*events[:chosen], replace(installed, configuration=view), *events[chosen + 1 :]]


def swap_views(events: list[Event], rng: random.Random) -> list[Event]:
    first = rng.choice(_views(events))
    second = rng.choice([i for i in _views(events) if i != first and _process(events[i]) == _process(events[first])])
    result = list(events)
    result[first], result[second] = result[second], result[first]
    return result


MUTATIONS: list[Mutation] = [
    drop,
    duplicate,
    swap,
    alter("digest"),
    alter("size"),
    alter("service"),
    alter("number"),
    alter("slot"),
    misname_view,
    misname_ring,
    move_behind_a_view,
    drop_view,
    drop_member,
    drop_companion,
    swap_views,
]


@pytest.mark.parametrize("seed", range(4))
def test_the_history_itself_is_valid(seed: int) -> None:
    assert_valid(_story(seed))


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_no_mutation_passes(mutation: Mutation) -> None:
    for seed in range(16):
        rng = random.Random(seed)
        broken = mutation(_story(seed % 4), rng)
        verdicts = panel_of(broken).verdicts()
        assert combined(verdicts).outcome is Outcome.INVALID, f"seed {seed}: {combined(verdicts)}"
        for verdict in verdicts:
            assert "checker failed" not in verdict.sentence, str(verdict)


def test_verdicts_are_the_same_every_time() -> None:
    broken = swap(drop(_story(0), random.Random(3)), random.Random(4))
    assert panel_of(broken).verdicts() == panel_of(broken).verdicts()
