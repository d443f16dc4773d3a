"""A ring as an enclosing engine needs it, on the hostile network: stamps rise and are the same at all, nothing that was
heard is forgotten, and all that a ring promises holds when it settles before it rests."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ordercast.checker.verdict import Outcome
from ordercast.model.effects import Deliver, Effect
from ordercast.model.ids import ConfigurationId, Instant, NodeId
from ordercast.model.inputs import Packet, Submission, Submissions
from ordercast.order.ring.node import RingNode
from ordercast.sim.options import SimOptions
from ordercast.sim.run import simulate
from ordercast.sim.swarm import hostile_options

Stamps = dict[tuple[ConfigurationId, int], int]  # by origin and number of the packet


class Stamped(RingNode):
    """Hears a far stamp before every message that it submits, as if the message answered one from another ring."""

    def __init__(self, node: NodeId, options: SimOptions, known: Stamps) -> None:
        super().__init__(node, options.ring, verbose=True, settles=True, stamps=True)
        self._stamps_known = known
        self._last_stamps: dict[ConfigurationId, int] = {}  # the last stamp here, by origin
        self._far = 0

    def submit(self, submissions: Sequence[Submission | Submissions], now: Instant) -> list[Effect]:
        self._far += 1000
        self.hear(self._far, now)
        return self._look(super().submit(submissions, now))

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        return self._look(super().receive(packets, now))

    def wake(self, now: Instant) -> list[Effect]:
        return self._look(super().wake(now))

    def _look(self, effects: list[Effect]) -> list[Effect]:
        for effect in effects:
            if isinstance(effect, Deliver):
                assert effect.stamps is not None and len(effect.stamps) == len(effect.parcels)
                for parcel, stamps in zip(effect.parcels, effect.stamps, strict=True):
                    for number, stamp in enumerate(stamps, parcel[0]):
                        self._check(effect.origin, number, stamp)
        return effects

    def _check(self, origin: ConfigurationId, number: int, stamp: int) -> None:
        assert self._last_stamps.get(origin, 0) < stamp, "stamps of a ring rise with the numbers of its packets"
        self._last_stamps[origin] = stamp
        assert self._stamps_known.setdefault((origin, number), stamp) == stamp, "a packet has one stamp everywhere"


@pytest.mark.parametrize("seed", [2, 5, *(pytest.param(seed, marks=pytest.mark.long) for seed in (11, 23))])
def test_stamps_rise_and_are_the_same_at_all(seed: int) -> None:
    options, known = hostile_options(seed), Stamps()
    result = simulate(options, seed, make_engine=lambda node: Stamped(node, options, known))
    assert result.settled and result.verdict.outcome is Outcome.VALID, str(result.verdict)
    assert len(known) > 20 and max(known.values()) > 1000
