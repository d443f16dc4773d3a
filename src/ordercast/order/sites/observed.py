"""What can be seen of the sites engine from outside: the sites of the view, the links of a representative, and what
delivery waits for."""

from __future__ import annotations

from typing import NamedTuple

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.links.link import LinkFigures
from ordercast.order.sites.order import WideOrder
from ordercast.order.sites.routes import SourceTree
from ordercast.order.sites.tape import Tape
from ordercast.order.sites.units import AnyUnit, DeliveryClass


class LinkSeen(NamedTuple):
    """A link of this process, or one that it tries to set up."""

    peer: ProcessId
    is_up: bool
    figures: LinkFigures | None  # None: the other has not been heard


class FragmentSeen(NamedTuple):
    """A ring of the view."""

    site: int
    ring: ConfigurationId
    members: tuple[ProcessId, ...]  # the representative first
    line: int  # stamp below which everything of it is here
    aru: int  # stamp below which all its members have everything, as far as is known here
    undelivered: int  # units of it that wait here
    is_behind: bool  # an application there cannot take more
    is_own: bool


class WideWait(NamedTuple):
    """What is next in the order, and cannot be delivered yet."""

    rank: int  # whose it is
    originator: ProcessId
    stamp: int
    is_safe: bool
    blockers: tuple[int, ...]  # ranks whose word is missing


class SitesSeen(NamedTuple):
    state: str
    view: ConfigurationId
    fragments: tuple[FragmentSeen, ...]  # by rank
    trees: tuple[SourceTree, ...]  # of each source
    attempt: tuple[ProcessId, ...] | None  # representatives whose word an attempt at a new view waits for; None: no one
    waiting: WideWait | None
    own_size: int  # bytes of own messages that not everybody is known to have, and one more for each
    links: tuple[LinkSeen, ...]
    failures: tuple[tuple[ProcessId, str], ...]  # why links failed last, by the other process


def sites_seen(
    tape: Tape,
    trees: tuple[SourceTree, ...],
    links: tuple[LinkSeen, ...],
    failures: tuple[tuple[ProcessId, str], ...],
) -> SitesSeen:
    """Return what is to be seen now."""
    order, view = tape.order, tape.view
    fragments = tuple(
        FragmentSeen(
            fragment.site,
            fragment.ring,
            fragment.members,
            order.streams[rank].line,
            order.arus[rank],
            len(order.streams[rank].lane.runs),
            rank in tape.behind,
            rank == order.rank,
        )
        for rank, fragment in enumerate(view.fragments)
    )
    missing = None
    if (attempt := tape.attempt) is not None:
        missing = tuple(attempt.proposal.fragments[rank].representative for rank in sorted(attempt.missing()))
    waiting = wait_of(order)
    return SitesSeen(tape.state, view.id, fragments, trees, missing, waiting, order.own_size, links, failures)


def wait_of(order: WideOrder) -> WideWait | None:
    """Return what is next and cannot be delivered, and whose word it waits for; None: nothing waits."""
    lowest: AnyUnit | None = None
    for stream in order.streams:
        first = stream.lane.runs[0].content if stream.lane.runs else None
        if first is not None and (lowest is None or first.place < lowest.place):
            lowest = first
    if lowest is None:
        return None
    late = [
        rank for rank, stream in enumerate(order.streams) if rank != lowest.rank and stream.lane.bound < lowest.place
    ]
    is_safe = lowest.delivery_class is DeliveryClass.SAFE
    if is_safe:
        late += [rank for rank, aru in enumerate(order.arus) if aru <= lowest.stamp and rank not in late]
    return WideWait(lowest.rank, lowest.originator, lowest.stamp, is_safe, tuple(sorted(late)))
