"""Handouts: what the ordered stream has for the sessions of a daemon, given to those of them that are open.

What several sessions get at the same place of the stream is one `Handout`, and its frame is made once for all of them.
"""

from __future__ import annotations

from typing import Protocol

from ordercast.groups.runs import Confirmed, MessageRun
from ordercast.groups.table import Notice
from ordercast.session.batches import encode_messages
from ordercast.session.news import NewsEncoder


class Handout:
    """Something for several sessions. The frame of messages is made once, when the first asks for it."""

    __slots__ = ("_frame", "content")

    def __init__(self, content: MessageRun | Notice, frame: bytes | None = None) -> None:
        self.content = content
        self._frame = frame

    @property
    def messages(self) -> int:
        return len(self.content.payloads) if isinstance(self.content, MessageRun) else 0

    def frame(self) -> bytes:
        if self._frame is None:
            assert isinstance(self.content, MessageRun)
            self._frame = encode_messages(self.content)
        return self._frame


class Session(Protocol):
    """Somebody who sends and receives at a daemon: a client, or the program that embeds the node."""

    @property
    def name(self) -> str:
        """In full."""

    @property
    def waiting_size(self) -> int:
        """Bytes that it has not taken."""

    @property
    def received_size(self) -> int:
        """Bytes of what it has not said to the end."""

    def on_handout(self, handout: Handout) -> None: ...
    def on_confirmed(self, run: MessageRun) -> None: ...
    def on_ended(self, why: str) -> None:
        """The daemon has ended."""

    def flush(self) -> None:
        """Nothing more comes for now."""


class Handouts:
    """The open sessions of a daemon, and which of them have something to write."""

    def __init__(self) -> None:
        self.sessions: dict[int, Session] = {}  # by number
        self.touched: dict[Session, None] = {}  # to be flushed
        self._encoder = NewsEncoder()

    def give(self, output: MessageRun | Notice | Confirmed) -> None:
        if isinstance(output, Confirmed):
            if (session := self.sessions.get(output.session)) is not None:
                session.on_confirmed(output.run)
                self.touched[session] = None
            return
        frame = None if isinstance(output, MessageRun) else self._encoder.encode(output.news)
        handout = Handout(output, frame)
        for number in output.sessions:
            if (session := self.sessions.get(number)) is not None:
                session.on_handout(handout)
                self.touched[session] = None

    def flush(self) -> None:
        """Let all write that have something to write: one write for all that came meanwhile."""
        touched, self.touched = self.touched, {}
        for session in touched:
            session.flush()
