"""The part of the kernel that recording uses: functions on the bytes of many messages, in Python or compiled.

Callers name a function by this module, as with `wire/kernel.py`. Nodes that record nothing are here too, to take off
the stamps of others, so nothing is imported that they would not have. `look` is `None` in Python, where arrays do its
work (`digests.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from ordercast.model.kernel import FOUND

COUNTER_SIZE = 6

# Of payloads the sizes and digests, each 64 bits, and so many first bytes: (payloads, head, weights).
Look = Callable[[Sequence[bytes], int, bytes], tuple[bytes, bytes, bytes]]


def stamp(owner: bytes, first: int, payloads: Sequence[bytes]) -> list[bytes]:
    """Return each payload behind the owner and a counter; counters go on from `first`."""
    return [
        b"".join((owner, counter.to_bytes(COUNTER_SIZE, "big"), data)) for counter, data in enumerate(payloads, first)
    ]


def cut(payloads: Sequence[bytes], begin: int) -> list[bytes]:
    """Return each payload without its first bytes."""
    return [data[begin:] for data in payloads]


look: Look | None = None

_PURE: dict[str, Any] = {"stamp": stamp, "cut": cut, "look": look}


def functions(compiled: ModuleType | None) -> dict[str, Any]:
    """Return the functions of a kernel by their names here; None is the one in Python."""
    return _PURE if compiled is None else {name: getattr(compiled, name) for name in _PURE}


if FOUND is not None:
    globals().update(functions(FOUND))
