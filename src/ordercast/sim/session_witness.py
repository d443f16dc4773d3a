"""Judges the sessions between simulated clients and daemons, from both ends, which only the simulator sees.

What a client reads is what its daemon has handed out to it, in this order. Messages are missing only where the client
is told how many, and only if it has chosen that. Neither side has more under way than the other has given it credit
for, but for the frame with which the credit ends. And the desk submits nothing of clients while snapshots are awaited.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field

from ordercast.checker.verdict import Verdict
from ordercast.groups.desk import OWN
from ordercast.groups.layer import MessageRun
from ordercast.groups.turns import Turn
from ordercast.model.events import Batch, Dropped, GroupNews, Piece, Reconnected
from ordercast.model.ids import Position, ProcessId
from ordercast.model.promises import SessionPromise
from ordercast.session.client_half import RECEIVE_CREDIT
from ordercast.session.daemon_half import SEND_CREDIT
from ordercast.session.frames import SlowPolicy
from ordercast.session.handouts import Handout
from ordercast.sim.findings import Findings
from ordercast.sim.options import SimOptions
from ordercast.trace.client_records import ClientId


@dataclass(slots=True)
class _Track:
    """One session."""

    handed: deque[Position | GroupNews] = field(default_factory=deque)  # what was handed out, and not read yet
    under_way: deque[int] = field(default_factory=deque)  # sizes of frames that were not submitted yet
    largest: int = 0  # of all frames that came


class SessionWitness:
    def __init__(self, options: SimOptions) -> None:
        self._window = options.send_credit or SEND_CREDIT
        self._room = options.receive_credit or RECEIVE_CREDIT
        self._tracks: dict[ClientId, _Track] = defaultdict(_Track)
        self._findings = Findings()

    # The daemon's end

    def hands_out(self, client: ClientId, handout: Handout) -> None:
        handed, content = self._tracks[client].handed, handout.content
        if isinstance(content, MessageRun):
            handed.extend(content.places.at(index) for index in range(len(content.payloads)))
        else:
            handed.append(content.news)

    def sends(self, client: ClientId, size: int) -> None:
        """A frame with messages has come to the daemon."""
        self._tracks[client].under_way.append(size)

    def admitted(self, client: ClientId, size: int) -> None:
        """The daemon has not refused the frame: there was credit for it, beside what was not submitted yet."""
        track = self._tracks[client]
        track.largest = max(track.largest, size)
        if sum(track.under_way) > max(self._window, track.largest):
            what = f"{sum(track.under_way)} bytes are under way, where the window is {self._window}"
            self._found(SessionPromise.WINDOW, client, what)

    def accepts(self, client: ClientId) -> None:
        """The oldest of these was submitted."""
        self._tracks[client].under_way.popleft()

    def submits(self, process: ProcessId, turn: Turn, *, is_steady: bool) -> None:
        if turn.session != OWN and not is_steady:
            what = "something is submitted while snapshots are awaited"
            self._found(SessionPromise.GATE, ClientId(process, turn.session), what)

    # The client's end

    def receives(self, client: ClientId, inbox_size: int, size: int) -> None:
        """So much has come, of which the last piece has `size`, and was not read yet."""
        if inbox_size - size >= self._room:
            what = f"{inbox_size} bytes have come and were not read, where there was credit for {self._room}"
            self._found(SessionPromise.WINDOW, client, what)

    def reads(self, client: ClientId, policy: SlowPolicy, piece: Piece) -> None:
        handed = self._tracks[client].handed
        match piece:
            case Dropped():
                if policy is not SlowPolicy.DROP:
                    what = f"{piece.messages} messages were dropped, where it had chosen to {policy.name.lower()}"
                    self._found(SessionPromise.STREAM, client, what)
                for _ in range(piece.messages):
                    self._compare(client, handed, None)
            case Batch():
                for message in piece:
                    self._compare(client, handed, message.position)
            case Reconnected():
                pass  # is another client here
            case _:
                self._compare(client, handed, piece)

    def _compare(
        self, client: ClientId, handed: deque[Position | GroupNews], read: Position | GroupNews | None
    ) -> None:
        """None: any message, which was dropped."""
        expected = handed.popleft() if handed else None
        is_right = isinstance(expected, Position) if read is None else expected == read
        if not is_right and not self._findings.is_broken(SessionPromise.STREAM):
            what = f"{expected} was next, and {'a dropped message' if read is None else read} came"
            self._found(SessionPromise.STREAM, client, what)

    # The end

    def ended(self, connected: list[ClientId]) -> None:
        """All has settled: those who are connected have read everything."""
        for client in connected:
            if self._tracks[client].handed:
                what = f"{len(self._tracks[client].handed)} pieces were handed out, and never came"
                self._found(SessionPromise.STREAM, client, what)

    def _found(self, promise: SessionPromise, client: ClientId, what: str) -> None:
        self._findings.add(promise, f"{client}: {what}", client.process)

    def verdicts(self) -> list[Verdict]:
        """Return a verdict on what was broken."""
        return self._findings.broken()
