"""Large messages, on the receiving side: parts are kept until the last one comes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from ordercast.model.effects import Parcel
from ordercast.model.ids import ProcessId
from ordercast.wire import kernel


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

    def take(self, parcel: Parcel, parts: bytes, parcels: list[Parcel]) -> None:
        """Add to `parcels` the messages of packets in a row that are completed by them."""
        seq, originator, senders, services, payloads, *_ = parcel
        key = originator, senders[0]
        before = self.parts.get(key)
        held = 0 if before is None else len(before)
        ends, whole, begun = kernel.gather(parts, payloads, before)
        if begun is not None and begun is before:  # it goes on
            self.size += sum(map(len, begun[held:]))
        else:
            self.size -= 0 if before is None else sum(map(len, before[:held]))
            self.parts.pop(key, None)
            if begun is not None:
                self.parts[key] = begun
                self.size += sum(map(len, begun))
        sender, service = senders[:1], services[:1]
        parcels += [
            (seq + end - 1, originator, sender, service, (message,), 1, 0)
            for end, message in zip(ends, whole, strict=True)
        ]
