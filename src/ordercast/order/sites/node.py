"""SitesNode: the engine. One daemon of a site: a ring with its neighbours, and one order over the rings of all sites.

Each input goes to the ring, or, when it comes from another site, to the speaker. What the ring delivers is the tape
(`tape.py`); what tape and speaker want on the ring is submitted to it, until nothing more comes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ordercast.model.configuration import ConfigurationKind
from ordercast.model.effects import Alarm, AlarmKind, Deliver, Effect, Install, LeaveDone, Record, Room
from ordercast.model.errors import UsageError, WireError
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
from ordercast.model.notes import PacketDropped
from ordercast.model.promises import Promises
from ordercast.model.roster import Roster
from ordercast.order.engine import CONFIGURATION_SEQ_KEY, EngineStats, Membership
from ordercast.order.layered import InnerRing
from ordercast.order.membership.stats import RingStats
from ordercast.order.neighbours import NO_NEIGHBOURS
from ordercast.order.outbox import OVERHEAD
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.node import RingNode
from ordercast.order.ring.traffic import RING_TRAFFIC
from ordercast.order.setup import SitePlaces
from ordercast.order.sites.config import SitesConfig
from ordercast.order.sites.neighbours import Neighbours
from ordercast.order.sites.observed import SitesSeen, sites_seen
from ordercast.order.sites.promised import EARLY, ENGINE, PROMISED, SERVICES, SITE, WIDE
from ordercast.order.sites.runs import rows_of
from ordercast.order.sites.sending import Sending
from ordercast.order.sites.speaker import Speaker
from ordercast.order.sites.states import REGULAR
from ordercast.order.sites.storage import WideStorage
from ordercast.order.sites.tape import Tape, Where
from ordercast.order.sites.views import Fragment
from ordercast.order.traffic import Traffic
from ordercast.wire.head import cluster_id_from

AT_A_TIME = 64  # entries that are looked at behind a run, since not all of them are alike

_OF_STORAGE = (AlarmKind.WITHOUT_STORAGE, AlarmKind.STORAGE_REPAIRED)


class SitesNode:
    def __init__(
        self,
        node: NodeId,
        config: RingConfig,
        sites: SitesConfig,
        places: SitePlaces,
        *,
        verbose: bool = False,
        other_engines: Mapping[bytes, str] = NO_NEIGHBOURS,
    ) -> None:
        sites.validate()
        self._node = node
        self._config = config
        self._sites = sites
        self._places = places
        domain = places.domain
        size = max(config.message_size_max, sites.links.payload_max)  # entries have heads, and control is among them
        own = replace(
            config,
            cluster=f"{config.cluster}\0{ENGINE}\0{domain.name}",
            message_size_max=size,
            queue_size_max=max(config.queue_size_max, size + OVERHEAD),
        )
        self._ring = RingNode(
            node, own, verbose=verbose, beneath=domain.beneath, other_engines=other_engines, settles=True, stamps=True
        )
        self._inner = InnerRing(domain.over_networks(self._ring), MAIN, SITE, self._ring)
        self._promises = Promises(ENGINE, PROMISED, SERVICES, config.message_size_max, early=EARLY, prunes=sites.prune)
        self._sending = Sending(self._inner, config, sites)
        if config.message_size_max > self._sending.outbox.message_max:
            raise UsageError(
                f"the engine 'sites' has no room for messages of {config.message_size_max} bytes in packets of "
                f"{config.packet_size_max}: write a larger packet_size_max"
            )
        self._storage = WideStorage(config.storage_patience_ns)
        self.tape: Tape  # from the start of the engine on, and the speaker
        self.speaker: Speaker
        self.make_tape: Callable[..., Tape] = Tape  # a simulator looks on
        self._where = Where.REGULAR
        self._links_due: Instant | None = None  # the deadline of links that the driver knows
        self._first: Fragment | None = None  # the first ring of this life, until the first view
        self._first_seq = 0
        self._is_started = self._is_leaving = self._is_farewell = self._is_gone = False

    # What a driver asks

    @property
    def promises(self) -> Promises:
        return self._promises

    @property
    def traffic(self) -> Traffic:
        return RING_TRAFFIC

    @property
    def bounds(self) -> tuple[int, int]:
        """The window of all daemons, and a packet, in bytes."""
        return self._sites.window, self._config.packet_size_max

    @property
    def process(self) -> ProcessId:
        return self.tape.me

    @property
    def configuration(self) -> Membership:
        if not self.tape.is_begun:
            return Membership(ConfigurationId(0, self.process), (self.process,))
        return Membership(self.tape.view.id, self.tape.view.members)

    @property
    def state_name(self) -> str:
        return self.tape.state if self._ring.is_ready else self._ring.state_name

    @property
    def is_ready(self) -> bool:
        return self.tape.state == REGULAR and self._ring.is_ready

    @property
    def is_gone(self) -> bool:
        return self._is_gone

    @property
    def stats(self) -> EngineStats:
        return self._ring.stats

    @property
    def roster(self) -> Roster | None:
        return self._ring.roster

    def observed(self) -> SitesSeen | None:
        """Return what is to be seen from outside; None before the first view."""
        if not self.tape.is_begun:
            return None
        neighbours = self.speaker.neighbours
        failures = tuple((peer, why.value) for peer, why in neighbours.why.items())
        return sites_seen(self.tape, self.speaker.spreading.trees, neighbours.seen(), failures)

    @property
    def ring_stats(self) -> RingStats:
        """What the ring of the site has counted."""
        return self._ring.stats

    @property
    def ring_configuration(self) -> Membership:
        """The configuration of the site's ring."""
        return self._ring.configuration

    def roster_differences(self, now: Instant) -> list[str]:
        return self._ring.roster_differences(now)

    def stalled(self, now: Instant) -> str | None:
        return self._ring.stalled(now)

    @property
    def is_without_storage(self) -> bool:
        return self._storage.is_without

    def next_deadline(self) -> Instant | None:
        deadlines = [self._inner.next_deadline(), self._storage.deadline]
        if self._is_started and self.tape.is_begun:
            self._links_due = self.speaker.next_deadline
            deadlines += [self._links_due, *self._sending.deadlines(self.tape.state)]
        return min((one for one in deadlines if one is not None), default=None)

    def room(self) -> int:
        return self._sending.room()

    def want_room(self, size: int) -> None:
        self._sending.want_room(size)

    def is_idle(self) -> bool:
        tape = self.tape
        return (
            tape.is_begun
            and tape.state == REGULAR
            and tape.order.is_idle
            and self._sending.is_idle
            and self._inner.is_idle()
            and self.speaker.is_quiet
        )

    def first_lane(self, attachment: Attachment = MAIN) -> Lane:
        return Lane.LINK if attachment == WIDE else self._inner.first_lane()

    def holds(self, ring: ConfigurationId, seq: Seq) -> bool:
        return True  # several networks are below the ring, not below this engine

    def deniable(self, configuration: ConfigurationId) -> tuple[Seq, Seq] | None:
        return None  # forgers know the packets of a ring that stands alone

    def check_invariants(self, *, thorough: bool = True) -> None:
        self._inner.check_invariants(thorough=thorough)

    # Inputs

    def start(self, stored: Stored, incarnation: Incarnation, now: Instant) -> list[Effect]:
        me = process_id_from(self._node, incarnation)
        places, cluster = self._places, cluster_id_from(self._config.cluster, ENGINE)
        self._is_started = True
        self.tape = self.make_tape(me, places.domain.number, self._sending.outbox, self._storage, self._sending.wishes)
        neighbours = Neighbours(me, places.domain.number, places.beyond, self._sites, cluster)
        self.speaker = Speaker(me, neighbours, self._sites, self.tape)
        self._first_seq = self._storage.start(stored)
        effects = self._storage.want(self._first_seq, now)
        effects += self._taken(self._inner.start(stored, incarnation, now), now)
        return effects + self._go_on(now)

    def submit(self, submissions: Sequence[Submission | Submissions], now: Instant) -> list[Effect]:
        if self._is_leaving:
            raise UsageError("this process is leaving: it sends nothing more")
        self._sending.submit(submissions)
        return self._go_on(now)

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        if not self.tape.is_begun:
            return []  # the ring that has begun waits, alone
        self._notice_pause(now)
        effects = self._taken(self._inner.receive(packets, now), now)
        for packet in packets:
            if packet.attachment == WIDE:
                effects += self._receive_wide(packet, now)
        return effects + self._go_on(now)

    def _receive_wide(self, packet: Packet, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        data = bytes(packet.data)
        for at in range(0, len(data), packet.segment_size):
            try:
                effects += self.speaker.receive(data[at : at + packet.segment_size], now)
            except WireError as error:
                effects.append(Record(PacketDropped(str(error)), WIDE))
        return effects

    def persisted(self, key: str, now: Instant) -> list[Effect]:
        if key == CONFIGURATION_SEQ_KEY:
            return self._storage.persisted(self.process) + self._go_on(now)
        return self._taken(self._inner.persisted(key, now), now) + self._go_on(now)

    def interest(self, changes: Sequence[Interest], now: Instant) -> list[Effect]:
        return self._sending.interest(changes, now) + self._go_on(now)

    def enlist(self, roster: Roster, now: Instant, attachment: Attachment = MAIN) -> list[Effect]:
        return self._taken(self._inner.enlist(roster, now), now) + self._go_on(now)

    def wake(self, now: Instant) -> list[Effect]:
        self._notice_pause(now)
        effects = self._storage.wake(self.process, now)
        return effects + self._taken(self._inner.wake(now), now) + self._go_on(now)

    def behind(self, is_behind: bool, now: Instant) -> list[Effect]:
        self._sending.is_behind = is_behind
        return self._go_on(now)

    def leave(self, now: Instant) -> list[Effect]:
        self._is_leaving = True
        return self._go_on(now)

    # What the ring causes

    def _taken(self, effects: list[Effect], now: Instant) -> list[Effect]:
        """Take what the ring delivers; return the rest, which is the driver's, with what the tape makes of it."""
        onward: list[Effect] = []
        for effect in effects:
            match effect:
                case Deliver():
                    onward += self._read(effect, now)
                case Install():
                    onward += self._installed(effect, now)
                case LeaveDone():
                    self._is_gone = True
                    ring = self.tape.ring
                    if ring is not None and len(ring.members) == 1:  # otherwise another one of it will speak
                        onward += self.speaker.neighbours.farewell()
                    onward.append(effect)
                case Room():
                    pass
                case Alarm() if effect.kind in _OF_STORAGE:
                    pass  # only the numbers of views have to rise over restarts, and they are stored here
                case _:
                    onward.append(effect)
        return onward

    def _read(self, delivered: Deliver, now: Instant) -> list[Effect]:
        """Take entries of the tape, as many at once as are alike."""
        tape, speaker = self.tape, self.speaker
        where = self._where if delivered.ordered else Where.BEYOND
        effects: list[Effect] = []
        for row in rows_of(delivered):
            taken = tape.take_alike(row, where)
            speaker.after_entry(now)
            while taken < len(row.entries):
                effects += self._drained()
                taken += tape.take_alike(row.behind(taken, AT_A_TIME), where)
                speaker.after_entry(now)
            effects += self._drained()
        return effects

    def _drained(self) -> list[Effect]:
        """Take what the tape has for the driver."""
        effects = self.tape.effects
        if not effects:
            return []
        drained = effects.copy()
        effects.clear()
        return drained

    def _installed(self, effect: Install, now: Instant) -> list[Effect]:
        configuration = effect.configuration
        if configuration.kind is ConfigurationKind.TRANSITIONAL:
            self._where = Where.TRANSITIONAL
            return []
        self._where = Where.REGULAR
        members = tuple(sorted(configuration.members))
        ring = Fragment(configuration.id, self._places.domain.number, members, configuration.reason)
        if not self.tape.is_begun:
            self._first = ring
            return []
        self.tape.ring_changed(ring, configuration.reason)
        self._sending.ring_changed()
        return self._drained() + self.speaker.ring_changed(ring, now)

    # What follows

    def _go_on(self, now: Instant) -> list[Effect]:
        """Let tape and speaker go on, and put on the ring what they ask for, until nothing more comes of it."""
        tape, speaker, sending = self.tape, self.speaker, self._sending
        effects = self._begin(now)
        if not tape.is_begun:
            return effects
        while True:
            self._look_at_ring()
            tape.go_on(now)
            effects += self._drained()
            effects += speaker.step(now)
            brought, speaker.entries = speaker.entries, []
            effects += sending.collect(tape, brought, self._where, now)
            feed = sending.feed
            if self._is_farewell or not feed or not feed.has_room():
                break
            effects += self._submit(now)
        if self._is_leaving:
            effects += self._leave_if_done(now)
        effects += speaker.notes()
        effects += sending.offer_room()
        return effects

    def _notice_pause(self, now: Instant) -> None:
        """A timer of links is so late that this process must have been paused."""
        due = self._links_due
        if due is not None and now - due > self._config.pause_ns:
            self._links_due = None
            self.speaker.forgive(now)

    def _begin(self, now: Instant) -> list[Effect]:
        """Begin alone, when the ring has and the number of the view is stored."""
        if self.tape.is_begun or self._first is None or not self._storage.has(self._first_seq):
            return []
        self.tape.begin(self._first, self._first_seq)
        return self._drained() + self.speaker.ring_changed(self._first, now)

    def _look_at_ring(self) -> None:
        """See how far all members of the ring have its tape."""
        tape, ring = self.tape, self._ring.ring
        if tape.state == REGULAR and tape.ring is not None and ring.id == tape.ring.ring:
            tape.order.safe_at(ring.memory.safe_seq)

    def _submit(self, now: Instant) -> list[Effect]:
        """Give the ring what waits, as far as it has room."""
        stamp, batch = self._sending.feed.batch()
        effects = self._taken(self._inner.hear(stamp, now), now) if stamp else []
        return effects + self._taken(self._inner.submit([batch], now), now)

    def _leave_if_done(self, now: Instant) -> list[Effect]:
        """Leave the ring when everything that was submitted is delivered, and everybody has it."""
        tape = self.tape
        is_done = (
            tape.state == REGULAR and not self._sending.outbox and not self._sending.feed and not tape.order.own_size
        )
        if not self._is_leaving or self._is_farewell or not is_done:
            return []
        self._is_farewell = True
        return self._taken(self._inner.leave(now), now)
