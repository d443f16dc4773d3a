"""BlockingReplica: a replica on a blocking client, for scripts and threads: the same names, without `await`.

    with ordercast.connect(name="a") as me:
        with BlockingReplica(me, "accounts", Dictionary(), quorum=Majority({"a@n1": 1})) as accounts:
            accounts.ready()
            accounts.set("alice", b"100")

The replica itself runs on an event loop, to which the client moves, and applies what comes whatever the program does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar, cast, overload

from ordercast.api.blocking import BlockingClient
from ordercast.model.errors import UsageError
from ordercast.replicated.arrival import Patience
from ordercast.replicated.blocking_fronts import (
    BlockingBarrier,
    BlockingCounter,
    BlockingDictionary,
    BlockingLeader,
    BlockingLock,
    BlockingQueue,
    Run,
)
from ordercast.replicated.effects import Changed
from ordercast.replicated.quorum import Rule
from ordercast.replicated.replica import Replica
from ordercast.replicated.structures.barrier import Barrier
from ordercast.replicated.structures.base import Structure
from ordercast.replicated.structures.counter import Counter
from ordercast.replicated.structures.dictionary import Dictionary
from ordercast.replicated.structures.leader import Leader
from ordercast.replicated.structures.lock import Lock
from ordercast.replicated.structures.queue import Queue

BlockingT = TypeVar("BlockingT")
FrontT = TypeVar("FrontT")

_FRONTS: dict[type[Structure[Any]], Callable[[Any, Run], Any]] = {
    Barrier: BlockingBarrier,
    Counter: BlockingCounter,
    Dictionary: BlockingDictionary,
    Leader: BlockingLeader,
    Lock: BlockingLock,
    Queue: BlockingQueue,
}


class BlockingReplica(Generic[BlockingT]):
    @overload
    def __init__(
        self: BlockingReplica[BlockingDictionary],
        member: BlockingClient,
        group: str,
        structure: Dictionary,
        *,
        quorum: Rule,
        founding: bool = ...,
        host: str = ...,
        port: int = ...,
        folder: Path | None = ...,
        journal: Path | str | None = ...,
        patience: Patience | None = ...,
    ) -> None: ...

    @overload
    def __init__(
        self: BlockingReplica[BlockingCounter],
        member: BlockingClient,
        group: str,
        structure: Counter,
        *,
        quorum: Rule,
        founding: bool = ...,
        host: str = ...,
        port: int = ...,
        folder: Path | None = ...,
        journal: Path | str | None = ...,
        patience: Patience | None = ...,
    ) -> None: ...

    @overload
    def __init__(
        self: BlockingReplica[BlockingLock],
        member: BlockingClient,
        group: str,
        structure: Lock,
        *,
        quorum: Rule,
        founding: bool = ...,
        host: str = ...,
        port: int = ...,
        folder: Path | None = ...,
        journal: Path | str | None = ...,
        patience: Patience | None = ...,
    ) -> None: ...

    @overload
    def __init__(
        self: BlockingReplica[BlockingQueue],
        member: BlockingClient,
        group: str,
        structure: Queue,
        *,
        quorum: Rule,
        founding: bool = ...,
        host: str = ...,
        port: int = ...,
        folder: Path | None = ...,
        journal: Path | str | None = ...,
        patience: Patience | None = ...,
    ) -> None: ...

    @overload
    def __init__(
        self: BlockingReplica[BlockingLeader],
        member: BlockingClient,
        group: str,
        structure: Leader,
        *,
        quorum: Rule,
        founding: bool = ...,
        host: str = ...,
        port: int = ...,
        folder: Path | None = ...,
        journal: Path | str | None = ...,
        patience: Patience | None = ...,
    ) -> None: ...

    @overload
    def __init__(
        self: BlockingReplica[BlockingBarrier],
        member: BlockingClient,
        group: str,
        structure: Barrier,
        *,
        quorum: Rule,
        founding: bool = ...,
        host: str = ...,
        port: int = ...,
        folder: Path | None = ...,
        journal: Path | str | None = ...,
        patience: Patience | None = ...,
    ) -> None: ...

    @overload
    def __init__(
        self,
        member: BlockingClient,
        group: str,
        structure: Structure[FrontT],
        *,
        front: Callable[[FrontT, Run], BlockingT],
        quorum: Rule,
        founding: bool = ...,
        host: str = ...,
        port: int = ...,
        folder: Path | None = ...,
        journal: Path | str | None = ...,
        patience: Patience | None = ...,
    ) -> None: ...

    def __init__(
        self,
        member: BlockingClient,
        group: str,
        structure: Structure[Any],
        *,
        front: Callable[[Any, Run], BlockingT] | None = None,
        **settings: Any,
    ) -> None:
        """As `Replica`. `front`: for a structure of one's own, makes the blocking front of the other one and of a
        function that runs a coroutine to its end; see `BlockingFront`."""
        if isinstance(structure, type):
            raise UsageError(f"give the structure, {structure.__name__}(), and not its class")
        found = front or _FRONTS.get(type(structure))
        if found is None:
            raise UsageError(f"{type(structure).__name__} has no blocking front: give one with front=")
        if not hasattr(member, "member"):
            raise UsageError(f"{type(member).__name__} is no blocking client: one of asyncio has a Replica")
        self._front = cast("Callable[[Any, Run], BlockingT]", found)
        self._member = member
        self._replica: Replica[Any] = Replica(member.member, group, structure, **settings)

    def __enter__(self) -> BlockingT:
        return self._front(self._member.run(self._replica.__aenter__()), self._member.run)

    def __exit__(self, *how: object) -> None:
        self._member.run(self._replica.__aexit__(*how))

    @property
    def status(self) -> Changed | None:
        """What is known of the component; None: nothing yet."""
        return self._replica.status

    def force(self, *, timeout: float | None = None) -> None:
        """As `Replica.force`."""
        self._member.run(self._replica.force(timeout=timeout))
