"""Sees that nobody waits for others' places without asking for them. (Paper 004: blocked only when no case holds)

A process waits when the lowest packet that it has and has not delivered asks for no safe delivery and is no part of a
message: then places below it are not known yet. Whoever waits longer than repair takes must have asked of late, or
something must have been delivered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ordercast.model.effects import Broadcast, Effect
from ordercast.model.ids import ProcessId
from ordercast.model.inputs import Packet
from ordercast.model.notes import Moved
from ordercast.order.baselines.base import OPERATIONAL
from ordercast.sim.options import SimOptions
from ordercast.trace.records import DeliveredBatch, Event, Installed, Noted
from ordercast.wire.head import KIND_AT
from ordercast.wire.header import FLAGS_AT, HEADER, HEADER_SIZE, PART_SHIFT, SAFE, digest_of

DIRECT, ASK, CONTROL = 9, 11, 64
PARTS = 3  # mask of the bits that say what part of its message a packet is
PATIENCE = 6  # times the longest interval between two requests for the same
_CONFIGURATION = slice(KIND_AT + 1, FLAGS_AT)


@dataclass(slots=True)
class Reader:
    """What one process has in its configuration and has not delivered."""

    digest: bytes = b""
    places: dict[int, bool] = field(default_factory=dict)  # and whether each waits for more: to be safe, or whole
    delivered: int = 0  # the highest place
    moved_at: int = 0  # when the last delivery, or request, or pause was, or the wait began
    seen_at: int = 0  # when it last did something

    @property
    def is_waiting(self) -> bool:
        """Whether it lacks others' places below the lowest that it has."""
        return bool(self.places) and not self.places[min(self.places)]


class Waits:
    def __init__(self, options: SimOptions) -> None:
        self._patience = PATIENCE * options.ring.token_retransmit_ns + options.adaptive.ask_ns
        self._pause = 2 * options.ring.rest_ns + options.ring.pause_ns // 2
        self._readers: dict[ProcessId, Reader] = {}
        self.found: list[tuple[str, ProcessId]] = []

    def observe(self, event: Event) -> None:
        if isinstance(event, Installed):
            self._readers[event.process] = Reader(digest_of(event.configuration.id), moved_at=event.at)
        elif isinstance(event, Noted) and isinstance(event.note, Moved) and event.note.target != OPERATIONAL:
            self._readers.pop(event.process, None)  # it waits for others to come together
        elif isinstance(event, DeliveredBatch) and event.process in self._readers:
            reader = self._readers[event.process]
            reader.delivered = max(reader.delivered, *(message.number for message in event.messages))
            reader.places = {place: safe for place, safe in reader.places.items() if place > reader.delivered}
            reader.moved_at = event.at

    def effect(self, process: ProcessId, effect: Effect, now: int) -> None:
        reader = self._readers.get(process)
        if reader is None or not isinstance(effect, Broadcast):
            return
        was_waiting = reader.is_waiting
        for packet in effect.packets:
            self._read(reader, packet)
            if packet[KIND_AT] == ASK:
                reader.moved_at = now
        if not was_waiting:
            reader.moved_at = now  # with what it sends itself a wait may begin

    def received(self, process: ProcessId, packets: Sequence[Packet], now: int) -> None:
        reader = self._readers.get(process)
        if reader is None:
            return
        if not reader.is_waiting or now - reader.seen_at > self._pause:  # whoever did not run could not ask
            reader.moved_at = now
        elif now - reader.moved_at > self._patience:
            text = f"place {min(reader.places)} waits for {(now - reader.moved_at) / 1e6:.0f} ms, and nobody is asked"
            self.found.append((text, process))
            reader.moved_at = now
        reader.seen_at = now
        for packet in packets:
            self._read(reader, bytes(packet.data))

    @staticmethod
    def _read(reader: Reader, data: bytes) -> None:
        if len(data) < HEADER_SIZE or data[KIND_AT] != DIRECT or data[_CONFIGURATION] != reader.digest:
            return
        flags, place = HEADER.unpack_from(data)[5], HEADER.unpack_from(data)[8]
        if place > reader.delivered and not flags & CONTROL:
            reader.places[place] = bool(flags & SAFE or flags >> PART_SHIFT & PARTS)
