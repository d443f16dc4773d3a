"""The links of one process in one configuration: made when first used, silent when idle."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ordercast.model.effects import Effect, Unicast
from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, Instant, ProcessId
from ordercast.order.links.config import LinkConfig
from ordercast.order.links.link import Link, LinkFailure, LinkFigures, Tags
from ordercast.wire.head import transmitter_of
from ordercast.wire.header import digest_of

TAGS = 1 << 64
NEVER = Instant(0)


class Bundle:
    def __init__(
        self,
        config: LinkConfig,
        cluster: bytes,
        me: ProcessId,
        configuration: ConfigurationId,
        members: tuple[ProcessId, ...],
        epoch: int = 0,
    ) -> None:
        """`epoch`: the last opening of those trees that were before; their packets are of another time."""
        self._config = config
        self._cluster = cluster
        self._me = me
        self._members = frozenset(members) - {me}
        tag = (int.from_bytes(digest_of(configuration), "big") + epoch) % TAGS
        self._tags = Tags(tag, tag)
        self._links: dict[ProcessId, Link] = {}
        self._used: dict[ProcessId, None] = {}  # since the last flush
        self._last = NEVER  # when this process did something here
        self._broken: set[ProcessId] = set()  # peers of links that have failed, that was told
        self.inbound: dict[ProcessId, deque[bytes]] = {}  # blocks that came, in order

    def send(self, process: ProcessId, block: bytes, now: Instant) -> None:
        self._link(process, now).send((block,))

    def receive(self, packet: bytes, now: Instant) -> None:
        """Take a packet. WireError, and nothing has changed, for one that is wrong, of a stranger or another time."""
        process = transmitter_of(packet)
        if process not in self._members:
            raise WireError("a link packet of one who is not a member")
        brought = self._link(process, now).receive(packet, now)
        if brought.payloads:
            self.inbound.setdefault(process, deque()).extend(brought.payloads)

    def _link(self, process: ProcessId, now: Instant) -> Link:
        self._used[process] = None
        link = self._links.get(process)
        if link is None:
            assert process in self._members, "links lead to members"
            link = self._links[process] = Link(self._config, self._cluster, self._me, process, self._tags, now)
        return link

    def fail(self, process: ProcessId) -> None:
        """A process says what cannot be: nothing more is taken from it."""
        self._links[process].fail(LinkFailure.CONTRADICTION)
        self.inbound.pop(process, None)

    def broken(self) -> list[ProcessId]:
        """Return the peers of links that have failed since this was asked last."""
        found = [peer for peer, link in sorted(self._links.items()) if link.failure and peer not in self._broken]
        self._broken.update(found)
        return found

    def _forgive_pause(self, now: Instant) -> None:
        """What did not move while this process itself did nothing is nobody's fault."""
        if self._config.stall_ns and now - self._last > self._config.stall_ns // 2:
            for link in self._links.values():
                link.forgive(now)
        self._last = now

    def flush(self, now: Instant) -> Iterator[Effect]:
        """Iterate over what leaves now, on links that were used or whose time has come."""
        self._forgive_pause(now)
        due = {process for process, link in self._links.items() if (at := link.next_deadline) and at <= now}
        for process in sorted(due.union(self._used)):
            if bursts := self._links[process].flush(now):
                yield Unicast(process, bursts)
        self._used = {}

    def next_deadline(self) -> Instant | None:
        deadlines = (link.next_deadline for link in self._links.values())
        return min((at for at in deadlines if at is not None), default=None)

    def figures(self) -> dict[ProcessId, LinkFigures]:
        """Return what is to be seen of each link."""
        return {process: link.figures() for process, link in sorted(self._links.items())}

    @property
    def is_quiet(self) -> bool:
        return not any(self.inbound.values()) and all(link.is_quiet for link in self._links.values())

    def check_invariants(self) -> None:
        for link in self._links.values():
            link.check_invariants()
