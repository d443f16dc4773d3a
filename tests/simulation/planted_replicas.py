"""Faults planted in replicated state: what an implementer might get wrong, and what the first design had wrong.

Each is a small change of one rule of the core. `test_planted_replicas.py` demands that the judges of replicas catch
every one of them within a bounded number of hostile runs. The core's own assertions are silenced there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from ordercast.model.events import View
from ordercast.model.ids import MILLISECOND
from ordercast.model.lineage import Lineage, Term
from ordercast.model.promises import ReplicaPromise as Promise
from ordercast.model.service import Service
from ordercast.replicated import copy as copy_module
from ordercast.replicated import core as core_module
from ordercast.replicated import decision as decision_module
from ordercast.replicated import told as told_module
from ordercast.replicated.batching import decode_batch, encode_results
from ordercast.replicated.chained import Chained, Picture
from ordercast.replicated.component import Component
from ordercast.replicated.copy import Arriving, Copy
from ordercast.replicated.core import Core
from ordercast.replicated.decision import Decision, Knowledge, decide, life_of
from ordercast.replicated.desk import Desk
from ordercast.replicated.effects import Confirm, Effect, Reason, Refuse, Why
from ordercast.replicated.exchange import Pictures
from ordercast.replicated.machine import Frozen
from ordercast.replicated.quorum import Electorate, LastMajority, Life, Majority, Rule
from ordercast.replicated.requests import Requests
from ordercast.replicated.sessions import Sessions
from ordercast.replicated.structures import claims
from ordercast.replicated.structures.base import Owner
from ordercast.replicated.structures.claims import Exclusive, Grant
from ordercast.replicated.told import Counted, Told
from ordercast.replicated.track import Held
from ordercast.replicated.wire import State, decode_command, decode_preface, is_command
from ordercast.sim import transfers
from ordercast.sim.client import Outgoing, SimClient
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import SimOptions
from ordercast.sim.run import Result, simulate
from ordercast.sim.swarm import hostile_replica_options

from .planted_desk import (
    back_unsaid,
    batch_forgotten,
    batch_resubmitted,
    damage_taken,
    departure_forgotten,
    gap_taken,
    given_up_sent,
    pictures_mixed,
    wrong_point,
)
from .planted_silence import excluded_alone, excluded_believes, excluded_counts
from .planted_time import (
    dead_are_handed_out,
    every_tick_counts,
    lease_clings,
    leases,
    old_token_after_time,
    time_is_not_transferred,
    timed_locks,
    timed_queues,
)
from .replica_scenes import (
    AbandonedByItsCaller,
    BoundByAttempt,
    CutOffOfConfirmed,
    FailedBeginning,
    LongerMinority,
    ReplicaScene,
    StoodOnBeginning,
)

Plant = Callable[[pytest.MonkeyPatch], None]


def talkative(seed: int) -> SimOptions:
    """Hostile runs in which nobody is silent, nor waited for in vain."""
    return replace(
        hostile_replica_options(seed), replica_hangs=0, silent_members=0, replica_patience_ns=10_000 * MILLISECOND
    )


@dataclass(frozen=True)
class PlantedFault:
    name: str
    plant: Plant
    broken: frozenset[Promise]  # any of these must be found INVALID
    options: Callable[[int], SimOptions] = talkative
    scene: type[ReplicaScene] | None = None  # instead of options
    first: int = 0  # the seed to begin with
    runs: int = 20  # caught within this many

    def run(self, seed: int) -> Result:
        return simulate(self.options(seed), seed) if self.scene is None else self.scene(seed=seed).run()


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
            results = [b""] * (0 if command.is_noop else len(decode_batch(command.data)))
            effects.append(Confirm(command.request, self.count + 1, encode_results(self.count + 1, results)))
        right(self, component, held, effects)

    patch.setattr(Core, "_on_command", wrong)


def _agreed_instead_of_safe(patch: pytest.MonkeyPatch) -> None:
    right = SimClient.send

    def wrong(self: SimClient, outgoing: Outgoing) -> None:
        (filler,) = outgoing.fillers
        right(self, outgoing._replace(service=Service.AGREED) if is_command(filler) else outgoing)

    patch.setattr(SimClient, "send", wrong)


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
    patch.setattr(Component, "voters", lambda self: [self.life(name) for name in sorted(self.holders)])


def _unloaded_ones_count(patch: pytest.MonkeyPatch) -> None:
    """Whoever is in the view, whatever it has. (And transfers take longer than views.)"""
    patch.setattr(transfers, "PIECE_MIN_NS", 200 * MILLISECOND)
    patch.setattr(transfers, "PIECE_MAX_NS", 201 * MILLISECOND)

    def wrong(term: Term, states: Mapping[str, State], rule: Rule) -> Decision:
        decision = decide(term, states, rule)
        lives = [life_of(name, state) for name, state in states.items()]
        is_quorum = decision.best is not None and rule.is_quorum(lives, decision.knowledge.electorates())
        return replace(decision, is_primary=decision.is_primary or is_quorum)

    patch.setattr(core_module, "decide", wrong)


def _live_picture(patch: pytest.MonkeyPatch) -> None:
    """The donor's picture goes on changing."""
    right = Chained.freeze
    patch.setattr(Chained, "freeze", lambda self: _Live(self, right))


class _Live(Picture):
    def __init__(self, machine: Chained, freeze: Callable[[Chained], Frozen]) -> None:
        self._machine, self._freeze = machine, freeze

    def pieces(self, start: int = 0) -> Any:
        return self._freeze(self._machine).pieces(start)


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


def _attempts_forgotten(patch: pytest.MonkeyPatch) -> None:
    """The quorum of who held the state last, without what may have been decided since."""
    patch.setattr(Knowledge, "with_attempt", lambda self, electorate: self)


def _attempts_have_no_term(patch: pytest.MonkeyPatch) -> None:
    """The first design: a decision after the signal leaves the term as it was."""
    right = Core._form

    def wrong(self: Core, component: Component) -> None:
        track = self._copy.track
        before = None if track is None else track.term
        right(self, component)
        if component.is_signalled and track is not None and before is not None:
            track.term = before

    patch.setattr(Core, "_form", wrong)


def _vote_kept_over_a_gap(patch: pytest.MonkeyPatch) -> None:
    right = Core.cut_off

    def wrong(self: Core, name: str, *reason: Reason) -> list[Effect]:
        before, was_voter = self.me, self._copy.is_voter
        effects = right(self, name, *reason)
        self.me, self._copy.is_voter = before, was_voter
        return effects

    patch.setattr(Core, "cut_off", wrong)


def _beginning_never_fails(patch: pytest.MonkeyPatch) -> None:
    """What was attempted counts as begun, whoever does not know of it."""
    patch.setattr(decision_module, "_is_refuted", lambda attempt, states: False)


def _beginning_forgotten_too_soon(patch: pytest.MonkeyPatch) -> None:
    """One who does not know of the beginning is enough, whatever was decided on it since."""

    def wrong(states: Mapping[str, State], knowledge: Knowledge) -> frozenset[Lineage]:
        attempts = {attempt for state in states.values() for attempt in state.attempts}
        if knowledge.formed is not None:
            attempts = {attempt for attempt in attempts if attempt.point > knowledge.formed.point}
        refuted = {attempt for attempt in attempts if decision_module._is_refuted(attempt, states)}
        return frozenset(Lineage(attempt.point.term) for attempt in refuted)

    patch.setattr(decision_module, "_forgotten", wrong)


def _gone_is_not_told(patch: pytest.MonkeyPatch) -> None:
    """Every copy lets go of what its owner had, when it sees it leave, instead of all at one place in the order."""
    right = Desk._departed

    def wrong(self: Desk) -> bytes | None:
        status = self.status
        if self._owned is not None and status is not None:
            members = status.members
            self._owned.drop(lambda owner: owner.name not in members, self._machine.count)
        return right(self)

    patch.setattr(Desk, "_departed", wrong)


def _batch_backwards(patch: pytest.MonkeyPatch) -> None:
    """The commands of a batch get their results in another order than they were submitted in."""
    patch.setattr(told_module, "encode_results", lambda first, results: encode_results(first, results[::-1]))


def _counted_at_the_end(patch: pytest.MonkeyPatch) -> None:
    """A picture with the number of commands as it is when it is sent."""

    def wrong(self: Told) -> Frozen:
        return _CountedLate(self, self.structure.freeze())

    patch.setattr(Told, "freeze", wrong)


class _CountedLate:
    def __init__(self, told: Told, frozen: Frozen) -> None:
        self._told, self._frozen = told, frozen

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        return Counted(self._told.count, self._frozen).pieces(start)


def _old_token(patch: pytest.MonkeyPatch) -> None:
    """When the holder is gone, the next one gets the lock with the token that the holder had."""
    right = Exclusive.drop

    def wrong(self: Exclusive[Any], is_gone: Callable[[Owner], bool], position: int) -> None:
        held = self.grant
        right(self, is_gone, position)
        if held is not None and self.grant is not None:
            self.grant = Grant(self.grant.claim, held.token)

    patch.setattr(Exclusive, "drop", wrong)


def _loss_is_noticed_late(patch: pytest.MonkeyPatch) -> None:
    """A replica whose connection broke goes on with what it knew, until it has another one."""
    right = Core.cut_off

    def wrong(self: Core, name: str, *reason: Reason) -> list[Effect]:
        before = self._component
        effects = right(self, name, *reason)
        self._component = before
        return effects

    patch.setattr(Core, "cut_off", wrong)


def _held_until_told(patch: pytest.MonkeyPatch) -> None:
    """A lock counts as held as long as the copy here says so, whatever has become of the connection."""
    patch.setattr(claims.Held, "is_held", property(lambda self: self._machine.token_of(self.claim) == self.token))


def silences(seed: int) -> SimOptions:
    """Hostile runs in which replicas hang, with little patience."""
    options = hostile_replica_options(seed)
    return replace(options, replica_hangs=20, replica_patience_ns=8 * MILLISECOND, replica_weights=(1,) * options.nodes)


def locks(seed: int) -> SimOptions:
    """Hostile runs with a lock."""
    return replace(talkative(seed), structure="lock")


def owners_die(seed: int) -> SimOptions:
    """Late in the run a host dies with three replicas that want a lock. Not all of them come back."""
    crash = Fault(950 * MILLISECOND, FaultKind.CRASH, node=2)
    weights = (1,) * 4
    return SimOptions(nodes=4, messages=150, replicas=3, replica_weights=weights, structure="lock", faults=(crash,))


def troubled(seed: int) -> SimOptions:
    """Hostile runs in which many pieces of states are lost or damaged, or end their connection."""
    return replace(talkative(seed), transfer_trouble=0.2, structure="dictionary")


def queues(seed: int) -> SimOptions:
    return replace(talkative(seed), structure="queue")


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
    def wrong(self: Requests, number: int, effects: list[Effect], *, is_certain: bool = True) -> None:
        if self.settle(number) is not None:
            effects.append(Refuse(number, Why.NOT_PRIMARY))

    patch.setattr(Requests, "refuse", wrong)


def _pending_refused(patch: pytest.MonkeyPatch) -> None:
    """What came in a round that was abandoned is refused for certain, though others may have decided it."""
    right = Core.on_view

    def wrong(self: Core, view: View) -> list[Effect]:
        effects: list[Effect] = []
        for held in [] if self._component is None else self._component.pending:
            command = decode_command(held.payload)
            if command.life == self.me.life:
                self._requests.refuse(command.request, effects)
        return [*effects, *right(self, view)]

    patch.setattr(Core, "on_view", wrong)


def _majority_of_weights_present(patch: pytest.MonkeyPatch) -> None:
    """Half is enough."""

    def wrong(self: Majority, voters: Collection[Life], electorates: Sequence[Electorate]) -> bool:
        return 2 * sum(self.weight(life.name) for life in voters) >= sum(self.weights.values())

    patch.setattr(Majority, "is_quorum", wrong)


def _begins_without_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Majority, "beginners", lambda self, fresh: fresh.keys())


def _never_released(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Pictures, "loaded", lambda self, life: [])


def _never_sent_again(patch: pytest.MonkeyPatch) -> None:
    right = Core._catch_up

    def wrong(self: Core, component: Component, effects: list[Effect]) -> None:
        for request in self._requests.waiting.values():
            request.is_underway = True
        right(self, component, effects)

    patch.setattr(Core, "_catch_up", wrong)


def _overtaking_counts(patch: pytest.MonkeyPatch) -> None:
    """Each command counts wherever it comes, whatever its sender has sent before it."""
    right = decode_command
    patch.setattr(copy_module, "decode_command", lambda data: right(data)._replace(previous=0))


def _overtaking_sent(patch: pytest.MonkeyPatch) -> None:
    """Nothing waits behind what waits to be sent."""
    right = Core._submit

    def wrong(self: Core, command: bytes, *, is_noop: bool) -> tuple[int, list[Effect]]:
        if self._component is not None:
            self._requests.is_behind = False
        return right(self, command, is_noop=is_noop)

    patch.setattr(Core, "_submit", wrong)


LOST = frozenset({Promise.DURABILITY, Promise.SAME_COMMANDS, Promise.ONE_PRIMARY})
SAME = frozenset({Promise.SAME_COMMANDS})
READ = frozenset({Promise.LINEARISABLE, Promise.SAME_COMMANDS, Promise.CONFIRMATIONS})
LIVE = frozenset({Promise.LIVENESS})
BELIEF = frozenset({Promise.BELIEFS})
REFUSED = frozenset({Promise.REFUSALS})

PLANTED = (
    PlantedFault("confirmed before it is applied", _confirmed_before_applied, frozenset({Promise.CONFIRMATIONS})),
    PlantedFault("commands are agreed, not safe", _agreed_instead_of_safe, LOST, scene=LongerMinority, runs=3),
    PlantedFault("applied after the signal", _applied_after_the_signal, LOST, scene=LongerMinority, runs=3),
    PlantedFault("a picture without the tail", _picture_without_tail, SAME),
    PlantedFault("two primaries: everybody counts", _everybody_counts, LOST),
    PlantedFault("two primaries: those count who are not loaded", _unloaded_ones_count, LOST, majorities_by_turns),
    PlantedFault("two primaries: fresh ones count", _fresh_ones_count, LOST, majority_lost),
    PlantedFault("two primaries: half is enough", _majority_of_weights_present, LOST, first=20, runs=10),
    PlantedFault("two primaries: anybody begins", _begins_without_all, LOST),
    PlantedFault("a donor's picture goes on changing", _live_picture, SAME),
    PlantedFault("a command that comes twice is applied twice", _applied_twice, frozenset({Promise.ONCE})),
    PlantedFault("only the last number is remembered", _last_number_only, frozenset({Promise.CONFIRMATIONS})),
    PlantedFault("a command counts without the one before it", _overtaking_counts, frozenset({Promise.CALL_ORDER})),
    PlantedFault("nothing waits behind what is to be sent", _overtaking_sent, LIVE | {Promise.CALL_ORDER}, runs=60),
    PlantedFault("a round that was abandoned leaves its commands", _pending_kept, SAME),
    PlantedFault("refused for certain, whatever was sent before", _always_certain, REFUSED, first=40),
    PlantedFault("an abandoned round refuses", _pending_refused, REFUSED, scene=AbandonedByItsCaller),
    PlantedFault("attempts are forgotten", _attempts_forgotten, LOST, scene=BoundByAttempt),
    PlantedFault("attempts have no term", _attempts_have_no_term, LOST, scene=LongerMinority),
    PlantedFault("a gap costs no vote", _vote_kept_over_a_gap, LOST, scene=CutOffOfConfirmed),
    PlantedFault("a beginning never fails", _beginning_never_fails, LIVE, scene=FailedBeginning),
    PlantedFault(
        "a beginning is forgotten too soon",
        _beginning_forgotten_too_soon,
        LIVE,
        scene=StoodOnBeginning,
        first=1,
        runs=3,
    ),
    PlantedFault("each drops what the gone had when it sees them go", _gone_is_not_told, READ, locks),
    PlantedFault("the results of a batch come backwards", _batch_backwards, READ, queues),
    PlantedFault("a picture is counted when it is sent", _counted_at_the_end, SAME),
    PlantedFault("a lock changes hands with the old token", _old_token, frozenset({Promise.EXCLUSIVE}), locks),
    PlantedFault("each excludes the silent for itself", excluded_alone, LOST | LIVE, silences, first=10, runs=10),
    PlantedFault("who is excluded believes itself current", excluded_believes, LOST | BELIEF, silences, runs=20),
    PlantedFault("who is excluded has a vote", excluded_counts, LOST, silences, runs=20),
    PlantedFault("a broken connection is noticed late", _loss_is_noticed_late, BELIEF),
    PlantedFault("a lock is held by one who was cut off", _held_until_told, BELIEF, locks),
    PlantedFault("pictures are kept for ever", _never_released, LIVE),
    PlantedFault("nothing is sent again", _never_sent_again, LIVE),
    PlantedFault("a batch is lost outside of the group", batch_forgotten, LIVE),
    PlantedFault("a batch is submitted again as another one", batch_resubmitted, frozenset({Promise.ONCE})),
    PlantedFault("a command is sent though its caller gave up", given_up_sent, REFUSED),
    PlantedFault("a departure is forgotten", departure_forgotten, LIVE, owners_die, runs=8),
    PlantedFault("who is back does not say so", back_unsaid, LIVE, locks),
    PlantedFault("a state with a piece missing", gap_taken, SAME | READ, troubled),
    PlantedFault("a state with a damaged piece", damage_taken, SAME | READ, troubled),
    PlantedFault("a state of pieces of two pictures", pictures_mixed, SAME | READ, troubled),
    PlantedFault("a state of another point", wrong_point, SAME | READ | LOST, troubled),
    PlantedFault("every tick counts, whatever its number", every_tick_counts, READ, leases),
    PlantedFault("a key stays under its lease when it is set without", lease_clings, READ, leases),
    PlantedFault("a lock whose time is over keeps its token", old_token_after_time, READ, timed_locks),
    PlantedFault("until when jobs are lent is not in a state", time_is_not_transferred, SAME | READ, timed_queues),
    PlantedFault("a job is tried without end", dead_are_handed_out, READ, timed_queues),
)
