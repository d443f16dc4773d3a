"""What a status says of several sites: who is in the view, the links of this node, what delivery waits for. Pure.

Every daemon knows the sites of the view; links are those of a site's representative, which alone speaks on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ordercast.daemon.status.out_of_view import OutOfView, out_of_view
from ordercast.daemon.status.rings_section import SectionSource, TokenStatus
from ordercast.model.ids import Instant, ProcessId
from ordercast.model.notes import Occurrence

if TYPE_CHECKING:
    from ordercast.order.sites.node import SitesNode
    from ordercast.order.sites.observed import LinkSeen, SitesSeen


@dataclass(frozen=True, slots=True)
class SiteStatus:
    """A ring of the view. A site that is split has two."""

    name: str
    ring: str
    representative: str
    members: tuple[str, ...]
    line: int  # logical time below which everything of it is here
    aru: int  # below which all its members have everything, as far as is known here
    undelivered: int  # packets of it that wait here
    is_behind: bool  # an application there does not take its deliveries
    is_own: bool


@dataclass(frozen=True, slots=True)
class SiteLinkStatus:
    """A link of this node."""

    peer: str
    site: str
    state: str  # up, or greeting
    round_trip_ns: int  # 0: unknown
    loss: float  # part of the packets of this end that were asked for again
    rate: int  # bits per second; 0: as fast as they come, or unknown
    queue_size: int  # bytes that were not sent yet
    under_way: int  # packets that were sent and are not known to have come
    missing: int  # packets that did not come yet
    sent: int
    received: int
    failed_last: str | None  # why


@dataclass(frozen=True, slots=True)
class SitesWaitStatus:
    """What is next in the order and cannot be delivered yet."""

    site: str  # whose message it is
    sender: str
    stamp: int
    is_safe: bool
    sites: tuple[str, ...]  # whose word is missing


@dataclass(frozen=True, slots=True)
class SitesSection:
    site: str  # of this node
    is_representative: bool  # it speaks for its site
    representative: str  # who does
    sites: tuple[SiteStatus, ...]  # of the view, by rank
    links: tuple[SiteLinkStatus, ...]  # of this node, if it represents its site
    failed: dict[str, str]  # why links failed last, by the site at the other end
    trees: dict[str, dict[str, str]]  # of each site: from whom another gets what it sends
    attempt: tuple[str, ...] | None  # sites whose word a new view waits for; none: none is attempted
    waiting: SitesWaitStatus | None
    unstable_size: int  # bytes of this node's messages that not everybody is known to have
    window: int  # of all daemons
    updates: int  # promises and acknowledgements of this node, since it started
    token: TokenStatus  # of the site's ring
    members: int  # of the site's ring
    missing: tuple[OutOfView, ...] = ()  # of the file

    def warnings(self, members: int) -> Iterator[str]:
        for site in self.sites:
            if site.is_behind:
                yield f"nobody sends, for an application in {site.name} does not take its deliveries"
        here = {site.name for site in self.sites} | {link.site for link in self.links if link.state == "up"}
        for name, why in self.failed.items():
            if name not in here:
                yield f"the link to {name} failed, for {why}: see whether its daemons run and can be reached"
        if silence := self.token.silence(self.members):
            yield f"{self.site}: {silence}"

    def as_before(self, document: dict[str, Any]) -> dict[str, Any]:
        """This engine was never the only one."""
        return {}


def sites_section(node: SectionSource) -> SitesSection:
    from ordercast.order.sites.node import SitesNode

    engine = node.engine
    assert isinstance(engine, SitesNode)
    return _Told(node, engine, engine.observed()).section(node.now())


class _Told:
    """What is seen, in the names of the node that tells it."""

    def __init__(self, node: SectionSource, engine: SitesNode, seen: SitesSeen | None) -> None:
        self._node, self._engine, self._seen = node, engine, seen
        self._names = {domain.number: domain.name for domain in node.config.rings}
        self._own = node.config.my_rings[0].name if node.config.rings else "here"

    def section(self, now: Instant) -> SitesSection:
        node, seen, ring = self._node, self._seen, self._engine.ring_configuration
        sites = tuple(self._sites())
        return SitesSection(
            site=self._own,
            is_representative=ring.representative == self._engine.process,
            representative=node.name_of(ring.representative),
            sites=sites,
            links=() if seen is None else tuple(map(self._link, seen.links)),
            failed={} if seen is None else {self._site_of(peer): why for peer, why in seen.failures},
            trees=self._trees(),
            attempt=None if seen is None or seen.attempt is None else tuple(map(self._site_of, seen.attempt)),
            waiting=self._waiting(),
            unstable_size=0 if seen is None else seen.own_size,
            window=node.config.sites.window,
            updates=node.counters.occurred[Occurrence.SITES_UPDATE.value],
            token=TokenStatus.of(self._engine.ring_stats, node.config.ring, now, len(ring.members)),
            members=len(ring.members),
            missing=() if seen is None else out_of_view(node, {site.name for site in sites}, now),
        )

    def _sites(self) -> Iterator[SiteStatus]:
        for fragment in () if self._seen is None else self._seen.fragments:
            names = tuple(map(self._node.name_of, fragment.members))
            ring = f"{fragment.ring.seq}.{self._node.name_of(fragment.ring.representative)}"
            name = self._names.get(fragment.site, self._own)
            yield SiteStatus(name, ring, names[0], names, *fragment[3:])

    def _name(self, rank: int) -> str:
        """Return a fragment's name: its site's, with the representative where the site is split."""
        assert self._seen is not None
        fragment = self._seen.fragments[rank]
        name = self._names.get(fragment.site, self._own)
        is_split = sum(one.site == fragment.site for one in self._seen.fragments) > 1
        return f"{name} ({self._node.name_of(fragment.members[0])})" if is_split else name

    def _site_of(self, process: ProcessId) -> str:
        """Return the site of a node, as the file has it."""
        name = self._node.name_of(process)
        return next((peer.rings[0] for peer in self._node.config.peers if peer.name == name and peer.rings), name)

    def _link(self, link: LinkSeen) -> SiteLinkStatus:
        assert self._seen is not None
        peer, figures = self._node.name_of(link.peer), link.figures
        last = dict(self._seen.failures).get(link.peer)
        state = "up" if link.is_up else "greeting"
        if figures is None:
            return SiteLinkStatus(peer, self._site_of(link.peer), state, 0, 0.0, 0, 0, 0, 0, 0, 0, last)
        return SiteLinkStatus(
            peer,
            self._site_of(link.peer),
            state,
            figures.round_trip_ns,
            round(figures.loss, 4),
            figures.rate,
            figures.waiting,
            figures.under_way,
            figures.missing,
            figures.counts.sent,
            figures.counts.received,
            last,
        )

    def _trees(self) -> dict[str, dict[str, str]]:
        if self._seen is None:
            return {}
        return {
            self._name(source): {
                self._name(rank): self._name(parent) for rank, parent in enumerate(tree) if parent is not None
            }
            for source, tree in enumerate(self._seen.trees)
        }

    def _waiting(self) -> SitesWaitStatus | None:
        waiting = None if self._seen is None else self._seen.waiting
        if waiting is None:
            return None
        sender = self._node.name_of(waiting.originator)
        sites = tuple(map(self._name, waiting.blockers))
        return SitesWaitStatus(self._name(waiting.rank), sender, waiting.stamp, waiting.is_safe, sites)
