"""`Spread` runs a function on many items: a plain loop in the tests, Spark in the job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Spread = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
