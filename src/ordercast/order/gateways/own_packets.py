"""Own packets: what this process has sent itself, and has to tell the places of, whoever wants it.

A process passes up its own packets, also those that nobody here wants: whoever sent them may wait for their places.
What nobody wants is carried around hollow, and other gateways of the ring may hand it up sooner. Then it is passed here
without bodies, or by a front alone, before the own ring hands it up; and what an own ring hands up as residual may be
regular elsewhere, and come hollow then. What is passed so is told by its places alone, once the own ring has handed it
up.
"""

from __future__ import annotations

from collections import defaultdict, deque

from ordercast.model.ids import ProcessId
from ordercast.order.gateways.items import EVERYTHING, Stretch
from ordercast.order.stamped.lanes import Stamp, StampedRun

OwnRun = StampedRun[Stretch]


class OwnPackets:
    """Own packets that may be carried hollow: which of them were handed up and not passed with their bodies."""

    __slots__ = ("_ahead", "_bare", "_me", "_waiting")

    def __init__(self, me: ProcessId) -> None:
        self._me = me
        # By the tag of their ring, in order.
        self._waiting: defaultdict[int, deque[OwnRun]] = defaultdict(deque)  # handed up, and not yet passed
        self._ahead: defaultdict[int, deque[OwnRun]] = defaultdict(deque)  # passed, since they came whole another way
        self._bare: list[OwnRun] = []  # passed without their bodies: others of their ring were passed behind them

    def handed_up(self, tag: int, stretch: Stretch) -> None:
        """Hear of packets as the own ring has them that numbered them, regular or residual, in order."""
        if self._is_told_bare(stretch):
            self._waiting[tag] += _taken_out(self._ahead, _run_of(tag, stretch))

    def passed(self, run: OwnRun) -> None:
        """Hear of packets that were passed with their bodies, in order."""
        if self._is_told_bare(run.content):
            waiting = self._waiting[run.first[1]]
            while waiting and waiting[0].last < run.first:
                self._bare.append(waiting.popleft())
            self._ahead[run.first[1]] += _taken_out(self._waiting, run)

    def bare(self, place: Stamp) -> list[OwnRun]:
        """Return the own packets up to a place that were passed without their bodies, in order, each once. All that
        were passed with them have been told."""
        found, self._bare = self._bare, []
        for runs in self._waiting.values():
            while runs and runs[0].last <= place:
                found.append(runs.popleft())
        for by_ring in (self._waiting, self._ahead):
            for tag in [tag for tag, runs in by_ring.items() if not runs]:
                del by_ring[tag]
        return sorted(found)

    def _is_told_bare(self, stretch: Stretch) -> bool:
        """Whether packets are own ones that others may carry without their bodies: what goes everywhere is always
        whole."""
        return stretch.originator == self._me and stretch.mask != EVERYTHING


def _taken_out(others: defaultdict[int, deque[OwnRun]], run: OwnRun) -> list[OwnRun]:
    """Take the packets of a run out of others of its ring; return those that were not among them."""
    runs = others[run.first[1]]
    rest: list[OwnRun] = [run]
    kept: list[OwnRun] = []
    while runs and runs[0].first <= run.last:
        other = runs.popleft()
        kept += _without(other, run)
        rest = [left for one in rest for left in _without(one, other)]
    runs.extendleft(reversed(kept))
    return rest


def _run_of(tag: int, stretch: Stretch) -> OwnRun:
    tick, seqs = stretch.tick, stretch.seqs
    return StampedRun((tick, tag, seqs[0]), (tick, tag, seqs[-1]), stretch)


def _without(run: OwnRun, other: OwnRun) -> list[OwnRun]:
    """Return the packets of a run that are not in another one of its ring."""
    stretch, seqs = run.content, other.content.seqs
    if stretch.seqs == seqs:
        return []
    gone = set(seqs)
    left = [place for place, seq in enumerate(stretch.seqs) if seq not in gone]
    if len(left) == len(stretch.seqs):
        return [run]
    return [_run_of(run.first[1], stretch.between(place, place + 1)) for place in left]
