"""Faults planted in replicated state: what an implementer might get wrong, and what the first design had wrong.

Each is a small change of one rule of the core. `test_planted_replicas.py` demands that the judges of replicas catch
every one of them within a bounded number of hostile runs. The core's own assertions are silenced there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from ordercast.model.events import View, ViewId
from ordercast.model.ids import MILLISECOND
from ordercast.model.promises import ReplicaPromise as Promise
from ordercast.model.service import Service
from ordercast.replicated import core as core_module
from ordercast.replicated.component import Component
from ordercast.replicated.copy import Arriving, Copy
from ordercast.replicated.core import Core
from ordercast.replicated.decision import Decision, decide, life_of
from ordercast.replicated.effects import Confirm, Effect, Refuse, Release, Why
from ordercast.replicated.quorum import Electorate, LastMajority, Life, Majority, Rule
from ordercast.replicated.sessions import Sessions
from ordercast.replicated.track import Held
from ordercast.replicated.wire import State, decode_command, decode_preface, is_command
from ordercast.sim import transfers
from ordercast.sim.dictionary import Dictionary, Picture
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import SimOptions
from ordercast.sim.station import Client, Station
from ordercast.sim.swarm import hostile_replica_options

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class PlantedFault:
    name: str
    plant: Plant
    broken: frozenset[Promise]  # any of these must be found INVALID
    options: Callable[[int], SimOptions] = hostile_replica_options
    first: int = 0  # the seed to begin with
    runs: int = 20  # caught within this many


def majority_lost(seed: int) -> SimOptions:
    """Two of three go on without the third, lose their memory, and meet it."""
    script = (
        Fault(350 * MILLISECOND, FaultKind.PARTITION, groups=((0, 1), (2,))),
        Fault(600 * MILLISECOND, FaultKind.CRASH, node=0),
        Fault(601 * MILLISECOND, FaultKind.CRASH, node=1),
        Fault(640 * MILLISECOND, FaultKind.RESTART, node=0),
        Fault(641 * MILLISECOND, FaultKind.RESTART, node=1),
        Fault(700 * MILLISECOND, FaultKind.HEAL),
    )
    return SimOptions(nodes=3, messages=120, replicas=1, replica_weights=(1, 1, 1), faults=script)


def majorities_by_turns(seed: int) -> SimOptions:
    """Always two of three, another two each time."""
    pairs = ((0, 1), (1, 2), (0, 2), (0, 1))
    script = tuple(
        Fault((350 + 200 * number) * MILLISECOND, FaultKind.PARTITION, groups=(pair, tuple({0, 1, 2}.difference(pair))))
        for number, pair in enumerate(pairs)
    )
    return SimOptions(nodes=3, messages=200, replicas=1, replica_weights=(1, 1, 1), faults=script)


def _confirmed_before_applied(patch: pytest.MonkeyPatch) -> None:
    """When it comes back: applied or not."""
    right = Core._on_command

    def wrong(self: Core, component: Component, held: Held, effects: list[Effect]) -> None:
        command = decode_command(held.payload)
        if command.life == self.me.life and component.is_primary and self._requests.settle(command.request):
            effects.append(Confirm(command.request, self.count + 1, b""))
        right(self, component, held, effects)

    patch.setattr(Core, "_on_command", wrong)


def _agreed_instead_of_safe(patch: pytest.MonkeyPatch) -> None:
    right = Station.send

    def wrong(
        self: Station, client: Client, groups: tuple[str, ...], service: Service, filler: bytes, **rest: Any
    ) -> None:
        right(self, client, groups, Service.AGREED if is_command(filler) else service, filler, **rest)

    patch.setattr(Station, "send", wrong)


def _applied_after_the_signal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Component, "is_live", property(lambda self: self.is_primary))


def _picture_without_tail(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Copy, arriving: Arriving, preface: bytes, pieces: Iterable[bytes]) -> None:
        _, digest, sessions, _ = decode_preface(preface)
        self.machine.load(pieces)
        self.track, self.sessions, self.applied_digest = arriving.track, sessions, digest

    patch.setattr(Copy, "load", wrong)


def _everybody_counts(patch: pytest.MonkeyPatch) -> None:
    """Whoever is configured, or held the state last: present or not."""
    patch.setattr(Majority, "is_quorum", lambda self, voters, electorates: True)
    patch.setattr(LastMajority, "is_quorum", lambda self, voters, electorates: True)


def _fresh_ones_count(patch: pytest.MonkeyPatch) -> None:
    """Whoever is in the view, if only it has been loaded: one that forgot counts as one that remembers."""
    patch.setattr(Component, "_votes", lambda self, name, best: True)


def _unloaded_ones_count(patch: pytest.MonkeyPatch) -> None:
    """Whoever is in the view, whatever it has. (And transfers take longer than views.)"""
    patch.setattr(transfers, "PIECE_MIN_NS", 200 * MILLISECOND)
    patch.setattr(transfers, "PIECE_MAX_NS", 201 * MILLISECOND)

    def wrong(view: ViewId, states: Mapping[str, State], rule: Rule) -> Decision:
        decision = decide(view, states, rule)
        lives = [life_of(name, state) for name, state in states.items()]
        is_quorum = decision.best is not None and rule.is_quorum(lives, decision.knowledge.electorates())
        return replace(decision, is_primary=decision.is_primary or is_quorum)

    patch.setattr(core_module, "decide", wrong)


def _live_picture(patch: pytest.MonkeyPatch) -> None:
    """The donor's picture goes on changing."""
    patch.setattr(Dictionary, "freeze", lambda self: _Live(self))


class _Live(Picture):
    def __init__(self, machine: Dictionary) -> None:
        self._machine = machine

    def pieces(self, start: int = 0) -> Any:
        return Picture(self._machine.last, self._machine.chain, self._machine.values).pieces(start)


def _applied_twice(patch: pytest.MonkeyPatch) -> None:
    right = Sessions.admits

    def wrong(self: Sessions, life: int, request: int, settled: int) -> bool:
        right(self, life, request, settled)
        return True

    patch.setattr(Sessions, "admits", wrong)


def _last_number_only(patch: pytest.MonkeyPatch) -> None:
    """The first design: whatever is not above the last number of its session counts as done."""
    right = Sessions.admits
    last: dict[tuple[int, int], int] = {}

    def wrong(self: Sessions, life: int, request: int, settled: int) -> bool:
        right(self, life, request, settled)
        highest = last.get((id(self), life), 0)
        last[id(self), life] = max(highest, request)
        return request > highest

    patch.setattr(Sessions, "admits", wrong)


def _pending_kept(patch: pytest.MonkeyPatch) -> None:
    """What came in a round that was abandoned goes into the next."""
    right = Core.on_view

    def wrong(self: Core, view: View) -> list[Effect]:
        pending = [] if self._component is None else self._component.pending
        effects = right(self, view)
        assert self._component is not None
        self._component.pending = pending
        return effects

    patch.setattr(Core, "on_view", wrong)


def _always_certain(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Core, number: int, effects: list[Effect]) -> None:
        if self._requests.settle(number) is not None:
            effects.append(Refuse(number, Why.NOT_PRIMARY))

    patch.setattr(Core, "_refuse", wrong)


def _pending_refused(patch: pytest.MonkeyPatch) -> None:
    """What came in a round that was abandoned is refused for certain, though others may have decided it."""
    right = Core.on_view

    def wrong(self: Core, view: View) -> list[Effect]:
        effects: list[Effect] = []
        for held in [] if self._component is None else self._component.pending:
            command = decode_command(held.payload)
            if command.life == self.me.life:
                self._refuse(command.request, effects)
        return [*effects, *right(self, view)]

    patch.setattr(Core, "on_view", wrong)


def _majority_of_weights_present(patch: pytest.MonkeyPatch) -> None:
    """Half is enough."""

    def wrong(self: Majority, voters: Collection[Life], electorates: Sequence[Electorate]) -> bool:
        return 2 * sum(self.weight(life.name) for life in voters) >= sum(self.weights.values())

    patch.setattr(Majority, "is_quorum", wrong)


def _begins_without_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Majority, "may_begin", lambda self, fresh: True)


def _never_released(patch: pytest.MonkeyPatch) -> None:
    right = Core._on_loaded

    def wrong(self: Core, component: Component, sender: str, effects: list[Effect]) -> None:
        pictures = {point: set(lives) for point, lives in self._pictures.items()}
        right(self, component, sender, effects)
        self._pictures = pictures
        effects[:] = [effect for effect in effects if not isinstance(effect, Release)]

    patch.setattr(Core, "_on_loaded", wrong)


def _never_sent_again(patch: pytest.MonkeyPatch) -> None:
    right = Core._catch_up

    def wrong(self: Core, component: Component, effects: list[Effect]) -> None:
        for request in self._requests.waiting.values():
            request.is_underway = True
        right(self, component, effects)

    patch.setattr(Core, "_catch_up", wrong)


LOST = frozenset({Promise.DURABILITY, Promise.SAME_COMMANDS, Promise.ONE_PRIMARY})
SAME = frozenset({Promise.SAME_COMMANDS})

PLANTED = (
    PlantedFault("confirmed before it is applied", _confirmed_before_applied, frozenset({Promise.CONFIRMATIONS})),
    PlantedFault("commands are agreed, not safe", _agreed_instead_of_safe, LOST, first=35, runs=6),
    PlantedFault("applied after the signal", _applied_after_the_signal, LOST, first=30, runs=6),
    PlantedFault("a picture without the tail", _picture_without_tail, SAME),
    PlantedFault("two primaries: everybody counts", _everybody_counts, LOST),
    PlantedFault("two primaries: those count who are not loaded", _unloaded_ones_count, LOST, majorities_by_turns),
    PlantedFault("two primaries: fresh ones count", _fresh_ones_count, LOST, majority_lost),
    PlantedFault("two primaries: half is enough", _majority_of_weights_present, LOST, first=20, runs=10),
    PlantedFault("two primaries: anybody begins", _begins_without_all, LOST),
    PlantedFault("a donor's picture goes on changing", _live_picture, SAME),
    PlantedFault("a command that comes twice is applied twice", _applied_twice, frozenset({Promise.ONCE})),
    PlantedFault("only the last number is remembered", _last_number_only, frozenset({Promise.CONFIRMATIONS})),
    PlantedFault("a round that was abandoned leaves its commands", _pending_kept, SAME),
    PlantedFault("refused for certain, whatever was sent before", _always_certain, frozenset({Promise.REFUSALS})),
    PlantedFault("an abandoned round refuses", _pending_refused, frozenset({Promise.REFUSALS})),
    PlantedFault("pictures are kept for ever", _never_released, frozenset({Promise.LIVENESS})),
    PlantedFault("nothing is sent again", _never_sent_again, frozenset({Promise.LIVENESS})),
)
