"""The links of a representative: who is greeted, which links are up, what came on them.

Two representatives agree on a pair of tags by HELLO; a link lives as long as both processes and the path do, over
changes of view. Whoever begins anew writes a new tag, and the other side then does so too. A process that does not
represent its ring answers by REFER to the one that does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ordercast.model.effects import Alarm, AlarmKind, Effect, Endpoint, Unicast
from ordercast.model.errors import WireError
from ordercast.model.ids import MILLISECOND, SECOND, Instant, NodeId, ProcessId, incarnation_of, node_of
from ordercast.order.links.link import Link, LinkFailure, Tags
from ordercast.order.links.rate import regulator_from
from ordercast.order.setup import FarNode
from ordercast.order.sites.config import SitesConfig
from ordercast.order.sites.frames import RecordLink
from ordercast.order.sites.hello import Greeting, HelloKind, decode_greeting, encode_greeting
from ordercast.order.sites.observed import LinkSeen
from ordercast.order.sites.promised import WIDE
from ordercast.order.sites.views import Fragment
from ordercast.wire.head import is_of_another_cluster, kind_of, transmitter_of

WHY_MAX = 256  # failures that are remembered
TAG_BITS = 32  # of a tag: which link of a life it is of; the life stands above them
TAG_MAX = (1 << 64) - 1


@dataclass(slots=True)
class Neighbour:
    """Another representative, or who was one."""

    mine: int  # the tag that this process writes
    theirs: int = 0  # the tag that the other writes; 0: not heard yet
    dead: int = 0  # the highest tag of the other that is over
    link: Link | None = None
    is_up: bool = False  # the other has heard this process too


class Neighbours:
    def __init__(
        self,
        me: ProcessId,
        site: int,
        far: Sequence[FarNode],
        config: SitesConfig,
        cluster: bytes,
    ) -> None:
        """`far` are the nodes of sites that a link leads to."""
        self._me = me
        self._site = site
        self._config = config
        self._cluster = cluster
        self._far = {one.node: one for one in far}
        self._alarmed: set[tuple[AlarmKind, NodeId | None]] = set()
        self.alarms: list[Effect] = []  # each is told once; whoever takes them empties it
        self._known: dict[ProcessId, Neighbour] = {}
        self._tag = incarnation_of(me) << TAG_BITS & TAG_MAX  # another life's packets must not fit a link of this one
        self._offers: dict[NodeId, int] = {}  # tags that strangers at these nodes were greeted with
        self._greet_at = Instant(0)
        self.representative: ProcessId | None = None  # of the own ring
        self.changes = 0  # how often a link came up or ended
        self.failed: list[tuple[ProcessId, LinkFailure]] = []  # links that ended; whoever takes them empties it
        self.raised: list[ProcessId] = []  # links that came up, likewise
        self.why: dict[ProcessId, LinkFailure] = {}  # links failed last, the latest last; for people

    @property
    def left(self) -> set[ProcessId]:
        """Return who has said farewell here last."""
        return {process for process, why in self.why.items() if why is LinkFailure.LEFT}

    @property
    def is_open(self) -> bool:
        """Whether this process speaks on links."""
        return self.representative == self._me

    def up(self) -> list[RecordLink]:
        """Return the links that are up, by the other process."""
        links = []
        for peer, known in sorted(self._known.items()):
            if known.is_up and known.link is not None:
                far = self._far.get(node_of(peer))
                measured = max(1, known.link.path.least // (2 * MILLISECOND))
                cost = far.cost if far is not None and far.cost else measured
                links.append(RecordLink(peer, cost, (known.mine, known.theirs)))
        return links

    def link_to(self, peer: ProcessId) -> Link | None:
        known = self._known.get(peer)
        return known.link if known is not None and known.is_up else None

    def round_trip(self) -> int:
        """Return the widest that is known."""
        return max((known.link.path.smooth for known in self._known.values() if known.link is not None), default=0)

    def queue_ns(self) -> int:
        """Return how long it takes until all that waits has left, on the link where that is longest."""
        longest = 0
        for link in self.links():
            if link.waiting and (rate := link.sender.regulator.rate):
                longest = max(longest, link.waiting * 8 * SECOND // rate)
        return longest

    def links(self) -> Iterable[Link]:
        return (known.link for known in self._known.values() if known.link is not None)

    def forgive(self, now: Instant) -> None:
        """Blame nobody for silence: this process itself did nothing for a while."""
        for link in self.links():
            link.forgive(now)

    def seen(self) -> tuple[LinkSeen, ...]:
        """Return what is to be seen of each link."""
        return tuple(
            LinkSeen(peer, known.is_up, None if known.link is None else known.link.figures())
            for peer, known in sorted(self._known.items())
        )

    # Whether to speak

    def represent(self, representative: ProcessId | None, now: Instant) -> list[Effect]:
        """The ring has this representative from now on."""
        effects: list[Effect] = []
        if self.is_open and representative != self._me:
            self.representative = representative
            for peer in self._known:
                effects += self._refer(peer)
            self._known.clear()
            self.changes += 1
        if representative == self._me and not self.is_open:
            self._greet_at = now
        self.representative = representative
        return effects

    def farewell(self) -> list[Effect]:
        """Return the last words of one who leaves and was alone on its ring, to those whom it has links to: they need
        not wait until they notice its silence."""
        greeting = Greeting(HelloKind.REFER, self._site, self._me, 0)
        return [effect for peer in self._known if self.is_open for effect in self._greet(peer, greeting)]

    def _refer(self, peer: ProcessId) -> list[Effect]:
        if self.representative is None:
            return []
        return self._greet(peer, Greeting(HelloKind.REFER, self._site, self.representative, 0))

    # What comes

    def receive(self, packet: bytes, now: Instant) -> tuple[list[tuple[ProcessId, bytes]], list[Effect]]:
        """Take a packet; return what came on a link, and what is answered. A WireError: it is dropped."""
        if is_of_another_cluster(packet, self._cluster):
            self._alarm_cluster(transmitter_of(packet))
        kind = kind_of(packet, self._cluster)
        peer = transmitter_of(packet)
        far = self._far.get(node_of(peer))
        if far is None:
            raise WireError("a packet of a process that no link leads to")
        if kind in (HelloKind.HELLO, HelloKind.REFER):
            greeting = decode_greeting(packet)
            if greeting.site != far.site:
                self._alarm_site(far, greeting.site)
                raise WireError(f"a greeting of site {greeting.site} by {far.text}, which is in site {far.site}")
            return [], self._greeted(peer, greeting, now) if kind == HelloKind.HELLO else self._referred(peer, greeting)
        known = self._known.get(peer)
        if known is None or known.link is None:
            raise WireError("a packet of a link that is not there")
        brought = known.link.receive(packet, now)
        self._raise(peer, known)
        return [(peer, payload) for payload in brought.payloads], []

    def check(self, fragment: Fragment) -> None:
        """Raise a WireError for a fragment that puts a node into another site than the configuration does."""
        for member in fragment.members:
            far = self._far.get(node_of(member))
            if far is not None and far.site != fragment.site:
                self._alarm_site(far, fragment.site)
                raise WireError(f"a fragment of site {fragment.site} with {far.text}, which is in site {far.site}")

    def fail(self, peer: ProcessId) -> None:
        """Be through with a link whose other end contradicts itself, or passes on what cannot be true."""
        known = self._known.get(peer)
        if known is not None and known.link is not None:
            known.link.fail(LinkFailure.CONTRADICTION)

    def _alarm_cluster(self, peer: ProcessId) -> None:
        far = self._far.get(node_of(peer))
        who = "a node that no link leads to" if far is None else far.text
        text = (
            f"{who} sends packets of another cluster to the links of this node; they are dropped: write the same "
            "cluster and engine into both files, or give one of them another link port"
        )
        self._alarm(Alarm(AlarmKind.CONFIGURATION_MISMATCH, text, None if far is None else peer), far)

    def _alarm_site(self, far: FarNode, site: int) -> None:
        text = (
            f"{far.text} says that it is in site {site}, and is in site {far.site} in the file of this node; its "
            "packets are dropped: write the same sites into both files"
        )
        self._alarm(Alarm(AlarmKind.WRONG_SITE, text, domain=site), far)

    def _alarm(self, alarm: Alarm, far: FarNode | None) -> None:
        about = alarm.kind, None if far is None else far.node
        if about not in self._alarmed:
            self._alarmed.add(about)
            self.alarms.append(alarm)

    def _greeted(self, peer: ProcessId, greeting: Greeting, now: Instant) -> list[Effect]:
        if not self.is_open:
            return self._refer(peer)
        known = self._known.get(peer) or self._begin(peer)
        is_over = greeting.mine <= known.dead and greeting.yours != known.mine
        is_strange = greeting.yours not in (0, known.mine)  # for an earlier life of this process, or an earlier link
        if is_over or is_strange or greeting.mine < known.theirs:
            return self._hello(peer, known)  # it does not know yet that the old link is over
        if greeting.mine > known.theirs:
            if known.is_up:  # otherwise nothing was sent under the own tag: it stays, or greetings would never end
                self._end(peer, known, LinkFailure.REPLACED)
            known.theirs = greeting.mine
            tags = Tags(known.mine, known.theirs)
            regulator = regulator_from(self._config.rate, self._config.links)
            known.link = Link(self._config.links, self._cluster, self._me, peer, tags, now, regulator)
        if greeting.yours != known.mine:
            return self._hello(peer, known)
        assert known.link is not None
        known.link.hear(now)
        return self._hello(peer, known) if self._raise(peer, known) else []

    def _referred(self, peer: ProcessId, greeting: Greeting) -> list[Effect]:
        known, target = self._known.get(peer), ProcessId(greeting.mine)
        if known is not None and known.link is not None:
            self._end(peer, known, LinkFailure.LEFT if target == peer else LinkFailure.REFERRED)
        if not self.is_open or node_of(target) not in self._far or target == peer:
            return []
        return self._hello(target, self._known.get(target) or self._begin(target))

    def _begin(self, peer: ProcessId) -> Neighbour:
        """Know a process, under the tag with which whoever is at its node was greeted."""
        tag = self._offers.pop(node_of(peer), None)
        for other in sorted(one for one in self._known if node_of(one) == node_of(peer) and one < peer):
            former = self._known.pop(other)  # an earlier life
            if former.link is not None:
                self._end(other, former, LinkFailure.REPLACED)
            tag = former.mine
        known = self._known[peer] = Neighbour(self._next_tag() if tag is None else tag)
        return known

    def _next_tag(self) -> int:
        self._tag += 1
        return self._tag

    def _raise(self, peer: ProcessId, known: Neighbour) -> bool:
        """Know that the other side has heard this one; return whether that is news, which it may wait for itself."""
        if known.is_up:
            return False
        known.is_up = True
        self.changes += 1
        self.raised.append(peer)
        return True

    def _end(self, peer: ProcessId, known: Neighbour, why: LinkFailure) -> None:
        """Be through with a link; the next one has other tags at both ends."""
        if known.is_up:
            self.failed.append((peer, why))
            self.why.pop(peer, None)
            self.why[peer] = why
            if len(self.why) > WHY_MAX:
                del self.why[next(iter(self.why))]
        self.changes += 1
        known.dead, known.theirs, known.mine = max(known.dead, known.theirs), 0, self._next_tag()
        known.link, known.is_up = None, False

    # What leaves

    def flush(self, now: Instant) -> list[Effect]:
        """Return what leaves on links now, and greetings that are due."""
        effects: list[Effect] = []
        for peer, known in list(self._known.items()):
            link = known.link
            if link is None:
                continue
            bursts = link.flush(now)
            if link.failure is not None:
                self._end(peer, known, link.failure)
            elif bursts:
                effects.append(Unicast(peer, bursts, WIDE))
        if self.is_open and now >= self._greet_at:
            self._greet_at = Instant(now + self._config.hello_ns)
            effects += self._greet_all()
        return effects

    def _greet_all(self) -> list[Effect]:
        """Greet those who have not answered, and whoever may be at the addresses of the others. Links that are up need
        no greeting: records come on them as often."""
        effects: list[Effect] = []
        linked = set()
        for peer, known in self._known.items():
            if known.link is not None:
                linked.add(node_of(peer))
                if not known.is_up:
                    effects += self._hello(peer, known)
        for node, far in self._far.items():
            if node not in linked:
                effects += self._greet(far.address, Greeting(HelloKind.HELLO, self._site, self._stranger_tag(node), 0))
        return effects

    def _stranger_tag(self, node: NodeId) -> int:
        """Return the tag for whoever is at a node: that of its last process, or one for nobody."""
        known = [one for peer, one in sorted(self._known.items()) if node_of(peer) == node]
        if known:
            return known[-1].mine
        if node not in self._offers:
            self._offers[node] = self._next_tag()
        return self._offers[node]

    def _hello(self, peer: ProcessId, known: Neighbour) -> list[Effect]:
        return self._greet(peer, Greeting(HelloKind.HELLO, self._site, known.mine, known.theirs))

    def _greet(self, target: ProcessId | Endpoint, greeting: Greeting) -> list[Effect]:
        packet = encode_greeting(self._cluster, self._me, greeting)
        return [Unicast(target, [(packet, len(packet))], WIDE)]

    @property
    def next_deadline(self) -> Instant | None:
        deadlines = [link.next_deadline for link in self.links()]
        due = [deadline for deadline in deadlines if deadline is not None]
        return min([*due, self._greet_at] if self.is_open else due, default=None)
