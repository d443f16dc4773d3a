"""Fronts of blocking replicas: each method is that of the front of the same structure, run to its end on the client's
event loop. What reads the copy reads it there, too, between two commands."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from typing import Any, Generic, Protocol, TypeVar

from ordercast.replicated.effects import Changed
from ordercast.replicated.structures.barrier import BarrierFront
from ordercast.replicated.structures.base import Age, Front, Reloaded
from ordercast.replicated.structures.claims import ExclusiveFront, Grant, Held
from ordercast.replicated.structures.counter import CounterFront
from ordercast.replicated.structures.dictionary import Compared, ComparedMany, DictionaryFront, KeyChanged, Lease
from ordercast.replicated.structures.fields import Value
from ordercast.replicated.structures.leader import LeaderFront, Leadership
from ordercast.replicated.structures.lock import LockFront
from ordercast.replicated.structures.queue import Job, QueueFront

T = TypeVar("T")
FrontT = TypeVar("FrontT", bound=Front[Any])
ExclusiveT = TypeVar("ExclusiveT", bound=ExclusiveFront)


class Run(Protocol):
    """Runs a coroutine on the event loop of a client, and gives what it gives."""

    def __call__(self, work: Coroutine[Any, Any, T], /) -> T: ...


class BlockingFront(Generic[FrontT]):
    def __init__(self, front: FrontT, run: Run) -> None:
        self._front = front
        self._run = run

    def __repr__(self) -> str:
        return repr(self._front).replace(type(self._front).__name__, type(self).__name__, 1)

    @property
    def age(self) -> Age:
        return self._read(lambda: self._front.age)

    @property
    def status(self) -> Changed | None:
        return self._read(lambda: self._front.status)

    def synced(self, *, timeout: float | None = None) -> int:
        return self._run(self._front.synced(timeout=timeout))

    def ready(self, *, timeout: float | None = None) -> None:
        self._run(self._front.ready(timeout=timeout))

    def watch(self) -> Iterator[Any]:
        return self._each(self._read(self._front.watch))

    def _read(self, look: Callable[[], T]) -> T:
        async def there() -> T:
            return look()

        return self._run(there())

    def _each(self, events: AsyncIterator[T]) -> Iterator[T]:
        async def following() -> list[T]:
            async for event in events:
                return [event]
            return []

        while found := self._run(following()):
            yield from found


class BlockingCounter(BlockingFront[CounterFront]):
    def add(self, number: int = 1, *, timeout: float | None = None) -> int:
        return self._run(self._front.add(number, timeout=timeout))

    @property
    def value(self) -> int:
        return self._front.value

    def latest(self, *, timeout: float | None = None) -> int:
        return self._run(self._front.latest(timeout=timeout))


class BlockingDictionary(BlockingFront[DictionaryFront]):
    def set(self, key: Value, value: Value, *, lease: Lease | None = None, timeout: float | None = None) -> int:
        return self._run(self._front.set(key, value, lease=lease, timeout=timeout))

    def compare_and_set_many(
        self,
        expected: Mapping[Value, Value | None],
        values: Mapping[Value, Value | None],
        *,
        lease: Lease | None = None,
        timeout: float | None = None,
    ) -> ComparedMany:
        return self._run(self._front.compare_and_set_many(expected, values, lease=lease, timeout=timeout))

    def lease(self, ttl: float, *, timeout: float | None = None) -> Lease:
        return self._run(self._front.lease(ttl, timeout=timeout))

    def keep(self, lease: Lease, *, timeout: float | None = None) -> bool:
        return self._run(self._front.keep(lease, timeout=timeout))

    def revoke(self, lease: Lease, *, timeout: float | None = None) -> bool:
        return self._run(self._front.revoke(lease, timeout=timeout))

    def leased(self, ttl: float, *, timeout: float | None = None) -> AbstractContextManager[Lease]:
        return _block(self._run, self._front.leased(ttl, timeout=timeout))

    def delete(self, key: Value, *, timeout: float | None = None) -> bool:
        return self._run(self._front.delete(key, timeout=timeout))

    def compare_and_set(
        self, key: Value, expected: Value | None, value: Value | None, *, timeout: float | None = None
    ) -> Compared:
        return self._run(self._front.compare_and_set(key, expected, value, timeout=timeout))

    def get(self, key: Value) -> Value | None:
        return self._front.get(key)

    def latest(self, key: Value, *, timeout: float | None = None) -> Value | None:
        return self._run(self._front.latest(key, timeout=timeout))

    def __getitem__(self, key: Value) -> Value:
        return self._front[key]

    def __iter__(self) -> Iterator[Value]:
        return iter(self.keys())

    def keys(self) -> list[Value]:
        return self._read(self._front.keys)

    def values(self) -> list[Value]:
        return self._read(self._front.values)

    def items(self) -> list[tuple[Value, Value]]:
        return self._read(self._front.items)

    def prefix(self, prefix: Value) -> list[tuple[Value, Value]]:
        return self._read(lambda: self._front.prefix(prefix))

    def range(self, start: Value, end: Value | None = None) -> list[tuple[Value, Value]]:
        return self._read(lambda: self._front.range(start, end))

    def __len__(self) -> int:
        return len(self._front)

    def __contains__(self, key: Value) -> bool:
        return key in self._front

    def changes(self, after: int | None = None) -> Iterator[KeyChanged | Reloaded]:
        return self._each(self._read(lambda: self._front.changes(after)))


class BlockingBarrier(BlockingFront[BarrierFront]):
    @property
    def waiting(self) -> int:
        return self._front.waiting

    def wait(self, *, timeout: float | None = None) -> int:
        return self._run(self._front.wait(timeout=timeout))


class BlockingQueue(BlockingFront[QueueFront]):
    def __len__(self) -> int:
        return len(self._front)

    @property
    def taken(self) -> int:
        return self._front.taken

    @property
    def later(self) -> int:
        return self._front.later

    @property
    def dead(self) -> list[tuple[int, Value]]:
        return self._read(lambda: self._front.dead)

    def put(
        self, value: Value, *, delay: float = 0.0, attempts: int | None = None, timeout: float | None = None
    ) -> int:
        return self._run(self._front.put(value, delay=delay, attempts=attempts, timeout=timeout))

    def take(self, *, visibility: float | None = None, timeout: float | None = None) -> Job:
        return self._run(self._front.take(visibility=visibility, timeout=timeout))

    def extend(self, job: Job, *, timeout: float | None = None) -> bool:
        return self._run(self._front.extend(job, timeout=timeout))

    def revive(self, number: int, *, timeout: float | None = None) -> bool:
        return self._run(self._front.revive(number, timeout=timeout))

    def discard(self, number: int, *, timeout: float | None = None) -> bool:
        return self._run(self._front.discard(number, timeout=timeout))

    def acknowledge(self, job: Job, *, timeout: float | None = None) -> bool:
        return self._run(self._front.acknowledge(job, timeout=timeout))

    def give_back(self, job: Job, *, timeout: float | None = None) -> bool:
        return self._run(self._front.give_back(job, timeout=timeout))


class BlockingExclusive(BlockingFront[ExclusiveT]):
    @property
    def holder(self) -> Grant | None:
        return self._read(lambda: self._front.holder)

    def lost(self, held: Held, *, timeout: float | None = None) -> None:
        self._run(self._front.lost(held, timeout=timeout))


class BlockingLock(BlockingExclusive[LockFront]):
    def acquire(self, *, timeout: float | None = None, ttl: float | None = None) -> Held:
        return self._run(self._front.acquire(timeout=timeout, ttl=ttl))

    def renew(self, held: Held, *, timeout: float | None = None) -> bool:
        return self._run(self._front.renew(held, timeout=timeout))

    def release(self, held: Held, *, timeout: float | None = None) -> bool:
        return self._run(self._front.release(held, timeout=timeout))

    def hold(self, *, timeout: float | None = None, ttl: float | None = None) -> AbstractContextManager[Held]:
        return _block(self._run, self._front.hold(timeout=timeout, ttl=ttl))


class BlockingLeader(BlockingExclusive[LeaderFront]):
    def campaign(self, *, timeout: float | None = None) -> Held:
        return self._run(self._front.campaign(timeout=timeout))

    def resign(self, held: Held, *, timeout: float | None = None) -> bool:
        return self._run(self._front.resign(held, timeout=timeout))

    @property
    def leader(self) -> Leadership | None:
        return self._read(lambda: self._front.leader)

    def changed(self, known: Leadership | None, *, timeout: float | None = None) -> Leadership | None:
        return self._run(self._front.changed(known, timeout=timeout))


@contextmanager
def _block(run: Run, block: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """A block of a front, entered and left on its event loop."""
    given = run(_entered(block))
    try:
        yield given
    except BaseException as error:
        run(_left(block, error))
        raise
    run(_left(block, None))


async def _entered(block: AbstractAsyncContextManager[T]) -> T:
    return await block.__aenter__()


async def _left(block: AbstractAsyncContextManager[Any], error: BaseException | None) -> None:
    """The front's own block ends as the program's did; the program's error goes on by itself."""
    try:
        await block.__aexit__(None if error is None else type(error), error, None)
    except BaseException as raised:
        if raised is not error:
            raise
