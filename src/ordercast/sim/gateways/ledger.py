"""The ledger of all rings of a run: which packets each carried, who has which, and what was said of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ordercast.model.ids import ConfigurationId, ProcessId, process_text
from ordercast.model.promises import RingsPromise
from ordercast.order.gateways.items import EVERYTHING, LogicalRing, NoticeItem, Processes, Stretch
from ordercast.order.gateways.merging import PhysicalRing
from ordercast.order.gateways.network import Heard, RingEntry
from ordercast.order.stamped.lanes import NO_STAMP, Stamp
from ordercast.sim.findings import Findings
from ordercast.wire.header import digest_of

if TYPE_CHECKING:
    from ordercast.sim.gateways.watched import WatchedNetwork

Name = tuple[ConfigurationId, int]  # of a packet of users: the logical ring on which it was numbered, its seq there


class _Packet(NamedTuple):
    """A packet of users, as its ring handed it up."""

    tick: int
    originator: ProcessId
    body: bytes
    mask: int


class RingLedger:
    """Finds what cannot be, as it is seen."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._networks: dict[ProcessId, WatchedNetwork] = {}
        self._members: dict[ConfigurationId, Processes] = {}  # of logical rings
        self._since: dict[ConfigurationId, Stamp] = defaultdict(lambda: NO_STAMP)  # the last merge of its past
        self._received: dict[ProcessId, set[tuple[bytes, int]]] = defaultdict(set)  # packets of rings, by digest
        self._ticks: dict[ConfigurationId, dict[int, int]] = defaultdict(dict)  # of physical rings, by seq
        self._last: dict[tuple[ProcessId, ConfigurationId], tuple[int, int]] = {}  # seq and tick handed up last
        self._regular: dict[ConfigurationId, dict[int, _Packet]] = defaultdict(dict)  # of logical rings, by seq
        self._residual: dict[tuple[ConfigurationId, Processes], dict[int, _Packet]] = defaultdict(dict)
        self._carried: dict[tuple[object, ...], int] = {}  # the last seq of a source that a gateway put on a ring
        self._once: set[tuple[object, ...]] = set()  # residual ones
        self._where: dict[Name, set[tuple[bytes, int]]] = defaultdict(set)  # packets of rings that have it
        self._has: dict[ProcessId, set[Name]] = defaultdict(set)  # what was handed up to each
        self._seqs: dict[ConfigurationId, list[int]] = defaultdict(list)  # of regular packets, ascending
        self._stated: dict[tuple[ProcessId, ConfigurationId], int] = {}  # how many of them a member is known to have

    def begin(self, process: ProcessId, network: WatchedNetwork) -> None:
        self._networks[process] = network
        for ring in network.known.own.values():
            self._members[ring] = frozenset((process,))

    def received(self, process: ProcessId, ring: bytes, seq: int) -> None:
        """Hear that a process has a packet of a physical ring."""
        self._received[process].add((ring, seq))

    def split(self, old: ConfigurationId, new: LogicalRing) -> None:
        """Hear that a half of a logical ring goes on as another."""
        self._since[new.id] = self._since[old]
        self._members[new.id] = new.members

    def installed(self, process: ProcessId, old: PhysicalRing, new: PhysicalRing) -> None:
        """Hear that a process goes from one physical ring to the next, which is born above all that it was handed."""
        seq, tick = self._last.get((process, old.id), (0, old.tick))
        if tick >= new.tick:
            what = f"goes to a ring born at tick {new.tick}, and packet {seq} of the one before has {tick}"
            self._findings.add(RingsPromise.TICKS, what, process, new.id)

    def merged(self, ring: LogicalRing) -> None:
        """Hear that logical rings have become one."""
        self._since[ring.id] = ring.birth
        self._members[ring.id] = ring.members

    # What rings hand up

    def handed_up(
        self, process: ProcessId, physical: PhysicalRing, own: LogicalRing, entry: RingEntry, half: Processes | None
    ) -> None:
        """Hear what a ring hands up: as regular, or as residual of a half of the logical ring."""
        seqs = (entry.seq,) if isinstance(entry, Heard) else entry.seqs
        self._check_ticks(process, physical, seqs, entry.tick)
        sender = entry.sender if isinstance(entry, Heard) else entry.originator
        if half is None:
            self._check_safe(process, physical, sender, seqs[-1])
        if isinstance(entry, Stretch):
            if entry.originator in own.members:
                self._native(process, physical, own, entry, half)
        elif isinstance(entry.carried.item, Stretch):
            self._carried_packets(process, physical, entry, entry.carried.item)

    def _check_ticks(self, process: ProcessId, ring: PhysicalRing, seqs: Sequence[int], tick: int) -> None:
        """Ticks rise along a ring, from its birth on, and a packet has one tick."""
        ticks, (last_seq, last_tick) = self._ticks[ring.id], self._last.get((process, ring.id), (0, ring.tick))
        for seq in seqs:
            if ticks.setdefault(seq, tick) != tick:
                what = f"packet {seq} has tick {tick} here and {ticks[seq]} elsewhere"
                self._findings.add(RingsPromise.TICKS, what, process, ring.id)
        if tick < last_tick or (tick == ring.tick and len(ring.members) > 1) or seqs[0] < last_seq:
            what = f"packet {seqs[0]} has tick {tick} after packet {last_seq} with {last_tick}"
            self._findings.add(RingsPromise.TICKS, what, process, ring.id)
        self._last[process, ring.id] = (seqs[-1], tick)

    def _check_safe(self, process: ProcessId, ring: PhysicalRing, sender: ProcessId, seq: int) -> None:
        """What is handed up as regular all members of the ring have."""
        name = (digest_of(ring.id), seq)
        for member in ring.members:
            if member not in (sender, process) and name not in self._received[member]:
                what = f"was handed packet {seq}, which {process_text(member)} does not have"
                self._findings.add(RingsPromise.SAFE_RINGS, what, process, ring.id)

    def _native(
        self, process: ProcessId, physical: PhysicalRing, own: LogicalRing, stretch: Stretch, half: Processes | None
    ) -> None:
        known = self._regular[own.id] if half is None else self._residual[own.id, half]
        digest = digest_of(physical.id)
        bodies = stretch.bodies or (b"",) * len(stretch.seqs)
        for seq, body in zip(stretch.seqs, bodies, strict=True):
            if half is None and seq not in known:
                self._seqs[own.id].append(seq)
            known[seq] = _Packet(stretch.tick, stretch.originator, body, stretch.mask)
            self._where[own.id, seq].add((digest, seq))
            self._has[process].add((own.id, seq))

    # What gateways carry

    def _carried_packets(self, process: ProcessId, ring: PhysicalRing, heard: Heard, stretch: Stretch) -> None:
        half, digest = heard.carried.half, digest_of(ring.id)
        self._check_source(process, ring, stretch, half)
        self._check_order(process, ring, heard, stretch)
        for seq in stretch.seqs if not stretch.is_hollow else ():
            self._where[stretch.ring, seq].add((digest, heard.seq))
            self._has[process].add((stretch.ring, seq))

    def _check_source(self, process: ProcessId, ring: PhysicalRing, stretch: Stretch, half: Processes | None) -> None:
        """What is carried its own ring has handed up, as it is."""
        known = self._regular[stretch.ring] if half is None else self._residual[stretch.ring, half]
        bodies = stretch.bodies or (None,) * len(stretch.seqs)
        for seq, body in zip(stretch.seqs, bodies, strict=True):
            packet = known.get(seq)
            if packet is None or (packet.tick, packet.originator) != (stretch.tick, stretch.originator):
                what = f"was carried packet {seq} of {stretch.ring}, which that ring has not handed up so"
                self._findings.add(RingsPromise.CARRIED, what, process, ring.id)
            elif body is not None and packet.body != body:
                what = f"was carried packet {seq} of {stretch.ring} with other content"
                self._findings.add(RingsPromise.CARRIED, what, process, ring.id)

    def _check_order(self, process: ProcessId, ring: PhysicalRing, heard: Heard, stretch: Stretch) -> None:
        """A gateway puts the packets of a source on a ring in order, and each of them once for each way it came."""
        if heard.carried.half is not None:
            for seq in stretch.seqs:
                name = (process, ring.id, heard.sender, stretch.ring, seq, heard.carried.half, heard.carried.since)
                if name in self._once:
                    self._again(process, ring, heard.sender, seq, stretch.ring)
                self._once.add(name)
            return
        key = (process, ring.id, heard.sender, stretch.ring, heard.carried.since)
        last = self._carried.get(key, 0)
        if stretch.seqs[0] <= last:
            self._again(process, ring, heard.sender, stretch.seqs[0], stretch.ring)
        self._carried[key] = max(last, stretch.seqs[-1])

    def _again(
        self, process: ProcessId, ring: PhysicalRing, sender: ProcessId, seq: int, source: ConfigurationId
    ) -> None:
        what = f"got packet {seq} of {source} from {process_text(sender)} again, or after a later one"
        self._findings.add(RingsPromise.IN_ORDER, what, process, ring.id)

    # What is said

    def stated(self, notice: NoticeItem) -> None:
        """Hear what a process says of the members of a ring: they have each source up to a stamp, from where it takes
        the source. One that came back with a merge is taken from the merge on, and whoever takes such a statement is
        past the merge: nothing older comes over a link that began with it."""
        members = notice.half if notice.half is not None else self._members.get(notice.ring, frozenset())
        for column, stamp in notice.entries:
            if column.half is None:
                for member in members - {notice.by}:
                    self._check_statement(notice, member, column.source, stamp)

    def _check_statement(self, notice: NoticeItem, member: ProcessId, source: ConfigurationId, stamp: Stamp) -> None:
        stream = self._networks[member].known.streams.get(source)
        if stream is None:
            return  # it has forgotten the source, or has not heard of it
        taken = self._networks[notice.by].known.streams.get(source, stream)
        since = max(stream.start, taken.start, self._since[notice.ring])
        seqs, packets = self._seqs[source], self._regular[source]
        count = self._stated.get((member, source), 0)
        while count < len(seqs) and (at := (packets[seqs[count]].tick, stream.tag, seqs[count])) <= stamp:
            is_for_all = packets[seqs[count]].mask == EVERYTHING  # of others a member may have no need
            if is_for_all and at > since and not self._is_had(member, (source, seqs[count])):
                what = f"says that {process_text(member)} has {source} up to {stamp}, but it lacks packet {seqs[count]}"
                self._findings.add(RingsPromise.STATEMENTS, what, notice.by, notice.ring)
                return
            count += 1
        self._stated[member, source] = count

    def delivered_as_safe(self, process: ProcessId, members: Processes, stretch: Stretch) -> None:
        """Hear that a process delivers safe packets in a view of these members: all have them."""
        if stretch.mask != EVERYTHING:
            return  # some may have no need of them
        for member in members - {process, stretch.originator}:
            lacking = [seq for seq in stretch.seqs if not self._is_had(member, (stretch.ring, seq))]
            if lacking:
                what = f"delivers packet {lacking[0]} as safe, which {process_text(member)} does not have"
                self._findings.add(RingsPromise.SAFE, what, process, stretch.ring)

    def _is_had(self, process: ProcessId, name: Name) -> bool:
        ring, seq = name
        packet = self._regular[ring].get(seq)
        if name in self._has[process] or (packet is not None and packet.originator == process):
            return True
        return not self._where[name].isdisjoint(self._received[process])
