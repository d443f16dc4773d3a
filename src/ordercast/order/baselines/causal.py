"""Causal: the paper's CMS. A message carries what its sender had delivered, and waits for that alone: no total order,
and so the shortest latency that any engine could have. The reference of the figures. (Paper 004, section 6.2.1)
"""

from __future__ import annotations

import struct

from ordercast.model.ids import ProcessId
from ordercast.model.service import Service
from ordercast.order.baselines import base
from ordercast.order.baselines.base import Letter, Static, letter_from
from ordercast.order.setup import Setup

MESSAGE = 1  # kind of packets


class Causal(Static):
    name = "causal"
    promised = base.CAUSAL
    services = frozenset({Service.RELIABLE, Service.FIFO, Service.CAUSAL})

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._early: list[tuple[int, tuple[int, ...], Letter]] = []  # sender, what comes before the message, message
        self._vector = struct.Struct(f">{len(self.members)}Q")

    @property
    def in_flight(self) -> int:
        """How many own messages are not known to be delivered by all: own delivery comes at once."""
        return self._own - min(self._confirmed.values(), default=self._own)

    def _send(self, letter: Letter) -> None:
        before = tuple(self._delivered.values())
        self._multicast(MESSAGE, self._vector.pack(*before) + letter.encoded())
        self._place(self.index, before, letter)

    def _take(self, kind: int, transmitter: ProcessId, body: bytes) -> None:
        before = self._vector.unpack_from(body)
        self._early.append((self.members.index(transmitter), before, letter_from(body[self._vector.size :])))
        while (ready := next((one for one in self._early if self._is_next(*one[:2])), None)) is not None:
            self._early.remove(ready)
            self._place(*ready)

    def _is_next(self, sender: int, before: tuple[int, ...]) -> bool:
        """Everything is delivered that the sender had delivered; links bring its own messages one after the other."""
        here = self._delivered.values()
        return all(need <= have for need, have in zip(before, here, strict=True))

    def _place(self, sender: int, before: tuple[int, ...], letter: Letter) -> None:
        """Deliver, at a place that nothing else has: all that the message may depend on have lower ones."""
        self._deliver(1 + sum(before) * len(self.members) + sender, letter)
