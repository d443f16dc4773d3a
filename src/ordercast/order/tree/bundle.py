"""The links of one process in one configuration: made when first used, silent when idle."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from ordercast.model.effects import Effect, Unicast
from ordercast.model.errors import WireError
from ordercast.model.ids import MILLISECOND, ConfigurationId, Instant, ProcessId
from ordercast.order.links.config import LinkConfig
from ordercast.order.links.link import Link, LinkFailure, LinkFigures, Tags
from ordercast.order.links.receiver import NEVER
from ordercast.order.tree.blocks import BlockKind
from ordercast.wire.head import HEAD_SIZE, transmitter_of
from ordercast.wire.header import digest_of

TAGS = 1 << 64
VISITS = 4  # of the control token: whoever has passed it on so often has looked at its links, too
START = Instant(0)
# How long what is said of stability waits for a packet to the same process. What goes up waits less long than the
# acknowledgement of a link (`links.config.NEAR`), so that one packet brings both; what goes down frees memory alone.
WAIT_NS = {
    BlockKind.DONE: 5 * MILLISECOND,
    BlockKind.KNOWN: 5 * MILLISECOND,
    BlockKind.SAFE: 50 * MILLISECOND,
    BlockKind.STABLE: 10 * MILLISECOND,
}
COUNTS = (BlockKind.DONE, BlockKind.SAFE)  # a later one says all that an earlier one does
COUNT_KEY = 5  # bytes of kind and birth


@dataclass(slots=True)
class WaitingBlocks:
    """Blocks for one process that leave with the next packet to it, by then at the latest."""

    due: Instant
    blocks: dict[bytes, bytes] = field(default_factory=dict)

    def add(self, block: bytes) -> None:
        self.blocks[block[:COUNT_KEY] if block[0] in COUNTS else block] = block


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
        self._deadlines: dict[ProcessId, Instant] = {}  # of those links that have one, since they were used last
        self._last = START  # when this process did something here
        self._visits: int | None = 0  # of the control token, so far; None: there is none
        self._visited: deque[Instant] = deque(maxlen=VISITS)  # when it came last
        self._broken: dict[ProcessId, bool] = {}  # peers of links that have failed, and whether that was told
        self.inbound: dict[ProcessId, deque[bytes]] = {}  # blocks that came, in order
        self._waiting: dict[ProcessId, WaitingBlocks] = {}

    def send(self, process: ProcessId, block: bytes, now: Instant, *, can_wait: bool = False) -> None:
        """Let a block leave; one that can wait leaves with the next packet to that process, or soon."""
        if can_wait:
            due = Instant(now + WAIT_NS[BlockKind(block[0])])
            waiting = self._waiting.get(process)
            if waiting is None:
                waiting = self._waiting[process] = WaitingBlocks(due)
            waiting.due = min(waiting.due, due)
            waiting.add(block)
        else:
            link = self._link(process, now)
            link.send((*self._waited(process), block))

    def hurry(self, now: Instant) -> None:
        """Somebody waits: let everything leave with this input, and be acknowledged as soon as other packets."""
        for process in list(self._waiting):
            self._link(process, now).send(self._waited(process))

    def _waited(self, process: ProcessId) -> list[bytes]:
        waiting = self._waiting.pop(process, None)
        return [] if waiting is None else list(waiting.blocks.values())

    def read(self, data: bytes, size: int, now: Instant) -> list[WireError]:
        """Take the packets of one read, of which all but the last have this size; return what is wrong with some."""
        faults: list[WireError] = []
        if len(data) > size and self._take_run(data, size, now):
            return faults
        for at in range(0, len(data), size):
            try:
                self.receive(data[at : at + size], now)
            except WireError as fault:
                faults.append(fault)
        return faults

    def _take_run(self, data: bytes, size: int, now: Instant) -> bool:
        """Take packets that are one payload in parts, if they are."""
        if size <= HEAD_SIZE:
            return False
        process = transmitter_of(data)
        brought = self._link(process, now).receive_run(data, size, now) if process in self._members else None
        if brought is None:
            return False
        self.inbound.setdefault(process, deque()).extend(brought.payloads)
        return True

    def receive(self, packet: bytes, now: Instant) -> None:
        """Take a packet. WireError, and nothing has changed, for one that is wrong, of a stranger or another time."""
        if len(packet) <= HEAD_SIZE:
            raise WireError("a link packet without a whole head")
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
            link.active_since = self._active_since
        return link

    def visited(self, visits: int | None, now: Instant) -> None:
        """Know how often the control token has come: all have done something since it came before."""
        if visits == self._visits:
            return
        self._visits = visits
        self._visited.append(now)
        for process, link in self._links.items():
            link.active_since = self._active_since
            self._note_deadline(process, link)

    def _note_deadline(self, process: ProcessId, link: Link) -> None:
        """A link was used: know when it is to be looked at, and whether it has failed."""
        due = link.next_deadline
        if due is not None:
            self._deadlines[process] = due
        else:
            self._deadlines.pop(process, None)
        if link.failure is not None:
            self._broken.setdefault(process, False)

    @property
    def _active_since(self) -> Instant:
        """All members have done something after this: more than once, so that they have seen what came before it."""
        if self._visits is None:
            return NEVER
        return self._visited[0] if len(self._visited) == VISITS else START

    def fail(self, process: ProcessId) -> None:
        """A process says what cannot be: nothing more is taken from it."""
        self._links[process].fail(LinkFailure.CONTRADICTION)
        self._broken.setdefault(process, False)
        self._used[process] = None
        self.inbound.pop(process, None)

    def broken(self) -> list[ProcessId]:
        """Return the peers of links that have failed since this was asked last."""
        found = [peer for peer, is_told in sorted(self._broken.items()) if not is_told] if self._broken else []
        self._broken.update(dict.fromkeys(found, True))
        return found

    def _forgive_pause(self, now: Instant) -> None:
        """What did not move while this process itself did nothing is nobody's fault."""
        if self._config.stall_ns and now - self._last > self._config.stall_ns // 2:
            for process, link in self._links.items():
                link.forgive(now)
                self._note_deadline(process, link)
        self._last = now

    def flush(self, now: Instant) -> Iterator[Effect]:
        """Iterate over what leaves now, on links that were used or whose time has come."""
        self._forgive_pause(now)
        due = {process for process, at in self._deadlines.items() if at <= now}
        if self._waiting:
            due.update([process for process, waiting in self._waiting.items() if waiting.due <= now])
            for process in due.intersection(self._waiting):
                self._link(process, now).send(self._waited(process), is_calm=True)
        for process in sorted(due.union(self._used)):
            link = self._links[process]
            bursts = link.flush(now)
            self._note_deadline(process, link)
            if bursts:
                yield Unicast(process, bursts)
        self._used = {}

    def next_deadline(self) -> Instant | None:
        due = min(self._deadlines.values(), default=None)
        if self._waiting:
            waited = min([waiting.due for waiting in self._waiting.values()])
            due = waited if due is None else min(due, waited)
        return due

    def figures(self) -> dict[ProcessId, LinkFigures]:
        """Return what is to be seen of each link."""
        return {process: link.figures() for process, link in sorted(self._links.items())}

    @property
    def is_quiet(self) -> bool:
        return (
            not any(self.inbound.values()) and not self._waiting and all(link.is_quiet for link in self._links.values())
        )

    def check_invariants(self) -> None:
        for link in self._links.values():
            link.check_invariants()
