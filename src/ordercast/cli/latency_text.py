"""How long messages take, in words, from the buckets of a status."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ordercast.daemon.status.latency import BOUNDS_S, LatencyStatus


def latency_from(document: dict[str, Any]) -> LatencyStatus:
    return LatencyStatus(document["service"], document["measured"], document["sum_ns"], tuple(document["buckets"]))


def latency_text(measured: Iterable[dict[str, Any]]) -> str:
    """`agreed: half within 0.5 ms, 99 in 100 within 5 ms; safe: …`"""
    return "; ".join(_sentence(latency_from(each)) for each in measured)


def _sentence(told: LatencyStatus) -> str:
    return f"{told.service}: {_within(told, 0.5, 'half')}, {_within(told, 0.99, '99 in 100')}"


def _within(told: LatencyStatus, part: float, words: str) -> str:
    bound = told.quantile_s(part)
    return f"{words} beyond {BOUNDS_S[-1]:g} s" if bound is None else f"{words} within {bound_text(bound)}"


def bound_text(bound_s: float) -> str:
    return f"{bound_s * 1000:g} ms" if bound_s < 1 else f"{bound_s:g} s"
