"""Lineage: the name of a sequence of commands, as replicas tell sequences apart."""

from __future__ import annotations

from typing import NamedTuple

from ordercast.model.events import ViewId


class Lineage(NamedTuple):
    """Where the sequence began or, when every side of a partition goes on, where it branched off."""

    view: ViewId
    side: int = 0  # which one, of several that met in this view; 0: it is the sequence of the whole view
