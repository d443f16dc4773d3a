"""An engine that encloses one ring and passes it through: what the ring delivers, it delivers, and nothing more.

Nobody could tell it from the ring: the same runs give the same histories. It is the smallest engine that has a layer.
"""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.model.effects import Deliver, Effect, Install
from ordercast.model.ids import MAIN, Attachment, ConfigurationId, Incarnation, Instant, Seq
from ordercast.model.inputs import Interest, Lane, Packet, Stored, Submission, Submissions
from ordercast.model.promises import Promises
from ordercast.model.roster import Roster
from ordercast.order.engine import Engine
from ordercast.order.layered import InnerRing, Stream
from ordercast.order.traffic import Traffic


class Enclosing:
    def __init__(self, engine: Engine) -> None:
        self._inner = InnerRing(engine, MAIN, "inner")
        self._engine = engine

    # What a driver asks

    @property
    def promises(self) -> Promises:
        return self._inner.promises

    @property
    def traffic(self) -> Traffic:
        return self._engine.traffic

    def next_deadline(self) -> Instant | None:
        return self._inner.next_deadline()

    def room(self) -> int:
        return self._inner.room()

    def want_room(self, size: int) -> None:
        self._inner.want_room(size)

    def is_idle(self) -> bool:
        return self._inner.is_idle()

    def first_lane(self, attachment: Attachment = MAIN) -> Lane:
        return self._inner.first_lane()

    def holds(self, ring: ConfigurationId, seq: Seq) -> bool:
        return True  # several networks are below the inner ring, not below this engine

    def deniable(self, configuration: ConfigurationId) -> tuple[Seq, Seq] | None:
        return self._engine.deniable(configuration)

    def check_invariants(self, *, thorough: bool = True) -> None:
        self._inner.check_invariants(thorough=thorough)

    # Inputs

    def start(self, stored: Stored, incarnation: Incarnation, now: Instant) -> list[Effect]:
        return self._onward(self._inner.start(stored, incarnation, now))

    def submit(self, submissions: Sequence[Submission | Submissions], now: Instant) -> list[Effect]:
        return self._onward(self._inner.submit(submissions, now))

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        return self._onward(self._inner.receive(packets, now))

    def persisted(self, key: str, now: Instant) -> list[Effect]:
        return self._onward(self._inner.persisted(key, now))

    def interest(self, changes: Sequence[Interest], now: Instant) -> list[Effect]:
        return self._engine.interest(changes, now)

    def enlist(self, roster: Roster, now: Instant, attachment: Attachment = MAIN) -> list[Effect]:
        return self._onward(self._inner.enlist(roster, now))

    def wake(self, now: Instant) -> list[Effect]:
        return self._onward(self._inner.wake(now))

    def behind(self, is_behind: bool, now: Instant) -> list[Effect]:
        """Tell the ring itself, past the layer, which has no word for it: this engine has nothing of its own to send
        that would be held up, and all users shall stop as they do on a ring."""
        return self._onward(self._engine.behind(is_behind, now))

    def leave(self, now: Instant) -> list[Effect]:
        return self._onward(self._inner.leave(now))

    def _onward(self, effects: list[Effect]) -> list[Effect]:
        """The stream is consumed and made anew; everything else is the driver's."""
        return [_made_anew(effect) if isinstance(effect, Stream) else effect for effect in effects]


def _made_anew(effect: Stream) -> Stream:
    if isinstance(effect, Deliver):
        return Deliver(effect.configuration, effect.origin, list(effect.parcels), effect.ordered)
    return Install(effect.configuration)
