"""The folder into which a command writes what it made: what is in the way is one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ordercast.model.errors import UsageError

CHOOSE_ANOTHER = "make room, or choose another with --out"


@contextmanager
def writing_into(folder: Path, what_to_do: str = CHOOSE_ANOTHER) -> Iterator[None]:
    """Turn what the disk refuses meanwhile into a UsageError that says what to do."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(f"the folder {folder} cannot be written into: {reason}; {what_to_do}") from error
