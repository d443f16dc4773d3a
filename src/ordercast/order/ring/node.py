"""RingNode: the engine. Its frame is every engine's (`membership/frame.py`); what a ring adds is in its `Parts`."""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.model.effects import Effect
from ordercast.model.ids import ConfigurationId, Instant, NodeId, Seq
from ordercast.model.inputs import Interest, Packet
from ordercast.model.promises import Promises
from ordercast.order.engine import granted
from ordercast.order.membership.bounds import believed_clock
from ordercast.order.membership.frame import Frame
from ordercast.order.membership.past import Parts
from ordercast.order.membership.ring import Ring
from ordercast.order.membership.states import moves
from ordercast.order.ring.config import ONE_NETWORK, RingConfig
from ordercast.order.ring.delivery import Delivery
from ordercast.order.ring.ordering import QUIET_VISITS
from ordercast.order.ring.promised import PROMISED, SERVICES
from ordercast.order.ring.stall import why_stalled
from ordercast.order.ring.states.operational import Operational
from ordercast.order.ring.states.token_visit import TokenExchange
from ordercast.order.ring.traffic import RING_TRAFFIC
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
        other_engines: Sequence[str] = (),  # that a cluster of the same name might run
        settles: bool = False,  # the token rests only when everything is known to be safe
        stamps: bool = False,  # deliveries carry the stamps of their packets, for an enclosing engine
    ) -> None:
        config = config or RingConfig()
        config.validate()
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
