"""The kernel: a few functions on the bytes of packets, in Python (`pure.py`) or compiled; `model/kernel.py` chooses.

Callers name a function by this module (`kernel.read_run(…)`), never import it from here: whoever replaces one, as a
planted fault does, then replaces it for all of them, whichever kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from ordercast.model.ids import Seq
from ordercast.model.kernel import FOUND
from ordercast.wire import pure
from ordercast.wire.header import Heading
from ordercast.wire.packet_run import PacketRun


def functions(compiled: ModuleType | None) -> dict[str, Callable[..., Any]]:
    """Return the functions of a kernel by their names here; None is the one in Python."""
    if compiled is None:
        return {"read_run": pure.read_run, "gather": pure.gather, "lay": pure.lay}
    fields_of = compiled.read_run

    def read_run(data: bytes, start: int, size: int, heading: Heading, expected: Seq) -> PacketRun | None:
        fields = fields_of(data, start, size, heading.cluster, heading.ring, heading.members, expected)
        return None if fields is None else PacketRun(data, start, *fields)

    return {"read_run": read_run, "gather": compiled.gather, "lay": compiled.lay}


read_run, gather, lay = pure.read_run, pure.gather, pure.lay  # for type checkers: both kernels have these types
if FOUND is not None:
    globals().update(functions(FOUND))
