"""How much happens in the demo."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Script:
    values: int = 128  # large ones in the dictionary, so that a transfer of the state takes a moment
    value_size: int = 64 << 10
    steady_s: float = 1.5  # of traffic in each chapter, so that a person can follow
    burst_messages: int = 1_500  # of each of the six clients in groups
    burst_commands: int = 2_000  # of each of the three replicas
    messages_at_once: int = 50  # of one client in one call
    commands_at_once: int = 250  # of one replica, without an answer
