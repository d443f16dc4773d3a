"""Sequencer: member 0 numbers all messages. Others send theirs to it; it multicasts them with their numbers.

Agreed order costs a message and a multicast, two hops, and everything passes one process. Whoever has delivered says
so to member 0 after a quiet moment: then it knows when all is done.
"""

from __future__ import annotations

import struct

from ordercast.model.ids import ProcessId
from ordercast.model.promises import Promise
from ordercast.model.service import Service
from ordercast.order.baselines.base import Letter, Static, letter_from
from ordercast.order.setup import Setup
from ordercast.order.traffic import Traffic

PROMISED = frozenset(
    {
        Promise.INTEGRITY,
        Promise.NO_DUPLICATES,
        Promise.SELF_DELIVERY,
        Promise.FIFO,
        Promise.CAUSAL,
        Promise.TOTAL_ORDER,
        Promise.AGREED_DELIVERY,
        Promise.WHOLE_MESSAGES,
        Promise.LIVENESS,
    }
)
SERVICES = frozenset({Service.RELIABLE, Service.FIFO, Service.CAUSAL, Service.AGREED})
ASK, NUMBERED, DONE = 1, 2, 3  # kinds of packets
NUMBER = struct.Struct(">Q")


class SequencerTraffic(Traffic):
    data = frozenset({NUMBERED})


class Sequencer(Static):
    name = "sequencer"
    promised = PROMISED
    services = SERVICES
    traffic = SequencerTraffic()

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._is_first = self.me == self.members[0]
        self._number = 0  # of the last message that was delivered here
        self._done = dict.fromkeys(self.members[1:], 0)  # what each member has delivered, as member 0 knows

    def is_idle(self) -> bool:
        is_done = not self._is_first or all(number == self._number for number in self._done.values())
        return is_done and self.has_sent_all

    def _send(self, letter: Letter) -> None:
        if self._is_first:
            self._order(letter)
        else:
            self._unicast(ASK, self.members[0], letter.encoded())

    def _order(self, letter: Letter) -> None:
        self._number += 1
        if len(self.members) > 1:
            self._multicast(NUMBERED, NUMBER.pack(self._number) + letter.encoded())
        self._deliver(self._number, letter)

    def _take(self, kind: int, transmitter: ProcessId, body: bytes) -> None:
        if kind == ASK:
            self._order(letter_from(body))
        elif kind == DONE:
            (self._done[transmitter],) = NUMBER.unpack(body)
        else:
            (self._number,) = NUMBER.unpack_from(body)
            self._deliver(self._number, letter_from(body[NUMBER.size :]))

    def _rest(self) -> None:
        if not self._is_first:
            self._unicast(DONE, self.members[0], NUMBER.pack(self._number))
