"""Faults planted in the engine: the paper's own errors, and the ones that implementers make.

Each is a small change of one rule. `test_planted_faults.py` demands that the checkers catch every one of them within a
bounded number of hostile runs. A fault that goes unnoticed means that the simulator does not reach the place, or that
the checkers do not look there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from ordercast.model.effects import Effect
from ordercast.model.ids import NO_CONFIGURATION, NO_SEQ, NOBODY, ProcessId, Seq
from ordercast.model.promises import AnyPromise, Promise, RestPromise
from ordercast.order.membership import recovery_plan
from ordercast.order.membership.past import Source
from ordercast.order.membership.recovery_plan import RecoveryPlan
from ordercast.order.membership.ring import Ring
from ordercast.order.membership.states import recovery
from ordercast.order.membership.states.base import State
from ordercast.order.membership.states.changing import Changing
from ordercast.order.membership.states.commit import Commit
from ordercast.order.membership.states.recovery import Recovery
from ordercast.order.membership.step import Facts, Step
from ordercast.order.membership.store import Store
from ordercast.order.membership.timers import Timer
from ordercast.order.outbox import Outbox
from ordercast.order.ring import ordering
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.delivery import Delivery
from ordercast.order.ring.ordering import Visit
from ordercast.order.ring.states import operational, token_visit
from ordercast.order.ring.states.operational import Operational
from ordercast.wire.messages import CommitEntry, CommitToken, Token
from ordercast.wire.run import PacketRun

from .scenes import DiskBack, Gap, LatePacket, Promised, Scene

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class PlantedFault:
    name: str
    plant: Plant
    runs: int  # caught within this many
    broken: frozenset[AnyPromise]  # any of these must be found INVALID
    saturated: bool = False  # only seen when everybody has something to send
    aimed: bool = False  # seen seldom but in runs with a plot
    scene: type[Scene] | None = None  # the one run that shows it, instead of hostile ones


def _after_visit(change: Callable[[Ring, Token], None]) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        right = ordering.visit

        def wrong(ring: Ring, token: Token, wanted: int, source: Source, config: RingConfig, **rest: bool) -> Visit:
            result = right(ring, token, wanted, source, config, **rest)
            change(ring, token)
            return result

        patch.setattr(token_visit, "visit", wrong)

    return plant


def _flow_control_as_printed(patch: pytest.MonkeyPatch) -> None:
    def at_forwarding(ring: Ring, token: Token) -> None:
        ring.memory.received_seq = ring.memory.forwarded_seq

    def first_come_first_served(budget: int, wanted: int, waiting: int) -> int:
        return budget

    _after_visit(at_forwarding)(patch)
    patch.setattr(ordering, "fair_share", first_come_first_served)


def _safe_after_one_rotation(ring: Ring, token: Token) -> None:
    ring.memory.safe_seq = ring.memory.forwarded_aru


def _aru_raised_by_anyone(patch: pytest.MonkeyPatch) -> None:
    def wrong(token: Token, my_aru: Seq, seq: Seq, me: ProcessId) -> tuple[Seq, ProcessId]:
        return my_aru, NOBODY if my_aru == seq else me

    patch.setattr(ordering, "updated_aru", wrong)


def _only_obligation_in_transitional(patch: pytest.MonkeyPatch) -> None:
    """E11: Figure 4.14 as printed: the rest of the old ring is delivered for members of the obligation set alone."""
    right = Delivery._deliver_rest

    def wrong(self: Delivery, obligation: Collection[ProcessId], effects: list[Effect]) -> int:
        store = self.ring.store
        for seq, run in list(store.held_after(self.delivered)):
            if run.parcel is not None and run.parcel[1] not in obligation:
                packet = run.packet(seq)
                store.slots[seq - store.base - 1] = PacketRun(
                    packet, 0, len(packet), seq, run.originator, 1, run.is_safe
                )
        return right(self, obligation, effects)

    patch.setattr(Delivery, "_deliver_rest", wrong)


def _no_gap_rule(patch: pytest.MonkeyPatch) -> None:
    right = Delivery._deliver_rest

    def wrong(self: Delivery, obligation: Collection[ProcessId], effects: list[Effect]) -> int:
        return right(self, self.ring.members, effects)

    patch.setattr(Delivery, "_deliver_rest", wrong)


def _duplicate_commit_token(patch: pytest.MonkeyPatch) -> None:
    """Figure 4.10 as printed: any Commit token of the same ring counts as the second rotation."""

    def wrong(self: Commit, token: CommitToken, step: Step) -> State:
        if token.ring != self.ring.id or self.complete is not None:
            return self
        self.complete = token
        return self.on_persisted(step)

    def converts_any(self: Recovery, token: CommitToken, step: Step) -> State:
        ring = self.ring
        if token.ring != ring.id or ring.me != ring.representative or ring.memory.round:
            return self
        regular = Token(
            ring.id, token.sender, token.token_seq, 0, NO_SEQ, NO_SEQ, NOBODY, (), 0, 0, 0, 0, False, token.timestamp
        )
        return self.on_token(regular, step)

    def accepts_later(ring: Ring, token: Token, step: Step) -> bool:
        is_first = not ring.memory.round  # `my_token_seq` starts at zero
        return token.ring == ring.id and (is_first or token.token_seq >= ring.memory.token_seq)

    patch.setattr(Commit, "on_commit", wrong)
    patch.setattr(Recovery, "on_commit", converts_any)
    patch.setattr(token_visit.TokenExchange, "accepts", staticmethod(accepts_later))


def _duplicate_token(patch: pytest.MonkeyPatch) -> None:
    def wrong(ring: Ring, token: Token, step: Step) -> bool:
        return token.ring == ring.id

    patch.setattr(token_visit.TokenExchange, "accepts", staticmethod(wrong))
    patch.setattr(operational, "accepted", wrong)


def _safe_as_agreed(patch: pytest.MonkeyPatch) -> None:
    right = Delivery.deliver

    def wrong(self: Delivery, safe: Seq, effects: list[Effect]) -> None:
        right(self, Seq(1 << 62), effects)

    patch.setattr(Delivery, "deliver", wrong)


def _never_frozen(patch: pytest.MonkeyPatch) -> None:
    """After the promise, late packets of the old ring are still taken."""

    def wrong(self: State, facts: Facts) -> Ring | None:
        return facts.installed

    patch.setattr(Changing, "accepting", wrong)


def _promise_forgotten(patch: pytest.MonkeyPatch) -> None:
    right = Recovery._fail

    def wrong(self: Recovery, reason: Any, step: Step) -> State:
        step.facts.attempt.promise = None
        return right(self, reason, step)

    patch.setattr(Recovery, "_fail", wrong)


def _promise_not_kept(patch: pytest.MonkeyPatch) -> None:
    """What all have promised is exchanged once more, and owed to those who are here now."""

    def wrong(members: Sequence[CommitEntry], plan: RecoveryPlan) -> bool:
        return True

    patch.setattr(recovery, "must_exchange", wrong)


def _promise_of_companions_alone(patch: pytest.MonkeyPatch) -> None:
    """A promise stands only if those have promised, too, who come from elsewhere."""

    def wrong(members: Sequence[CommitEntry], plan: RecoveryPlan) -> bool:
        return not all(member.received for member in members)

    patch.setattr(recovery, "must_exchange", wrong)


def _new_plan(patch: pytest.MonkeyPatch) -> None:
    def wrong(promise: RecoveryPlan, plan: RecoveryPlan) -> RecoveryPlan:
        return plan

    patch.setattr(recovery, "kept_promise", wrong)


def _only_my_own_beyond_a_gap(patch: pytest.MonkeyPatch) -> None:
    right = recovery_plan.plan_from

    def wrong(members: Sequence[CommitEntry], me: ProcessId) -> RecoveryPlan:
        return replace(right(members, me), obligation=frozenset({me}))

    patch.setattr(recovery, "plan_from", wrong)


def _promise_without_the_exchange(patch: pytest.MonkeyPatch) -> None:
    """Nobody waits until it has what the others have sent on the new ring."""
    right = Recovery._count

    def wrong(self: Recovery, token: Token, step: Step) -> None:
        right(self, replace(token, seq=NO_SEQ), step)

    patch.setattr(Recovery, "_count", wrong)


def _install_too_early(patch: pytest.MonkeyPatch) -> None:
    """Install at the first visit after the promise, without waiting for everybody's."""
    right = Recovery._count

    def wrong(self: Recovery, token: Token, step: Step) -> None:
        right(self, token, step)
        if step.facts.attempt.promise is not None:
            self.quiet_visits = 3
            self.ring.memory.safe_seq = max(self.ring.memory.safe_seq, self.install_seq)

    patch.setattr(Recovery, "_count", wrong)


def _large_not_sent_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Outbox, "start_over", lambda self: 0)


def _ring_seq_not_stored(patch: pytest.MonkeyPatch) -> None:
    right = Step.persist

    def wrong(self: Step, ring_seq: int) -> None:
        right(self, ring_seq)
        effect = self.effects[-1]
        effect.value = bytes(8)  # type: ignore[union-attr]

    patch.setattr(Step, "persist", wrong)


def _disk_waited_for_without_end(patch: pytest.MonkeyPatch) -> None:
    """A node whose disk does not answer stands still for ever."""
    right = Commit.on_timer

    def wrong(self: Commit, timer: Timer, step: Step) -> State:
        if timer is Timer.STORAGE:
            step.arm(Timer.STORAGE, step.facts.config.storage_patience_ns)
            return self
        return right(self, timer, step)

    patch.setattr(Commit, "on_timer", wrong)


def _without_storage_in_silence(patch: pytest.MonkeyPatch) -> None:
    """A ring seq that is not stored is used, and nobody is told."""
    patch.setattr(Step, "go_without_storage", lambda self: None)


def _storage_back_too_early(patch: pytest.MonkeyPatch) -> None:
    """Any answer of the disk counts, also one for an older ring seq than the one in use."""
    right = Step.persisted

    def wrong(self: Step) -> None:
        storage = self.facts.storage
        newest, storage.wanted = storage.wanted, storage.written or 0
        right(self)
        storage.wanted = newest

    patch.setattr(Step, "persisted", wrong)


def _high_delivered_ignored(patch: pytest.MonkeyPatch) -> None:
    right = recovery_plan.plan_from

    def wrong(members: Any, me: ProcessId) -> RecoveryPlan:
        return replace(right(members, me), high_delivered=NO_SEQ)

    patch.setattr(recovery, "plan_from", wrong)


def _everybody_is_a_companion(patch: pytest.MonkeyPatch) -> None:
    """The transitional set is the new membership, whoever came from where."""
    right = recovery_plan.plan_from

    def wrong(members: Any, me: ProcessId) -> RecoveryPlan:
        return right(
            [CommitEntry(m.process, True, NO_CONFIGURATION, m.old_aru, m.high_delivered, m.received) for m in members],
            me,
        )

    patch.setattr(recovery, "plan_from", wrong)


def _exchange_skipped(patch: pytest.MonkeyPatch) -> None:
    right = Recovery.enter.__func__  # type: ignore[attr-defined]

    def wrong(cls: type[Recovery], *arguments: Any) -> State:
        state = right(cls, *arguments)
        if isinstance(state, Recovery):
            state.queue.clear()
        return state  # type: ignore[no-any-return]

    patch.setattr(Recovery, "enter", classmethod(wrong))


def rest_one_visit_early(patch: pytest.MonkeyPatch) -> None:
    """With safe messages that I have yet to deliver on this visit, and everybody else on the next."""
    right = Operational._may_rest

    def wrong(self: Operational, token: Token, facts: Facts) -> bool:
        past = facts.past
        assert isinstance(past, Delivery)
        delivered, past.delivered = past.delivered, token.seq
        may_rest = right(self, token, facts)
        past.delivered = delivered
        return may_rest

    patch.setattr(Operational, "_may_rest", wrong)


def _rest_on_the_first_return(patch: pytest.MonkeyPatch) -> None:
    """As soon as the token is back at whoever sent last, whether all have everything or not."""

    def wrong(self: Operational, token: Token, facts: Facts) -> bool:
        return facts.installed.last_sender == facts.me and not (facts.outbox or self.woken)

    patch.setattr(Operational, "_may_rest", wrong)


def _sender_is_discarded_with_its_packets(patch: pytest.MonkeyPatch) -> None:
    right = Store.discard

    def wrong(self: Store, through: Seq) -> None:
        right(self, through)
        self.base_originator = NOBODY

    patch.setattr(Store, "discard", wrong)


PLANTED = (
    PlantedFault(
        "E4: flow control reads seq at forwarding",
        _flow_control_as_printed,
        20,
        frozenset({Promise.FAIRNESS}),
        saturated=True,
    ),
    PlantedFault(
        "E11: only the obligation set's messages in the transitional view",
        _only_obligation_in_transitional,
        300,
        frozenset({Promise.CAUSAL, Promise.FIFO, Promise.AGREED_DELIVERY, Promise.SAFE_DELIVERY}),
    ),
    PlantedFault(
        "a duplicate Commit token counts as the second rotation",
        _duplicate_commit_token,
        300,
        frozenset({Promise.TRANSITIONAL_SETS, Promise.VIRTUAL_SYNCHRONY, Promise.VIEW_AGREEMENT}),
    ),
    PlantedFault(
        "no gap rule",
        _no_gap_rule,
        1,
        frozenset({Promise.CAUSAL, Promise.FIFO, Promise.AGREED_DELIVERY}),
        scene=Gap,
    ),
    PlantedFault("duplicate tokens are accepted", _duplicate_token, 300, frozenset(Promise)),
    PlantedFault("safe is delivered as agreed", _safe_as_agreed, 300, frozenset({Promise.SAFE_DELIVERY})),
    PlantedFault(
        "safe after one rotation", _after_visit(_safe_after_one_rotation), 300, frozenset({Promise.SAFE_DELIVERY})
    ),
    PlantedFault("anyone raises the aru", _aru_raised_by_anyone, 300, frozenset({Promise.SAFE_DELIVERY})),
    PlantedFault(
        "the old ring's store is never frozen",
        _never_frozen,
        1,
        frozenset({Promise.VIRTUAL_SYNCHRONY, Promise.VIEW_AGREEMENT}),
        scene=LatePacket,
    ),
    PlantedFault(
        "the promise is forgotten when recovery fails",
        _promise_forgotten,
        1,
        frozenset({Promise.SAFE_DELIVERY}),
        scene=Promised,
    ),
    PlantedFault(
        "what was promised is exchanged again", _promise_not_kept, 20, frozenset({Promise.SAFE_DELIVERY}), aimed=True
    ),
    PlantedFault(
        "a promise ends where others come along",
        _promise_of_companions_alone,
        20,
        frozenset({Promise.SAFE_DELIVERY}),
        aimed=True,
    ),
    PlantedFault(
        "a new plan takes the place of a promise", _new_plan, 20, frozenset({Promise.SAFE_DELIVERY}), aimed=True
    ),
    PlantedFault(
        "beyond a gap only my own messages are owed",
        _only_my_own_beyond_a_gap,
        20,
        frozenset({Promise.VIRTUAL_SYNCHRONY}),
        aimed=True,
    ),
    PlantedFault(
        "nobody waits for what is exchanged",
        _promise_without_the_exchange,
        20,
        frozenset({Promise.VIRTUAL_SYNCHRONY, Promise.AGREED_DELIVERY, Promise.SAFE_DELIVERY}),
        aimed=True,
    ),
    PlantedFault(
        "a ring is installed before all have promised",
        _install_too_early,
        300,
        frozenset({Promise.SAFE_DELIVERY, Promise.VIRTUAL_SYNCHRONY}),
    ),
    PlantedFault(
        "a large message that was cut is not sent again",
        _large_not_sent_again,
        300,
        frozenset({Promise.SELF_DELIVERY, Promise.WHOLE_MESSAGES, Promise.LIVENESS}),
    ),
    PlantedFault("a disk is waited for without end", _disk_waited_for_without_end, 100, frozenset({Promise.LIVENESS})),
    PlantedFault(
        "a node goes on without storage and does not say so",
        _without_storage_in_silence,
        300,
        frozenset({Promise.VIEW_MONOTONY}),
    ),
    PlantedFault(
        "storage counts as in use again too early",
        _storage_back_too_early,
        1,
        frozenset({Promise.VIEW_MONOTONY}),
        scene=DiskBack,
    ),
    PlantedFault("E10: the ring seq is not stored", _ring_seq_not_stored, 300, frozenset({Promise.VIEW_MONOTONY})),
    PlantedFault(
        "what others delivered is ignored",
        _high_delivered_ignored,
        300,
        frozenset({Promise.VIRTUAL_SYNCHRONY, Promise.AGREED_DELIVERY, Promise.VIEW_AGREEMENT}),
    ),
    PlantedFault(
        "everybody counts as a companion", _everybody_is_a_companion, 50, frozenset({Promise.TRANSITIONAL_SETS})
    ),
    PlantedFault(
        "old-ring packets are not exchanged",
        _exchange_skipped,
        300,
        frozenset({Promise.VIRTUAL_SYNCHRONY, Promise.SELF_DELIVERY}),
    ),
    PlantedFault("the token rests one visit early", rest_one_visit_early, 20, frozenset({RestPromise.COMPLETE})),
    PlantedFault(
        "the token rests on its first return", _rest_on_the_first_return, 20, frozenset({RestPromise.COMPLETE})
    ),
    PlantedFault(
        "who sent last is forgotten with the packets",
        _sender_is_discarded_with_its_packets,
        20,
        frozenset({RestPromise.PLACE}),
    ),
)
