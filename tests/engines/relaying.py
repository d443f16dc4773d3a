"""An engine with a ring on each of its attachments, which says on all others what it hears on one.

No more than is needed to see that several rings in one process do not disturb each other: no order between rings, no
configuration of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ordercast.model.configuration import Configuration
from ordercast.model.effects import Deliver, Effect
from ordercast.model.ids import Attachment, Incarnation, Instant, NodeId
from ordercast.model.inputs import Packet, Stored, Submission
from ordercast.order.layered import InnerRing, Stream
from ordercast.order.ring.node import RingNode

NATIVE, CARRIED = 0, 1  # senders


@dataclass
class Heard:
    """What one ring brought."""

    texts: list[str] = field(default_factory=list)
    configurations: list[Configuration] = field(default_factory=list)


class Relaying:
    def __init__(self, node: NodeId, names: Mapping[Attachment, str]) -> None:
        self.heard = {attachment: Heard() for attachment in names}
        self._inner = [InnerRing(RingNode(node), attachment, name) for attachment, name in names.items()]

    def start(self, stored: Stored, incarnation: Incarnation, now: Instant) -> list[Effect]:
        return [one for inner in self._inner for one in self._onward(inner, inner.start(stored, incarnation, now), now)]

    def submit(self, submissions: Sequence[Submission], now: Instant) -> list[Effect]:
        return [one for inner in self._inner for one in self._onward(inner, inner.submit(submissions, now), now)]

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        return [one for inner in self._inner for one in self._onward(inner, inner.receive(packets, now), now)]

    def persisted(self, key: str, now: Instant) -> list[Effect]:
        return [one for inner in self._inner for one in self._onward(inner, inner.persisted(key, now), now)]

    def wake(self, now: Instant) -> list[Effect]:
        return [one for inner in self._inner for one in self._onward(inner, inner.wake(now), now)]

    def next_deadline(self) -> Instant | None:
        deadlines = (inner.next_deadline() for inner in self._inner)
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def is_idle(self) -> bool:
        return all(inner.is_idle() for inner in self._inner)

    def _onward(self, inner: InnerRing, effects: list[Effect], now: Instant) -> list[Effect]:
        onward: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Stream):
                onward += self._consume(inner, effect, now)
            else:
                onward.append(effect)
        return onward

    def _consume(self, inner: InnerRing, effect: Stream, now: Instant) -> list[Effect]:
        heard = self.heard[inner.attachment]
        if not isinstance(effect, Deliver):
            heard.configurations.append(effect.configuration)
            return []
        messages = list(effect.messages())
        heard.texts += [data.decode() for *_, data in messages]
        carried = [Submission(data, sender=CARRIED) for _, _, _, sender, _, data in messages if sender == NATIVE]
        others = [other for other in self._inner if other is not inner and carried]
        return [one for other in others for one in self._onward(other, other.submit(carried, now), now)]
