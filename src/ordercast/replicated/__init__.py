"""Replicated state: the same commands, in the same order, on every replica of a group.

Two halves. The pure one decides: `desk`, all that a replica decides (`batching`, `arrival`); `core` below it, what is
applied and confirmed, with what it stands on (`decision`, `exchange`, `uniting`, `requests`, `copy`) and what may be
asked of it (`facts`); and the `structures`. It has no clock, no I/O, no randomness; the simulator drives it as it is.
The other one carries out: `replica`, with what it hears (`dispatcher`), serves and fetches (`transfer`). This file
imports neither before a name is used, so that who wants the first does not load the second.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ordercast.model.errors import WireError
    from ordercast.replicated.arrival import Patience
    from ordercast.replicated.blocking import BlockingReplica
    from ordercast.replicated.blocking_fronts import (
        BlockingBarrier,
        BlockingCounter,
        BlockingDictionary,
        BlockingFront,
        BlockingLeader,
        BlockingLock,
        BlockingQueue,
    )
    from ordercast.replicated.effects import Changed, Progress, Reason, Standing
    from ordercast.replicated.machine import Frozen, Origin
    from ordercast.replicated.quorum import EverySide, LastMajority, Majority, Side
    from ordercast.replicated.replica import NotPrimary, Replica, ReplicaEnded, TimedOut
    from ordercast.replicated.structures.barrier import Barrier, BarrierFront
    from ordercast.replicated.structures.base import Age, Applied, Caller, Cut, Front, Lost, Reloaded, Structure
    from ordercast.replicated.structures.claims import Grant, Held
    from ordercast.replicated.structures.counter import Counter, CounterFront
    from ordercast.replicated.structures.dictionary import (
        Compared,
        ComparedMany,
        Dictionary,
        DictionaryFront,
        KeyChanged,
        Lease,
    )
    from ordercast.replicated.structures.fields import Reader, value_bytes
    from ordercast.replicated.structures.leader import Leader, LeaderFront, Leadership
    from ordercast.replicated.structures.lock import Lock, LockFront
    from ordercast.replicated.structures.queue import Job, Queue, QueueFront

_HOMES = {
    "Age": "structures.base",
    "Applied": "structures.base",
    "Barrier": "structures.barrier",
    "BarrierFront": "structures.barrier",
    "BlockingBarrier": "blocking_fronts",
    "BlockingCounter": "blocking_fronts",
    "BlockingDictionary": "blocking_fronts",
    "BlockingFront": "blocking_fronts",
    "BlockingLeader": "blocking_fronts",
    "BlockingLock": "blocking_fronts",
    "BlockingQueue": "blocking_fronts",
    "BlockingReplica": "blocking",
    "Caller": "structures.base",
    "Changed": "effects",
    "Compared": "structures.dictionary",
    "ComparedMany": "structures.dictionary",
    "Counter": "structures.counter",
    "CounterFront": "structures.counter",
    "Cut": "structures.base",
    "Dictionary": "structures.dictionary",
    "DictionaryFront": "structures.dictionary",
    "EverySide": "quorum",
    "Front": "structures.base",
    "Frozen": "machine",
    "Grant": "structures.claims",
    "Held": "structures.claims",
    "Job": "structures.queue",
    "KeyChanged": "structures.dictionary",
    "LastMajority": "quorum",
    "Leader": "structures.leader",
    "LeaderFront": "structures.leader",
    "Leadership": "structures.leader",
    "Lease": "structures.dictionary",
    "Lock": "structures.lock",
    "LockFront": "structures.lock",
    "Lost": "structures.base",
    "Majority": "quorum",
    "NotPrimary": "replica",
    "Origin": "machine",
    "Patience": "arrival",
    "Progress": "effects",
    "Queue": "structures.queue",
    "QueueFront": "structures.queue",
    "Reader": "structures.fields",
    "Reason": "effects",
    "Reloaded": "structures.base",
    "Replica": "replica",
    "ReplicaEnded": "replica",
    "Side": "quorum",
    "Standing": "effects",
    "Structure": "structures.base",
    "TimedOut": "replica",
    "WireError": "structures.base",
    "value_bytes": "structures.fields",
}
__all__ = [
    "Age",
    "Applied",
    "Barrier",
    "BarrierFront",
    "BlockingBarrier",
    "BlockingCounter",
    "BlockingDictionary",
    "BlockingFront",
    "BlockingLeader",
    "BlockingLock",
    "BlockingQueue",
    "BlockingReplica",
    "Caller",
    "Changed",
    "Compared",
    "ComparedMany",
    "Counter",
    "CounterFront",
    "Cut",
    "Dictionary",
    "DictionaryFront",
    "EverySide",
    "Front",
    "Frozen",
    "Grant",
    "Held",
    "Job",
    "KeyChanged",
    "LastMajority",
    "Leader",
    "LeaderFront",
    "Leadership",
    "Lease",
    "Lock",
    "LockFront",
    "Lost",
    "Majority",
    "NotPrimary",
    "Origin",
    "Patience",
    "Progress",
    "Queue",
    "QueueFront",
    "Reader",
    "Reason",
    "Reloaded",
    "Replica",
    "ReplicaEnded",
    "Side",
    "Standing",
    "Structure",
    "TimedOut",
    "WireError",
    "value_bytes",
]


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


if not TYPE_CHECKING:  # a type checker has the imports above, and finds what is not among them

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'ordercast.replicated' has no attribute {name!r}")
        return getattr(import_module(f"ordercast.replicated.{_HOMES[name]}"), name)
