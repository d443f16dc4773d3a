"""Repair: what is missing and asked for, and what is sent again for others.

Numbers that were heard of and are not here are asked for after a while; frontiers that hold up packets, and
acknowledgements that are waited for, when their owners take longer than usual to speak; then again and again, each time
later. The originator answers at once; the i-th member behind it in ring order answers after i times as long, if it has
what is asked for and has not seen it answered: so repair works when the originator is dead. Whoever asks for the same a
second time does not hear the originator: then only answers of others count.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ordercast.model.ids import Instant
from ordercast.order.adaptive.codec import ASKS_MAX, Wish
from ordercast.order.adaptive.merge import Merge
from ordercast.order.adaptive.slots import Place

RANGE_MAX = 64  # packets that are asked for in one wish
A_MARK = 0  # in the place of a number
SMOOTHING = 16  # how long things take is a moving average over about so many
LONGER = 3  # what takes so many times longer than usual is asked for
PATIENCE = 10  # and at the latest after so many times `ask_ns`


@dataclass(slots=True)
class Want:
    progress: tuple[int, int, int]  # what was here when it was noticed: if that changes, what is waited for came
    due: Instant
    delay: int
    since: Instant


class Pending(NamedTuple):
    """Something to be sent in another's place, unless others do."""

    due: Instant
    tick: int  # a mark must be later than this
    is_again: bool  # what its originator says does not reach the one who asks


class Answers(NamedTuple):
    """What is to be sent for others now."""

    packets: list[tuple[int, int]]  # originator and number
    marks: list[int]  # originators


@dataclass(slots=True)
class Repair:
    ask_ns: int
    delay_max: int  # between two wishes for the same
    pending_max: int
    wants: dict[int, Want] = field(default_factory=dict)  # by member
    pending: dict[tuple[int, int], Pending] = field(default_factory=dict)  # by originator and number
    usual: int = 0  # how long what was waited for took to come, smoothed
    _asked: dict[tuple[int, int, int], int] = field(default_factory=dict)  # by whom, whose, which: after which tick
    _recent: dict[tuple[int, int], Instant] = field(default_factory=dict)  # when packets were last sent again

    def deadline(self) -> Instant | None:
        if not self.wants and not self.pending:
            return None
        due = [want.due for want in self.wants.values()]
        due += [pending.due for pending in self.pending.values()]
        return min(due, default=None)

    def review(self, merge: Merge, awaited: Place, now: Instant) -> None:
        """Notice what is missing, and what came. Up to the place awaited others should say that they know all."""
        is_whole = merge.highest <= merge.aru and awaited <= merge.safe
        for stream in merge.streams if is_whole else ():
            is_whole = is_whole and stream.high == stream.last
        if is_whole:
            if self.wants:
                for ended in self.wants.values():
                    self._ended(ended, now)
                self.wants.clear()
            return
        is_awaited, wants, patience = awaited > merge.safe, self.wants, self.patience()
        # Where acknowledgements are gathered only one hears them: others ask that one what it knows of all.
        teller = None if merge.teller == merge.me else merge.teller
        for member, stream in enumerate(merge.streams):
            frontier, aru = merge.frontiers[member], merge.arus[member]
            holds_up, lacks = frontier <= merge.highest, stream.high > stream.last
            owes_aru = is_awaited and (aru < awaited if teller is None else member == teller)
            want = wants.get(member)
            if member == merge.me or not (holds_up or lacks or owes_aru):
                if want is not None:
                    self._ended(want, now)
                    del wants[member]
                continue
            progress = stream.last, frontier, 0 if holds_up else aru
            if want is None or want.progress != progress:
                if want is not None:
                    self._ended(want, now)
                delay = self.ask_ns if lacks else patience
                wants[member] = Want(progress, Instant(now + delay), delay, now)

    def _ended(self, want: Want, now: Instant) -> None:
        """Learn how long one waits for the word of another."""
        self.usual += (now - want.since - self.usual) // SMOOTHING

    def patience(self) -> int:
        """Return how long the word of a member may take before it is asked for: hosts that are busy answer late, and
        questions would only keep them busier."""
        return min(max(self.ask_ns, LONGER * self.usual), PATIENCE * self.ask_ns)

    def is_blocked(self, merge: Merge, now: Instant) -> bool:
        """Whether a member has held up the order for long: what is sent now cannot be delivered, and would have to be
        exchanged if that member is gone."""
        return bool(self.wants) and any(
            now - want.since >= self.delay_max and merge.frontiers[member] <= merge.highest
            for member, want in self.wants.items()
        )

    def due_wishes(self, merge: Merge, now: Instant) -> list[Wish]:
        """Return what is to be asked for now."""
        wishes: list[Wish] = []
        for member, want in self.wants.items():
            if want.due > now:
                continue
            want.delay = min(2 * want.delay, self.delay_max)
            want.due = Instant(now + want.delay)
            stream = merge.streams[member]
            ranges = stream.missing(ASKS_MAX // len(merge.streams) or 1)
            wishes += [Wish(member, first, min(last, first + RANGE_MAX - 1)) for first, last in ranges]
            if not ranges:
                wishes.append(self.later_mark(merge, member))
        return wishes[:ASKS_MAX]

    @staticmethod
    def later_mark(merge: Merge, member: int) -> Wish:
        mark = merge.streams[member].mark
        return Wish(member, mark.tick if mark is not None else 0, 0)

    def unanswered(self, wish: Wish, now: Instant) -> list[int]:
        """Return the numbers of a wish that were not sent again just now: one answer is for all who ask, and for all
        copies of what they ask."""
        numbers = range(wish.first, min(wish.last, wish.first + RANGE_MAX - 1) + 1)
        since = Instant(now - self.ask_ns)
        return [number for number in numbers if self._recent.get((wish.originator, number), since) <= since]

    def asked(self, asker: int, wish: Wish, merge: Merge, now: Instant) -> None:
        """Somebody else's stream is asked for: wait whether others answer."""
        turn = (merge.me - wish.originator) % len(merge.streams)
        if not wish.last:
            self._wait(asker, wish.originator, A_MARK, Instant(now + turn * self.patience()), wish.first)
            return
        at = Instant(now + turn * self.ask_ns)
        for number in self.unanswered(wish, now):
            if merge.streams[wish.originator].has(number):
                self._wait(asker, wish.originator, number, at, 0)

    def _wait(self, asker: int, originator: int, number: int, at: Instant, tick: int) -> None:
        is_again = self._asked.get((asker, originator, number)) == tick
        if len(self._asked) >= self.pending_max:
            self._asked.clear()
        self._asked[asker, originator, number] = tick
        before = self.pending.get((originator, number))
        if before is not None:
            self.pending[originator, number] = before._replace(is_again=before.is_again or is_again)
        elif len(self.pending) < self.pending_max:
            self.pending[originator, number] = Pending(at, tick, is_again)

    def answered(self, originator: int, first: int, count: int, now: Instant, *, is_third: bool) -> None:
        """The originator, or another, sent these packets again."""
        if len(self._recent) + count > self.pending_max:
            self._recent = {key: at for key, at in self._recent.items() if at > now - self.ask_ns}
        for number in range(first, first + count):
            pending = self.pending.get((originator, number))
            if pending is not None and (is_third or not pending.is_again):
                del self.pending[originator, number]
            self._recent[originator, number] = now

    def spoken(self, originator: int, tick: int, *, is_third: bool) -> None:
        """A mark was multicast by its originator, or passed on by another."""
        pending = self.pending.get((originator, A_MARK))
        if pending is not None and pending.tick < tick and (is_third or not pending.is_again):
            del self.pending[originator, A_MARK]

    def due_answers(self, now: Instant) -> Answers:
        """Return what nobody else has answered in time."""
        due = [key for key, pending in self.pending.items() if pending.due <= now]
        answers = Answers([], [])
        for originator, number in due:
            del self.pending[originator, number]
            if number == A_MARK:
                answers.marks.append(originator)
            else:
                answers.packets.append((originator, number))
        return answers
