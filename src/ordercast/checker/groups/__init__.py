"""Verdicts on what clients of groups were told: the EVS-C properties of the Spread paper, a family a file.

`GroupCheckers` is the panel, with the same verdicts as that of the daemons. This package imports `model` and `trace`
only, like all checkers. Not here are P2.10, which is a sum of others, and P2.18 and P2.19, which daemons promise and
not groups (`checker/` judges them).
"""

from __future__ import annotations

from ordercast.checker.groups.base import GroupChecker
from ordercast.checker.groups.panel import GROUP_CHECKERS, GroupCheckers, check_groups

__all__ = ["GROUP_CHECKERS", "GroupChecker", "GroupCheckers", "check_groups"]
