"""Served: one connection of a simulated daemon, which moves bytes between a client and its desk (`session/desk.py`).

What `daemon/clients/connection.py` does with a socket is done here with a pipe. A daemon that is paused reads nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import TYPE_CHECKING

from ordercast.groups.layer import MessageRun
from ordercast.model.errors import WireError
from ordercast.model.ids import Instant
from ordercast.session.desk import COSTLY, Ending, SessionDesk
from ordercast.session.frames import encode_closing
from ordercast.session.handouts import Handout
from ordercast.session.pieces import HEADER, FrameKind
from ordercast.session.reader import FrameReader
from ordercast.sim.group_tally import GroupOccurrence as Row
from ordercast.sim.pipe import Pipe
from ordercast.trace.client_records import ClientId

if TYPE_CHECKING:
    from ordercast.sim.station import Station


class Served:
    up: Pipe  # from the client

    def __init__(self, station: Station, down: Pipe) -> None:
        self.desk = SessionDesk(self, station, station.rules, station.quota, station.counters)
        self.is_closing = False
        self.refusal = ""  # why the client has to go
        self._station = station
        self._down = down
        self._reader = FrameReader(room=station.room, admit=self.desk.half.admit)
        self._received: deque[bytes] = deque()
        self._is_waiting = False  # until its joins and leaves are submitted
        self._has_ended = False  # the client's end of the connection
        self._is_held = False  # all wait for it

    # What the pipe brings

    def greet(self, hello: bytes) -> bytes:
        """Return the answer to a greeting; empty, with `refusal`, when the client is not welcome."""
        self._take(hello)
        return b"" if self.is_closing else b"".join(self.desk.take())

    def arrive(self, data: bytes) -> None:
        self._received.append(data)
        self._station.when_running(self._read)

    def ended(self) -> None:
        self._has_ended = True
        self._station.when_running(self._read)

    @property
    def is_idle(self) -> bool:
        """Nothing is on its way in either direction."""
        is_under_way = not (self.up.is_empty and self._down.is_empty)
        return not (is_under_way or self._received or self._is_waiting or self.waiting_size)

    def _read(self) -> None:
        while self._received and not self._is_waiting:
            self._take(self._received.popleft())
        if self._has_ended and not self._received and not self._is_waiting:
            self.lost()
        self.flush()

    def _take(self, data: bytes) -> None:
        self._reader.room()[: len(data)] = data
        if self.is_closing:
            return
        try:
            self._take_frames(self._reader.received(len(data)))
        except WireError as error:
            self._station.sends_away(self.desk.number, str(error))
            self._leave_with(self.desk.wrong(error))

    def _take_frames(self, frames: Generator[tuple[int, bytes], None, None]) -> None:
        for kind, body in frames:
            if self.is_closing:
                continue
            if kind in COSTLY and not self.desk.may_change:
                self._is_waiting = True
                frames.close()
                break
            if kind == FrameKind.SEND:
                self._station.witness.sends(self._id, len(body) + HEADER.size)
            outcome = self.desk.receive(kind, body)
            if kind == FrameKind.SEND:
                self._station.witness.admitted(self._id, len(body) + HEADER.size)
            if isinstance(outcome, Ending):
                self._leave_with(outcome)

    # What the host tells (see `session/handouts.py`, Session)

    @property
    def _id(self) -> ClientId:
        return ClientId(self._station.process, self.desk.number)

    @property
    def name(self) -> str:
        return self.desk.half.name

    @property
    def waiting_size(self) -> int:
        return self.desk.half.waiting_size

    @property
    def received_size(self) -> int:
        return self._reader.begun_size

    def on_handout(self, handout: Handout) -> None:
        self._station.witness.hands_out(self._id, handout)
        dropped = self.desk.half.outbound.dropped.messages
        is_gone = self._leave_with(self.desk.give(handout))
        if is_gone:
            self._station.tally.count(Row.TOO_SLOW)
        elif self.desk.half.outbound.dropped.messages > dropped:
            self._station.tally.count(Row.DROPPED)
        if not is_gone and self.desk.is_holding and not self._is_held:
            self._look_at_hold()

    def on_confirmed(self, run: MessageRun) -> None:
        self.desk.confirm(run)

    def on_ended(self, why: str) -> None:
        """The simulated daemon ends without a word: its clients see a connection that breaks."""

    def flush(self) -> None:
        if self.is_closing:
            return
        if frames := self.desk.take():
            self._down.write(b"".join(frames))
        if self.desk.half.outbound.size:
            self._station.tally.count(Row.NO_ROOM)
        if self._is_held and not self.desk.is_holding:
            self._station.tally.count(Row.HOLD_ENDED)
            self._let_go()
        if self._is_waiting and self.desk.may_change:
            self._is_waiting = False
            self._take(b"")
            self._read()

    # Those for whom all wait

    def _look_at_hold(self) -> None:
        if self.is_closing:
            return
        if self._leave_with(self.desk.look(Instant(self._station.clock()))):
            self._station.tally.count(Row.HELD_TOO_LONG)
            return
        if not self.desk.is_holding:
            if self._is_held:
                self._station.tally.count(Row.HOLD_GIVEN_UP)
            self._let_go()
            return
        if not self._is_held:
            self._is_held = True
            self._station.tally.count(Row.HOLD_BEGAN)
            self._station.hold(self.desk.number, True)
        self._station.look_later(self._look_at_hold)

    def _let_go(self) -> None:
        if self._is_held:
            self._is_held = False
            self._station.hold(self.desk.number, False)

    # The end

    def lost(self) -> None:
        """The connection is gone."""
        self._end()
        self._down.finish()

    def _leave_with(self, ending: Ending | None) -> bool:
        if ending is None:
            return False
        if not self.is_closing:
            self.refusal = ending.why
            self._end()
            self._down.write(encode_closing(ending.why) if ending.why else b"")
            self._down.finish()
        return True

    def _end(self) -> None:
        if not self.is_closing:
            self.is_closing = True
            self._let_go()
            self.desk.end()
