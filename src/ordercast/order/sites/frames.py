"""Frames: what representatives say to each other on links, and what lies on a site's ring. Values without bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.sites.units import UnitBody
from ordercast.order.sites.views import Fragment, SiteEdge, WideProposal


class Contradiction(WireError):
    """What no sound process says: the link that brought it is not to be trusted."""


class DataEntry(NamedTuple):
    """Messages of a daemon on its own ring, for one view: in any other they are void."""

    view: bytes
    destinations: tuple[int, ...]  # digests of what it is for; none: for everybody
    body: UnitBody


class UnitFrame(NamedTuple):
    """A unit of another site."""

    view: bytes
    rank: int
    place: int  # of the originator among the members of the view
    stamp: int
    previous: int
    aru: int
    needs: int  # fragments that it is for, as bits
    body: UnitBody

    @property
    def highest(self) -> int:
        """The highest stamp that it tells."""
        return max(self.stamp, self.previous, self.aru)


class UpdateFrame(NamedTuple):
    """A site's word: behind the unit `through` nothing follows below `line`; all its daemons have what lies below
    `aru`."""

    view: bytes
    rank: int
    through: int
    line: int
    aru: int
    is_behind: bool
    queue_ms: int = 0  # how long what waits on a link of the site takes to leave, where that is long

    @property
    def highest(self) -> int:
        """The highest stamp that it tells."""
        return max(self.through, self.line, self.aru)


class RecordLink(NamedTuple):
    """A link that is up, as one end sees it."""

    peer: ProcessId
    cost: int
    tags: tuple[int, int]  # mine, theirs


@dataclass(frozen=True, slots=True)
class ReachRecord:
    """What a representative tells everybody."""

    number: int  # rises with every change
    fragment: Fragment
    links: tuple[RecordLink, ...]
    view: ConfigurationId
    seq: int  # the highest of attempts and views that it knows

    @property
    def process(self) -> ProcessId:
        return self.fragment.representative


class ProposeFrame(NamedTuple):
    proposal: WideProposal


class SpreadFrame(NamedTuple):
    """Control of an attempt on its way along the tree of a source."""

    attempt: ConfigurationId
    source: int
    needs: int  # fragments that it is for, as bits
    frame: bytes


class StateFrame(NamedTuple):
    """What a daemon has of the view that it installed last."""

    attempt: ConfigurationId
    process: ProcessId
    view: ConfigurationId
    lines: tuple[int, ...]  # by rank in that view
    held: tuple[tuple[int, ...], ...]  # stamps of all units that it could send whole
    place: tuple[int, int]  # stamp and rank up to which the order was delivered
    commits: tuple[ProcessId, ...]
    clock: int
    seq: int
    rank: int = 0  # of its fragment in that view
    hollow: tuple[tuple[tuple[int, int], ...], ...] = ()  # by rank: stamps and needs of units without messages


class ReadyFrame(NamedTuple):
    attempt: ConfigurationId
    process: ProcessId


class RecoveredFrame(NamedTuple):
    """A unit that some companion lacks."""

    attempt: ConfigurationId
    view: bytes
    rank: int
    originator: ProcessId
    stamp: int
    needs: int
    body: UnitBody


class RoutesFrame(NamedTuple):
    """The links that a view uses from now on."""

    view: bytes
    epoch: int  # rises within the view
    edges: tuple[SiteEdge, ...]


class Had(NamedTuple):
    """What somebody has of a stream: everything through a unit, and some beyond."""

    rank: int
    through: int
    beyond: tuple[int, ...]


class VectorFrame(NamedTuple):
    """What a fragment has of the streams that it gets from a new parent."""

    view: bytes
    epoch: int
    had: tuple[Had, ...]


class BehindFrame(NamedTuple):
    """A daemon's word on its own ring: its application cannot take more, or can again."""

    is_behind: bool


class QueueFrame(NamedTuple):
    """A representative's word on its own ring: how long the queues of its links are; 0: short."""

    queue_ms: int


WideFrame = (
    DataEntry
    | BehindFrame
    | UnitFrame
    | UpdateFrame
    | ReachRecord
    | ProposeFrame
    | SpreadFrame
    | StateFrame
    | ReadyFrame
    | RecoveredFrame
    | RoutesFrame
    | VectorFrame
    | QueueFrame
)
