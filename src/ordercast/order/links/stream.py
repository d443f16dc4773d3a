"""A link over TCP, the half that is pure: payloads as bytes of a connection, for paths that let nothing else through
and for comparisons. The driver makes the connection, writes what `flush` returns and hands over what it reads.

The face is that of `Link`, with chunks of bytes in the place of packets. Each payload goes behind its length (4), and a
length of 0 says that its sender lives (`BLANK`). Before the first of them stands who speaks: a clear head, and behind
it kind 1 and the tag of the epoch 8. What a connection brought of a payload when it ended is dropped. A connection that
was reset, or timed out, is a link that failed. TCP blocks: bytes that are lost on the way hold up all behind them.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from typing import Final

from ordercast.model.errors import UsageError, WireError
from ordercast.model.ids import Duration, Instant, ProcessId
from ordercast.order.links.link import LinkFailure, Tags
from ordercast.wire.head import HEAD_SIZE, kind_of, transmitter_of, with_head

STREAM_KIND: Final = 36  # links, and greetings before them, have lower ones
_OPENING: Final = struct.Struct(">BQ")
_LENGTH: Final = struct.Struct(">L")
_OPENING_SIZE: Final = HEAD_SIZE + _OPENING.size
BLANK: Final = _LENGTH.pack(0)  # says that its sender lives


class StreamLink:
    """One end of a link over a connection. Its sources of input are the engine, bytes that came, and time."""

    def __init__(
        self,
        cluster: bytes,
        me: ProcessId,
        peer: ProcessId,
        tags: Tags,
        now: Instant,
        payload_max: int,
        silence_ns: Duration,
    ) -> None:
        self.peer = peer
        self.tags = tags
        self.failure: LinkFailure | None = None
        self.heard_at = now
        self.waiting = 0  # bytes of payloads that were not handed to the connection
        self._cluster = cluster
        self._payload_max = payload_max
        self._silence_ns = silence_ns
        self._urgent: deque[bytes] = deque()
        self._usual: deque[bytes] = deque()
        self._opening: bytes = with_head(cluster, me, _OPENING.pack(STREAM_KIND, tags.mine))
        self._is_known = False  # the other side has said who it is
        self._came = bytearray()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing waits here; what the connection still has is not known."""
        return not self.waiting

    # From the engine

    def send(self, payloads: Iterable[bytes], is_urgent: bool = False) -> None:
        """Let payloads wait for `flush`; UsageError for one that is empty or too large."""
        queue = self._urgent if is_urgent else self._usual
        for payload in payloads:
            if not 0 < len(payload) <= self._payload_max:
                raise UsageError(f"a link carries payloads of 1 to {self._payload_max} bytes, not {len(payload)}")
            queue.append(payload)
            self.waiting += len(payload)

    def withdraw(self) -> list[bytes]:
        """Take back the payloads that are not urgent and were not handed to the connection."""
        payloads = list(self._usual)
        self._usual.clear()
        self.waiting -= sum(map(len, payloads))
        return payloads

    def hear(self, now: Instant) -> None:
        """Know that the other process lives."""
        self.heard_at = now

    def fail(self, why: LinkFailure) -> None:
        """End the link; the first reason counts."""
        self.failure = self.failure or why

    # The connection

    def receive(self, chunk: bytes, now: Instant) -> list[bytes]:
        """Take bytes; return the payloads that they complete. A WireError ends the link: nothing behind bytes that are
        wrong can be read."""
        if self.failure is not None:
            raise WireError("bytes of a link that failed")
        self._came += chunk
        try:
            if not self._is_known and not self._meet():
                return []
            payloads = self._payloads()
        except WireError:
            self.fail(LinkFailure.CONTRADICTION)
            raise
        self.heard_at = now
        return payloads

    def _meet(self) -> bool:
        """Read who speaks; tell whether all of it came."""
        if len(self._came) < _OPENING_SIZE:
            return False
        opening = bytes(self._came[:_OPENING_SIZE])
        del self._came[:_OPENING_SIZE]
        kind_of(opening, self._cluster)
        kind, tag = _OPENING.unpack_from(opening, HEAD_SIZE)
        if (kind, transmitter_of(opening), tag) != (STREAM_KIND, self.peer, self.tags.theirs):
            raise WireError("a connection of another epoch of the link, or of another process")
        self._is_known = True
        return True

    def _payloads(self) -> list[bytes]:
        payloads, at, came = [], 0, self._came
        while at + _LENGTH.size <= len(came):
            (size,) = _LENGTH.unpack_from(came, at)
            if size > self._payload_max:
                raise WireError(f"a payload of {size} bytes, more than the limit of {self._payload_max}")
            if at + _LENGTH.size + size > len(came):
                break
            at += _LENGTH.size
            if size:
                payloads.append(bytes(came[at : at + size]))
            at += size
        del came[:at]
        return payloads

    def flush(self, now: Instant, room: int) -> bytes:
        """Return what the connection is to write now, about as many bytes as it has room for. The rest waits here,
        where urgent payloads overtake it. Time may end the link; then nothing is written."""
        if self._silence_ns and now >= self.heard_at + self._silence_ns:
            self.fail(LinkFailure.SILENT)
        if self.failure is not None:
            return b""
        pieces, self._opening = [self._opening], b""
        for queue in (self._urgent, self._usual):
            while queue and room > 0:
                payload = queue.popleft()
                pieces += (_LENGTH.pack(len(payload)), payload)
                room -= len(payload) + _LENGTH.size
                self.waiting -= len(payload)
        return b"".join(pieces)

    @property
    def next_deadline(self) -> Instant | None:
        """When `flush` is to be called, if nothing happens before."""
        if self.failure is not None or not self._silence_ns:
            return None
        return Instant(self.heard_at + self._silence_ns)
