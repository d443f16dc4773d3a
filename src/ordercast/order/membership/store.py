"""The packets of one ring that this process holds, by seq; what is missing; how far there is no hole.

A list whose first slot is seq `base + 1`: in-order arrival appends, discarding what is safe cuts the front. Each slot
has the run that the packet came in. Who sent the highest packet is remembered when the packet is not.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.model.ids import NO_SEQ, NOBODY, ProcessId, Seq
from ordercast.wire.run import PacketRun


class Store:
    __slots__ = ("aru", "base", "base_originator", "high", "slots")

    def __init__(self) -> None:
        self.base: Seq = NO_SEQ  # everything up to here was discarded
        self.base_originator: ProcessId = NOBODY  # who sent the packet there, if no other is held
        self.aru: Seq = NO_SEQ  # everything up to here was received (`my_aru`)
        self.high: Seq = NO_SEQ  # the highest seq received
        self.slots: list[PacketRun | None] = []

    @property
    def high_originator(self) -> ProcessId:
        """Who sent the packet with the highest seq received; nobody, before the first."""
        if not self.slots:
            return self.base_originator
        highest = self.slots[-1]
        assert highest is not None, "a store ends with a packet"
        return highest.originator

    def add(self, seq: Seq, run: PacketRun) -> bool:
        """Keep one packet of a run; False when it is here already or was here once."""
        slots = self.slots
        index = seq - self.base - 1
        if index >= len(slots):
            slots.extend([None] * (index - len(slots)))
            slots.append(run)
            self.high = seq
        elif index < 0 or slots[index] is not None:
            return False
        else:
            slots[index] = run
        if seq == self.aru + 1:
            index += 1
            while index < len(slots) and slots[index] is not None:
                index += 1
            self.aru = Seq(self.base + index)
        return True

    def extend(self, run: PacketRun) -> None:
        """Keep packets that follow the highest seq held, when there is no hole before it."""
        assert self.aru == self.high == run.seq - 1, "a run continues a store without holes"
        self.slots += [run] * run.count
        self.aru = self.high = Seq(self.aru + run.count)

    def has(self, seq: Seq) -> bool:
        """Held, or held once and discarded since."""
        if seq <= self.aru:
            return True
        index = seq - self.base - 1
        return index < len(self.slots) and self.slots[index] is not None

    def get(self, seq: Seq) -> PacketRun | None:
        index = seq - self.base - 1
        return self.slots[index] if 0 <= index < len(self.slots) else None

    def missing(self, through: Seq, limit: int) -> list[Seq]:
        """The lowest seqs up to `through` that are not held, at most `limit` of them."""
        holes: list[Seq] = []
        for seq in range(self.aru + 1, through + 1):
            if len(holes) >= limit:
                break
            if not self.has(Seq(seq)):
                holes.append(Seq(seq))
        return holes

    def held_after(self, seq: Seq) -> Iterator[tuple[Seq, PacketRun]]:
        """What is held above `seq`, ascending."""
        for index in range(max(seq - self.base, 0), len(self.slots)):
            run = self.slots[index]
            if run is not None:
                yield Seq(self.base + index + 1), run

    def discard(self, through: Seq) -> None:
        """Forget what everybody has."""
        assert through <= self.aru, "only what was received may be discarded"
        count = through - self.base
        if count > 0:
            if count == len(self.slots):
                self.base_originator = self.high_originator
            del self.slots[:count]
            self.base = through

    def cut(self, through: Seq) -> None:
        """Forget what lies above, as if it had never come."""
        slots = self.slots
        del slots[max(0, through - self.base) :]
        while slots and slots[-1] is None:  # holes below what lay above
            slots.pop()
        self.high = Seq(self.base + len(slots))
        self.aru = min(self.aru, self.high)

    def check_invariants(self) -> None:
        assert self.high == self.base + len(self.slots), "the highest seq is that of the last slot"
        assert self.base <= self.aru <= self.high, "aru lies within the store"
        assert not self.slots or self.slots[-1] is not None, "a store ends with a packet"
        assert self.aru == self.high or self.slots[self.aru - self.base] is None, "the packet after aru is missing"
