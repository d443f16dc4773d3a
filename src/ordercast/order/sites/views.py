"""Fragments, proposals and views. A *fragment* is a ring configuration of a site: the overlay's nodes are fragments, so
that a site whose ring has split is two nodes, which may both be in one view.

A *proposal* lists fragments, ranked by their representatives, and the links between them with directed costs; its id is
that of the attempt. A *view* is a proposal that was carried out.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import ConfigurationId, ProcessId

SEQ_STEP = 4  # seqs of attempts and views rise in such steps
TRANSITIONAL = 2  # so much below a view is the transitional configuration that leads to it
RANK_SLOTS = 256  # slots of a rank in a position
_ID = struct.Struct(">QQ")
EVERYBODY = (1 << 64) - 1  # all fragments, as bits


class Fragment(NamedTuple):
    """A ring of a site: its members, the representative first, and why it was formed, by its Commit token."""

    ring: ConfigurationId
    site: int
    members: tuple[ProcessId, ...]
    reason: ChangeReason = ChangeReason.STARTED

    @property
    def representative(self) -> ProcessId:
        return self.members[0]


class SiteEdge(NamedTuple):
    """A link between the representatives of two fragments, named by their ranks, the lower one first."""

    low: int
    high: int
    forth: int  # cost from low to high
    back: int
    tags: tuple[int, int]  # the epoch of the link, as its ends write it: a link that was set up again is another


@dataclass(frozen=True)
class WideProposal:
    """Who is to be in a view, and over which links. Equal at everybody, so all compute the same trees."""

    id: ConfigurationId  # of the attempt: a seq above all that is known, and the coordinator
    fragments: tuple[Fragment, ...]  # by representative
    edges: tuple[SiteEdge, ...]
    reason: int = 0

    @cached_property
    def members(self) -> tuple[ProcessId, ...]:
        return tuple(sorted(member for fragment in self.fragments for member in fragment.members))

    @cached_property
    def rank_of(self) -> dict[ProcessId, int]:
        return {member: rank for rank, fragment in enumerate(self.fragments) for member in fragment.members}


@dataclass(frozen=True)
class WideView:
    """An installed view: one order of all its fragments' streams."""

    id: ConfigurationId
    proposal: WideProposal
    base: int  # stamps of the view lie above

    @cached_property
    def digest(self) -> bytes:
        """Eight bytes that name the view in frames."""
        return digest_of(self.id)

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        return self.proposal.fragments

    @property
    def members(self) -> tuple[ProcessId, ...]:
        return self.proposal.members


def digest_of(view: ConfigurationId) -> bytes:
    """Return the eight bytes that name a view in frames."""
    return hashlib.blake2b(_ID.pack(view.seq, view.representative), digest_size=8).digest()


def next_seq(highest: int) -> int:
    """Return the lowest seq of an attempt or view above this one."""
    return (highest // SEQ_STEP + 1) * SEQ_STEP
