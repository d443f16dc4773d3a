"""Sequencer: member 0 numbers all messages. Others send theirs to it; it multicasts them with their numbers.

Agreed order costs a message and a multicast, two hops, and everything passes one process.
"""

from __future__ import annotations

import struct

from ordercast.model.ids import ProcessId
from ordercast.order.baselines.base import Letter, Static, letter_from
from ordercast.order.setup import Setup

ASK, NUMBERED = 1, 2  # kinds of packets
NUMBER = struct.Struct(">Q")


class Sequencer(Static):
    name = "sequencer"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._number = 0  # of the last message that was delivered here

    @property
    def _is_first(self) -> bool:
        return self.index == 0

    def _send(self, letter: Letter) -> None:
        if self._is_first:
            self._order(letter)
        else:
            self._unicast(ASK, self.members[0], letter.encoded())

    def _order(self, letter: Letter) -> None:
        self._number += 1
        self._multicast(NUMBERED, NUMBER.pack(self._number) + letter.encoded())
        self._deliver(self._number, letter)

    def _take(self, kind: int, transmitter: ProcessId, body: bytes) -> None:
        if kind == ASK:
            self._order(letter_from(body))
        else:
            (self._number,) = NUMBER.unpack_from(body)
            self._deliver(self._number, letter_from(body[NUMBER.size :]))
