"""What an engine guarantees. Written to every trace: a checker judges what was promised and says NOT PROMISED of the
rest."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ordercast.model.service import Service


class Promise(Enum):
    """One per checker; the value is the checker's name."""

    INTEGRITY = "integrity"
    NO_DUPLICATES = "no duplicates"
    SELF_DELIVERY = "self delivery"
    FIFO = "fifo order"
    CAUSAL = "causal order"
    TOTAL_ORDER = "total order"
    AGREED_DELIVERY = "agreed delivery"
    SAFE_DELIVERY = "safe delivery"
    VIRTUAL_SYNCHRONY = "virtual synchrony"
    TRANSITIONAL_SETS = "transitional sets"
    VIEW_AGREEMENT = "view agreement"
    VIEW_MONOTONY = "view monotony"
    WHOLE_MESSAGES = "whole messages"
    FAIRNESS = "fairness"
    LIVENESS = "liveness"


@dataclass(frozen=True, slots=True)
class Promises:
    engine: str
    promises: frozenset[Promise]
    services: frozenset[Service]
    message_size_max: int
