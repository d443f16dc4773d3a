"""Turns: what the sessions of a daemon have asked to be sent, handed to the engine in turns, one of each.

Nobody waits for anybody else: a session that asks for much has its next turn after all others have had one. Joins and
leaves are small and cost every daemon much: only so many groups are changing at a time. A session whose next request is
a change too many is held up, and so is one with a join that waits for the engine (`interests.py`); the messages of
others pass them by.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ordercast.model.inputs import EVERYWHERE
from ordercast.model.service import Service

CHANGING_MAX = 1000  # groups that are being joined or left: each keeps every daemon for some ten microseconds


class Turn(NamedTuple):
    """Messages of one session that are submitted together."""

    session: int
    payloads: Sequence[bytes]
    service: Service
    size: int  # in the engine's queue
    changes: int = 0  # groups that are joined or left; none: messages
    joins: tuple[str, ...] = ()  # groups that are joined
    destinations: tuple[str, ...] = EVERYWHERE
    accepted: Callable[[], None] | None = None  # called by whoever has submitted it


class Turns:
    def __init__(self) -> None:
        self._queues: dict[int, deque[Turn]] = {}  # by session
        self._sizes: dict[int, int] = {}  # bytes of these
        self._ready: deque[int] = deque()  # sessions that have some
        self._held_up: deque[int] = deque()  # the same, whose next one has to wait for the engine, or for other changes
        self._changing: deque[int] = deque()  # joins and leaves that are on their way: how many groups each

    def __len__(self) -> int:
        """Return how many turns wait."""
        return sum(map(len, self._queues.values()))

    @property
    def are_ready(self) -> bool:
        """Some session may have its turn now."""
        return bool(self._ready)

    @property
    def size(self) -> int:
        """Bytes that wait, of all sessions."""
        return sum(self._sizes.values())

    def size_of(self, session: int) -> int:
        """Return the bytes that this session has asked to be sent, and that wait."""
        return self._sizes.get(session, 0)

    @property
    def changing(self) -> int:
        """Groups that sessions here are joining or leaving, on their way through the engine."""
        return sum(self._changing)

    def add(self, turn: Turn) -> None:
        """Let it wait behind what its session has asked for before."""
        session = turn.session
        queue = self._queues.setdefault(session, deque())
        if not queue:
            self._ready.append(session)
        queue.append(turn)
        self._sizes[session] = self._sizes.get(session, 0) + turn.size

    def first(self, may_join: Callable[[tuple[str, ...]], bool]) -> Turn | None:
        """Return the turn that is next. Sessions with a change too many step aside, and so do those with a join that
        the engine is not ready for."""
        while self._ready:
            turn = self._queues[self._ready[0]][0]
            if not turn.changes:
                return turn
            is_crowded = self._changing and self.changing + turn.changes > CHANGING_MAX
            if not is_crowded and may_join(turn.joins):
                return turn
            self._held_up.append(self._ready.popleft())
        return None

    def take(self) -> Turn:
        """Return the turn that `first` has told, which is no longer here; its session is the last in the row now."""
        session = self._ready.popleft()
        queue = self._queues[session]
        turn = queue.popleft()
        self._take_back(session, turn.size)
        if queue:
            self._ready.append(session)
        else:
            del self._queues[session]
        if turn.changes:
            self._changing.append(turn.changes)
        return turn

    def drop(self, session: int, keep: int = 0) -> list[Turn]:
        """Forget what this session has asked for, but so many of the last; return what is forgotten."""
        queue = self._queues.get(session)
        dropped: list[Turn] = []
        while queue is not None and len(queue) > keep:
            dropped.append(queue.popleft())
            self._take_back(session, dropped[-1].size)
        if queue is not None and not queue:
            del self._queues[session]
            (self._ready if session in self._ready else self._held_up).remove(session)
        return dropped

    def came_back(self, changes: int) -> None:
        """So many joins and leaves have come back, in the order in which they were sent."""
        for _ in range(min(changes, len(self._changing))):
            self._changing.popleft()
        self.look_again()

    def look_again(self) -> bool:
        """Let sessions that were held up go on; return whether there were any."""
        were_any = bool(self._held_up)
        self._ready.extend(self._held_up)
        self._held_up.clear()
        return were_any

    def begin_again(self) -> None:
        """A configuration ends: whatever became of joins and leaves on their way, nobody waits for them for ever."""
        self.came_back(len(self._changing))

    def _take_back(self, session: int, size: int) -> None:
        left = self._sizes[session] - size
        if left:
            self._sizes[session] = left
        else:
            del self._sizes[session]


def portions(payloads: Sequence[bytes], overhead: int, size_max: int) -> Iterator[tuple[int, int]]:
    """Yield where to cut, and the size of each portion, so that each fits into `size_max`; one alone may be larger."""
    total = sum(map(len, payloads)) + overhead * len(payloads)
    if total <= size_max:
        if payloads:
            yield len(payloads), total
        return
    size = 0
    for at, data in enumerate(payloads):
        cost = len(data) + overhead
        if size and size + cost > size_max // 2:
            yield at, size
            size = 0
        size += cost
    yield len(payloads), size
