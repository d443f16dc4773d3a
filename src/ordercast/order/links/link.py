"""A link: the sending and the receiving half of one process towards another, under one epoch.

How an engine uses it. Whenever an input concerns the other process:

    link.send(payloads, is_urgent)      they wait; urgent ones overtake others that wait
    brought = link.receive(packet, now) payloads that go up, and the rider; a WireError: drop the packet, count it
    link.ride(rider, now)               bytes that every packet from now on carries
    bursts = link.flush(now)            once, at the end of the input or when `next_deadline` comes: what leaves now,
                                        for a `Unicast` effect
    link.failure                        after any of these: None, or why the link is at an end

Payloads are numbered when they first leave, several in a packet where they fit, large ones in parts. All of them come
to the other side exactly once, or the link fails: at once and in any order, or in the order of sending
(`LinkConfig.is_ordered`). In order, both sides can count: the n-th payload sent is the n-th that arrives. A rider comes
to the other side at least once after it changed, or a later one does; packets overtake each other, so riders are
numbers that rise, of which the engine takes the highest.

Epoch: a link knows the tag that it writes and the one that it takes (`Tags`); packets with another are dropped. A link
whose other side began anew is replaced by a new one. A link that failed stays so: nothing leaves it, nothing arrives.
What an engine hears of the other process by other means (`hear`) counts against silence, and a pause of this process
against nothing (`forgive`). Where an engine knows how far the other process has come (`active_since`), a link stands
still only if nothing moved although both ends did something: one that has no processor is not one that is cut off.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ordercast.model.effects import Burst
from ordercast.model.errors import UsageError, WireError
from ordercast.model.ids import Instant, ProcessId
from ordercast.order.links.codec import (
    CALM,
    DATA,
    LINK_HEAD_SIZE,
    PART,
    PROBE,
    RANGES_MAX,
    STATUS,
    LinkHead,
    Ranges,
    decode_link,
    decode_ranges,
    encode_link,
    encode_ranges,
    encode_run,
    stamp_of,
)
from ordercast.order.links.config import LinkConfig
from ordercast.order.links.receiver import NEVER, LinkReceiver
from ordercast.order.links.regulator import Open, Regulator
from ordercast.order.links.round_trip import RoundTrip
from ordercast.order.links.runs import run_of
from ordercast.order.links.sender import LinkSender
from ordercast.wire.head import kind_of, transmitter_of

STALL_TRIPS = 4  # round trips that are added to the time in which a link must move


class LinkFailure(Enum):
    """Why a link is at an end, in words for people."""

    NOT_RECEIVED = "a packet was asked for again and again and never came"
    NOT_RECEIVED_THERE = "the other side asked for a packet again and again"
    SILENT = "nothing was heard from the other side"
    STALLED = "nothing moved while there was something to send"
    CONTRADICTION = "the other side contradicted itself"
    REPLACED = "the other side began anew"
    REFERRED = "another node speaks for the other side"
    LEFT = "the other side left in order"


class Tags(NamedTuple):
    """The epoch of a link: what its two ends write into their packets."""

    mine: int  # below 2**64
    theirs: int


class Brought(NamedTuple):
    """What a packet brought."""

    payloads: list[bytes]
    rider: bytes


@dataclass(slots=True)
class LinkCounts:
    """How many packets one end had to do with."""

    sent: int = 0
    received: int = 0
    sent_bytes: int = 0
    dropped: int = 0  # of another epoch, or damaged


class LinkFigures(NamedTuple):
    """What one end of a link tells people."""

    round_trip_ns: int  # 0: unknown
    loss: float  # part of the numbered packets of this end that the other side asked for
    rate: int  # bits per second; 0: as fast as they come, or unknown
    waiting: int  # bytes that were not sent yet
    under_way: int  # packets that were sent and are not known to have come
    missing: int  # packets that did not come
    duplicates: int  # packets that came twice
    counts: LinkCounts
    failure: str | None


class Link:
    """One end of a link. Its sources of input are the engine, packets of the other end, and time."""

    def __init__(
        self,
        config: LinkConfig,
        cluster: bytes,
        me: ProcessId,
        peer: ProcessId,
        tags: Tags,
        now: Instant,
        regulator: Regulator | None = None,
    ) -> None:
        self.peer = peer
        self.tags = tags
        self.path = RoundTrip(config.round_trip_ns)
        self.sender = LinkSender(config, self.path, regulator or Open(config.window), now)
        self.receiver = LinkReceiver(config, self.path, now)
        self.counts = LinkCounts()
        self.failure: LinkFailure | None = None
        self.heard_at = now
        self.active_since = NEVER  # both ends have done something after this; NEVER: nobody knows, time alone counts
        self._config = config
        self._cluster = cluster
        self._me = me
        self._rider = bytes(config.rider_size)

    @property
    def waiting(self) -> int:
        """Bytes of payloads that were not sent yet."""
        return self.sender.packer.waiting

    @property
    def is_quiet(self) -> bool:
        """Whether all that was sent is acknowledged and nothing waits, at either half."""
        return not (self.sender.packer or self.sender.kept or self.receiver.missing)

    def figures(self) -> LinkFigures:
        """Return what is to be seen of this end."""
        sender, receiver = self.sender, self.receiver
        return LinkFigures(
            round_trip_ns=self.path.smooth if self.path.least else 0,
            loss=sender.resent / max(1, sender.high + sender.resent),
            rate=sender.regulator.rate,
            waiting=self.waiting,
            under_way=sender.under_way,
            missing=len(receiver.missing),
            duplicates=receiver.duplicates,
            counts=self.counts,
            failure=self.failure.value if self.failure else None,
        )

    # From the engine

    def send(self, payloads: Iterable[bytes], is_urgent: bool = False, *, is_calm: bool = False) -> None:
        """Let payloads wait for `flush`; UsageError for one that is empty or too large. `is_calm`: whether they came
        need not be known soon."""
        self.sender.put(payloads, is_urgent=is_urgent, is_calm=is_calm)

    def withdraw(self) -> list[bytes]:
        """Take back the payloads that are not urgent and of which nothing was sent."""
        return self.sender.packer.withdraw()

    def ride(self, rider: bytes, now: Instant) -> None:
        """Let these bytes ride on every packet; a numbered one leaves soon, if the bytes are new."""
        if len(rider) != self._config.rider_size:
            raise UsageError(f"a rider has {self._config.rider_size} bytes here, not {len(rider)}")
        if rider != self._rider:
            self._rider = rider
            self.sender.carry(Instant(now + self._config.ack_ns))

    def hear(self, now: Instant) -> None:
        """Know that the other process lives."""
        self.heard_at = now

    def forgive(self, now: Instant) -> None:
        """Count silence and stalls from now on: this process itself did nothing for a while."""
        self.heard_at = self.sender.moved_at = self.receiver.moved_at = now

    def fail(self, why: LinkFailure) -> None:
        """End the link; the first reason counts."""
        self.failure = self.failure or why

    # From the other end

    def receive(self, packet: bytes, now: Instant) -> Brought:
        """Take a packet; return what it brought. Raises a WireError, and nothing has changed, for a packet that is
        damaged, not of this link, or cannot be true."""
        try:
            return self._take(packet, now)
        except WireError:
            self.counts.dropped += 1
            raise

    def receive_run(self, data: bytes, size: int, now: Instant) -> Brought | None:
        """Take packets of `size` bytes each, the last one perhaps shorter, if they are one payload in parts and come in
        their turn. None, and nothing has changed, if they are anything else: then they are taken one by one."""
        body_at = LINK_HEAD_SIZE + self._config.rider_size
        run = run_of(data, size, body_at) if self.receiver.is_in_turn and self.failure is None else None
        if run is None:
            return None
        try:
            kind_of(data[:size], self._cluster)
            head, rider, _ = decode_link(data[:size], self._config.rider_size)
        except WireError:
            return None
        is_mine = transmitter_of(data) == self.peer and head.tag == self.tags.theirs
        if not is_mine or head.number != self.receiver.next or head.aru + head.beyond > self.sender.high:
            return None
        if len(run.payload) > self._config.payload_max:
            return None
        self._take_head(head, now)
        self.counts.received += run.packets - 1
        self.receiver.take_run(run.packets, now)
        return Brought([run.payload], rider)

    def _take(self, packet: bytes, now: Instant) -> Brought:
        kind_of(packet, self._cluster)
        head, rider, body = decode_link(packet, self._config.rider_size)
        if transmitter_of(packet) != self.peer or head.tag != self.tags.theirs:
            raise WireError("a packet of another epoch of the link, or of another process")
        if self.failure is not None:
            raise WireError("a packet of a link that failed")
        self.sender.check(head.aru, head.beyond)
        self.receiver.check(head.number)
        if head.kind == DATA:
            is_part = bool(head.flags & PART)
            payloads = self.receiver.parsed(head.number, body, is_part)
            self._take_head(head, now)
            part, is_calm = body if is_part else None, bool(head.flags & CALM)
            payloads = self.receiver.take(head.number, payloads, part, now, is_calm=is_calm)
            return Brought(payloads, rider)
        ranges = decode_ranges(head.aru, self.sender.high, body)
        self._take_head(head, now)
        self._take_status(head, ranges, now)
        return Brought([], rider)

    def _take_head(self, head: LinkHead, now: Instant) -> None:
        self.heard_at = now
        self.counts.received += 1
        round_trip = self.path.hear(head.sent, head.echo, now)
        self.sender.acknowledge(head.aru, head.beyond, round_trip, now)

    def _take_status(self, head: LinkHead, ranges: Ranges, now: Instant) -> None:
        self.sender.ask(ranges, now)
        self.receiver.announce(head.number, now)
        if head.flags & PROBE:
            self.receiver.owe_now(now)
        self._judge_hopes()

    # Time, and what leaves

    @property
    def next_deadline(self) -> Instant | None:
        """When `flush` is to be called, if nothing happens before."""
        if self.failure is not None:
            return None
        due = self._due
        return None if due == NEVER else due

    @property
    def _due(self) -> Instant:
        """When something is to be done, or the link is at an end."""
        due = min(self.sender.next_deadline, self.receiver.next_deadline)
        if self._config.silence_ns:
            due = min(due, self._silent_at)
        return min(due, self._stalled_at) if self._config.stall_ns else due

    @property
    def _silent_at(self) -> Instant:
        silence = self._config.silence_ns
        return Instant(self.heard_at + silence) if silence else NEVER

    @property
    def _stalled_at(self) -> Instant:
        stall = self._config.stall_ns
        if not stall or (self.sender.is_acknowledged and self.receiver.is_in_turn):
            return NEVER
        stall += STALL_TRIPS * self.path.smooth  # a path that is busy is not one that has failed
        moved_at = NEVER if self.sender.is_acknowledged else self.sender.moved_at
        if not self.receiver.is_in_turn:
            moved_at = min(moved_at, self.receiver.moved_at)
        return NEVER if moved_at >= self.active_since else Instant(moved_at + stall)

    def flush(self, now: Instant) -> list[Burst]:
        """Return what leaves now: questions, what was asked for, what is new, an acknowledgement where nothing else
        carries it. Time may end the link; then nothing leaves."""
        if not self.sender.is_eager and self._is_early(now):
            return []
        self._judge(now)
        asked = () if self.failure else self.receiver.due(now)
        self._judge_hopes()
        if self.failure is not None:
            return []
        packets = [self._status(asked[at : at + RANGES_MAX], now) for at in range(0, len(asked), RANGES_MAX)]
        if bodies := self.sender.packets(now):
            flags = CALM if self.sender.leaves_calmly else 0
            packets += encode_run(self._cluster, self._me, self._head(DATA, flags, 0, now), self._rider, bodies)
        if self.sender.tail_due <= now or (self.receiver.ack_due <= now and not packets):
            packets.append(self._status((), now))
        if packets:
            self.receiver.acknowledged()
        self.counts.sent += len(packets)
        self.counts.sent_bytes += sum(map(len, packets))
        return bursts_of(packets)

    def _is_early(self, now: Instant) -> bool:
        """Whether nothing is due."""
        is_hopeless = self.receiver.is_hopeless or self.sender.is_hopeless
        return self.failure is not None or (now < self._due and not is_hopeless)

    def _judge(self, now: Instant) -> None:
        if now >= self._silent_at:
            self.fail(LinkFailure.SILENT)
        elif now >= self._stalled_at:
            self.fail(LinkFailure.STALLED)

    def _judge_hopes(self) -> None:
        if self.receiver.is_hopeless:
            self.fail(LinkFailure.NOT_RECEIVED)
        elif self.sender.is_hopeless:
            self.fail(LinkFailure.NOT_RECEIVED_THERE)

    def _status(self, ranges: Ranges, now: Instant) -> bytes:
        is_probe = self.sender.tail_due <= now
        if is_probe:
            self.sender.probed(now)
        body = encode_ranges(self.receiver.aru, ranges)
        packet = self._packet(STATUS, PROBE if is_probe else 0, self.sender.high, body, now)
        self.sender.regulator.left(len(packet), now)
        return packet

    def _packet(self, kind: int, flags: int, number: int, body: bytes, now: Instant) -> bytes:
        return encode_link(self._cluster, self._me, self._head(kind, flags, number, now), self._rider, body)

    def _head(self, kind: int, flags: int, number: int, now: Instant) -> LinkHead:
        receiver = self.receiver
        stamps = stamp_of(now), self.path.echo(now)
        return LinkHead(kind, flags, self.tags.mine, number, receiver.aru, receiver.beyond, *stamps)

    def check_invariants(self) -> None:
        self.sender.check_invariants()
        self.receiver.check_invariants()


def bursts_of(packets: list[bytes]) -> list[Burst]:
    """Return packets as bursts: those in a row of equal size together, with a shorter one at the end."""
    bursts: list[Burst] = []
    first = size = 0  # the first packet of a run, and its size
    is_ended = True
    for place, length in enumerate(map(len, packets)):
        if is_ended or length > size:
            if place:
                bursts.append((b"".join(packets[first:place]), size))
            first, size = place, length
        is_ended = length < size
    if packets:
        bursts.append((b"".join(packets[first:]), size))
    return bursts
