"""Neighbours: processes of one cluster that run another engine, and are never members together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ordercast.model.effects import Alarm, AlarmKind
from ordercast.model.ids import ProcessId, process_text

OTHER_ENGINE: Final = "another engine's packet"
NO_NEIGHBOURS: Final[Mapping[bytes, str]] = {}  # engines, by the id of the cluster on them


def other_engine_alarm(process: ProcessId, engine: str) -> Alarm:
    """Return what a person is told of a process that runs this engine."""
    text = (
        f"{process_text(process)} runs the engine {engine!r}, this process another: they never come together until the "
        "engine key is the same"
    )
    return Alarm(AlarmKind.CONFIGURATION_MISMATCH, text, process)
