"""What waits for a client: in order, within its credit, and within a bound beyond which its policy decides.

Messages may be dropped, where the client has chosen that; a notice then stands in their place. Views are never dropped:
who follows them must see them all. A client may ask that all wait for it (`is_holding`): long before it would be lost,
and only as long as it makes progress (`look`): while it holds nobody sends, so a reader that is nearly as fast as
the others has soon read what waits, and one that reads a little now and then would stop everybody for good.

A client that is behind with reading waits with its own messages (`is_behind`): those who send as fast as they can to a
group of their own would otherwise run into the bound together. One that reads nothing at all waits for itself in vain;
it gets its way at the next look (`look_at_lag`), and meets the bound.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from ordercast.model.events import Dropped
from ordercast.model.ids import SECOND, Instant
from ordercast.session.batches import encode_dropped
from ordercast.session.frames import SlowPolicy

MIB = 1 << 20
QUEUE_SIZE_MAX = {
    SlowPolicy.WAIT: 64 * MIB,
    SlowPolicy.DROP: 8 * MIB,
    SlowPolicy.DISCONNECT: 8 * MIB,
    SlowPolicy.HOLD: 64 * MIB,
}
BEHIND_FROM, BEHIND_UNTIL = 4, 16  # a client is behind from a quarter of the bound on, until a sixteenth is left
HOLD_MAX_NS = 10 * SECOND  # in which what waits must have fallen by half, or the client has to go
STILL_MAX_NS = 2 * SECOND  # a client that takes nothing for so long is waited for no longer
UNLIMITED = 1 << 62

# A frame and how many messages are in it, none if it must not be dropped; or what was dropped here.
_Waiting = tuple[bytes, int] | Dropped


@dataclass(slots=True)
class Hold:
    """All wait for this client."""

    since: Instant
    size: int  # bytes that waited when it was last found to have made progress
    progress_at: Instant
    moved_at: Instant  # when it was last found to have taken something


class Outbound:
    def __init__(
        self,
        policy: SlowPolicy,
        credit: int,
        size_max: int | None = None,
        hold_max_ns: int = HOLD_MAX_NS,
        still_max_ns: int | None = None,
    ) -> None:
        self.policy = policy
        self.size_max = QUEUE_SIZE_MAX[policy] if size_max is None else size_max
        self.size = 0  # bytes that wait
        self._kept_size = 0  # of these, what must not be dropped
        self.dropped = Dropped(0, 0)  # in all
        self.is_behind = False  # this client should wait with its own messages
        self._may_wait = policy is not SlowPolicy.DROP
        self.is_holding = False  # all should wait for this client
        self._may_hold = policy is SlowPolicy.HOLD
        self.hold: Hold | None = None  # since it was first looked at
        self._hold_max_ns = hold_max_ns
        self._still_max_ns = STILL_MAX_NS if still_max_ns is None else still_max_ns
        self._taken = 0  # frames, since the last look at one that holds
        self._has_taken = False  # anything, since the last look at its lag
        self._credit = credit
        self._waiting: deque[_Waiting] = deque()

    def put(self, frame: bytes, messages: int = 0) -> str | None:
        """Why the client has to be disconnected, if it has."""
        self._waiting.append((frame, messages))
        self.size += len(frame)
        self._kept_size += 0 if messages else len(frame)
        if self.size > self.size_max // BEHIND_FROM:
            self.is_behind, self.is_holding = self._may_wait, self._may_hold
        if self.policy is SlowPolicy.DROP:
            if self.size > self.size_max:
                self._drop()
            # Views leave half of the room to messages, so that whenever some are dropped they are many.
            return _too_slow(self._kept_size, "bytes of views", self.size_max // 2, self.policy)
        return _too_slow(self.size, "bytes", self.size_max, self.policy)

    def take(self, size_max: int = UNLIMITED) -> list[bytes]:
        """What may be written now. The last frame may exceed the credit, which is then paid off first, and `size_max`,
        beyond which nothing more is taken."""
        frames: list[bytes] = []
        least = self._credit - size_max
        while self._credit > 0 and self._credit > least and self._waiting:
            waiting = self._waiting.popleft()
            if isinstance(waiting, Dropped):
                frame = encode_dropped(waiting)
            else:
                frame, messages = waiting
                self.size -= len(frame)
                if not messages:
                    self._kept_size -= len(frame)
            self._credit -= len(frame)
            frames.append(frame)
        if frames:
            self._taken += len(frames)
            self._has_taken = True
        if self.size <= self.size_max // BEHIND_UNTIL:
            self.is_behind, self._may_wait = False, self.policy is not SlowPolicy.DROP
            self.is_holding, self._may_hold, self.hold = False, self.policy is SlowPolicy.HOLD, None
        return frames

    def look(self, now: Instant) -> str | None:
        """When it begins to hold, and a few times a second while it does: why the client has to be disconnected, if it
        has. Nobody waits for a client that takes nothing; it may hold again when it has caught up."""
        if not self.is_holding:
            return None
        taken, self._taken = self._taken, 0
        hold = self.hold
        if hold is None:
            self.hold = Hold(now, self.size, now, now)
            return None
        if taken:
            hold.moved_at = now
        elif now - hold.moved_at >= self._still_max_ns:
            self.is_holding, self._may_hold, self.hold = False, False, None
            return None
        if self.size <= hold.size // 2:
            hold.size, hold.progress_at = self.size, now
        elif now - hold.progress_at >= self._hold_max_ns:
            return (
                f"the client was too slow: everybody waited for it, and of {hold.size:,} bytes {self.size:,} still "
                f"wait after {(now - hold.progress_at) / SECOND:.1f} s, where half had to be read within "
                f"{self._hold_max_ns / SECOND:g} s (policy hold)"
            )
        hold.size = max(hold.size, self.size)  # what was on its way when all were stopped
        return None

    def look_at_lag(self) -> bool:
        """Tell, a few times a minute, whether a client that is behind and has taken nothing since waits no longer."""
        is_still = self.is_behind and not self._has_taken
        if is_still:
            self.is_behind = self._may_wait = False
        self._has_taken = False
        return is_still

    def add_credit(self, size: int) -> None:
        self._credit += size

    def _drop(self) -> None:
        """The oldest messages, down to three quarters."""
        kept: deque[_Waiting] = deque()
        while self._waiting and self.size > self.size_max * 3 // 4:
            waiting = self._waiting.popleft()
            if not isinstance(waiting, Dropped) and waiting[1]:
                frame, messages = waiting
                self.size -= len(frame)
                waiting = Dropped(messages, len(frame))
                self.dropped = _sum(self.dropped, waiting)
            if isinstance(waiting, Dropped) and kept and isinstance(kept[-1], Dropped):
                waiting = _sum(kept.pop(), waiting)
            kept.append(waiting)
        self._waiting = kept + self._waiting


def _too_slow(size: int, what: str, size_max: int, policy: SlowPolicy) -> str | None:
    if size <= size_max:
        return None
    return (
        f"the client was too slow: {size:,} {what} waited for it, at most {size_max:,} may "
        f"(policy {policy.name.lower()})"
    )


def _sum(first: _Waiting, second: Dropped) -> Dropped:
    assert isinstance(first, Dropped)
    return Dropped(first.messages + second.messages, first.size + second.size)
