"""The store against a model that is plainly right: a dictionary of packets and the seqs that were discarded."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ordercast.model.ids import Seq
from ordercast.order.ring.store import Store
from ordercast.wire.header import Parsed

seqs = st.integers(1, 40).map(Seq)


def _packet(number: int) -> Parsed:
    return number.to_bytes(4, "big"), 0, None, 0


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.store = Store()
        self.held: dict[int, Parsed] = {}
        self.discarded = 0
        self.highest = 0
        self.number = 0

    @property
    def aru(self) -> int:
        aru = self.discarded
        while aru + 1 in self.held:
            aru += 1
        return aru

    @rule(seq=seqs)
    def add(self, seq: Seq) -> None:
        self.number += 1
        packet = _packet(self.number)
        is_new = seq > self.discarded and seq not in self.held
        assert self.store.add(seq, packet) is is_new
        if is_new:
            self.held[seq] = packet
            self.highest = max(self.highest, seq)

    @rule()
    def add_the_next(self) -> None:
        self.add(Seq(self.aru + 1))

    @precondition(lambda self: self.store.aru == self.store.high)
    @rule(count=st.integers(0, 5))
    def extend(self, count: int) -> None:
        first = self.aru + 1
        run = [_packet(self.number + 1 + offset) for offset in range(count)]
        self.number += count
        self.store.extend(run)
        self.held.update(zip(range(first, first + count), run, strict=True))
        self.highest = max(self.highest, first + count - 1)

    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        through = data.draw(st.integers(0, self.aru))
        self.store.discard(Seq(through))
        self.held = {seq: packet for seq, packet in self.held.items() if seq > through}
        self.discarded = max(self.discarded, through)

    @rule(through=seqs, limit=st.integers(0, 45))
    def ask_for_what_is_missing(self, through: Seq, limit: int) -> None:
        holes = [seq for seq in range(self.discarded + 1, through + 1) if seq not in self.held]
        assert self.store.missing(through, limit) == holes[:limit]

    @rule(seq=st.integers(0, 45).map(Seq))
    def walk(self, seq: Seq) -> None:
        assert list(self.store.held_after(seq)) == sorted((at, held) for at, held in self.held.items() if at > seq)

    @invariant()
    def agrees_with_the_model(self) -> None:
        self.store.check_invariants()
        assert self.store.aru == self.aru
        assert self.store.high == max(self.highest, self.discarded)
        for number in range(1, self.highest + 3):
            seq = Seq(number)
            assert self.store.has(seq) == (number <= self.discarded or number in self.held)
            assert self.store.get(seq) == self.held.get(number)


TestStore = StoreMachine.TestCase
TestStore.settings = settings(max_examples=60, stateful_step_count=40)
