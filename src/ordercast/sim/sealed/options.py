"""What a sealed run has beside its faults."""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.ids import MILLISECOND
from ordercast.sealing.config import SealingConfig

# Short times, as in the rest of a simulation; generations so short that many change.
SIM_SEALING = SealingConfig(
    presence_ns=30 * MILLISECOND,
    eager_ns=6 * MILLISECOND,
    answer_ns=MILLISECOND,
    forget_ns=400 * MILLISECOND,
    away_ns=3000 * MILLISECOND,
    warn_ns=1000 * MILLISECOND,
    generation_bits=7,
)


@dataclass(frozen=True, slots=True)
class SealedRun:
    adversary: float = 0.0  # chance that something is done to, or with, a packet that arrives, until healing
    rotations: int = 0  # changes of the cluster's key before healing, each host at a time of its own
    is_clear_first: bool = False  # the first of them is from clear to sealed; nobody attacks what is clear
    is_clear_last: bool = False  # the last of them is from sealed to clear
    strangers: int = 0  # how often a host starts with a wrong key, or an old one, and gets the right one at healing
    crowded: float = 0.0  # chance that a salt begins with the number of another life
    config: SealingConfig = SIM_SEALING
