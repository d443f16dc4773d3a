"""Faults planted in the layer for several networks: the slips of the printed figures, and what implementers forget.

`test_planted_networks.py` demands that each is caught within a bounded number of runs: by what the simulator's witness
says, or by a story in which a network fails and is repaired.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from ordercast.model.effects import Broadcast, SendTo
from ordercast.model.inputs import Packet
from ordercast.model.notes import NetworkState, Release
from ordercast.model.promises import NetworkPromise
from ordercast.networks import layer, probing
from ordercast.networks.config import Replication
from ordercast.networks.gate import Arrival, Gate
from ordercast.networks.judgement import Judgement
from ordercast.networks.layer import Networks
from ordercast.networks.marks import Marks
from ordercast.networks.monitors import ArrivalCounts, Problems
from ordercast.networks.styles import Active, Lacking, Passive
from ordercast.order.membership.step import Step
from ordercast.order.traffic import TokenName

from .network_scenes import MESSAGES

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class PlantedFault:
    name: str
    plant: Plant
    broken: NetworkPromise | None  # found INVALID by the witness; None: a story shows it
    style: Replication | None = None  # the hostile runs of this style alone
    kind: str = "whole"  # of the story
    messages: int = MESSAGES  # in the story
    seeds: Sequence[int] = range(480)  # of the runs, if no story shows it


def _late_copies_go_up(patch: pytest.MonkeyPatch) -> None:
    """Figure 2, last lines: a copy that comes after the token went up completes the set again."""
    right = Gate.take

    def wrong(self: Gate, packet: Packet, name: TokenName, deadline: Any) -> Arrival:
        arrival = right(self, packet, name, deadline)
        if arrival is Arrival.LATE and name.number == self.token_seq and self.packet is None:
            self.packet, self.deadline = packet, deadline
            self.brought |= 1 << packet.network
            return Arrival.COPY
        return arrival

    patch.setattr(Gate, "take", wrong)


def _tokens_on_marked_networks(patch: pytest.MonkeyPatch) -> None:
    """Figure 2, sendToken: `faulty[N]` is looked at for every network."""
    patch.setattr(Active, "token_networks", lambda self: tuple(range(len(self._marks.states))))


def _all_are_marked(patch: pytest.MonkeyPatch) -> None:
    """Figure 2, tokenTimerExpired: `faulty = true` without an index."""
    right = Problems.expired

    def wrong(self: Problems, missing: Any, now: Any) -> list[int]:
        return list(range(len(self.counters))) if right(self, missing, now) else []

    patch.setattr(Problems, "expired", wrong)
    patch.setattr(Marks, "is_last", lambda self, network: False)
    patch.setattr(Marks, "mark", lambda self, network, now: self._turn(network, NetworkState.FAULTY))
    patch.setattr(Networks, "check_invariants", lambda self, thorough=True: None)
    patch.setattr(Judgement, "_weigh_need", lambda self, now, effects: None)


def _older_tokens_go_up(patch: pytest.MonkeyPatch) -> None:
    """Figure 2, indentation: an old token is passed up as it comes."""
    right = Gate.take

    def wrong(self: Gate, packet: Packet, name: TokenName, deadline: Any) -> Arrival:
        arrival = right(self, packet, name, deadline)
        if arrival is Arrival.LATE and self.packet is None:
            self.token_seq = name.number
            self.packet, self.deadline, self.brought = packet, deadline, (1 << 8) - 1
        return arrival

    patch.setattr(Gate, "take", wrong)


def _tokens_compared_by_seq(patch: pytest.MonkeyPatch) -> None:
    """Figure 2, recvToken: an idle ring's next token has the seq of the last one."""
    right = Gate.take

    def wrong(self: Gate, packet: Packet, name: TokenName, deadline: Any) -> Arrival:
        return right(self, packet, name._replace(number=name.seq), deadline)

    patch.setattr(Gate, "take", wrong)


def _no_timer(patch: pytest.MonkeyPatch) -> None:
    right = Gate.take

    def wrong(self: Gate, packet: Packet, name: TokenName, deadline: Any) -> Arrival:
        return right(self, packet, name, deadline + (1 << 60))

    patch.setattr(Gate, "take", wrong)


def _nothing_is_waited_for(patch: pytest.MonkeyPatch) -> None:
    """Figure 4 without its test: the token goes up whatever is missing."""

    def wrong(self: Passive, brought: int, lacking: Lacking, *, is_first: bool) -> Release | None:
        return Release.DIRECT

    patch.setattr(Passive, "release", wrong)


def _first_copy_is_enough(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Active, brought: int, lacking: Lacking, *, is_first: bool) -> Release | None:
        return Release.ALL

    patch.setattr(Active, "release", wrong)


def _one_pointer(patch: pytest.MonkeyPatch) -> None:
    """Messages and tokens share one pointer: who sends one message per visit sends all of them on one network."""
    right = Passive.__init__

    def wrong(self: Passive, marks: Marks, networks: int) -> None:
        right(self, marks, networks)
        self._tokens = self._messages

    patch.setattr(Passive, "__init__", wrong)


def _batches_are_not_spread(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Passive, broadcast: Broadcast) -> Sequence[Broadcast]:
        order = self._messages.order(self._marks.good)
        self._messages.step(order, 1)
        broadcast.networks = (order[0], *self._marks.trial)
        return (broadcast,)

    patch.setattr(Passive, "spread", wrong)


def _resends_on_the_next_network(patch: pytest.MonkeyPatch) -> None:
    """As in the paper: the next may be dead, too."""
    patch.setattr(Step, "forward_again", _said_to_be(Step.forward_again, is_vital=False))


def _idle_tokens_take_turns(patch: pytest.MonkeyPatch) -> None:
    """As in the paper, which knows no rest: a dead network takes the token at every hop of a rotation."""
    patch.setattr(Step, "forward", _said_to_be(Step.forward, is_vital=False))


def _every_token_is_vital(patch: pytest.MonkeyPatch) -> None:
    """No network is spared: what passive replication is for is lost."""
    patch.setattr(Step, "forward", _said_to_be(Step.forward, is_vital=True))


def _said_to_be(right: Callable[..., None], *, is_vital: bool) -> Callable[..., None]:
    def wrong(step: Step, *arguments: Any) -> None:
        right(step, *arguments)
        for effect in step.effects:
            if isinstance(effect, SendTo):
                effect.is_vital = is_vital

    return wrong


def _largest_of_itself(patch: pytest.MonkeyPatch) -> None:
    """Figure 5: the maximum is taken over the one network that is looked at."""
    patch.setattr(ArrivalCounts, "look", lambda self: [])


def _tokens_counted_when_held(patch: pytest.MonkeyPatch) -> None:
    """Figure 4, indentation: the token monitor sees tokens that wait alone. (With announcements it would go unseen.)"""
    right = Networks._take_token

    def wrong(self: Networks, packet: Packet, data: bytes, up: Any, now: Any, effects: Any) -> bool:
        self._style.counts_tokens = False
        return right(self, packet, data, up, now, effects)

    patch.setattr(Networks, "_take_token", wrong)
    patch.setattr(layer.Networks, "_count", lambda self, packet, data, now, effects: None)


def _no_decay(patch: pytest.MonkeyPatch) -> None:
    """Losses add up for ever: in a run with one token in a hundred lost a healthy network is given up."""
    patch.setattr(Problems, "brought", lambda self, network: None)
    right = Problems.__init__

    def wrong(self: Problems, networks: int, threshold: int, decay_ns: int, decay_tokens: int) -> None:
        right(self, networks, threshold, 1 << 60, 1 << 60)

    patch.setattr(Problems, "__init__", wrong)


def _taken_back_alone(patch: pytest.MonkeyPatch) -> None:
    """Every process takes a network back when it hears something there: the others still refuse to use it."""
    patch.setattr(probing.Probing, "is_used_by_all", lambda self, now: True)
    patch.setattr(probing.Probing, "is_proved", lambda self, level, now: True)


PLANTED = (
    PlantedFault("Figure 2: late copies go up", _late_copies_go_up, NetworkPromise.TOKENS, Replication.ACTIVE),
    PlantedFault("Figure 2: faulty[N]", _tokens_on_marked_networks, NetworkPromise.SENDS, Replication.ACTIVE),
    PlantedFault("Figure 2: faulty without an index", _all_are_marked, NetworkPromise.SENDS, Replication.ACTIVE),
    PlantedFault("Figure 2: older tokens go up", _older_tokens_go_up, NetworkPromise.TOKENS, Replication.ACTIVE),
    PlantedFault("Figure 2: tokens compared by seq", _tokens_compared_by_seq, None, Replication.ACTIVE),
    PlantedFault("Figure 2: no decay", _no_decay, None, Replication.ACTIVE, kind="healthy"),
    PlantedFault("no token timer", _no_timer, NetworkPromise.NO_VIEW_CHANGE, Replication.ACTIVE),
    PlantedFault("the first copy is enough", _first_copy_is_enough, NetworkPromise.TOKENS, Replication.ACTIVE),
    PlantedFault("nothing is waited for", _nothing_is_waited_for, NetworkPromise.TOKENS, Replication.PASSIVE),
    PlantedFault("one pointer for both", _one_pointer, NetworkPromise.SENDS, Replication.PASSIVE),
    PlantedFault("batches are not spread", _batches_are_not_spread, NetworkPromise.SENDS, Replication.PASSIVE),
    PlantedFault(
        "resends on the next network", _resends_on_the_next_network, NetworkPromise.SENDS, Replication.PASSIVE
    ),
    PlantedFault("idle tokens take turns", _idle_tokens_take_turns, NetworkPromise.SENDS, Replication.PASSIVE),
    PlantedFault("every token is vital", _every_token_is_vital, NetworkPromise.SENDS, Replication.PASSIVE),
    PlantedFault("Figure 5: the largest of itself", _largest_of_itself, None, Replication.PASSIVE),
    PlantedFault(
        "Figure 4: tokens counted when held", _tokens_counted_when_held, None, Replication.PASSIVE, messages=0
    ),
    PlantedFault("taken back alone", _taken_back_alone, None, Replication.ACTIVE),
)
