"""Verdicts on a recorded history, one file per promise.

`Checkers` is the panel: `observe` each event, then ask for `verdicts` or the combined `verdict`. A judge does not read
the defendant's code: this package imports `model` and `trace.records` only. The predicates are listed in
`docs/internals/checkers.md`.
"""

from __future__ import annotations

from ordercast.checker.base import Checker
from ordercast.checker.panel import CHECKERS, Checkers, check
from ordercast.checker.verdict import Outcome, Verdict, Witness, combined

__all__ = ["CHECKERS", "Checker", "Checkers", "Outcome", "Verdict", "Witness", "check", "combined"]
