"""Which kernel runs: the one in Python, or its compiled twin from the distribution `ordercast-fast`.

The kernel is a handful of functions on buffers: `wire/kernel.py` and `trace/kernel.py` name them. The compiled one is
taken if it is installed (`ordercast[fast]`) and has the interface that this version wants, unless `ORDERCAST_KERNEL`
says otherwise. It is chosen once, when this module is imported.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

from ordercast.model.errors import UsageError

MODULE = "ordercast_fast"
VARIABLE = "ORDERCAST_KERNEL"
PURE, COMPILED = "pure", "compiled"
INTERFACE = 3  # of the compiled functions: rises whenever one of them takes or returns something else


def chosen(wanted: str) -> ModuleType | None:
    """Return the compiled kernel; None: the one in Python runs. `wanted` is what the variable says: `pure`, `compiled`,
    or nothing, for the compiled one if it is there."""
    if wanted == PURE:
        return None
    if wanted not in ("", COMPILED):
        raise UsageError(f"{VARIABLE} is {wanted!r}: set it to {PURE} or {COMPILED}, or do not set it")
    try:
        found = import_module(MODULE)
    except ImportError as error:
        if wanted:
            raise UsageError(
                f"{VARIABLE} asks for the compiled kernel, which cannot be imported ({error}): "
                "install ordercast[fast], or do not set the variable"
            ) from error
        return None
    interface = getattr(found, "INTERFACE", None)
    if interface == INTERFACE:
        return found
    if wanted:
        raise UsageError(
            f"{VARIABLE} asks for the compiled kernel, but that of {MODULE} has interface {interface} instead of "
            f"{INTERFACE}: install the ordercast-fast of this version of ordercast, or do not set the variable"
        )
    return None


FOUND = chosen(os.environ.get(VARIABLE, ""))
NAME = PURE if FOUND is None else COMPILED
