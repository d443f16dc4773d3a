"""Named timers with one deadline each. The only clock is the `now` that inputs bring."""

from __future__ import annotations

from enum import IntEnum

from ordercast.model.ids import Instant


class Timer(IntEnum):
    """Due timers fire in order of deadline, then of this list."""

    LOOP = 0  # a token that a member sends to itself (a ring of one)
    TOKEN_RETRANSMIT = 1
    TOKEN_LOSS = 2
    JOIN = 3
    CONSENSUS = 4
    ANNOUNCE = 5
    MERGE = 6
    REST = 7
    WAKE = 8
    STALL = 9  # the node's own, in every state: does something wait in vain?
    STORAGE = 10
    CLOCK = 11  # the node's own, in a network of rings: something waits for the bound of the clock to be stored
    MARK = 12  # something has to be said: an acknowledgement, a sign of life
    ASK = 13  # something that is missing has to be asked for, or sent again in another's place
    SILENCE = 14  # has anybody not been heard, or not received, for too long?
    ADAPT = 15  # do the senders' shares still suit them?


# Expiry of these blames somebody else, or the disk; after a pause of our own they start anew instead.
BLAMING = (Timer.TOKEN_LOSS, Timer.CONSENSUS, Timer.STORAGE, Timer.CLOCK)


OF_NODE = (Timer.STALL, Timer.CLOCK)  # states know nothing of them


class Timers:
    """The book of deadlines."""

    __slots__ = ("_deadlines", "earliest")

    def __init__(self) -> None:
        self._deadlines: dict[Timer, Instant] = {}
        self.earliest: Instant | None = None

    def arm(self, timer: Timer, deadline: int) -> None:
        before = self._deadlines.get(timer)
        self._deadlines[timer] = Instant(deadline)
        if self.earliest is None or deadline <= self.earliest:
            self.earliest = Instant(deadline)
        elif before == self.earliest:
            self._refresh()

    def cancel(self, *timers: Timer) -> None:
        is_stale = False
        for timer in timers:
            deadline = self._deadlines.pop(timer, None)
            is_stale = is_stale or (deadline is not None and deadline == self.earliest)
        if is_stale:
            self._refresh()

    def only(self, *timers: Timer) -> None:
        """Cancel all but these, of those that states have."""
        self.cancel(*(timer for timer in Timer if timer not in timers and timer not in OF_NODE))

    def is_armed(self, timer: Timer) -> bool:
        return timer in self._deadlines

    def deadline(self, timer: Timer) -> Instant | None:
        return self._deadlines.get(timer)

    def pop_due(self, now: Instant) -> Timer | None:
        """The first timer that is due, disarmed; None when none is."""
        if self.earliest is None or self.earliest > now:
            return None
        deadline, timer = min((deadline, timer) for timer, deadline in self._deadlines.items())
        if deadline > now:
            return None
        self.cancel(timer)
        return timer

    def _refresh(self) -> None:
        self.earliest = min(self._deadlines.values(), default=None)
