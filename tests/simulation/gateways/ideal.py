"""Ideal rings under the order of a network: they split, merge, crash and fail between installations, without a token.

A ring is a log. Members receive its entries at random, deliver them when all members have them, and agree on what is
left when it ends, as extended virtual synchrony has it. What is driven is the order alone: `RingNetwork`.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.attached import SEQ_STEP, SEQS_PER_DOMAIN
from ordercast.order.gateways.interest import BUCKETS
from ordercast.order.gateways.items import EVERYTHING, Carried, InterestItem, Processes, Stretch
from ordercast.order.gateways.merging import PhysicalRing
from ordercast.order.gateways.network import Heard, RingEntry, RingNetwork
from ordercast.order.gateways.views import NetworkView
from ordercast.order.stamped.lanes import NO_STAMP, Stamp, StampedRun


class Logged(NamedTuple):
    """A packet on a ring."""

    sender: ProcessId
    tick: int
    carried: Carried | None  # None: a native
    native: Native | None = None


class Native(NamedTuple):
    """A packet of a user, or the interest of a process, on its way to a ring."""

    body: bytes
    is_safe: bool
    mask: int = EVERYTHING
    interest: InterestItem | None = None


class Message(NamedTuple):
    """A packet of a user, as a process delivered it."""

    stamp: Stamp
    body: bytes
    is_safe: bool
    mask: int = EVERYTHING


@dataclass
class IdealRing:
    """One physical ring and who has what of it."""

    id: ConfigurationId
    domain: int
    members: Processes
    tick: int
    clock: int
    log: list[Logged] = field(default_factory=list)
    got: dict[ProcessId, set[int]] = field(default_factory=dict)
    delivered: dict[ProcessId, int] = field(default_factory=dict)
    installed: set[ProcessId] = field(default_factory=set)
    is_broken: bool = False
    holder: ProcessId | None = None
    line: int | None = None  # of a broken ring: what was safe when it broke

    def __post_init__(self) -> None:
        self.got = {member: set() for member in self.members}
        self.delivered = dict.fromkeys(self.members, 0)

    def aru(self, member: ProcessId) -> int:
        seq, got = self.delivered[member], self.got[member]
        while seq + 1 in got:
            seq += 1
        return seq

    def safe(self) -> int:
        if self.line is not None:
            return self.line
        if self.installed != self.members:
            return 0
        return min(self.aru(member) for member in self.members)


class Attempt(NamedTuple):
    """A ring that is agreed on and not installed yet, with what is left to deliver of the old one."""

    ring: ConfigurationId
    companions: Processes
    regular_to: int
    residual: tuple[int, ...]


class Host:
    """One process: its rings, and the order above them."""

    def __init__(self, world: World, me: ProcessId, domains: tuple[int, ...], tick: int) -> None:
        self.world = world
        self.id = me
        self.domains = domains
        self.is_alive = True
        self.ring_seq = 0
        self.rings: dict[int, ConfigurationId] = {}
        self.attempts: dict[int, Attempt] = {}
        self.promises: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.along: dict[int, Processes] = {}
        self.natives: dict[int, list[Native]] = {domain: [] for domain in domains}
        self.wish = EVERYTHING
        self.owed: dict[int, Stamp] = {1 << bucket: NO_STAMP for bucket in range(BUCKETS)}  # from where on
        self.sent: list[bytes] = []
        self.caused: list[tuple[bytes, Stamp, int]] = []  # message, the last one delivered before it, its own tick
        self.events: list[Message | NetworkView] = []
        self.placed: list[Message] = []  # own messages of which the places alone were told
        for domain in domains:
            self.ring_seq += SEQ_STEP
            ring = ConfigurationId(self.ring_seq + SEQS_PER_DOMAIN * domain, me)
            world.rings[ring] = IdealRing(ring, domain, frozenset((me,)), tick, tick)
            world.rings[ring].installed.add(me)
            self.rings[domain] = ring
        self.network: RingNetwork = world.network_class(me, self.rings, tick, world.is_filtering)
        self.events.append(self.network.view)

    @property
    def clock(self) -> int:
        return self.network.known.clock

    def raise_clock(self, tick: int) -> None:
        self.network.known.clock = max(self.clock, tick)

    def last_delivered(self) -> Stamp:
        return next((event.stamp for event in reversed(self.events) if isinstance(event, Message)), NO_STAMP)

    def view(self) -> NetworkView:
        return next(event for event in reversed(self.events) if isinstance(event, NetworkView))

    def step(self) -> None:
        self.network.step()
        for event in self.network.passed:
            if isinstance(event, NetworkView):
                self.events.append(event)
            else:
                self.events += _messages(event)
                self.network.own_packets.passed(event)
                if event.content.interest is not None:
                    self.network.masks.delivered(event.content.interest)
        self.network.passed.clear()
        for run in self.network.own_packets.bare(self.network.known.place):
            self.placed += _messages(run)
        self._speak_of_interest()

    def want(self, mask: int) -> None:
        """Want packets with these buckets, and no others, from where it can be relied on."""
        self.wish = mask
        self.network.masks.want(mask)
        self.owed = {bucket: since for bucket, since in self.owed.items() if bucket & mask}

    def _speak_of_interest(self) -> None:
        ready = [domain for domain in self.domains if self.network.may_number(domain)]
        interest = self.network.interest_due() if ready else None
        if interest is not None:
            self.world.numbers += 1
            self.natives[ready[0]].append(Native(b"i%d" % self.world.numbers, True, EVERYTHING, interest))
        joined = self.wish & (self.network.masks.in_force if self.world.joins_in_time else EVERYTHING)
        for bucket in (1 << number for number in range(BUCKETS)):
            if bucket & joined:  # it joins: whatever is numbered from now on is owed
                self.owed.setdefault(bucket, (self.clock + 1, 0, 0))

    def sendable(self, domain: int) -> list[Native]:
        """Return the natives that may be sent now: those of users stop while somebody holds."""
        if not self.network.may_number(domain):
            return []
        may_send = self.network.may_send(domain)
        return [native for native in self.natives[domain] if may_send or native.interest is not None]

    def is_owed(self, message: Message) -> bool:
        """Whether a message has to come here, if the network filters."""
        if message.mask == EVERYTHING:
            return True
        return any(bucket & message.mask and message.stamp > since for bucket, since in self.owed.items())


class World:
    """All hosts and rings of a run."""

    network_class: type[RingNetwork] = RingNetwork
    is_filtering = False
    sleepers: Processes = frozenset()  # those whose order goes on rarely
    joins_in_time = True  # processes join a group when their interest in it is in force
    is_safe_ring = True  # rings deliver when all members have a packet
    birth_step = 1  # so far above the highest clock of its members a ring is born
    stamps_at_commit = True  # a new ring's tick is above all packets of the old one that members hold

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.rings: dict[ConfigurationId, IdealRing] = {}
        self.hosts: dict[ProcessId, Host] = {}
        self.cells: dict[tuple[int, ProcessId], int] = {}  # who can hear whom, by domain
        self.counts: Counter[str] = Counter()
        self.numbers = 0

    @property
    def alive(self) -> list[Host]:
        return [host for host in self.hosts.values() if host.is_alive]

    def add(self, domains: tuple[int, ...]) -> Host:
        me = ProcessId(len(self.hosts) + 1)
        host = self.hosts[me] = Host(self, me, domains, 1)
        for domain in domains:
            self.cells[domain, me] = 0
        return host

    # Faults

    def is_connected(self, domain: int, one: ProcessId, other: ProcessId) -> bool:
        return (
            self.hosts[one].is_alive
            and self.hosts[other].is_alive
            and self.cells[domain, one] == self.cells[domain, other]
        )

    def break_rings(self) -> None:
        """Break the rings whose members cannot all hear one another."""
        for ring in self.rings.values():
            first = min(ring.members)
            if not ring.is_broken and not all(self.is_connected(ring.domain, first, each) for each in ring.members):
                self.break_ring(ring)

    def break_ring(self, ring: IdealRing) -> None:
        ring.line = ring.safe()
        ring.is_broken = True
        ring.holder = self.rng.choice(sorted(ring.members))

    # Traffic

    def visit(self, host: Host, domain: int, most: int) -> None:
        """Let a host put packets on a ring, as with the token."""
        ring = self.rings[host.rings[domain]]
        if not host.is_alive or host.id not in ring.installed or domain in host.attempts:
            return
        if ring.is_broken and ring.holder != host.id:
            return
        queue = host.network.forwarding.queues[domain]
        natives = host.sendable(domain)
        if not queue and not natives:
            return
        tick = max(host.clock, ring.clock) + 1
        host.raise_clock(tick)
        ring.clock = tick
        while most > 0 and (queue or natives):
            if natives and (not queue or self.rng.random() < 0.5):
                native = natives.pop(0)
                host.natives[domain].remove(native)
                host.sent.append(native.body)
                host.caused.append((native.body, host.last_delivered(), tick))
                packets = [Logged(host.id, tick, None, native)]
            else:
                packets = [Logged(host.id, tick, carried) for carried in split(queue.popleft())]
            most -= len(packets)
            for packet in packets:
                ring.log.append(packet)
                ring.got[host.id].add(len(ring.log))

    def receive(self, host: Host, domain: int) -> None:
        """Let a host receive some of what others on its ring have."""
        if not host.is_alive:
            return
        ring = self.rings[host.attempts[domain].ring if domain in host.attempts else host.rings[domain]]
        base = ring.aru(host.id)
        got = ring.got[host.id]
        missing = [seq for seq in range(base + 1, min(len(ring.log), base + 8) + 1) if seq not in got]
        self.rng.shuffle(missing)
        for seq in missing[: self.rng.randrange(0, 5)]:
            if any(
                seq in ring.got[other] and other != host.id and self.is_connected(domain, host.id, other)
                for other in ring.members
            ):
                got.add(seq)

    def deliver(self, host: Host, domain: int, is_all: bool = False) -> None:
        """Let a host deliver some of what is safe on its ring."""
        if not host.is_alive or domain in host.attempts:
            return
        ring = self.rings[host.rings[domain]]
        line = min(ring.safe(), ring.aru(host.id)) if self.is_safe_ring else ring.aru(host.id)
        start = ring.delivered[host.id]
        while start < line and not is_all and self.rng.random() < 0.15:
            line -= 1
        self.hand_up(host, ring, line)

    def hand_up(self, host: Host, ring: IdealRing, line: int) -> None:
        seqs = range(ring.delivered[host.id] + 1, line + 1)
        ring.delivered[host.id] = max(line, ring.delivered[host.id])
        host.network.deliver(ring.domain, self.entries(ring, seqs))

    def entries(self, ring: IdealRing, seqs: range | tuple[int, ...]) -> list[RingEntry]:
        """Return packets of a ring as it hands them up, in stretches of random length."""
        entries: list[RingEntry] = []
        for seq in seqs:
            packet = ring.log[seq - 1]
            last = entries[-1] if entries and self.rng.random() < 0.8 else None
            joined = _joined(ring, last, packet, seq) if last is not None else None
            if joined is not None:
                entries[-1] = joined
            else:
                entries.append(_entry(ring, packet, seq))
        return entries

    def tell_lowest(self, domain: int, host: Host) -> None:
        """Let the token tell a host the lowest place of its ring's members."""
        ring = self.rings[host.rings[domain]]
        if not ring.is_broken and ring.installed == ring.members:
            host.network.hear_lowest(domain, min(self.hosts[each].network.known.place for each in ring.members))

    # Membership

    def reform(self, domain: int, cell: int) -> None:
        """Let the hosts of a cell agree on a new ring, and on what is left of their old ones."""
        hosts = [host for host in self.alive if domain in host.domains and self.cells[domain, host.id] == cell]
        self.rng.shuffle(hosts)
        chosen: list[Host] = []
        for host in hosts:
            if all(_may_go_along(host, other, domain) for other in chosen):
                chosen.append(host)
        chosen.sort(key=lambda host: host.id)
        if not chosen:
            return
        halves: dict[ConfigurationId, list[Host]] = {}
        for host in chosen:
            halves.setdefault(host.rings[domain], []).append(host)
            attempt = [host.attempts[domain].ring] if domain in host.attempts else []
            for ring in (host.rings[domain], *attempt):
                if not self.rings[ring].is_broken:
                    self.break_ring(self.rings[ring])
        left = {old: self._agree(self.rings[old], half) for old, half in halves.items()}
        self._form(domain, chosen, left)

    def _agree(self, ring: IdealRing, half: list[Host]) -> tuple[Processes, int, tuple[int, ...]]:
        """Return who goes on together from a ring, what is regular for them and what is left."""
        who = frozenset(host.id for host in half)
        domain = ring.domain
        if all(domain in host.promises for host in half):
            regular_to, residual = half[0].promises[domain]
            assert all(host.promises[domain] == (regular_to, residual) for host in half)
            self.counts["promise kept"] += 1
            return who, regular_to, residual
        union = set().union(*(ring.got[host.id] for host in half))
        regular_to = max(ring.delivered[host.id] for host in half)
        gap = 0
        while gap + 1 in union:
            gap += 1
        beyond = tuple(seq for seq in sorted(union) if seq > gap and ring.log[seq - 1].sender in who)
        residual = tuple(range(regular_to + 1, gap + 1)) + beyond
        self.counts["residual beyond a gap"] += bool(beyond)
        self.counts["residual"] += bool(residual)
        for host in half:
            ring.got[host.id] = set(union)
            host.promises[domain] = (regular_to, residual)
        return who, regular_to, residual

    def _form(
        self,
        domain: int,
        hosts: list[Host],
        left: dict[ConfigurationId, tuple[Processes, int, tuple[int, ...]]],
    ) -> None:
        stamp = 0
        for host in hosts:
            old = self.rings[host.rings[domain]]
            if self.stamps_at_commit:
                host.raise_clock(max((old.log[seq - 1].tick for seq in old.got[host.id]), default=0))
            stamp = max(stamp, host.clock)
        seq = max(host.ring_seq for host in hosts) // SEQ_STEP * SEQ_STEP + SEQ_STEP
        members = frozenset(host.id for host in hosts)
        ring = ConfigurationId(seq + SEQS_PER_DOMAIN * domain, min(members))
        birth = stamp + self.birth_step
        self.rings[ring] = IdealRing(ring, domain, members, birth, birth)
        for host in hosts:
            host.ring_seq = seq
            host.raise_clock(birth)
            who, regular_to, residual = left[host.rings[domain]]
            host.attempts[domain] = Attempt(ring, who, regular_to, residual)
            host.along[domain] = host.along.get(domain, who) & who

    def install(self, host: Host, domain: int) -> None:
        if not host.is_alive or domain not in host.attempts:
            return
        attempt = host.attempts.pop(domain)
        old, new = self.rings[host.rings[domain]], self.rings[attempt.ring]
        self.hand_up(host, old, attempt.regular_to)
        host.promises.pop(domain, None)
        host.along.pop(domain, None)
        if domain in host.network.merging.flushes:
            self.counts["merge under way when the ring ended"] += 1
        residual = self.entries(old, attempt.residual)
        host.network.install(domain, residual, attempt.companions, PhysicalRing(new.id, new.members, new.tick))
        host.rings[domain] = attempt.ring
        new.installed.add(host.id)

    def is_formed(self, domain: int) -> bool:
        """Whether all living hosts of a domain are on one ring that is whole."""
        hosts = [host for host in self.alive if domain in host.domains]
        rings = {host.rings[domain] for host in hosts}
        if len(rings) != 1:
            return not rings
        ring = self.rings[rings.pop()]
        return not ring.is_broken and ring.members == frozenset(host.id for host in hosts)


def _messages(run: StampedRun[Stretch]) -> list[Message]:
    (tick, tag, _), _, stretch = run
    return [
        Message((tick, tag, seq), body, stretch.is_safe, stretch.mask)
        for seq, body in zip(stretch.seqs, stretch.bodies, strict=True)
    ]


def split(carried: Carried) -> list[Carried]:
    """Return what is carried packet by packet."""
    item = carried.item
    if not isinstance(item, Stretch):
        return [carried]
    return [carried._replace(item=item.between(place, place + 1)) for place in range(len(item.seqs))]


def _may_go_along(host: Host, other: Host, domain: int) -> bool:
    """Whether two hosts may be on one ring: whoever began to recover an old ring without the other goes on so."""
    if host.rings[domain] != other.rings[domain]:
        return True
    return host.id in other.along.get(domain, {host.id}) and other.id in host.along.get(domain, {other.id})


def _entry(ring: IdealRing, packet: Logged, seq: int) -> RingEntry:
    if packet.carried is not None:
        return Heard(packet.sender, seq, packet.tick, packet.carried)
    assert packet.native is not None
    body, is_safe, mask, interest = packet.native
    return Stretch(ring.id, packet.tick, packet.sender, (seq,), (body,), is_safe, mask, interest)


def _joined(ring: IdealRing, last: RingEntry, packet: Logged, seq: int) -> RingEntry | None:
    """Return the last entry with one packet more, if they belong together."""
    if packet.carried is None:
        one = _entry(ring, packet, seq)
        assert isinstance(one, Stretch)
        return _longer(last, one) if isinstance(last, Stretch) and _kind(last) == _kind(one) else None
    item = packet.carried.item
    if not isinstance(last, Heard) or not isinstance(item, Stretch) or not isinstance(last.carried.item, Stretch):
        return None
    before = last.carried
    if (last.sender, last.tick, before.since, before.half) != (
        packet.sender,
        packet.tick,
        packet.carried.since,
        packet.carried.half,
    ):
        return None
    stretch = last.carried.item
    if _kind(stretch) != _kind(item) or item.seqs[0] <= stretch.seqs[-1]:
        return None
    longer = _longer(stretch, item)
    return Heard(last.sender, seq, last.tick, before._replace(item=longer))


def _kind(stretch: Stretch) -> tuple[object, ...]:
    alone = object() if stretch.interest is not None else None
    return (stretch.ring, stretch.tick, stretch.originator, stretch.is_safe, stretch.mask, stretch.is_hollow, alone)


def _longer(stretch: Stretch, more: Stretch) -> Stretch:
    return replace(stretch, seqs=(*stretch.seqs, *more.seqs), bodies=(*stretch.bodies, *more.bodies))
