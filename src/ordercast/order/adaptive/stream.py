"""The packets of one member in one configuration: numbered 1, 2, 3 … at rising places.

Who holds packets k and k + 1 knows that the member's places between them are void. What comes before its turn is kept
apart until the numbers before it are here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from operator import attrgetter

from ordercast.model.errors import WireError
from ordercast.model.ids import Seq
from ordercast.order.adaptive.codec import RESTS, Mark
from ordercast.order.adaptive.slots import NO_END, Place
from ordercast.wire.run import PacketRun

_last = attrgetter("last")


class MemberStream:
    __slots__ = (
        "_firsts",
        "_held",
        "early",
        "held",
        "high",
        "is_resting",
        "last",
        "mark",
        "next",
        "place",
        "rest",
        "undelivered",
    )

    def __init__(self) -> None:
        self.last = 0  # number of the last packet in order
        self.place: Place = 0  # and its place
        self.is_resting = False  # that packet says that its sender rests
        self.rest = 0  # how many places it gives up then; 0: not known for sure
        self.high = 0  # the highest number heard of
        self.next: Place = 1  # marks proved: no place below this is used but by packets up to `last`
        self.mark: Mark | None = None  # the newest
        self.early: dict[int, PacketRun] = {}  # single packets that wait for others before them, by number
        self.undelivered: deque[PacketRun] = deque()  # in order
        self.held = 0  # packets in order that are not known to be everywhere
        self._firsts: list[int] = []  # numbers of the first packets of runs that are held
        self._held: list[PacketRun] = []  # these runs

    @property
    def count(self) -> int:
        """How many packets are held."""
        return self.held + len(self.early)

    @property
    def first_held(self) -> Place:
        """The last place of the first run that is not known to be everywhere, since runs are forgotten as a whole; 0:
        there is none."""
        return self._held[0].last if self._held else 0

    def has(self, number: int) -> bool:
        """Held, or held once."""
        return number <= self.last or number in self.early

    def add(self, run: PacketRun, number: int) -> tuple[bool, list[PacketRun]]:
        """Keep packets in a row, the first of which has this number. Return whether any was new, and what is in order
        now and was not before. WireError when places do not rise with numbers."""
        last = number + run.count - 1
        if last <= self.last:
            return False, []
        if number <= self.last:
            skipped = self.last + 1 - number
            run, number = run.piece(run.seq + skipped, run.last), number + skipped
        if run.seq <= self.place:
            raise WireError("a later packet at an earlier place")
        if last > self.high:
            self.high = last
        if number > self.last + 1:
            return self._keep_early(run, number), []
        ordered = [run]
        self._append(run, number)
        while self.early and self.last + 1 in self.early:
            following = self.early.pop(self.last + 1)
            if following.seq <= self.place:
                continue  # it contradicts what came since; its place cannot be true
            self._append(following, self.last + 1)
            ordered.append(following)
        if self.early and min(self.early) <= self.last:
            self.early = {one: piece for one, piece in self.early.items() if one > self.last}
        return True, ordered

    def _keep_early(self, run: PacketRun, number: int) -> bool:
        is_new = False
        for offset in range(run.count):
            if number + offset not in self.early:
                self.early[number + offset] = run.piece(run.seq + offset, run.seq + offset)
                is_new = True
        return is_new

    def _append(self, run: PacketRun, number: int) -> None:
        self.last, self.place = number + run.count - 1, run.last
        self.is_resting, self.rest = bool(run.flags & RESTS), 0
        self.undelivered.append(run)
        self._firsts.append(number)
        self._held.append(run)
        self.held += run.count

    def missing(self, limit: int) -> list[tuple[int, int]]:
        """Return ranges of numbers that were heard of and are not here, at most so many."""
        ranges: list[tuple[int, int]] = []
        first = self.last + 1
        for number in (*sorted(self.early), self.high + 1):
            if number > first:
                ranges.append((first, number - 1))
            first = number + 1
            if len(ranges) >= limit:
                break
        return ranges

    def packet(self, number: int) -> bytes | None:
        """Return one packet as it travels, if it is held."""
        if number in self.early:
            run = self.early[number]
            return run.packet(run.seq)
        index = bisect_right(self._firsts, number) - 1
        if index < 0 or number > self.last:
            return None
        run = self._held[index]
        return run.packet(Seq(run.seq + number - self._firsts[index]))

    def held_after(self, place: Place) -> Iterator[tuple[Seq, PacketRun]]:
        """Return the packets at places above this one."""
        for run in (*self._held, *self.early.values()):
            for seq in range(max(run.seq, place + 1), run.last + 1):
                yield Seq(seq), run

    def discard(self, through: Place) -> None:
        """Forget runs that all members have."""
        count = bisect_right(self._held, through, key=_last)
        if count:
            del self._held[:count], self._firsts[:count]
            self.held = self.last - self._firsts[0] + 1 if self._firsts else 0

    def check_invariants(self) -> None:
        places = [run.seq for run in self._held]
        assert places == sorted(places), "places rise with numbers"
        assert self.held == sum(run.count for run in self._held), "each packet is counted once"
        assert all(number > self.last + 1 for number in self.early), "what is early waits for something"


def lowest(streams: Sequence[MemberStream], start: Place) -> tuple[deque[PacketRun] | None, Place, Place]:
    """Return the queue whose first run has the lowest undelivered place from here on, that place, and the lowest of
    other members."""
    best: deque[PacketRun] | None = None
    place = following = NO_END
    for stream in streams:
        queue = stream.undelivered
        while queue and queue[0].last < start:
            queue.popleft()  # its sender had said that it does not use that place
        if not queue:
            continue
        first = queue[0].seq
        if first < start:
            first = Seq(start)  # the run was delivered in part
        if first < place:
            best, place, following = queue, first, place
        elif first < following:
            following = first
    return best, place, following
