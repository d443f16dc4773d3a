"""ATOP: the adaptive total order of paper 004, word for word; one view, links as its VS layer. Slots of a distribution
belong to members in proportion to their weights, and each is filled by its owner's next message, or skipped.

The paper's cases: C change the ordering distribution (Figure 4), D deliver (5), K skip a slot (6), B block; V, a new
view, cannot come. Dummies, which the paper leaves open (section 5): "none", "weight" (a silent member sends as often as
its weight says), "slot" (whoever finds its own slot at the head fills it); but for "none" a member that learns of a
distribution sends one at once. Where the paper slips: Figure 6, condition 1, means messages that are tagged with the
ordering distribution, and the first message of *each* sender carries the weights."""

from __future__ import annotations

import struct
from collections import deque
from typing import NamedTuple

from ordercast.model.ids import ProcessId
from ordercast.order.baselines.base import Letter, Static, letter_from
from ordercast.order.baselines.distribution import Owners, Window
from ordercast.order.setup import Setup

MESSAGE, DUMMY = 1, 2  # kinds of packets
TAG = struct.Struct(">IIB")  # distribution, number within it at the sender, how many weights follow
SLOTS_MAX = 1 << 40  # of one distribution


class Tagged(NamedTuple):
    distribution: int
    seqno: int
    letter: Letter | None  # None: a dummy


class Atop(Static):
    name = "atop"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        count = len(self.members)
        self._weights = {0: (1,) * count}  # by distribution; the default one is uniform
        self._sending, self._seqno = 0, 0  # the sending distribution, and the next number within it
        self._ordering, self._next = 0, [0] * count  # the ordering distribution, and how many of each it has ordered
        self._owners = Owners(0, self._weights[0], self.baseline.sequence)
        self._messages: list[deque[Tagged]] = [deque() for _ in self.members]  # not delivered, by sender
        self._window = Window(count, self.baseline)
        self._message_at = self._now  # when the last message came, dummies left out
        self._credit = 0  # of a silent member, towards its next dummy by weight

    @property
    def tick_ns(self) -> int:
        return self.baseline.adapt_ns

    def _send(self, letter: Letter) -> None:
        self._credit = 0
        self._speak(MESSAGE, letter)
        self._order()

    def _speak(self, kind: int, letter: Letter | None) -> None:
        weights = self._weights[self._sending] if self._sending and not self._seqno else ()
        tag = TAG.pack(self._sending, self._seqno, len(weights)) + struct.pack(f">{len(weights)}H", *weights)
        self._multicast(kind, tag + (letter.encoded() if letter is not None else b""))
        self._receive(self.index, Tagged(self._sending, self._seqno, letter))
        self._seqno += 1

    def _learn(self, distribution: int, weights: tuple[int, ...]) -> None:
        """The sending distribution is the newest that is known, from the moment it is heard of."""
        self._weights[distribution] = weights
        if distribution > self._sending:
            self._sending, self._seqno = distribution, 0
            if self.baseline.dummies != "none":
                self._speak(DUMMY, None)

    def _take(self, kind: int, transmitter: ProcessId, body: bytes) -> None:
        distribution, seqno, count = TAG.unpack_from(body)
        start = TAG.size + 2 * count
        sender = self.members.index(transmitter)
        letter = letter_from(body[start:]) if kind == MESSAGE else None
        self._receive(sender, Tagged(distribution, seqno, letter))
        if count and distribution not in self._weights:
            self._learn(distribution, struct.unpack_from(f">{count}H", body, TAG.size))
        if letter is not None:  # dummies answer messages alone, or they would never end
            self._pace()
        self._order()

    def _receive(self, sender: int, message: Tagged) -> None:
        self._messages[sender].append(message)
        if message.letter is not None:
            self._window.sent(sender)
            self._message_at = self._now

    def _pace(self) -> None:
        """A silent member sends a dummy as often as the others' messages and its weight ask for."""
        mine, total = self._weights[self._sending][self.index], sum(self._weights[self._sending])
        self._credit += mine
        if self.baseline.dummies == "weight" and self._credit >= total - mine:
            self._credit -= total - mine
            self._speak(DUMMY, None)

    # The delivery procedure

    def _order(self) -> None:
        while self._step():
            pass

    def _step(self) -> bool:
        """Do what one of the cases says; False when none holds (B)."""
        if not any(queue and queue[0].distribution == self._ordering for queue in self._messages):
            return self._change()
        slot = sum(self._next)
        owner = self._owners.owner(slot)
        queue = self._messages[owner]
        if queue and queue[0].distribution == self._ordering:  # D
            letter = queue.popleft().letter
            self._next[owner] += 1
            if letter is not None:
                self._deliver(self._ordering * SLOTS_MAX + slot + 1, letter)
        elif queue:  # K: the owner's next message is tagged with a later distribution
            self._next[owner] += 1
        elif owner == self.index and self._fills():
            self._speak(DUMMY, None)
        else:
            return False
        return True

    def _change(self) -> bool:
        """Case C: everybody has shown a later distribution, and nothing of this one is left."""
        if not all(self._messages):
            return False
        self._ordering = min(queue[0].distribution for queue in self._messages)
        self._next = [0] * len(self.members)
        self._owners = Owners(self._ordering, self._weights[self._ordering], self.baseline.sequence)
        return True

    def _fills(self) -> bool:
        """Whether a silent owner fills its slot: a message must wait behind it. At the end of a run all do."""
        is_filling = self.baseline.dummies == "slot" or self._is_over
        return is_filling and any(one.letter is not None for queue in self._messages for one in queue)

    @property
    def _is_over(self) -> bool:
        return self._now - self._message_at >= self.baseline.close_ns

    def _tick(self) -> None:
        """The book-keeper compares what was sent of late with the newest distribution."""
        weights = self._window.wanted(self._weights[self._sending]) if not self.index else None
        if weights is not None:
            self._learn(self._sending + 1, weights)
        if self._is_over and self._sending > self._ordering and not self._messages[self.index] and self._fills():
            self._speak(DUMMY, None)  # it shows that it knows of the distribution
        self._order()
