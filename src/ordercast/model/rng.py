"""Randomness as an argument. `random.Random` fits; pure layers never make one."""

from __future__ import annotations

from typing import Protocol


class Rng(Protocol):
    def random(self) -> float: ...
    def randrange(self, start: int, stop: int, /) -> int: ...
