"""Large messages, on the receiving side: parts are kept until the last one comes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from ordercast.model.effects import Parcel
from ordercast.model.ids import ProcessId
from ordercast.wire.header import Part


@dataclass(slots=True)
class LargeMessages:
    """Messages whose last part has not come: at most one of each sender."""

    parts: dict[tuple[ProcessId, int], list[bytes]] = field(default_factory=dict)  # by originator and sender
    size: int = 0  # bytes of all of them

    def __len__(self) -> int:
        return len(self.parts)

    def keep(self, originators: Collection[ProcessId]) -> None:
        """Forget what others have begun."""
        self.parts = {key: parts for key, parts in self.parts.items() if key[0] in originators}
        self.size = sum(len(part) for parts in self.parts.values() for part in parts)

    def forget(self, originator: ProcessId) -> None:
        """Forget what one has begun."""
        self.keep({key[0] for key in self.parts} - {originator})

    def put(self, key: tuple[ProcessId, int], data: bytes) -> None:
        """Have the first parts of a message, in the place of what was begun before."""
        self.size += len(data) - sum(map(len, self.parts.get(key, ())))
        self.parts[key] = [data]

    def take(self, parcel: Parcel, parts: Sequence[int], parcels: list[Parcel]) -> None:
        """Add to `parcels` the messages of packets in a row that are completed by them."""
        seq, originator, senders, services, payloads, *_ = parcel
        key = originator, senders[0]
        kinds, start = bytes(parts), 0
        while start < len(kinds):
            end = _end_of(kinds, start)
            some = payloads[start:end]
            if kinds[start] == Part.FIRST:
                self.size -= sum(map(len, self.parts.get(key, ())))
                self.parts[key] = []
            if key in self.parts:  # or else its beginning lay beyond a gap that everybody skipped alike
                self.size += sum(map(len, some))
                self.parts[key] += some
                if kinds[end - 1] == Part.LAST:
                    whole = b"".join(self.parts.pop(key))
                    self.size -= len(whole)
                    parcels.append((seq + end - 1, originator, senders[:1], services[:1], (whole,), 1, 0))
            start = end


def _end_of(kinds: bytes, start: int) -> int:
    """Return where the parts of one message end: behind its last one, or before the first of another message."""
    last, first = kinds.find(Part.LAST, start), kinds.find(Part.FIRST, start + 1)
    ends = [place for place in (last + 1, first) if place > 0]
    return min(ends, default=len(kinds))
