"""The store against a model that is plainly right: a dictionary of packets and the seqs that were discarded."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ordercast.model.ids import ProcessId, Seq
from ordercast.order.membership.store import Store
from ordercast.wire.run import PacketRun
from tests.property_sizes import scaled

seqs = st.integers(1, 40).map(Seq)


def _run(seq: int, *numbers: int) -> PacketRun:
    """Packets from `seq` on that say their numbers, behind something else that came in the same read."""
    data = b"before" + b"".join(map(_packet, numbers))
    return PacketRun(data, 6, 4, Seq(seq), ProcessId(1), len(numbers))


def _packet(number: int) -> bytes:
    return number.to_bytes(4, "big")


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.store = Store()
        self.held: dict[int, bytes] = {}
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
        self._add(seq, _run(seq, self.number), self.number)

    def _add(self, seq: Seq, run: PacketRun, number: int) -> None:
        is_new = seq > self.discarded and seq not in self.held
        assert self.store.add(seq, run) is is_new
        if is_new:
            self.held[seq] = _packet(number)
            self.highest = max(self.highest, seq)

    @rule(first=seqs, count=st.integers(2, 5))
    def add_a_run(self, first: Seq, count: int) -> None:
        """Packet by packet, as after a hole; some of them may be here already."""
        numbers = range(self.number + 1, self.number + 1 + count)
        self.number += count
        run = _run(first, *numbers)
        for seq, number in enumerate(numbers, first):
            self._add(Seq(seq), run, number)

    @rule()
    def add_the_next(self) -> None:
        self.add(Seq(self.aru + 1))

    @precondition(lambda self: self.store.aru == self.store.high)
    @rule(count=st.integers(1, 5))
    def extend(self, count: int) -> None:
        first = self.aru + 1
        numbers = range(self.number + 1, self.number + 1 + count)
        self.number += count
        self.store.extend(_run(first, *numbers))
        self.held.update((seq, _packet(number)) for seq, number in enumerate(numbers, first))
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
        held = [(at, run.packet(at)) for at, run in self.store.held_after(seq)]
        assert held == sorted((at, packet) for at, packet in self.held.items() if at > seq)

    @invariant()
    def agrees_with_the_model(self) -> None:
        self.store.check_invariants()
        assert self.store.aru == self.aru
        assert self.store.high == max(self.highest, self.discarded)
        for number in range(1, self.highest + 3):
            seq = Seq(number)
            assert self.store.has(seq) == (number <= self.discarded or number in self.held)
            run = self.store.get(seq)
            assert (run and run.packet(seq)) == self.held.get(number)


TestStore = StoreMachine.TestCase
TestStore.settings = settings(max_examples=scaled(60), stateful_step_count=40)
