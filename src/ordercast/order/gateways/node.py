"""GatewayNode: the engine. One process in a network of rings, on one ring or, as a gateway, on several.

Each input goes to the rings of its attachments. What they hand up goes into the order of the network (`network.py`),
which gives what is to be put on the rings, and what is passed up; that may cause more, until nothing is left. Users
send on the first attachment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ordercast.model.effects import Alarm, AlarmKind, Deliver, Effect, Enlisted, Install, LeaveDone, Record, Room
from ordercast.model.errors import UsageError
from ordercast.model.ids import (
    MAIN,
    Attachment,
    ConfigurationId,
    Incarnation,
    Instant,
    NodeId,
    ProcessId,
    Seq,
    process_id_from,
)
from ordercast.model.inputs import Interest, Lane, Packet, Stored, Submission, Submissions
from ordercast.model.notes import Occurred, PacketDropped
from ordercast.model.promises import Promises
from ordercast.model.roster import Roster
from ordercast.order.attached import Attached, RingChange, RingPackets
from ordercast.order.clock import CLOCK_KEY, StoredClock
from ordercast.order.engine import Engine, EngineStats, Membership, granted
from ordercast.order.gateways.attachment import RingAttachment, is_greeting
from ordercast.order.gateways.holds import Pressure
from ordercast.order.gateways.items import BegunMessage
from ordercast.order.gateways.network import RingNetwork
from ordercast.order.gateways.passing import PassingUp
from ordercast.order.gateways.promised import PROMISED, SERVICES
from ordercast.order.layered import InnerRing
from ordercast.order.ring.config import ONE_NETWORK, RingConfig
from ordercast.order.ring.node import RingNode
from ordercast.order.ring.traffic import RING_TRAFFIC
from ordercast.order.setup import Domain
from ordercast.order.traffic import Traffic

ENGINE = "gateways"
GATEWAY_SHARE = 2.0  # a gateway sends so many times as much in a visit as others
QUEUE_HIGH = 4 << 20  # bytes that wait to be carried onto a ring, before users are asked to stop


class GatewayNode:
    def __init__(
        self,
        node: NodeId,
        config: RingConfig,
        domains: Sequence[Domain],  # by attachment
        *,
        verbose: bool = False,
        beneath: str = ONE_NETWORK,
        other_engines: Sequence[str] = (),
        over_networks: Callable[[RingNode], Engine] = lambda ring: ring,
    ) -> None:
        if not domains or len({domain.number for domain in domains}) < len(domains):
            raise UsageError("a process is attached to at least one domain, and to each once")
        self._node = node
        size_max = config.message_size_max
        self._promises = Promises(ENGINE, PROMISED, SERVICES, size_max, shares_views=False)
        self._clock = StoredClock()
        share = GATEWAY_SHARE if len(domains) > 1 else 1.0
        self._rings = [
            RingNode(
                node,
                config,
                verbose=verbose,
                beneath=beneath,
                other_engines=other_engines,
                attached=Attached(domain.number, domain.name, self._clock, share),
            )
            for domain in domains
        ]
        self._attachments = [
            RingAttachment(InnerRing(over_networks(ring), Attachment(number), domain.name, ring), domain.number)
            for number, (ring, domain) in enumerate(zip(self._rings, domains, strict=True))
        ]
        self._by_domain = {attachment.domain: attachment for attachment in self._attachments}
        self._network: RingNetwork | None = None  # until all rings have begun
        self._begun: dict[int, RingChange] = {}  # those that have, until then
        self._passing: PassingUp | None = None
        self._passed: list[Effect] = []  # what the order has brought, on its way up
        self._me: ProcessId | None = None
        self._pressures = [Pressure(f"much waits to be carried onto {domain.name}", QUEUE_HIGH) for domain in domains]
        self._is_behind = False
        self._is_held = True  # users wait until the network begins
        self._submitted = 0  # messages of this life
        self._is_leaving = False
        self._is_farewell = False  # the rings are being left
        self._has_news = False  # rings have handed up something that the order has not seen

    # What a driver asks

    @property
    def promises(self) -> Promises:
        return self._promises

    @property
    def traffic(self) -> Traffic:
        return RING_TRAFFIC

    @property
    def process(self) -> ProcessId:
        assert self._me is not None, "the engine is started"
        return self._me

    @property
    def configuration(self) -> Membership:
        if self._network is None:
            return Membership(self._rings[0].ring.id, (self.process,))
        view = self._network.view
        return Membership(view.id, tuple(sorted(view.members)))

    @property
    def state_name(self) -> str:
        """The state of the ring that is furthest from normal operation."""
        return next((ring.state_name for ring in self._rings if not ring.is_ready), self._rings[0].state_name)

    @property
    def is_ready(self) -> bool:
        return self._network is not None and all(ring.is_ready for ring in self._rings)

    @property
    def is_gone(self) -> bool:
        return all(attachment.is_gone for attachment in self._attachments)

    @property
    def stats(self) -> EngineStats:
        stats = [ring.stats for ring in self._rings]
        return EngineStats(
            sum(one.packets_sent for one in stats),
            sum(one.packets_retransmitted for one in stats),
            sum(one.packets_requested for one in stats),
        )

    @property
    def roster(self) -> Roster | None:
        return self._rings[0].roster

    def roster_differences(self, now: Instant) -> list[str]:
        return [text for ring in self._rings for text in ring.roster_differences(now)]

    def stalled(self, now: Instant) -> str | None:
        return next((text for ring in self._rings if (text := ring.stalled(now)) is not None), None)

    @property
    def is_without_storage(self) -> bool:
        return self._clock.is_without or any(ring.is_without_storage for ring in self._rings)

    def next_deadline(self) -> Instant | None:
        deadlines = (attachment.inner.next_deadline() for attachment in self._attachments)
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def room(self) -> int:
        return self._attachments[0].inner.room()

    def want_room(self, size: int) -> None:
        self._attachments[0].inner.want_room(size)

    def is_idle(self) -> bool:
        network = self._network
        return (
            network is not None
            and network.is_idle()
            and all(attachment.inner.is_idle() for attachment in self._attachments)
        )

    def first_lane(self, attachment: Attachment = MAIN) -> Lane:
        return self._attachments[attachment].inner.first_lane()

    def holds(self, ring: ConfigurationId, seq: Seq) -> bool:
        return True  # several networks are below the rings, not below this engine

    def deniable(self, configuration: ConfigurationId) -> tuple[Seq, Seq] | None:
        return None  # forgers know the packets of a ring that stands alone

    def check_invariants(self, *, thorough: bool = True) -> None:
        for attachment in self._attachments:
            attachment.inner.check_invariants(thorough=thorough)

    # Inputs

    def start(self, stored: Stored, incarnation: Incarnation, now: Instant) -> list[Effect]:
        self._me = process_id_from(self._node, incarnation)
        effects: list[Effect] = []
        if not self._clock.start(stored):
            text = "the stored clock cannot be true and is not used: this process counts from the beginning"
            effects.append(Alarm(AlarmKind.STORAGE_DAMAGED, text, self._me))
        for attachment in self._attachments:
            effects += self._taken(attachment, attachment.inner.start(stored, incarnation, now))
        first = self._attachments[0]
        return effects + self._taken(first, first.inner.hold(True, now)) + self._go_on(now)

    def submit(self, submissions: Sequence[Submission | Submissions], now: Instant) -> list[Effect]:
        if self._is_leaving:
            raise UsageError("this process is leaving: it sends nothing more")
        first = self._attachments[0]
        effects = first.inner.submit(submissions, now)
        self._submitted += sum(1 if isinstance(one, Submission) else len(one.payloads) for one in submissions)
        return self._taken(first, effects) + self._go_on(now)

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        if self._network is None:
            return []  # a ring that has begun waits for the others, alone
        effects: list[Effect] = []
        for attachment in self._attachments:
            effects += self._taken(attachment, attachment.inner.receive(packets, now))
        return effects + self._go_on(now)

    def persisted(self, key: str, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        if key == CLOCK_KEY:
            is_again = self._clock.persisted()
            for attachment in self._attachments:
                effects += self._taken(attachment, attachment.inner.clock_stored(now, is_again=is_again))
                is_again = False  # one ring tells it
        else:
            for attachment in self._attachments:
                effects += self._taken(attachment, attachment.inner.persisted(key, now))
        return effects + self._go_on(now)

    def interest(self, changes: Sequence[Interest], now: Instant) -> list[Effect]:
        return granted(changes)

    def enlist(self, roster: Roster, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        for attachment in self._attachments:
            told = attachment.inner.enlist(roster, now)
            is_first = attachment is self._attachments[0]
            effects += self._taken(attachment, [one for one in told if is_first or not isinstance(one, Enlisted)])
        return effects + self._go_on(now)

    def wake(self, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        for attachment in self._attachments:
            deadline = attachment.inner.next_deadline()
            if deadline is not None and deadline <= now:
                effects += self._taken(attachment, attachment.inner.wake(now))
        return effects + self._go_on(now)

    def behind(self, is_behind: bool, now: Instant) -> list[Effect]:
        self._is_behind = is_behind
        return self._go_on(now)

    def leave(self, now: Instant) -> list[Effect]:
        self._is_leaving = True
        return self._go_on(now)

    # What rings cause

    def _taken(self, attachment: RingAttachment, effects: list[Effect]) -> list[Effect]:
        """Take what a ring hands up; return the rest, which is the driver's."""
        onward: list[Effect] = []
        for effect in effects:
            if isinstance(effect, RingPackets):
                self._has_news = True
                if self._network is not None:
                    self._network.deliver(attachment.domain, attachment.read(effect.runs))
            elif isinstance(effect, RingChange):
                self._has_news = True
                self._change(attachment, effect)
            elif isinstance(effect, LeaveDone):
                attachment.is_gone = True
            elif not isinstance(effect, Room) or attachment is self._attachments[0]:
                assert not isinstance(effect, Deliver | Install), "a ring in a network hands up packets"
                onward.append(effect)
        return onward

    def _change(self, attachment: RingAttachment, change: RingChange) -> None:
        residual, companions, ring = attachment.change(change)
        if self._network is None:
            self._begun[attachment.domain] = change
        elif not self._is_farewell:
            self._network.install(attachment.domain, residual, companions, ring)

    def _go_on(self, now: Instant) -> list[Effect]:
        """Let the order go on, and put on the rings what it asks for, until nothing more comes of it."""
        effects: list[Effect] = []
        if self._network is None and len(self._begun) == len(self._attachments):
            effects += self._found()
        network, passing = self._network, self._passing
        if network is None or passing is None:
            return effects
        self._has_news = True
        while self._has_news:
            self._has_news = False
            network.known.clock = max(network.known.clock, self._clock.tick)
            for attachment in self._attachments:
                network.hear_lowest(attachment.domain, attachment.inner.lowest.known)
            network.step()
            self._clock.hear(network.known.clock)
            for attachment in self._attachments:
                attachment.inner.lowest.mine = network.known.place
            effects += self._passed_up()
            effects += self._notes(network)
            effects += self._hold(network, now) + self._carry(network, now)
        effects += self._leave_if_done(network, passing, now)
        return effects

    def _found(self) -> list[Effect]:
        """Begin alone in a network of the own rings."""
        rings = {domain: change.configuration.id for domain, change in self._begun.items()}
        tick = max(change.birth for change in self._begun.values())
        self._network = RingNetwork(self.process, rings, tick)
        self._begun.clear()
        self._passing = PassingUp(self._network.view)
        self._network.begun = self._begun_messages
        self._network.learn_begun = self._learn_begun
        return [self._passing.started()]

    def _passed_up(self) -> list[Effect]:
        """Return what the order has brought since this was asked last."""
        self._take_passed()
        effects, self._passed = self._passed, []
        return effects

    def _take_passed(self) -> None:
        assert self._network is not None and self._passing is not None
        self._passed += self._passing.effects(self._network.passed, self.process)
        self._network.passed.clear()

    def _begun_messages(self) -> tuple[BegunMessage, ...]:
        """Return the messages in parts at this very place of the order."""
        assert self._passing is not None
        self._take_passed()
        return self._passing.begun()

    def _learn_begun(self, begun: tuple[BegunMessage, ...]) -> None:
        assert self._passing is not None
        self._take_passed()
        self._passing.learn_begun(begun)

    def _carry(self, network: RingNetwork, now: Instant) -> list[Effect]:
        """Put on the rings what waits for them."""
        effects: list[Effect] = []
        for domain, queue in network.forwarding.queues.items():
            attachment = self._by_domain[domain]
            if queue and is_greeting(queue[0]):
                freight = attachment.freight([queue.popleft()])
                effects += self._taken(attachment, attachment.inner.carry(freight, now, is_first=True))
            if queue:
                freight = attachment.freight(queue)
                queue.clear()
                effects += self._taken(attachment, attachment.inner.carry(freight, now))
        return effects

    def _hold(self, network: RingNetwork, now: Instant) -> list[Effect]:
        """Ask users everywhere to stop, or to go on; and stop the own ones while somebody asks for it."""
        reasons = [
            pressure.reason
            for pressure, attachment in zip(self._pressures, self._attachments, strict=True)
            if pressure.measure(attachment.inner.freight_size)
        ]
        if self._is_behind:
            reasons.append("the application is behind")
        network.hold(reasons)
        first = self._attachments[0]
        is_held = not network.may_send(first.domain)
        if is_held == self._is_held:
            return []
        self._is_held = is_held
        return self._taken(first, first.inner.hold(is_held, now))

    def _notes(self, network: RingNetwork) -> list[Effect]:
        """Tell what has happened, and what was dropped."""
        occurred = network.known.occurred
        effects: list[Effect] = [Record(Occurred(what, count)) for what, count in occurred.items() if count]
        occurred.clear()
        for attachment in self._attachments:
            effects += (Record(PacketDropped(why)) for why in attachment.dropped)
            attachment.dropped.clear()
        return effects

    def _leave_if_done(self, network: RingNetwork, passing: PassingUp, now: Instant) -> list[Effect]:
        """Say farewell on all rings when everything that was submitted has been passed up, and nothing is left to be
        carried; the last ring that is left ends the life."""
        if not self._is_leaving:
            return []
        effects: list[Effect] = []
        is_done = passing.own == self._submitted and not any(
            attachment.inner.freight_size for attachment in self._attachments
        )
        if is_done and not self._is_farewell:
            self._is_farewell = True
            for attachment in self._attachments:
                effects += self._taken(attachment, attachment.inner.leave(now))
        if self.is_gone:
            effects.append(LeaveDone())
        return effects
