"""RingNode: the engine. Its frame is every engine's (`membership/frame.py`); here is how it reads packets.

Data packets of the accepting ring take the short way: one look at the header, into the store, and one call of the state
per batch. Everything else goes to the frame.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ordercast.model.effects import AlarmKind, Effect
from ordercast.model.errors import UsageError, WireError
from ordercast.model.ids import ConfigurationId, Instant, NodeId, Seq
from ordercast.model.inputs import Interest, Lane, Packet
from ordercast.model.notes import PacketDropped
from ordercast.model.promises import Promises
from ordercast.order.engine import granted
from ordercast.order.membership.bounds import believed_clock
from ordercast.order.membership.frame import Frame
from ordercast.order.membership.past import Parts
from ordercast.order.membership.ring import Ring
from ordercast.order.membership.states import moves
from ordercast.order.membership.step import Step
from ordercast.order.ring.config import ONE_NETWORK, RingConfig
from ordercast.order.ring.delivery import Delivery
from ordercast.order.ring.ordering import QUIET_VISITS
from ordercast.order.ring.promised import PROMISED, SERVICES
from ordercast.order.ring.stall import why_stalled
from ordercast.order.ring.states.operational import Operational
from ordercast.order.ring.states.token_visit import TokenExchange
from ordercast.order.ring.traffic import RING_TRAFFIC
from ordercast.order.traffic import Traffic
from ordercast.wire.head import MAGIC, transmitter_of
from ordercast.wire.header import ARRIVAL, ROUND, is_same
from ordercast.wire.run import PacketRun, parse_data, parse_run


class RingNode(Frame):
    """One process on a Totem ring."""

    def __init__(
        self,
        node: NodeId,
        config: RingConfig | None = None,
        *,
        verbose: bool = False,
        beneath: str = ONE_NETWORK,  # what carries the packets, in words, which are compared with other members'
        other_engines: Sequence[str] = (),  # that a cluster of the same name might run
        settles: bool = False,  # the token rests only when everything is known to be safe
        stamps: bool = False,  # deliveries carry the stamps of their packets, for an enclosing engine
    ) -> None:
        config = config or RingConfig()
        config.validate()
        self._reach = 2 * config.backlog_max  # packets above the last token's seq that may come before the next
        promises = Promises("ring", PROMISED, SERVICES, config.message_size_max)
        parts = parts_of(config, settles=settles, is_stamped=stamps)
        super().__init__(node, config, promises, parts, verbose=verbose, beneath=beneath, other_engines=other_engines)

    # What a driver asks

    @property
    def traffic(self) -> Traffic:
        return RING_TRAFFIC

    def is_idle(self) -> bool:
        facts = self._running
        memory, store = facts.installed.memory, facts.installed.store
        is_delivered = facts.past.delivered == store.high == memory.forwarded_seq
        alone = len(facts.installed.members) == 1
        return (
            self._state.name == moves.OPERATIONAL
            and not facts.outbox
            and is_delivered
            and (alone or memory.quiet >= QUIET_VISITS)
        )

    def holds(self, ring: ConfigurationId, seq: Seq) -> bool:
        accepting = self._state.accepting(self._running)
        return accepting is None or accepting.id != ring or accepting.store.aru >= seq

    # Inputs

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        step = self._begin(now)
        fresh: list[PacketRun] = []
        for packet in packets:
            self._read(packet, fresh, step)
        self._heed(fresh, step)
        return self._end(step)

    def interest(self, changes: Sequence[Interest], now: Instant) -> list[Effect]:
        """Everybody on a ring receives everything."""
        return granted(changes)

    def hear(self, stamp: int, now: Instant) -> list[Effect]:
        """An enclosing engine has met this stamp: whatever the ring numbers here from now on has a higher one."""
        step = self._begin(now)
        facts = step.facts
        facts.clock = max(facts.clock, believed_clock(facts.clock, stamp, is_new=True))
        return self._end(step)

    # Reading packets

    def _read(self, packet: Packet, fresh: list[PacketRun], step: Step) -> None:
        """All datagrams of one read. Data packets in order go straight to the store and to `fresh`; the state hears of
        them before anything else is looked at, or when all is read."""
        data, size = bytes(packet.data), packet.segment_size  # a memoryview is copied once, not piece by piece
        if not data:
            step.note(PacketDropped("an empty datagram"))
            return
        if size < 1:
            raise UsageError("segment_size must be at least 1")
        ring = self._state.accepting(step.facts)
        start, end = 0, len(data)
        while start < end:
            if ring is not None:
                store = ring.store
                if store.aru == store.high < ring.memory.forwarded_seq + self._reach:
                    run = parse_run(data, start, size, ring.heading, Seq(store.aru + 1))
                    if run is not None:
                        store.extend(run)
                        fresh.append(run)
                        start += run.count * size
                        continue
                if self._take(ring, data, start, size, fresh, step):
                    start += size
                    continue
            if data[start : start + 2] != MAGIC:  # noise must not cost more than this
                step.note(PacketDropped("not an Ordercast packet"))
                start += size
                continue
            self._heed(fresh, step)
            self._control(data[start : min(start + size, end)], step)
            ring = self._state.accepting(step.facts)
            start += size

    def _heed(self, fresh: list[PacketRun], step: Step) -> None:
        """The state hears of packets that are in the store of the ring that it accepts."""
        if not fresh:
            return
        ring = self._state.accepting(step.facts)
        self._state = self._state.on_data(list(fresh), step)
        if self._config.accelerated and ring is not None:
            self._choose_lane(ring, fresh[-1])
        fresh.clear()

    def _take(self, ring: Ring, data: bytes, start: int, size: int, fresh: list[PacketRun], step: Step) -> bool:
        """A data packet of this ring that is out of order, or a duplicate, or unsound. False when it is another's."""
        if not ring.heading.is_of(data, start):
            return False
        store = ring.store
        try:
            _, length, _, _, flags, count, place, seq = ARRIVAL.unpack_from(data, start)
            end = start + length
            if length > size or end > len(data):
                raise WireError("a data packet is cut short")
            if store.has(seq):
                self._compare(ring, seq, data[start:end], step)
            elif seq <= ring.memory.forwarded_seq + self._reach:
                run = parse_data(data, flags, count, ring.heading.originator(place), seq, start, end)
                store.add(seq, run)
                fresh.append(run)
        except (struct.error, WireError) as error:
            step.note(PacketDropped(str(error)))
        return True

    def _compare(self, ring: Ring, seq: Seq, packet: bytes, step: Step) -> None:
        """A second packet of one number is a copy, or one of the two is forged."""
        held = ring.store.get(seq)
        if held is None or is_same(mine := held.packet(seq), packet):
            return
        if transmitter_of(mine) == ring.me:
            ring.memory.foreign_seq = seq  # the state hears of it when it has the token
        else:
            text = f"two packets came as number {seq} of ring {ring.id}: one is forged"
            self._suspicion.warn(AlarmKind.FORGED, text, step)

    def _choose_lane(self, ring: Ring, run: PacketRun) -> None:
        """Accelerated ring: once the predecessor sends packets of a round that I have not seen, its token is near."""
        packet = run.at + (run.count - 1) * run.size
        if len(ring.members) > 1 and transmitter_of(run.data, packet) == ring.predecessor:
            nearing = ring.memory.round + (ring.me != ring.representative)  # the representative counts the rounds
            if ROUND.unpack_from(run.data, packet)[0] >= nearing:
                self._lane = Lane.TOKEN

    def check_invariants(self, *, thorough: bool = True) -> None:
        facts = self._running
        store = facts.installed.store
        assert store.base <= facts.past.delivered <= store.aru, "discarded ≤ delivered ≤ received"
        assert facts.installed.memory.safe_seq <= store.aru, "what is safe was received here too"
        if thorough:
            store.check_invariants()
            self._check_membership(facts)


def parts_of(config: RingConfig, *, settles: bool = False, is_stamped: bool = False) -> Parts:
    """What the ring adds to its membership."""

    def past_of(ring: Ring, through: Seq) -> Delivery:
        return Delivery(ring, ring.id, through, reach=2 * config.backlog_max, is_stamped=is_stamped)

    exchange = TokenExchange()
    return Parts(past_of, Operational.begin, Operational.enter, exchange, why_stalled, settles, is_stamped)
