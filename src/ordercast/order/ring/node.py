"""RingNode: the engine. Its frame is every engine's (`membership/frame.py`); what a ring adds is in its `Parts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ordercast.model.effects import Effect
from ordercast.model.errors import UsageError
from ordercast.model.ids import ConfigurationId, Instant, NodeId, Seq
from ordercast.model.inputs import Interest, Packet
from ordercast.model.promises import Promises
from ordercast.order.attached import Attached
from ordercast.order.engine import granted
from ordercast.order.lowest import LowestPlace
from ordercast.order.membership.frame import Frame
from ordercast.order.membership.past import Parts
from ordercast.order.membership.ring import Ring
from ordercast.order.membership.states import moves
from ordercast.order.membership.timers import Timer
from ordercast.order.neighbours import NO_NEIGHBOURS
from ordercast.order.outbox import Outbox
from ordercast.order.ring.config import ONE_NETWORK, RingConfig
from ordercast.order.ring.delivery import Delivery
from ordercast.order.ring.handing import HandingUp
from ordercast.order.ring.ordering import QUIET_VISITS
from ordercast.order.ring.promised import PROMISED, SERVICES
from ordercast.order.ring.stall import why_stalled
from ordercast.order.ring.states.operational import Operational
from ordercast.order.ring.states.token_visit import TokenExchange
from ordercast.order.ring.traffic import RING_TRAFFIC
from ordercast.order.ring.two_queues import NATIVE_BLOCK, Freight, TwoQueues
from ordercast.order.traffic import Traffic
from ordercast.wire.run import PacketRun


class RingNode(Frame):
    """One process on a Totem ring."""

    def __init__(
        self,
        node: NodeId,
        config: RingConfig | None = None,
        *,
        verbose: bool = False,
        beneath: str = ONE_NETWORK,  # what carries the packets, in words, which are compared with other members'
        other_engines: Mapping[bytes, str] = NO_NEIGHBOURS,  # by the id of this cluster on them
        settles: bool = False,  # the token rests only when everything is known to be safe
        stamps: bool = False,  # deliveries carry the stamps of their packets, for an enclosing engine
        attached: Attached | None = None,  # its place in a network of rings: packets are handed up, not messages
        engine: str = "ring",  # the enclosing one, where the ring is a layer of another
    ) -> None:
        config = config or RingConfig()
        config.validate()
        promises = Promises(engine, PROMISED, SERVICES, config.message_size_max)
        parts = parts_of(config, settles=settles, is_stamped=stamps, attached=attached)
        if attached is not None and beneath == ONE_NETWORK:  # several are judged by how much one may bring first
            parts = replace(parts, has_full_visits=True)
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
        if fresh:
            self._heed(fresh, step)
        return self._end(step)

    def interest(self, changes: Sequence[Interest], now: Instant) -> list[Effect]:
        """Everybody on a ring receives everything."""
        return granted(changes)

    def hear(self, stamp: int, now: Instant) -> list[Effect]:
        """An enclosing engine has met this stamp: whatever the ring numbers here from now on has a higher one."""
        step = self._begin(now)
        step.facts.clock.hear(stamp)
        return self._end(step)

    # Inputs of a network of rings

    def carry(self, freight: Sequence[Freight], now: Instant, *, is_first: bool = False) -> list[Effect]:
        """Put packets of other rings and control on this one, before everything that users send."""
        step = self._begin(now)
        self._queues.carry(freight, is_first=is_first)
        self._state = self._state.on_submission(step)
        return self._end(step)

    def hold(self, is_held: bool, now: Instant) -> list[Effect]:
        """Users of this process stop sending, or go on."""
        step = self._begin(now)
        self._queues.is_held = is_held
        self._state = self._state.on_submission(step)
        return self._end(step)

    def clock_stored(self, now: Instant, *, is_again: bool = False) -> list[Effect]:
        """A higher bound of the clock is on stable storage; `is_again`: after the process had gone on without it."""
        step = self._begin(now)
        step.facts.timers.cancel(Timer.CLOCK)  # what waits for a yet higher bound has the patience of that write
        if is_again:
            step.clock_stored()
        self._state = self._state.on_persisted(step)
        self._state = self._state.on_submission(step)
        return self._end(step)

    def clock_writes(self) -> list[Effect]:
        """Return what has to be written of the clock, under a key that all rings of this process share."""
        return self._running.clock.writes()

    def behind(self, is_behind: bool, now: Instant) -> list[Effect]:
        if self._parts.attached is not None:
            raise UsageError("a ring in a network of rings never stops: what it carries is not its own")
        return super().behind(is_behind, now)

    @property
    def lowest(self) -> LowestPlace:
        """How far all members are in the order of the network; whoever orders it raises this process's own place."""
        assert self._parts.attached is not None, "a ring that stands alone has no other order"
        return self._parts.attached.lowest

    @property
    def freight_body_max(self) -> int:
        """Descriptors and payloads of control that fit in a packet: nobody carries it as it is."""
        return self._config.body_size_max - len(NATIVE_BLOCK)

    @property
    def freight_size(self) -> int:
        """Bytes of other rings and of control that wait to be sent."""
        return self._queues.freight_size

    @property
    def _queues(self) -> TwoQueues:
        queues = self._running.outbox
        assert isinstance(queues, TwoQueues), "only a ring in a network of rings carries for others"
        return queues

    def check_invariants(self, *, thorough: bool = True) -> None:
        facts = self._running
        store = facts.installed.store
        assert store.base <= facts.past.delivered <= store.aru, "discarded ≤ delivered ≤ received"
        assert facts.installed.memory.safe_seq <= store.aru, "what is safe was received here too"
        if thorough:
            store.check_invariants()
            self._check_membership(facts)


def parts_of(
    config: RingConfig, *, settles: bool = False, is_stamped: bool = False, attached: Attached | None = None
) -> Parts:
    """What the ring adds to its membership."""
    # A token may speak of `ahead_max` packets more than the last, and as many may follow it; who has not seen it may be
    # two visits behind those who have.
    reach = 3 * config.ahead_max

    def past_of(ring: Ring, through: Seq) -> Delivery:
        return Delivery(ring, ring.id, through, reach=reach, is_stamped=is_stamped)

    exchange = TokenExchange()
    parts = Parts(past_of, Operational.begin, Operational.enter, exchange, why_stalled, settles, is_stamped)
    if attached is None:
        return replace(parts, outbox_of=_lone_outbox) if is_stamped else parts
    clock = attached.clock
    return replace(
        parts,
        past_of=lambda ring, through: HandingUp(ring, ring.id, through, reach=reach, clock=clock),
        outbox_of=lambda config: TwoQueues(config.body_size_max, clock),
        is_stamped=True,
        attached=attached,
        freezes_at_entry=True,
    )


def _lone_outbox(config: RingConfig) -> Outbox:
    """Return an outbox that gives each message a packet of its own: its stamp names it."""
    return Outbox(config.body_size_max, each_max=1)
