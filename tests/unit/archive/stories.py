"""Things that are delivered, for archives of tests."""

from __future__ import annotations

from ordercast.archive.entries import Gap, Item, record_bytes
from ordercast.archive.frames import Columns, Run
from ordercast.archive.places import Place
from ordercast.model.events import Batch, Message, Reason, Transition, View, ViewId
from ordercast.model.ids import ConfigurationId, Places, Position, ProcessId

RING = ConfigurationId(8, ProcessId(77))


def batch(
    *payloads: bytes, seq: int = 1, base: int = 0, sender: str = "alice@n1", groups: tuple[str, ...] = ("orders",)
) -> Batch:
    services = [4] * len(payloads)
    return Batch(groups, sender, list(payloads), services, Places(RING, seq, base, max(1, len(payloads)), 0))


def view(seq: int, *members: str, configuration: ConfigurationId = RING) -> View:
    identity = ViewId(configuration, Position(RING, seq, 0))
    return View("orders", members, members, Reason.JOIN, members[-1:], identity)


def transition(seq: int, *remaining: str) -> Transition:
    return Transition("orders", remaining, ViewId(RING, Position(RING, seq, 0)))


GAP = Gap((Place("0" * 16, 7),))


def item_of(run: Run) -> Item:
    return run.item.batch() if isinstance(run.item, Columns) else run.item


def records_of(branch: str, first: int, items: list[Item]) -> list[bytes]:
    records = []
    for item in items:
        entries: list[Message | View | Transition | Gap] = list(item) if isinstance(item, Batch) else [item]
        for entry in entries:
            records.append(record_bytes(Place(branch, first), entry))
            first += 1
    return records
