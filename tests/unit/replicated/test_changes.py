"""The changes of a dictionary, for whoever watches them from a position on."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from ordercast.replicated.batching import encode_batch
from ordercast.replicated.machine import Origin
from ordercast.replicated.structures.base import Caller, Reloaded
from ordercast.replicated.structures.dictionary import SET, Dictionary, DictionaryFront, KeyChanged
from ordercast.replicated.structures.fields import value_bytes
from ordercast.replicated.told import Told
from ordercast.replicated.watching import Watch, Watchers


class Copy:
    """A dictionary to which commands are applied by hand. Of a caller it has what those who watch need."""

    def __init__(self) -> None:
        self._watchers = Watchers()
        self.machine = Told(Dictionary(), self._watchers)
        self.front = DictionaryFront(cast("Dictionary", self.machine.structure), cast("Caller", self))

    def watch(self, *kinds: type, after: int) -> Watch[Any]:
        watch: Watch[Any] = self._watchers.watch(*kinds)
        for applied in self.machine.applied_after(after):
            watch.put(applied)
        return watch

    def set(self, *keys: str) -> None:
        for key in keys:
            command = bytes([SET]) + value_bytes(key) + value_bytes(b"")
            self.machine.apply(encode_batch([command]), Origin("a", 1, 1, 30))


def test_nothing_is_left_out_behind_a_state_with_fewer_commands_than_were_applied_here() -> None:
    here, there = Copy(), Copy()
    here.set("one", "two", "three")
    there.set("another one")
    changes = here.front.changes(after=2)
    here.machine.load(there.machine.freeze().pieces())
    here.set("another two")

    async def told() -> list[KeyChanged | Reloaded]:
        return [await anext(changes) for _ in range(3)]

    before, reloaded, behind = asyncio.run(asyncio.wait_for(told(), 30))
    assert before == KeyChanged("three", b"", 3, "a") and isinstance(reloaded, Reloaded)
    assert behind == KeyChanged("another two", b"", 2, "a")
