"""GroupDesk: the half of a daemon between the engine and its sessions. Pure: the daemon and the simulator drive it.

A session is somebody who sends and receives here: the program that embeds a node, or a client that is connected to a
daemon. Inputs: sessions (`open`, `close`, `request`) and the engine's ordered stream (`deliver`, `install`). Outputs:
what the stream has for sessions and for the driver, in order; by `next_turn`, what is to be submitted now, with its
destinations; and in `interests` what the engine is to be told first, which it answers (`subscribed`).

What the groups themselves have to say is submitted before anything of a session; nothing of a session is submitted
while snapshots are awaited, not even that it has ended; and sessions have their turns, one of each (`turns.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from ordercast.groups.confirmations import ConfirmationOrder
from ordercast.groups.envelope import destinations_of, joins_of
from ordercast.groups.interests import Interests
from ordercast.groups.layer import (
    Announce,
    Changed,
    Confirmed,
    Groups,
    MessageRun,
    Output,
    PassedOver,
    Relisted,
    Warned,
    disconnect_payload,
)
from ordercast.groups.table import Notice
from ordercast.groups.turns import Turn, Turns, portions
from ordercast.model.configuration import Configuration
from ordercast.model.effects import Deliver, Parted, Placed
from ordercast.model.ids import ProcessId
from ordercast.model.inputs import EVERYWHERE
from ordercast.model.service import Service

OWN = 0  # the session number of what the daemon itself has to say

# What comes of the stream, for the driver and the sessions.
DeskOutput = MessageRun | Notice | Confirmed | Warned | PassedOver | Relisted


class GroupDesk:
    def __init__(
        self, me: ProcessId, daemon: str, *, overhead: int, portion_size_max: int, overtakes: bool = False
    ) -> None:
        """`overhead`: what a message takes of the engine's room beside its bytes. Requests larger than
        `portion_size_max` are submitted in portions. `overtakes`: places of messages may be known in another order than
        that of sending."""
        self.groups = Groups(me, daemon)
        self._daemon = daemon
        self._overhead = overhead
        self._portion_size_max = portion_size_max
        self._numbers = 0  # sessions so far
        self._open: set[int] = set()
        self._announcements: deque[bytes] = deque()
        self._turns = Turns()
        self.interests = Interests(daemon, self.groups.table)
        self._changes_seen = 0
        self._confirmations = ConfirmationOrder() if overtakes else None

    # Sessions

    def open(self, name: str) -> tuple[int, str]:
        """Return the number and the full name of a new session. UsageError when the name is bad, or in use. Empty: any
        that is free."""
        number = self._numbers + 1
        while not name and self.groups.is_connected(f"c{number}@{self._daemon}"):
            number += 1
        full = self.groups.connect(name or f"c{number}", number)
        self._numbers = number
        self._open.add(number)
        return number, full

    def close(self, session: int, full: str, groups: int = 0, accepted: Callable[[], None] | None = None) -> None:
        """End a session that was in so many groups: what it has sent is still sent, and then everybody is told."""
        if session in self._open:
            self._open.discard(session)
            if self._confirmations is not None:
                self._confirmations.forget(session)
            self.request(session, (disconnect_payload(full),), accepted=accepted, changes=1 + groups)

    def request(
        self,
        session: int,
        payloads: Sequence[bytes],
        service: Service = Service.AGREED,
        accepted: Callable[[], None] | None = None,
        changes: int = 0,
    ) -> None:
        """Have it sent in this session's turn, after what it has asked for before. `changes`: it is a join or a leave
        of so many groups."""
        joins: tuple[str, ...] = ()
        if changes:
            joins, destinations = joins_of(payloads[0]), EVERYWHERE
            self.interests.ask(joins)
        else:
            destinations = destinations_of(payloads[0]) if payloads else EVERYWHERE
        start = 0
        for end, size in portions(payloads, self._overhead, self._portion_size_max):
            portion, told = (payloads[start:], accepted) if end == len(payloads) else (payloads[start:end], None)
            self._turns.add(Turn(session, portion, service, size, changes, joins, destinations, told))
            start = end

    def drop_requests(self, session: int) -> None:
        """Forget what this session has asked for, but not that it has ended."""
        for turn in self._turns.drop(session, keep=0 if session in self._open else 1):
            self.interests.came(turn.joins, is_join=True)

    @property
    def sessions(self) -> int:
        """How many are open."""
        return len(self._open)

    @property
    def requests_waiting(self) -> int:
        """Requests waiting for engine room or for a merge to finish."""
        return len(self._turns) + len(self._announcements)

    @property
    def requests_size(self) -> int:
        """Bytes of the requests of all sessions that wait."""
        return self._turns.size

    def requests_size_of(self, session: int) -> int:
        """Return the bytes of the requests of one session that wait."""
        return self._turns.size_of(session)

    @property
    def changing(self) -> int:
        """Groups that sessions here are joining or leaving, on their way through the engine."""
        return self._turns.changing

    # The engine's ordered stream

    def deliver(self, deliver: Deliver) -> list[DeskOutput]:
        return self._take(self.groups.deliver(deliver))

    def install(
        self, configuration: Configuration, *, parts: bool = False, is_uneven: bool = False
    ) -> list[DeskOutput]:
        self._turns.begin_again()
        return self._take(self.groups.install(configuration, parts=parts, is_uneven=is_uneven))

    def part(self, parted: Parted) -> list[DeskOutput]:
        return self._take(self.groups.part(parted))

    def placed(self, placed: Placed) -> list[DeskOutput]:
        return self._take(self.groups.placed(placed))

    def subscribed(self, groups: tuple[str, ...]) -> bool:
        """The engine brings what is sent to these groups from now on; return whether a join waited for that."""
        self.interests.subscribed(groups)
        return self._turns.look_again()

    def _take(self, outputs: list[Output]) -> list[DeskOutput]:
        """Keep the announcements and what clients here are in, and return the rest."""
        told: list[DeskOutput] = []
        for output in outputs:
            if isinstance(output, Announce):
                self._announcements.extend(output.payloads)
            elif isinstance(output, Changed):
                self.interests.came(output.groups, is_join=output.is_join)
            elif isinstance(output, Confirmed) and self._confirmations is not None:
                told += self._confirmations.take(output)
            else:
                told.append(output)
        seen = self.groups.own_changes
        if seen != self._changes_seen:
            self._turns.came_back(seen - self._changes_seen)
            self._changes_seen = seen
        return told

    # What is to be submitted

    @property
    def has_something(self) -> bool:
        """It may be worth asking for the next turn, or the engine is to be told of interests."""
        return bool(self._announcements) or self._turns.are_ready or self.interests.has_changes

    def next_turn(self, room: Callable[[int], bool]) -> Turn | None:
        """Return what to submit now, which is no longer here. `room` says whether the engine takes so many bytes."""
        if self._announcements:
            size = len(self._announcements[0]) + self._overhead
            return Turn(OWN, (self._announcements.popleft(),), Service.AGREED, size) if room(size) else None
        if not self.groups.is_steady:
            return None
        turn = self._turns.first(self.interests.is_ready)
        if turn is None or not room(turn.size):
            return None
        if self._confirmations is not None and turn.session in self._open:
            self._confirmations.sent(turn.session, turn.payloads, turn.service)
        return self._turns.take()

    def is_quiet(self) -> bool:
        """Nothing waits, and no snapshots are awaited."""
        return self.groups.is_steady and not self.requests_waiting
