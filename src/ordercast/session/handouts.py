"""Handouts: what several sessions get at the same place of the stream, its frame made once for all of them."""

from __future__ import annotations

from ordercast.groups.layer import MessageRun
from ordercast.groups.table import Notice
from ordercast.session.batches import encode_messages


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
