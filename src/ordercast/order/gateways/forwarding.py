"""Forwarding: what is taken from one attachment goes to all others, in the order taken, once.

First copies count, the rest is dropped. Packets of a ring do not go back onto it, unless they are residual: another
half of it may lack them. Regular ones may come another way before the own ring hands them up here. If it ends now, they
are residual ones for its members, who must hear that they are regular before they hear anything that rests on it.

What came over a link that began with a merge bears the merge's place, `since`. Whoever is not past the merge keeps the
item aside and carries it on; whoever is past it without having had it can have got it from nobody, and drops it.
Nothing at or below `since` is taken. Packets that somebody on the way had over such a link are not sent again when they
come without it, so those behind them, which are, release them here: the packets of a ring are taken in its order.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import NamedTuple

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.model.notes import Occurrence
from ordercast.order.gateways.bodies import size_of
from ordercast.order.gateways.coverage import Coverage
from ordercast.order.gateways.forgetting import Stability
from ordercast.order.gateways.holds import Holds
from ordercast.order.gateways.interest import Masks
from ordercast.order.gateways.items import (
    Carried,
    EndItem,
    Flooded,
    HelloItem,
    HoldItem,
    MarkItem,
    NoticeItem,
    Processes,
    Stretch,
    TopologyItem,
    tag_of,
)
from ordercast.order.gateways.known import Known
from ordercast.order.stamped.lanes import NO_STAMP, Stamp


class _Aside(NamedTuple):
    """An item that waits until the merge is done over whose link it came."""

    item: Flooded
    since: Stamp
    half: Processes | None


def _first_seq(aside: _Aside) -> int:
    assert isinstance(aside.item, Stretch)
    return aside.item.seqs[0]


def _is_below(aside: _Aside, stretch: Stretch) -> bool:
    """Whether what is kept are regular packets of the same ring, numbered before these."""
    kept = aside.item
    if not isinstance(kept, Stretch) or aside.half is not None:
        return False
    return kept.ring == stretch.ring and kept.seqs[0] < stretch.seqs[0]


def _is_told_by(last: Carried, stretch: Stretch, since: Stamp) -> bool:
    """Whether something tells only how far a ring has come, of which more comes the same way: that tells it, too.
    What is kept for a link comes in the order of each gateway that carries it, so it may lie below."""
    told = last.item
    return (
        isinstance(told, Stretch)
        and told.is_hollow
        and not told.is_safe
        and (told.ring, last.since) == (stretch.ring, since)
        and told.seqs[-1] < stretch.seqs[-1]
    )


class Forwarding:
    """What waits to be put on each attachment, and what waits for a link to begin."""

    def __init__(self, known: Known, coverage: Coverage, stability: Stability, holds: Holds, masks: Masks) -> None:
        self._known = known
        self._coverage = coverage
        self._stability = stability
        self._holds = holds
        self._masks = masks
        self._is_wanted = masks.is_wanted
        self.queues: dict[int, deque[Carried]] = {domain: deque() for domain in known.domains}
        # What came of an own ring another way, and has not been handed up there: packets, and notices behind them.
        self._early: dict[int, deque[Carried]] = {domain: deque() for domain in known.domains}
        # Links that began with a merge, by domain and gateway.
        self.links: dict[int, dict[ProcessId, Stamp]] = {domain: {} for domain in known.domains}
        self._aside: list[_Aside] = []
        self._aside_lowest: dict[ConfigurationId, int] = {}  # the lowest seq of regular packets in it, by ring
        self.aside_size = 0  # bytes of the packets in it
        self._aside_taken: dict[Stamp, set[object]] = defaultdict(set)
        self.strange = 0  # items of rings that nobody has told of

    # Taking

    def accept(self, item: Flooded, since: Stamp, domain: int, half: Processes | None) -> bool:
        """Take an item that came on an attachment, and carry it on if it is new. Return False if it is too old for the
        link over which it came, or nobody can have had that link."""
        known = self._known
        if isinstance(item, HoldItem):
            since = NO_STAMP  # it has no place in the order
        stamp = self.stamp(item)
        if stamp <= since:
            known.occurred[Occurrence.NETWORK_BEFORE_LINK] += 1
            return False
        if since > known.stable and known.refuse(self._why_unlinked(since)):
            return False
        if stamp[0] > known.clock:
            known.clock = stamp[0]
        if stamp > known.need and not (isinstance(item, NoticeItem) and not item.is_cap):
            known.need = stamp  # notices alone wake nobody: they would answer one another for ever
        if since > known.place:
            self._keep_aside(_Aside(item, since, half), domain)
        elif (new := self._take_in_order(item, half)) is not None:
            self.forward(new, since, domain, half)
        return True

    def _take_in_order(self, item: Flooded, half: Processes | None) -> Flooded | None:
        """Take an item here, and before it what is kept for a younger link of the regular packets that its ring
        numbered below; return what of the item is new. These packets came the item's way too, for they came in order,
        but somebody on the way had them over the younger link first."""
        if self._aside_lowest and isinstance(item, Stretch) and half is None:
            first = item.seqs[0]
            if self._aside_lowest.get(item.ring, first) < first:
                kept = [aside for aside in self._aside if _is_below(aside, item)]
                self._set_aside([aside for aside in self._aside if not _is_below(aside, item)])
                for aside in sorted(kept, key=_first_seq):
                    self.take(aside.item, None)
        return self.take(item, half)

    def _set_aside(self, items: Iterable[_Aside]) -> None:
        self._aside.clear()
        self._aside_lowest.clear()
        self.aside_size = 0
        for aside in items:
            self._put_aside(aside)

    def _put_aside(self, aside: _Aside) -> None:
        self._aside.append(aside)
        item = aside.item
        if isinstance(item, Stretch):
            self.aside_size += size_of(item.bodies)
            if aside.half is None:
                self._aside_lowest[item.ring] = min(item.seqs[0], self._aside_lowest.get(item.ring, item.seqs[0]))

    def _why_unlinked(self, since: Stamp) -> str | None:
        """Return why no item can have come over a link: this process is past the merge that began it, and has not had
        it, though whoever had it says so before it carries anything over the link."""
        known = self._known
        if since <= known.place and since not in known.merges:
            return f"an item over a link that began at {since[0]}, and no merge did"
        return None

    def stamp(self, item: Flooded) -> Stamp:
        """Return the age of an item: what lies at or below a link's beginning is not taken over it."""
        match item:
            case Stretch():
                stream = self._known.streams.get(item.ring)
                return (item.tick, stream.tag if stream is not None else tag_of(item.ring), item.seqs[-1])
            case HoldItem():
                return (0, 0, 1)
            case _:
                return item.stamp

    def take(self, item: Flooded, half: Processes | None) -> Flooded | None:
        """Take an item here; return what of it is new."""
        match item:
            case Stretch():
                return self._take_packets(item, half)
            case EndItem():
                return item if self._take_end(item) else None
            case NoticeItem():
                return item if self._take_notice(item) else None
            case HoldItem():
                return item if self._holds.take(item) else None

    def _take_packets(self, stretch: Stretch, half: Processes | None) -> Stretch | None:
        stream = self._known.streams.get(stretch.ring)
        if stream is None:
            self.strange += self.stamp(stretch) > self._known.stable  # else everybody has passed it
            return None
        new = stream.take(stretch) if half is None else stream.take_residual(stretch, half)
        if new is not None and new.interest is not None:
            self._masks.take(new.interest)
        return new

    def _take_end(self, end: EndItem) -> bool:
        known = self._known
        ring = end.successor
        if ring.id not in known.rings and ring.birth <= known.stable:
            return False  # of a past that is forgotten
        known.learn(ring)
        if not known.ends.take(end, ring.id in known.born):
            return False
        late = ring.birth <= known.place and end.ring in known.parts and ring.id not in known.born
        assert not late, f"{end.ring} ended in {ring.id} at {ring.birth}, in the past of {known.place}"
        known.changed()
        return True

    def _take_notice(self, notice: NoticeItem) -> bool:
        stream = self._known.streams.get(notice.ring)
        if stream is None:
            return False
        self._stability.hear(notice.ring, notice.stable)
        is_news = stream.raise_front(notice.front)
        return self._coverage.state(notice.ring, notice.by, notice.half, notice.entries) or is_news

    # Carrying

    def forward(self, item: Flooded, since: Stamp, domain: int | None, half: Processes | None) -> None:
        """Queue an item for all attachments but the one it came on. A link that all have passed needs no mention."""
        if since <= self._known.stable:
            since = NO_STAMP
        for other in self.queues:
            if other == domain:
                continue
            if isinstance(item, EndItem):
                self.put_early(other)
            if self._waits(other, item, half):
                self._early[other].append(Carried(item, since))
            else:
                self._put(other, item, since, half)

    def _put(self, domain: int, item: Flooded, since: Stamp, half: Processes | None) -> None:
        queue = self.queues[domain]
        if isinstance(item, Stretch) and half is None:
            if item.is_hollow or not self._is_wanted(domain, item):
                self._known.occurred[Occurrence.NETWORK_FILTERED] += 1
                item = item.hollow()
            if queue and _is_told_by(queue[-1], item, since):
                queue.pop()
        queue.append(Carried(item, since, half))

    def _waits(self, domain: int, item: Flooded, half: Processes | None) -> bool:
        """Whether an item does not go onto an attachment at once: regular packets of the own ring there, which will
        hand them up; and, behind such packets, how far it is said to be."""
        if isinstance(item, Stretch):
            return half is None and self._known.own[domain] == item.ring
        return isinstance(item, NoticeItem) and bool(self._early[domain]) and self._known.own[domain] == item.ring

    def handed_up(self, domain: int, seq: int) -> None:
        """Hear that an own ring has handed up its regular packets up to a seq: all of its members get them from it."""
        early = self._early[domain]
        while early:
            item, since, _ = early[0]
            if isinstance(item, Stretch):
                if item.seqs[-1] > seq:
                    return
            else:
                self.queues[domain].append(Carried(item, since))
            early.popleft()

    def put_early(self, domain: int) -> None:
        """Queue what an own ring has not handed up: it has ended, or an END follows by which others may take it to have
        ended. Its members must know before that these packets are regular."""
        early = self._early[domain]
        while early:
            item, since, _ = early.popleft()
            assert isinstance(item, Stretch | NoticeItem)
            self._put(domain, item, since, None)

    def say(self, item: Flooded, domain: int, since: Stamp = NO_STAMP) -> None:
        """Take what this process says itself of one of its rings, and flood it over the others."""
        self.take(item, None)
        self.forward(item, since, domain, None)

    # Links

    def begin_links(self, domain: int, members: Processes, merge: Stamp) -> None:
        """Let links to other members begin at a merge."""
        for process in members:
            self.links[domain][process] = merge

    def start_ring(self, domain: int, ring: ConfigurationId, half: Processes) -> None:
        """Begin a physical ring: links to those who come along stay, and what was meant for the old ring is thrown
        away. The first packet of every member says hello."""
        links = self.links[domain]
        self.links[domain] = {process: begin for process, begin in links.items() if process in half}
        queue = self.queues[domain]
        kept = [carried for carried in queue if not isinstance(carried.item, HelloItem | MarkItem | TopologyItem)]
        queue.clear()
        queue.append(Carried(HelloItem(ring)))
        queue.extend(kept)

    def is_settled(self, domain: int) -> bool:
        """Whether all members of the own ring there know every ring that is known here: no merge has brought some of
        them, but those that everybody has passed."""
        return domain not in self._known.merging and not self.links[domain]

    def forget_links(self) -> None:
        """Forget the beginnings of links that everybody has passed."""
        stable = self._known.stable
        for domain, links in self.links.items():
            self.links[domain] = {process: begin for process, begin in links.items() if begin > stable}

    def since(self, domain: int, sender: ProcessId, since: Stamp) -> Stamp:
        """Return the merge that brought the youngest link of an item's way, the last one included."""
        return max(since, self.links[domain].get(sender, NO_STAMP))

    # Items kept for a link to begin

    def _keep_aside(self, aside: _Aside, domain: int) -> None:
        new = self._new_aside(aside)
        if new is not None:
            self._put_aside(aside._replace(item=new))
            self._known.occurred[Occurrence.NETWORK_KEPT_FOR_LINK] += 1
            self.forward(new, aside.since, domain, aside.half)

    def _new_aside(self, aside: _Aside) -> Flooded | None:
        """Return what of an item is not kept already."""
        taken, item = self._aside_taken[aside.since], aside.item
        if isinstance(item, Stretch):
            keys = [(item.ring, seq, aside.half) for seq in item.seqs]
            new = [place for place, key in enumerate(keys) if key not in taken]
            taken.update(keys)
            return item.between(new[0], new[-1] + 1) if new else None
        key = (item.ring, item.half, item.successor.id, item.sure) if isinstance(item, EndItem) else item
        if key in taken:
            return None
        taken.add(key)
        return item

    def release(self) -> None:
        """Take what was kept for links that have begun."""
        place, merges = self._known.place, self._known.merges
        for since in [since for since in self._aside_taken if since <= place]:
            del self._aside_taken[since]
        ready = [aside for aside in self._aside if aside.since <= place]
        if not ready:
            return
        self._set_aside([aside for aside in self._aside if aside.since > place])
        for aside in ready:
            if aside.since in merges or aside.since <= self._known.stable:
                self._take_in_order(aside.item, aside.half)
