"""One stream of a view: the units of a fragment, as far as they are here.

Each unit names the one before it, so that a hole shows. The *line* of a stream is the stamp below which everything of
it is here. Units that are contiguous move it, and so does a promise of the source ("up to here I have sent, and nothing
follows below"), once all that it speaks of is here: links reorder.
"""

from __future__ import annotations

from collections import deque

from ordercast.order.sites.units import AnyUnit, Unit, UnitRun
from ordercast.order.stamped.lanes import Stamp, StampedLane, StampedRun

PROMISES_MAX = 64  # that wait for units


def front_of(line: int, rank: int) -> Stamp:
    """Return what lies just below anything that a stream may still bring."""
    return line, rank, -1


class UnitStream:
    __slots__ = ("_ahead", "_promises", "lane", "line", "passed", "rank", "through", "told", "units")

    def __init__(self, rank: int, line: int) -> None:
        self.rank = rank
        self.line = line
        self.through = 0  # stamp of the last contiguous unit
        self.units: dict[int, AnyUnit] = {}  # by stamp, runs by that of the first: all that are held
        self.lane: StampedLane[AnyUnit] = StampedLane(front_of(line, rank))
        self.passed: deque[int] = deque()  # stamps of units and runs that the order has passed, and that are held
        self.told: list[Unit] = []  # units that tell interests, in order; whoever takes them empties it
        self._ahead: dict[int, Unit] = {}  # by the stamp of the unit before: not contiguous yet
        self._promises: list[tuple[int, int]] = []  # through, next: of what has not come yet

    @property
    def is_waiting(self) -> bool:
        """Whether something is known that is not here."""
        return bool(self._ahead or self._promises)

    def add(self, unit: Unit) -> bool:
        """Take a unit; False when it was here."""
        if unit.stamp in self.units or unit.stamp < self.line:
            return False
        self.units[unit.stamp] = unit
        if unit.previous is not None:
            self._ahead[unit.previous] = unit
            self._advance()
        return True

    def add_run(self, run: UnitRun) -> None:
        """Take units of the own ring, which follow all that is here."""
        self.units[run.stamp] = run
        last = self.through = run.last
        self.lane.add(run.place, (last, self.rank, 0), run)
        self._raise(last + 1)

    def cut(self, last: int) -> None:
        """Make two of the run that waits first: one up to this stamp, and the rest."""
        run = self.lane.runs.popleft().content
        assert isinstance(run, UnitRun)
        for piece in reversed(run.split(last)):
            self.units[piece.stamp] = piece
            self.lane.runs.appendleft(StampedRun(piece.place, (piece.last, self.rank, 0), piece))

    def unroll(self) -> None:
        """Hold single units from now on."""
        held = self.units
        self.passed = deque(unit.stamp for stamp in self.passed for unit in held[stamp].singles())
        self.units = {unit.stamp: unit for stamp in sorted(held) for unit in held[stamp].singles()}
        waiting = [unit for run in self.lane.runs for unit in held[run.content.stamp].singles()]
        self.lane.runs = deque(StampedRun(unit.place, unit.place, self.units[unit.stamp]) for unit in waiting)

    def single(self, stamp: int) -> Unit:
        """Return a unit that is held, when single ones are."""
        unit = self.units[stamp]
        assert isinstance(unit, Unit)
        return unit

    def promise(self, through: int, line: int) -> None:
        """Hear that nothing below `line` follows the unit `through`."""
        if through <= self.through:
            self._raise(line)
        elif len(self._promises) < PROMISES_MAX:
            self._promises.append((through, line))
        else:
            self._promises[-1] = max(self._promises[-1], (through, line))

    def _advance(self) -> None:
        while (unit := self._ahead.pop(self.through, None)) is not None:
            self.lane.add(unit.place, unit.place, unit)
            self.through = unit.stamp
            if unit.is_interest:
                self.told.append(unit)
            self._raise(unit.stamp + 1)
        kept = [promise for promise in self._promises if promise[0] > self.through]
        if len(kept) < len(self._promises):
            for through, line in self._promises:
                if through <= self.through:
                    self._raise(line)
            self._promises = kept

    def _raise(self, line: int) -> None:
        if line > self.line:
            self.line = line
            self.lane.raise_front(front_of(line, self.rank))

    def forget(self, stable: int) -> list[AnyUnit]:
        """Let go what everybody has and the order has passed; return it."""
        units, passed = self.units, self.passed
        gone: list[AnyUnit] = []
        while passed and units[passed[0]].last < stable:
            gone.append(units.pop(passed.popleft()))
        return gone
