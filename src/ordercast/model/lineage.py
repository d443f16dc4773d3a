"""Terms and lineages: how replicas tell components, and sequences of commands, apart, and which was later."""

from __future__ import annotations

from typing import NamedTuple

from ordercast.model.events import ViewId


class Term(NamedTuple):
    """A component, by its place among all that its members have been in. Views alone do not rise for ever: a daemon
    that lost its memory numbers its configurations anew. Who comes back to such a one begins a new era."""

    era: int
    view: ViewId


class Lineage(NamedTuple):
    """Where the sequence began or, when every side of a partition goes on, where it branched off."""

    term: Term
    side: int = 0  # which one, of several that met in this view; 0: it is the sequence of the whole view
