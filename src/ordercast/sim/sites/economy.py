"""Judges what daemons of several sites spend: updates that nobody waits for, copies without cause, bytes under way.

A system of sites is silent when nothing is sent, however its stamps rise: an UPDATE follows from a unit, or from a
change of what its site can take. Trees bring each unit once; a copy has its cause in routes anew. And what a daemon has
under way, and holds of others, is bounded by the window.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable

from ordercast.model.ids import ProcessId
from ordercast.model.notes import Occurrence
from ordercast.model.promises import SitesPromise
from ordercast.order.sites.codec import decode
from ordercast.order.sites.frames import UpdateFrame
from ordercast.order.sites.units import Unit
from ordercast.sim.sites.watched import WatchedTape

Find = Callable[[SitesPromise, str, WatchedTape], None]


class SitesEconomy:
    """All daemons of one run."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._stamps: defaultdict[tuple[ProcessId, bytes], list[int]] = defaultdict(list)  # of units, ascending
        self._highest: dict[tuple[ProcessId, bytes], int] = {}  # of units of other sites
        self._told: dict[tuple[ProcessId, bytes], UpdateFrame] = {}
        self._largest: dict[tuple[ProcessId, bytes], int] = {}  # unit, in bytes
        self._epochs: dict[bytes, int] = {}  # the highest that somebody has taken up, by view

    def read(self, tape: WatchedTape, unit: Unit) -> None:
        """A unit came on a tape."""
        key = tape.me, tape.view.digest
        insort(self._stamps[key], unit.stamp)
        self._largest[key] = max(self._largest.get(key, 0), unit.size)
        if unit.rank != tape.rank:
            self._highest[key] = max(self._highest.get(key, 0), unit.stamp)

    def went_on(self, tape: WatchedTape) -> None:
        """Everything that came was taken."""
        speaker, view = tape.engine.speaker, tape.view.digest
        spreading = speaker.spreading
        if not spreading.trees or spreading.order is not tape.order:
            return
        self._epochs[view] = max(self._epochs.get(view, 0), spreading.epoch)
        if speaker.occurred[Occurrence.SITES_COPY] and not self._epochs[view]:
            self._find(SitesPromise.COPIES, "a unit came twice, and routes have not changed in this view", tape)
        said = spreading.update_of(tape.rank)
        if said is not None:
            self._judge_update(tape, said)

    def _judge_update(self, tape: WatchedTape, data: bytes) -> None:
        """Somebody has waited for the newest update: it promises to be past a unit, acknowledges one, or tells that the
        site can take more or less than before."""
        frame, key = decode(data), (tape.me, tape.view.digest)
        assert isinstance(frame, UpdateFrame)
        told = self._told.get(key)
        if told == frame:
            return
        self._told[key] = frame
        base = tape.order.base
        line, aru, pressure = (base, base, (False, 0)) if told is None else (told.line, told.aru, _pressure(told))
        stamps = self._stamps[key]
        acknowledges = bisect_left(stamps, aru) < bisect_left(stamps, frame.aru)
        promises = frame.line > line and self._highest.get(key, 0) >= line
        if not acknowledges and not promises and _pressure(frame) == pressure:
            self._find(SitesPromise.SILENCE, f"an update up to {frame.line} tells nothing that was waited for", tape)

    def judge_window(self, tape: WatchedTape) -> None:
        """What a daemon has under way and what it holds of all others lies within the window; beside it lie the unit
        that fills it, and a packet that tells interests."""
        if not tape.is_wide:
            return
        daemons, window, packet = len(tape.view.members), *tape.engine.bounds
        largest = self._largest.get((tape.me, tape.view.digest), 0)
        share = window // daemons + max(packet, largest) + packet
        if tape.order.own_size > share:
            what = f"{tape.order.own_size} bytes are under way that others may lack, more than {share}"
            self._find(SitesPromise.WINDOW, what, tape)
        held = sum(unit.size for stream in tape.order.streams for unit in stream.units.values())
        if held > daemons * share:
            self._find(SitesPromise.WINDOW, f"{held} bytes of all are held, more than {daemons * share}", tape)


def _pressure(frame: UpdateFrame) -> tuple[bool, int]:
    return frame.is_behind, frame.queue_ms
