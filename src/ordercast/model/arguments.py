"""Arguments of calls: a wrong one gets a sentence that says what to give, before anything is done."""

from __future__ import annotations

from typing import TypeVar

from ordercast.model.errors import UsageError

T = TypeVar("T")


def given(value: object, kind: type[T], what: str, source: str) -> T:
    """Return an argument that is of this kind; UsageError names what it has to be, and where that comes from."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise UsageError(f"{value!r} is no {what}: give {source}")
    return value


def check_timeout(timeout: object) -> None:
    """Raise UsageError unless this is a number of seconds, zero or more, or None."""
    if timeout is not None and (
        not isinstance(timeout, int | float) or isinstance(timeout, bool) or timeout != timeout or timeout < 0
    ):
        raise UsageError(f"{timeout!r} is no timeout: give seconds, such as 5 or 0.5, or None to wait without end")
