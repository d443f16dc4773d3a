"""Two-phase: Skeen's algorithm. Everybody proposes a number for a message, its sender takes the highest and tells all:
three hops. (Paper 001, sections 2 and 4, where it is called the two-phase method)

A member delivers what has the lowest number, once that number is final.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ordercast.model.ids import ProcessId
from ordercast.order.baselines.base import Letter, Static, letter_from
from ordercast.order.setup import Setup

MESSAGE, PROPOSAL, FINAL = 1, 2, 3  # kinds of packets
NAME = struct.Struct(">Q")  # number of a message at its sender
NUMBERED = struct.Struct(">QQ")  # the same, and a number in the order


@dataclass(slots=True)
class Unplaced:
    number: int  # proposed here, then final
    letter: Letter
    is_final: bool = False


class TwoPhase(Static):
    name = "two-phase"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._clock = 0
        self._pending: dict[tuple[ProcessId, int], Unplaced] = {}  # by sender and number there
        self._proposals: dict[int, list[int]] = {}  # for own messages

    def _send(self, letter: Letter) -> None:
        name = self._own
        self._proposals[name] = [self._propose(self.me, name, letter)]
        self._multicast(MESSAGE, NAME.pack(name) + letter.encoded())
        self._conclude(name)

    def _propose(self, sender: ProcessId, name: int, letter: Letter) -> int:
        """Return a number that is higher than all known ones, and that nobody else proposes."""
        self._clock += 1
        number = self._clock * len(self.members) + self.index
        self._pending[sender, name] = Unplaced(number, letter)
        return number

    def _take(self, kind: int, transmitter: ProcessId, body: bytes) -> None:
        if kind == MESSAGE:
            (name,) = NAME.unpack_from(body)
            number = self._propose(transmitter, name, letter_from(body[NAME.size :]))
            self._unicast(PROPOSAL, transmitter, NUMBERED.pack(name, number))
        elif kind == PROPOSAL:
            name, number = NUMBERED.unpack(body)
            self._proposals[name].append(number)
            self._conclude(name)
        else:
            self._settle(transmitter, *NUMBERED.unpack(body))

    def _conclude(self, name: int) -> None:
        """Tell all which number a message has, once all have proposed."""
        if len(self._proposals[name]) == len(self.members):
            number = max(self._proposals.pop(name))
            self._multicast(FINAL, NUMBERED.pack(name, number))
            self._settle(self.me, name, number)

    def _settle(self, sender: ProcessId, name: int, number: int) -> None:
        """The number is final. The clock passes it: what depends on the message gets a higher one, wherever it goes."""
        self._clock = max(self._clock, number // len(self.members))
        one = self._pending[sender, name]
        one.number, one.is_final = number, True
        while self._pending:
            key = min(self._pending, key=lambda key: self._pending[key].number)
            if not self._pending[key].is_final:
                break
            lowest = self._pending.pop(key)
            self._deliver(lowest.number, lowest.letter)
