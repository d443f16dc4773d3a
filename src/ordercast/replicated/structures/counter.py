"""Counter: a whole number of 64 bits that is added to."""

from __future__ import annotations

from typing import Self

from ordercast.model.arguments import given
from ordercast.model.errors import UsageError, WireError
from ordercast.replicated.machine import Frozen, Origin
from ordercast.replicated.structures.base import YES, Caller, Cut, Front, Structure
from ordercast.replicated.structures.fields import I64, I64_MAX, Reader

ADD = 1


class Counter(Structure["CounterFront"]):
    NAME = "Counter"

    def __init__(self) -> None:
        self.value = 0

    def front(self, caller: Caller) -> CounterFront:
        return CounterFront(self, caller)

    def carry_out(self, kind: int, fields: Reader, origin: Origin) -> bytes:
        if kind != ADD:
            raise WireError(f"a counter has no command {kind}")
        value = self.value + fields.number(I64)
        fields.end()
        if not -I64_MAX <= value <= I64_MAX:
            raise WireError(f"the counter is at {self.value}, and so much more does not fit into 64 bits")
        self.value = value
        return YES + I64.pack(value)

    def freeze(self) -> Frozen:
        value = self.value
        return Cut(lambda: [I64.pack(value)])

    def blank(self) -> Self:
        return type(self)()

    def fill(self, fields: Reader) -> None:
        self.value = fields.number(I64)
        fields.end()

    def adopt(self, other: Self) -> None:
        self.value = other.value


class CounterFront(Front[Counter]):
    async def add(self, number: int = 1, *, timeout: float | None = None) -> int:
        """The value just after it: no two that add one get the same."""
        if not -I64_MAX <= given(number, int, "number", "a whole number") <= I64_MAX:
            raise UsageError(f"{number} does not fit into 64 bits")
        return Reader((await self._ask(ADD, I64.pack(number), timeout)).result, 1).number(I64)

    @property
    def value(self) -> int:
        """From the copy that is here, at once."""
        return self.machine.value

    async def latest(self, *, timeout: float | None = None) -> int:
        """Linearised."""
        await self.synced(timeout=timeout)
        return self.value
