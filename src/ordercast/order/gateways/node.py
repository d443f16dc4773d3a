"""GatewayNode: the engine. One process in a network of rings, on one ring or, as a gateway, on several.

Each input goes to the rings of its attachments. What they hand up goes into the order of the network (`network.py`),
which gives what is to be put on the rings, and what is passed up; that may cause more, until nothing is left. Users
send on the first attachment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ordercast.model.effects import (
    Alarm,
    AlarmKind,
    Effect,
    LeaveDone,
    Record,
    SendTo,
    Subscribed,
    Then,
    noted,
)
from ordercast.model.errors import UsageError
from ordercast.model.ids import (
    MAIN,
    Attachment,
    Incarnation,
    Instant,
    NodeId,
    ProcessId,
    process_id_from,
)
from ordercast.model.inputs import Interest, Packet, Stored, Submission, Submissions
from ordercast.model.notes import PacketDropped
from ordercast.model.promises import Promises
from ordercast.model.roster import Roster
from ordercast.order.attached import RingChange, RingPackets, no_block
from ordercast.order.clock import CLOCK_KEY
from ordercast.order.engine import Membership, granted
from ordercast.order.gateways.attachment import RingAttachment, is_greeting
from ordercast.order.gateways.config import GatewaysConfig
from ordercast.order.gateways.holds import Pressures
from ordercast.order.gateways.interest import Subscriptions, native_block
from ordercast.order.gateways.items import BegunMessage
from ordercast.order.gateways.names import RingNames
from ordercast.order.gateways.network import RingNetwork
from ordercast.order.gateways.observed import NetworkSnapshot, snapshot_of
from ordercast.order.gateways.own_rings import OwnRings
from ordercast.order.gateways.packets import control_freight
from ordercast.order.gateways.passing import PassingUp
from ordercast.order.gateways.promised import ENGINE, PROMISED, SERVICES
from ordercast.order.gateways.view_number import ViewNumber
from ordercast.order.gateways.watch import NetworkWatch
from ordercast.order.neighbours import NO_NEIGHBOURS
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.two_queues import CONTROL_SENDER
from ordercast.order.setup import Domain
from ordercast.order.stamped.lanes import StampedRun


class GatewayNode(OwnRings):
    def __init__(
        self,
        node: NodeId,
        config: RingConfig,
        domains: Sequence[Domain],  # by attachment
        *,
        verbose: bool = False,
        other_engines: Mapping[bytes, str] = NO_NEIGHBOURS,
        domain_names: Mapping[int, str] | None = None,  # of all domains of the network, by number; None: of its own
        node_names: Mapping[NodeId, str] | None = None,  # for alarms
        chosen: GatewaysConfig | None = None,
    ) -> None:
        chosen = chosen or GatewaysConfig()
        chosen.validate()
        is_filtering = chosen.filter
        names = domain_names or {domain.number: domain.name for domain in domains}
        block_of = native_block if is_filtering else no_block
        share = chosen.gateway_share
        super().__init__(node, config, domains, names, block_of, share, verbose=verbose, other_engines=other_engines)
        size_max = config.message_size_max
        self._promises = Promises(ENGINE, PROMISED, SERVICES, size_max, prunes=is_filtering, shares_views=False)
        self._is_filtering = is_filtering
        self._subscriptions = Subscriptions()
        self.watch = NetworkWatch(names, node_names or {})
        self._network: RingNetwork | None = None  # until all rings have begun
        self._begun: dict[int, RingChange] = {}  # those that have, until then
        self._passing: PassingUp | None = None
        self._passed: list[Effect] = []  # what the order has brought, on its way up
        self._me: ProcessId | None = None
        self._pressures = Pressures(
            [domain.name for domain in domains], chosen.carried_size_max, chosen.waiting_size_max
        )
        self._is_held = True  # users wait until the network begins
        self._submitted = 0  # messages of this life
        self._view_number = ViewNumber()
        self._is_leaving = False
        self._is_farewell = False  # the rings are being left
        self._has_news = False  # there is something that the order has not seen
        self.make_network: Callable[..., RingNetwork] = RingNetwork  # a simulator looks on

    # What a driver asks

    @property
    def promises(self) -> Promises:
        return self._promises

    @property
    def process(self) -> ProcessId:
        assert self._me is not None, "the engine is started"
        return self._me

    @property
    def configuration(self) -> Membership:
        if self._passing is None:
            return Membership(self._rings[0].ring.id, (self.process,))
        view = self._passing.view
        return Membership(view.id, tuple(sorted(view.members)))

    @property
    def network(self) -> RingNetwork | None:
        """The order of the network, once all rings have begun."""
        return self._network

    @property
    def is_ready(self) -> bool:
        return self._network is not None and all(ring.is_ready for ring in self._rings)

    def stalled(self, now: Instant) -> str | None:
        texts = (ring.stalled(now) for ring in self._rings)
        return next((text for text in texts if text is not None), self.watch.stalled())

    def snapshot(self) -> NetworkSnapshot | None:
        """Return what is seen of the network; None until all own rings have begun."""
        return None if self._network is None else snapshot_of(self._network)

    def is_idle(self) -> bool:
        network = self._network
        return (
            network is not None
            and network.is_idle()
            and all(attachment.inner.is_idle() for attachment in self._attachments)
        )

    # Inputs

    def start(self, stored: Stored, incarnation: Incarnation, now: Instant) -> list[Effect]:
        self._me = process_id_from(self._node, incarnation)
        effects: list[Effect] = []
        if not self._clock.start(stored):
            text = "the stored clock cannot be true and is not used: this process counts from the beginning"
            effects.append(Alarm(AlarmKind.STORAGE_DAMAGED, text, self._me))
        self._clock.hear(self._view_number.start(stored))
        for attachment in self._attachments:
            effects += self._taken(attachment, attachment.inner.start(stored, incarnation, now))
        first = self._attachments[0]
        return effects + self._taken(first, first.inner.hold(True, now)) + self._go_on(now)

    def submit(self, submissions: Sequence[Submission | Submissions], now: Instant) -> list[Effect]:
        if self._is_leaving:
            raise UsageError("this process is leaving: it sends nothing more")
        if any(one.sender == CONTROL_SENDER for one in submissions):
            raise UsageError(f"sender {CONTROL_SENDER} is the network's own")
        first = self._attachments[0]
        effects = first.inner.submit(submissions, now)
        self._submitted += sum(1 if isinstance(one, Submission) else len(one.payloads) for one in submissions)
        return self._taken(first, effects) + self._go_on(now)

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        if self._network is None:
            return []  # a ring that has begun waits for the others, alone
        effects: list[Effect] = []
        for attachment in self._attachments:
            effects += self._set_aside(attachment, attachment.inner.receive(packets, now))
        if any(isinstance(effect, SendTo) for effect in effects):
            return [*effects, Then(partial(self._go_on, now))]  # no token waits for what comes of its visit
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
        if not self._is_filtering:
            return granted(changes)
        self._subscriptions.change(changes)
        self._has_news = True
        return self._go_on(now)

    def enlist(self, roster: Roster, now: Instant, attachment: Attachment = MAIN) -> list[Effect]:
        one = self._attachments[attachment]
        return self._taken(one, one.inner.enlist(roster, now)) + self._go_on(now)

    def wake(self, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        for attachment in self._attachments:
            deadline = attachment.inner.next_deadline()
            if deadline is not None and deadline <= now:
                effects += self._taken(attachment, attachment.inner.wake(now))
        return effects + self._go_on(now)

    def behind(self, is_behind: bool, now: Instant) -> list[Effect]:
        self._pressures.is_behind, self._has_news = is_behind, True
        return self._go_on(now)

    def leave(self, now: Instant) -> list[Effect]:
        self._is_leaving = self._has_news = True
        return self._go_on(now)

    # What rings cause

    def _taken(self, attachment: RingAttachment, effects: list[Effect]) -> list[Effect]:
        """Take what a ring hands up; return the rest, which is the driver's."""
        onward = self._set_aside(attachment, effects)
        self._take_in()
        return onward

    def _take_in(self) -> None:
        """Take what rings have handed up, in order."""
        while self._came:
            self._has_news = True
            attachment, effect = self._came.popleft()
            if isinstance(effect, RingPackets):
                self._deliver(attachment, effect)
            elif isinstance(effect, RingChange):
                self._change(attachment, effect)
            else:
                attachment.is_gone = True

    def _deliver(self, attachment: RingAttachment, packets: RingPackets) -> None:
        network = self._network
        if network is not None and not attachment.is_past:
            known = network.known
            entries = attachment.read(packets.runs, known.names, known.own[attachment.domain])
            network.deliver(attachment.domain, entries)

    def _change(self, attachment: RingAttachment, change: RingChange) -> None:
        network = self._network
        names = network.known.names if network is not None else RingNames()
        residual, companions, ring = attachment.change(change, names)
        if network is None:
            self._begun[attachment.domain] = change
        elif self._is_farewell:
            attachment.is_past = True
        else:
            network.install(attachment.domain, residual, companions, ring)

    def _go_on(self, now: Instant) -> list[Effect]:
        """Let the order go on, and put on the rings what it asks for, until nothing more comes of it."""
        self._take_in()
        effects: list[Effect] = []
        if self._network is None and len(self._begun) == len(self._attachments):
            effects += self._found()
        network, passing = self._network, self._passing
        if network is None or passing is None or not self._hears(network):
            return effects
        while self._has_news:
            self._has_news = False
            network.known.clock = max(network.known.clock, self._clock.tick)
            self._hears(network)
            network.step()
            self._clock.hear(network.known.clock)
            for attachment in self._attachments:
                attachment.lowest.mine = network.known.place
            effects += self._passed_up()
            effects += self._view_number.writes(network.view.id)
            effects += self._notes(network)
            effects += self._hold(network, now) + self._carry(network, now)
            effects += self._speak(network, now)
        effects += self._leave_if_done(passing, now)
        if now >= self.watch.due:
            effects += self.watch.look(snapshot_of(network), now)
        return effects

    def _hears(self, network: RingNetwork) -> bool:
        """Hear how far all members of each ring are, and how far the order may go here; return if it has any news."""
        if network.limit(self._clock.bound):
            self._has_news = True
        for attachment in self._attachments:
            known = attachment.lowest.known
            if known != attachment.lowest_heard and not attachment.is_past:
                attachment.lowest_heard = known
                network.hear_lowest(attachment.domain, known)
                self._has_news = True
        return self._has_news

    def _found(self) -> list[Effect]:
        """Begin alone in a network of the own rings."""
        rings = {domain: change.configuration.id for domain, change in self._begun.items()}
        tick = max(change.birth for change in self._begun.values())
        self._network = self.make_network(self.process, rings, tick, self._is_filtering)
        self._begun.clear()
        self._has_news = True
        self._passing = PassingUp(self._network.view, self._network.known.occurred)
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
        network, passed = self._network, self._network.passed
        self._passed += self._passing.effects(passed, self.process, network.masks.is_for_users)
        for run in (each for each in passed if isinstance(each, StampedRun)):
            network.own_packets.passed(run)
            if run.content.interest is not None:
                network.masks.delivered(run.content.interest)
                self._has_news = True  # a merge may have waited for it
        passed.clear()
        self._passed += self._passing.places(network.own_packets.bare(network.known.place))

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
            names = network.known.names if network.forwarding.is_settled(domain) else None
            if queue and is_greeting(queue[0]):
                freight = attachment.freight([queue.popleft()], names)
                effects += self._taken(attachment, attachment.inner.carry(freight, now, is_first=True))
            if queue:
                freight = attachment.freight(queue, names)
                queue.clear()
                effects += self._taken(attachment, attachment.inner.carry(freight, now))
        return effects

    def _hold(self, network: RingNetwork, now: Instant) -> list[Effect]:
        """Ask users everywhere to stop, or to go on; and stop the own ones while somebody asks for it."""
        network.hold(self._pressures.reasons(self.freight_sizes, network.undelivered_size))
        first = self._attachments[0]
        is_held = not network.may_send(first.domain)
        if is_held == self._is_held:
            return []
        self._is_held = is_held
        return self._taken(first, first.inner.hold(is_held, now))

    def _speak(self, network: RingNetwork, now: Instant) -> list[Effect]:
        """Tell the network what users want, in a native packet, which is delivered where users' packets may be; tell
        users what surely comes from now on."""
        subscriptions, masks = self._subscriptions, network.masks
        if self._is_filtering:
            masks.want(subscriptions.mask)
        effects: list[Effect] = []
        first = next((one for one in self._attachments if network.may_number(one.domain)), None)
        interest = network.interest_due() if first is not None else None
        if first is not None and interest is not None:
            freight = control_freight(interest, first.inner.freight_body_max)
            effects += self._taken(first, first.inner.carry([freight], now))
        if subscriptions.is_waiting and (told := subscriptions.granted(masks.in_force)):
            effects.append(Subscribed(told))
        return effects

    def _notes(self, network: RingNetwork) -> list[Effect]:
        """Tell what has happened, and what was dropped."""
        effects: list[Effect] = [*noted(network.known.occurred)]
        network.known.occurred.clear()
        for dropped in (network.known.refused, *(attachment.dropped for attachment in self._attachments)):
            effects += (Record(PacketDropped(why)) for why in dropped)
            dropped.clear()
        return effects

    def _leave_if_done(self, passing: PassingUp, now: Instant) -> list[Effect]:
        """Say farewell on all rings when everything that was submitted has been passed up, and nothing is left to be
        carried; the last ring that is left ends the life."""
        if not self._is_leaving:
            return []
        effects: list[Effect] = []
        if not self._is_farewell and passing.own == self._submitted and not any(self.freight_sizes):
            self._is_farewell = True
            for attachment in self._attachments:
                effects += self._taken(attachment, attachment.inner.leave(now))
        if self.is_gone:
            effects.append(LeaveDone())
        return effects
