"""The stream of one logical ring, as it arrives here: regular packets by seq, residual packets by half, the front.

Regular packets come in order over every way, and whatever comes first counts: one number tells what is new. Residual
ones were delivered by a half of the ring in its transitional configuration. Halves may have different ones, with holes,
so each packet is kept with the halves that had it. The content of an ended ring is its regular packets and, above them,
the union of what its halves had, by seq.
"""

from __future__ import annotations

from ordercast.order.gateways.bodies import size_of
from ordercast.order.gateways.items import LogicalRing, Processes, Stretch
from ordercast.order.stamped.lanes import NO_STAMP, Stamp, StampedLane


class RingStream(StampedLane[Stretch]):
    """What is known and not yet passed of one logical ring."""

    __slots__ = ("_halves", "_passed", "_residual", "_residual_taken", "last_seq", "ring", "size", "start", "tag")

    def __init__(self, ring: LogicalRing) -> None:
        super().__init__(ring.birth)
        self.ring = ring.id
        self.tag = ring.tag
        self.start: Stamp = NO_STAMP  # nothing at or below it is taken: the merge that brought the ring back
        self.last_seq = 0  # of regular packets taken
        self.size = 0  # bytes of packets that were not passed
        self._residual: dict[int, Stretch] = {}  # by seq, one packet each; those above `last_seq` count
        self._residual_taken: set[tuple[int, Processes]] = set()
        self._halves: dict[int, set[Processes]] = {}  # which halves had a residual packet
        self._passed: set[int] = set()  # residual seqs that were delivered

    def stamp(self, tick: int, seq: int) -> Stamp:
        return (tick, self.tag, seq)

    def take(self, stretch: Stretch) -> Stretch | None:
        """Take regular packets; return those that are new."""
        seqs = stretch.seqs
        tick = stretch.tick
        last = (tick, self.tag, seqs[-1])
        if seqs[-1] <= self.last_seq or last <= self.start or seqs[-1] in self._passed:
            return None
        if seqs[0] <= self.last_seq:
            new = next(place for place, seq in enumerate(seqs) if seq > self.last_seq)
            stretch = stretch.between(new, len(seqs))
        self.last_seq = seqs[-1]
        self.add((tick, self.tag, stretch.seqs[0]), last, stretch)
        self.size += size_of(stretch.bodies)
        return stretch

    def take_residual(self, stretch: Stretch, half: Processes) -> Stretch | None:
        """Take residual packets of one half; return those that this half was not known to have had."""
        if (stretch.tick, self.tag, stretch.seqs[-1]) <= self.start:
            return None
        new = [place for place, seq in enumerate(stretch.seqs) if (seq, half) not in self._residual_taken]
        for place in new:
            seq = stretch.seqs[place]
            self._residual_taken.add((seq, half))
            self._halves.setdefault(seq, set()).add(half)
            if seq > self.last_seq and seq not in self._passed:
                packet = stretch.between(place, place + 1)
                if self._residual.setdefault(seq, packet) is packet:
                    self.size += size_of(packet.bodies)
        return stretch.between(new[0], new[-1] + 1) if new else None

    def passed(self, stretch: Stretch) -> None:
        """Hear that packets have been passed, and wait here no more."""
        self.size -= size_of(stretch.bodies)

    def halves_with(self, seq: int) -> set[Processes]:
        """Return the halves known to have had a packet in the transitional configuration."""
        return self._halves.get(seq, set())

    def is_disputed(self, seq: int) -> bool:
        """Whether a half that had residual packets did not have this one."""
        return any(half not in self._halves[seq] for _, half in self._residual_taken)

    def residual(self) -> Stretch | None:
        """Return the lowest residual packet that is not a regular one and was not passed."""
        seqs = [seq for seq in self._residual if seq > self.last_seq]
        return self._residual[min(seqs)] if seqs else None

    def pass_residual(self, seq: int) -> None:
        """Forget a residual packet: it has been delivered."""
        del self._residual[seq]
        self._passed.add(seq)

    def begin_at(self, birth: Stamp) -> None:
        """Begin anew at the merge that brings the ring, or brings it back: what lies below is of no concern."""
        while self.runs and self.runs[0].first <= birth:
            self.passed(self.runs.popleft().content)
        self._residual = {seq: packet for seq, packet in self._residual.items() if (packet.tick, self.tag, seq) > birth}
        self.raise_front(birth)
        self.start = max(self.start, birth)
