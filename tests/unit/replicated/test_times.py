"""Commands of structures in which something ends with time: no time is so long that its end cannot be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ordercast.replicated.machine import Origin
from ordercast.replicated.structures.base import REFUSED, YES, Structure
from ordercast.replicated.structures.claims import ACQUIRE_FOR
from ordercast.replicated.structures.dictionary import GRANT, Dictionary
from ordercast.replicated.structures.fields import U32, U64, value_bytes
from ordercast.replicated.structures.lock import Lock
from ordercast.replicated.structures.queue import PUT_LATER, TAKE_FOR, Queue
from ordercast.replicated.structures.ticking import TICK_S, TICKS_MAX, tick_command, ticks_of

CASES: list[tuple[Callable[[], Structure[Any]], Callable[[bytes], bytes]]] = [
    (Dictionary, lambda span: bytes([GRANT]) + span),
    (Queue, lambda span: bytes([PUT_LATER]) + value_bytes(b"job") + span + U32.pack(2)),
    (Queue, lambda span: bytes([TAKE_FOR]) + U64.pack(1) + span),
    (Lock, lambda span: bytes([ACQUIRE_FOR]) + U64.pack(1) + span),
]


def applied(structure: Structure[Any], position: int, command: bytes) -> bytes:
    return structure.apply(command, Origin("a", 1, position, position))


@pytest.mark.parametrize(("kind", "command"), CASES)
def test_a_time_without_end_is_refused_and_changes_nothing(
    kind: Callable[[], Structure[Any]], command: Callable[[bytes], bytes]
) -> None:
    structure = kind()
    applied(structure, 1, tick_command(1))
    before = list(structure.freeze().pieces())
    for span in (TICKS_MAX + 2, (1 << 64) - 1):
        assert applied(structure, 2, command(U64.pack(span)))[:1] == REFUSED
    assert list(structure.freeze().pieces()) == before


@pytest.mark.parametrize(("kind", "command"), CASES)
def test_the_longest_that_can_be_asked_for_is_taken(
    kind: Callable[[], Structure[Any]], command: Callable[[bytes], bytes]
) -> None:
    structure = kind()
    applied(structure, 1, tick_command(1))
    longest = ticks_of((TICKS_MAX - 0.5) * TICK_S)
    assert applied(structure, 2, command(U64.pack(longest))) == YES
    assert list(structure.freeze().pieces())
