"""One process that all messages pass: the sequencer as a graph. (Thesis, 4.1: the centralised method)"""

from __future__ import annotations

from ordercast.order.tree.builders.base import at_once, everybody, most_frequent
from ordercast.order.tree.given import Given
from ordercast.order.tree.graph import Memberships, Parents


def _centred(groups: Memberships, given: Given) -> Parents:
    """Hang everybody below the process that is in most groups."""
    if not groups:
        return {}
    root = most_frequent(groups)
    return {process: None if process == root else root for process in sorted(everybody(groups))}


centre = at_once(_centred)
