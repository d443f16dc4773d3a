"""Timestamps: the order of Lamport's clocks. A message is delivered when everybody has sent something later.

Whoever is waited for, and has sent nothing for a while (`null_ns`), sends a null: latency is that time and a hop.
"""

from __future__ import annotations

import heapq
import struct

from ordercast.model.ids import ProcessId
from ordercast.order.baselines.base import Letter, Static, letter_from
from ordercast.order.setup import Setup

MESSAGE, NULL = 1, 2  # kinds of packets
CLOCK = struct.Struct(">Q")


class Timestamps(Static):
    name = "timestamps"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._clock = 0
        self._said = (0, self.index)  # timestamp of this process's last packet, and its place among the members
        self._awaited = (0, 0)  # the same of the last message in the order
        self._heard = dict.fromkeys(self._confirmed, 0)  # the others' last timestamps
        self._pending: list[tuple[int, int, Letter]] = []  # timestamp and place of the sender, then the message
        self._spoke_at = self._awaited_at = self._now  # when this process said something, when a message came

    @property
    def tick_ns(self) -> int:
        return self.baseline.null_ns

    def _tick(self) -> None:
        """Nulls are for those who wait: an idle cluster is silent."""
        if self._now - self._spoke_at >= self.baseline.null_ns:
            self._say_null()

    def _say_null(self) -> None:
        if self._awaited > self._said:
            self._multicast(NULL, self._stamp())

    def _stamp(self) -> bytes:
        self._clock += 1
        self._said, self._spoke_at = (self._clock, self.index), self._now
        return CLOCK.pack(self._clock)

    def _send(self, letter: Letter) -> None:
        self._multicast(MESSAGE, self._stamp() + letter.encoded())
        self._wait(self._clock, self.index, letter)
        self._release()

    def _take(self, kind: int, transmitter: ProcessId, body: bytes) -> None:
        (stamp,) = CLOCK.unpack_from(body)
        self._clock = max(self._clock, stamp)
        self._heard[transmitter] = stamp
        if kind == MESSAGE:
            self._wait(stamp, self.members.index(transmitter), letter_from(body[CLOCK.size :]))
        self._release()

    def _wait(self, stamp: int, sender: int, letter: Letter) -> None:
        self._awaited, self._awaited_at = max(self._awaited, (stamp, sender)), self._now
        heapq.heappush(self._pending, (stamp, sender, letter))

    def _release(self) -> None:
        """Deliver what nobody can precede any more. What this process will send is later than all it has heard."""
        while self._pending and all(self._is_later(process) for process in self._heard):
            stamp, sender, letter = heapq.heappop(self._pending)
            self._deliver(stamp * len(self.members) + sender, letter)

    def _is_later(self, process: ProcessId) -> bool:
        stamp, sender, _ = self._pending[0]
        return (self._heard[process], self.members.index(process)) >= (stamp, sender)
