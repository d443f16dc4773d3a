"""TreeNode: the engine. One process of a forest: an engine under this one for control, links for data.

Each input goes to the control engine, or to a link; what they bring goes to the course of the configuration
(`course.py`), or to the exchange that ends it (`exchange.py`). Then everything that can go on does: openings take
effect, what waits enters or is sent, messages are passed up, links are flushed. Control is any engine behind the face
of an inner ring; its stream is consumed, all its other effects are passed on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.effects import Deliver, Effect, Install, LeaveDone, Persist, Record, Room, Subscribed
from ordercast.model.errors import UsageError, WireError
from ordercast.model.ids import (
    MAIN,
    POSITION_NUMBER_MAX,
    SLOT_MAX,
    Attachment,
    ConfigurationId,
    Incarnation,
    Instant,
    NodeId,
    Position,
    ProcessId,
    Seq,
    process_id_from,
)
from ordercast.model.inputs import Interest, Lane, Packet, Stored, Submission, Submissions
from ordercast.model.notes import Occurred, Occurrence, PacketDropped
from ordercast.model.promises import Promises
from ordercast.model.roster import Roster
from ordercast.model.service import Service
from ordercast.order.engine import EngineStats, Membership, ObservedEngine
from ordercast.order.layered import InnerRing
from ordercast.order.links.config import LinkConfig
from ordercast.order.outbox import OVERHEAD
from ordercast.order.sizes import Sizes
from ordercast.order.traffic import Traffic
from ordercast.order.tree.blocks import CARGO_SIZE
from ordercast.order.tree.bundle import Bundle
from ordercast.order.tree.config import TreeConfig
from ordercast.order.tree.control import (
    ControlKind,
    Holding,
    Wants,
    decode_control,
    encode_closed,
    encode_cross,
    encode_everywhere,
    encode_held,
    encode_opening,
    encode_wants,
)
from ordercast.order.tree.course import Course
from ordercast.order.tree.delivering import Delivering, Spot
from ordercast.order.tree.exchange import TreeExchange
from ordercast.order.tree.managing import Manager
from ordercast.order.tree.promised import ENGINE, GROUPS, PROMISED, SERVICES
from ordercast.order.tree.reports import Recovered, Report, encode_recovered, encode_report
from ordercast.order.tree.source import TreeSource
from ordercast.order.tree.stream import BadBlock
from ordercast.wire.head import cluster_id_from
from ordercast.wire.header import digest_of

TAG_END = 9  # of the tag behind the kind of a control message
CONTROL = "control"  # the name of the inner ring
SPARE = 2  # the control stream's room is shared: users may fill all but one part in so many
EXCHANGE, LEAVING = "TreeExchange", "Leaving"


class TreeNode:
    def __init__(
        self,
        node: NodeId,
        sizes: Sizes,
        config: TreeConfig,
        links: LinkConfig,
        control: InnerRing,
        observed: ObservedEngine,  # the engine for control, as status displays see it
    ) -> None:
        config.validate()
        links.validate()
        self._node = node
        self._sizes = sizes
        self._config = config
        self._link_config = links
        self._control = control
        self._observed = observed
        self.promises = Promises(
            ENGINE, PROMISED, SERVICES, sizes.message_size_max, prunes=True, groups=GROUPS, replicas=frozenset()
        )
        self._cluster = cluster_id_from(sizes.cluster, ENGINE)
        self._course: Course | None = None
        self._exchange: TreeExchange | None = None
        self._next: Configuration | None = None  # of the control stream, while the exchange lasts
        self._ahead: list[tuple[Spot, ProcessId, int, int, bytes]] = []  # what it has brought meanwhile
        self._is_regular = True  # the control stream is in a regular configuration
        self._bundle: Bundle | None = None
        self._manager = Manager(config)
        self._wanted: dict[str, bool] = {}  # groups, and whether they were told to be in force
        self._changed: dict[str, bool] = {}  # what was not said to others
        self._own: deque[tuple[bytes, Service]] = deque()  # control messages that wait for room
        self._users: list[Submission] = []  # likewise, of users
        self._wants_room = 0
        self._is_behind = self._said_behind = False
        self._is_leaving = self._has_left = False

    # What a driver asks

    @property
    def process(self) -> ProcessId:
        return self._course_now.me

    @property
    def _course_now(self) -> Course:
        assert self._course is not None, "the engine is started"
        return self._course

    @property
    def course(self) -> Course | None:
        """The configuration that is installed, for a witness."""
        return self._course

    @property
    def traffic(self) -> Traffic:
        return self._observed.traffic

    @property
    def configuration(self) -> Membership:
        view = self._course_now.configuration
        return Membership(view.id, view.members)

    @property
    def state_name(self) -> str:
        return EXCHANGE if self._exchange is not None else self._observed.state_name

    @property
    def is_ready(self) -> bool:
        return self._exchange is None and self._observed.is_ready

    @property
    def is_gone(self) -> bool:
        return self._has_left and self._observed.is_gone

    @property
    def stats(self) -> EngineStats:
        return self._observed.stats

    @property
    def roster(self) -> Roster | None:
        return self._observed.roster

    def roster_differences(self, now: Instant) -> list[str]:
        return self._observed.roster_differences(now)

    def stalled(self, now: Instant) -> str | None:
        return self._observed.stalled(now)

    @property
    def is_without_storage(self) -> bool:
        return self._observed.is_without_storage

    def next_deadline(self) -> Instant | None:
        deadlines = [self._control.next_deadline()]
        if self._bundle is not None and self._exchange is None:
            deadlines += [self._bundle.next_deadline(), self._manager.next_deadline(self._course_now)]
        return min((at for at in deadlines if at is not None), default=None)

    def room(self) -> int:
        return max(0, self._sizes.queue_size_max - self._source.size)

    def want_room(self, size: int) -> None:
        self._wants_room = max(self._wants_room, min(size, self._sizes.queue_size_max))

    def is_idle(self) -> bool:
        course, bundle = self._course, self._bundle
        if course is None or bundle is None or self._exchange is not None or self._own or self._changed:
            return False
        is_calm = course.opened > 0 and course.is_idle and self._source.is_empty and bundle.is_quiet
        return is_calm and self._control.is_idle()

    def first_lane(self, attachment: Attachment = MAIN) -> Lane:
        return self._control.first_lane()

    def holds(self, ring: ConfigurationId, seq: Seq) -> bool:
        return self._observed.holds(ring, seq)

    def deniable(self, configuration: ConfigurationId) -> tuple[Seq, Seq] | None:
        return None  # forgers know the packets of a ring that stands alone

    def check_invariants(self, *, thorough: bool = True) -> None:
        self._control.check_invariants(thorough=thorough)
        if thorough and self._course is not None and self._bundle is not None:
            self._course.check_invariants()
            self._bundle.check_invariants()

    # Inputs

    def start(self, stored: Stored, incarnation: Incarnation, now: Instant) -> list[Effect]:
        self._me = process_id_from(self._node, incarnation)
        self._source = TreeSource(self._me, self._link_config.body_max - CARGO_SIZE, self._config.source_window)
        kept = {f"{CONTROL}.{key}": value for key, value in stored.items()}
        return self._go_on(self._control.start(kept, incarnation, now), now)

    def submit(self, submissions: Sequence[Submission | Submissions], now: Instant) -> list[Effect]:
        if self._is_leaving:
            raise UsageError("this process is leaving: it sends nothing more")
        size = 0
        for one in submissions:
            if one.service not in SERVICES:
                raise UsageError(f"the engine does not serve {Service(one.service).name} messages")
            payloads = (one.data,) if isinstance(one, Submission) else one.payloads
            if any(len(payload) > self._sizes.message_size_max for payload in payloads):
                raise UsageError(f"a message is larger than {self._sizes.message_size_max} bytes")
            size += sum(len(payload) + OVERHEAD for payload in payloads)
        if size > self.room():
            self.want_room(size)
            raise UsageError(f"no room for {size} bytes; wait for a Room effect")
        self._source.add(submissions)
        if self._source.size > self._sizes.queue_size_max // 4 * 3:
            self.want_room(self._sizes.queue_size_max // 2)
        return self._go_on([], now)

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        effects = self._control.receive([one for one in packets if one.lane is not Lane.LINK], now)
        effects = self._taken(effects, now)
        bundle = self._bundle
        for packet in packets:
            if packet.lane is Lane.LINK and bundle is not None and self._is_regular:
                data, size = bytes(packet.data), packet.segment_size
                for at in range(0, len(data), size):
                    try:
                        bundle.receive(data[at : at + size], now)
                    except WireError as error:
                        effects.append(Record(PacketDropped(str(error))))
        return self._go_on([], now, effects)

    def persisted(self, key: str, now: Instant) -> list[Effect]:
        return self._go_on(self._control.persisted(f"{CONTROL}.{key}", now), now)

    def interest(self, changes: Sequence[Interest], now: Instant) -> list[Effect]:
        for change in changes:
            if change.is_wanted:
                self._wanted[change.group] = False
            else:
                self._wanted.pop(change.group, None)
            self._changed[change.group] = change.is_wanted
        return self._go_on([], now)

    def enlist(self, roster: Roster, now: Instant, attachment: Attachment | None = None) -> list[Effect]:
        return self._go_on(self._control.enlist(roster, now), now)

    def wake(self, now: Instant) -> list[Effect]:
        deadline = self._control.next_deadline()
        return self._go_on(self._control.wake(now) if deadline is not None and deadline <= now else [], now)

    def behind(self, is_behind: bool, now: Instant) -> list[Effect]:
        self._is_behind = is_behind
        return self._go_on([], now)

    def leave(self, now: Instant) -> list[Effect]:
        self._is_leaving = True
        return self._go_on([], now)

    # What the control stream brings

    def _taken(self, effects: list[Effect], now: Instant) -> list[Effect]:
        """Take what the control engine orders; return everything else, and what comes of it, in order."""
        onward: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Deliver):
                for number, slot, originator, sender, service, data in effect.messages():
                    onward += self._ordered((number, slot), originator, sender, service, data)
            elif isinstance(effect, Install):
                onward += self._installed(effect.configuration, now)
            elif isinstance(effect, Persist):
                onward.append(Persist(effect.key.removeprefix(f"{CONTROL}."), effect.value))
            elif isinstance(effect, LeaveDone):
                self._has_left = True
                onward.append(effect)
            elif not isinstance(effect, Room):
                onward.append(effect)
        return onward

    def _ordered(self, spot: Spot, originator: ProcessId, sender: int, service: int, data: bytes) -> Iterator[Effect]:
        course = self._course_now
        if data[1:TAG_END] != digest_of(self._configuration_of_control):
            if data[0] in (ControlKind.EVERYWHERE, ControlKind.CROSS) and originator == self._me:
                self._source.came_back(sender, has_effect=False)
            return
        try:
            control = decode_control(data[:1] + data[TAG_END:])
        except WireError as error:
            yield Record(PacketDropped(str(error)))
            return
        if isinstance(control, Report):
            if self._exchange is not None and self._is_regular:
                again = self._exchange.report(originator, control)
                if again:
                    yield _note(Occurrence.TREE_SENT_AGAIN, len(again))
                self._own.extend((encode_recovered(one), Service.SAFE) for one in again)
                yield from self._complete()
        elif isinstance(control, Recovered):
            if self._exchange is not None:
                self._exchange.recovered(control, is_regular=self._is_regular)
                if self._is_regular:
                    yield from self._complete()
        elif self._exchange is not None:
            self._ahead.append((spot, originator, sender, service, data))
        else:
            yield from course.control(control, spot, originator, sender, service)
            yield from course.settle()

    def _installed(self, configuration: Configuration, now: Instant) -> Iterator[Effect]:
        if configuration.kind is ConfigurationKind.TRANSITIONAL:
            self._is_regular = False
            if self._course is not None and self._exchange is None:
                self._course.is_frozen = True
            return
        self._is_regular = True
        if self._course is None:
            delivering = Delivering(configuration.id)
            self._course = Course(self._me, configuration, self._config, self._source, delivering)
            yield from self._begin(configuration, ())
            return
        came = {} if self._exchange is None else self._exchange.came
        if self._exchange is not None:
            yield _note(
                Occurrence.TREE_EXCHANGE_INTERRUPTED
                if self._exchange.plan is None
                else Occurrence.TREE_RECOVERY_INTERRUPTED
            )
            self._ahead.clear()
        self._own.clear()
        self._bundle = None
        self._next = configuration
        self._exchange = TreeExchange(self._course, configuration.members, came)
        self._own.append((encode_report(self._exchange.mine), Service.SAFE))

    def _complete(self) -> Iterator[Effect]:
        """Deliver what is left of the old configuration, and begin the new one."""
        exchange, following, course = self._exchange, self._next, self._course_now
        if exchange is None or following is None or not exchange.is_complete:
            return
        assert exchange.plan is not None
        yield from self._recovery_notes(exchange)
        old, along = course.configuration, exchange.companions
        if old.members[0] not in along and (course.boundaries or course.unclosed or course.unopened):
            yield _note(Occurrence.TREE_MANAGER_LOST)
        id = ConfigurationId(following.id.seq - 2, along[0])
        place = Position(old.id, POSITION_NUMBER_MAX, SLOT_MAX)
        transitional = Configuration(ConfigurationKind.TRANSITIONAL, id, along, old.id, along, following.reason, place)
        yield from _finished(exchange, transitional)
        again, cut = course.source.start_over(exchange.own_held)
        yield from _counted({Occurrence.TREE_ORDERED_AGAIN: again, Occurrence.LARGE_SENT_AGAIN: cut})
        cut = course.delivering.begin(following.id)
        yield from _counted({Occurrence.LARGE_CUT: cut})
        view = Configuration(
            ConfigurationKind.REGULAR, following.id, following.members, id, along, following.reason, following.position
        )
        self._course = Course(self._me, view, self._config, course.source, course.delivering)
        self._exchange = self._next = None
        ahead, self._ahead = self._ahead, []
        yield from self._begin(view, ahead)

    def _begin(self, view: Configuration, ahead: Sequence[tuple[Spot, ProcessId, int, int, bytes]]) -> Iterator[Effect]:
        """A configuration begins: say what is wanted here, and take what the control stream has brought in it."""
        self._bundle = Bundle(self._link_config, self._cluster, self._me, view.id, view.members)
        self._manager.begin()
        self._said_behind = False
        self._changed.clear()
        own = f"={self._me:x}"
        self._own.append((encode_wants(Wants((own, *sorted(self._wanted)), is_full=True)), Service.AGREED))
        yield Install(view)
        for message in ahead:
            yield from self._ordered(*message)

    def _recovery_notes(self, exchange: TreeExchange) -> Iterator[Effect]:
        plan = exchange.plan
        assert plan is not None
        yield from _counted(
            {
                Occurrence.TREE_RECOVERED_FROM_FORWARDER: plan.forwarded,
                Occurrence.TREE_RECOVERED_FROM_SOURCE: plan.by_source,
                Occurrence.TREE_IMPLIED: plan.implied,
            }
        )

    # What comes of an input

    def _go_on(self, effects: list[Effect], now: Instant, before: Sequence[Effect] = ()) -> list[Effect]:
        """Let everything go on that can, until nothing more comes of it."""
        onward = [*before, *self._taken(effects, now)]
        is_moving = True
        while is_moving:
            onward += self._flow(now)
            onward += self._told(now)
            is_moving = bool(self._own) and self._fits(len(self._own[0][0]))
        if self._bundle is not None and self._exchange is None:
            onward += self._bundle.flush(now)
        onward += self._leave_if_done(now)
        if self._wants_room and self._course is not None and self.room() >= self._wants_room:
            self._wants_room = 0
            onward.append(Room(self.room()))
        return [self._answered(effect) for effect in onward if not _is_void(effect)]

    def _answered(self, effect: Effect) -> Effect:
        """Tell of groups that are in force only who has asked."""
        if isinstance(effect, Subscribed):
            effect.groups = tuple(name for name in effect.groups if self._wanted.get(name) is False)
            self._wanted.update(dict.fromkeys(effect.groups, True))
        return effect

    def _flow(self, now: Instant) -> Iterator[Effect]:
        """Blocks come from links and go out, messages enter and are passed up, openings take effect."""
        course, bundle = self._course, self._bundle
        if course is None or bundle is None or self._exchange is not None or course.is_frozen:
            return
        is_moving = True
        while is_moving:
            opened = course.opened
            yield from self._blocks(course, bundle)
            yield from course.settle()
            self._send(course)
            course.enter()
            yield from course.deliver()
            outgoing = course.flush()
            for process, block in outgoing:
                bundle.send(process, block, now)
            is_moving = bool(outgoing) or course.opened > opened
        yield from course.occurrences()
        self._own.extend((encode_closed(closed), Service.AGREED) for closed in course.closed)
        course.closed.clear()
        if (change := self._manager.change(course, now)) is not None:
            self._own.append((encode_opening(change.opening), Service.AGREED))
            yield from self._manager.notes(change)

    def _blocks(self, course: Course, bundle: Bundle) -> Iterator[Effect]:
        """Take what links have brought, in order; blocks of an epoch that is not open here wait, in order too, and hold
        up none of those that are: an opening may wait for what comes behind."""
        for process in sorted(bundle.inbound):
            blocks = bundle.inbound[process]
            for _ in range(len(blocks)):
                block = blocks.popleft()
                if course.must_wait(block):
                    course.happened[Occurrence.TREE_BEFORE_BIRTH] += 1
                    blocks.append(block)
                    continue
                try:
                    course.take(block, process)
                except (WireError, BadBlock) as error:
                    yield Record(PacketDropped(str(error)))

    def _send(self, course: Course) -> None:
        """Send what the users of this process have waiting."""
        source = course.source
        while (turn := source.next(course.forest)) is not None and not course.is_shut(turn):
            if turn.tree is not None:
                course.offer(source.offered(turn, course.opened))
                course.enter()
                continue
            wish = turn.wish
            if (
                not course.is_introduced
                or not course.is_settled()
                or not self._fits(wish.cost + self._sizes.queue_size_max // SPARE)
            ):
                return
            course.happened[Occurrence.TREE_SEVERAL_TREES] += bool(wish.destinations)
            source.submitted(turn)
            for payload in wish.payloads:
                groups = wish.destinations
                data = encode_cross(course.opened, groups, payload) if groups else encode_everywhere(payload)
                self._users.append(Submission(self._tagged(data), Service(wish.service), wish.sender))
            return

    def _fits(self, size: int) -> bool:
        return self._control.room() >= size + OVERHEAD

    def _told(self, now: Instant) -> list[Effect]:
        """Say on the control stream what there is to say."""
        effects: list[Effect] = []
        if self._has_left:  # others wait for what is not said until it is out
            self._own.clear()
            return effects
        users, self._users = self._users, []
        if users:
            effects += self._taken(self._control.submit(users, now), now)
        if self._exchange is None and self._bundle is not None:
            if self._changed:
                gained = tuple(sorted(name for name, wanted in self._changed.items() if wanted))
                lost = tuple(sorted(name for name, wanted in self._changed.items() if not wanted))
                self._changed.clear()
                self._own.append((encode_wants(Wants(gained, lost)), Service.AGREED))
            if self._is_behind != self._said_behind:
                self._said_behind = self._is_behind
                self._own.append((encode_held(Holding(self._is_behind)), Service.AGREED))
        while self._own and self._fits(len(self._own[0][0])):
            data, service = self._own.popleft()
            effects += self._taken(self._control.submit([Submission(self._tagged(data), service)], now), now)
        return effects

    def _tagged(self, data: bytes) -> bytes:
        """Say in which configuration a control message has its effect: in a later one it has none."""
        return data[:1] + digest_of(self._configuration_of_control) + data[1:]

    @property
    def _configuration_of_control(self) -> ConfigurationId:
        return self._next.id if self._next is not None else self._course_now.configuration.id

    def _leave_if_done(self, now: Instant) -> list[Effect]:
        """Leave when everything that was submitted is stable, and what this process is owed was passed up."""
        course = self._course
        if not self._is_leaving or self._has_left or course is None or self._exchange is not None:
            return []
        stream = course.stream
        is_done = self._source.is_empty and not course.boundaries and not (stream is not None and stream.queue)
        if not is_done or not self._observed.is_ready or self._own or course.is_frozen:
            return []
        self._has_left = True
        notes = [_note(Occurrence.TREE_INTERIOR_LEFT)] if stream is not None and stream.edges else []
        return notes + self._taken(self._control.leave(now), now)

    _me: ProcessId
    _source: TreeSource


def _finished(exchange: TreeExchange, transitional: Configuration) -> Iterator[Effect]:
    """Pass up what is left of a configuration: what a companion has delivered in it, then the signal, then the rest;
    openings take effect between births."""
    course = exchange.course
    delivering = course.delivering
    is_signalled = False

    def signal() -> Iterator[Effect]:
        nonlocal is_signalled
        if not is_signalled:
            is_signalled = True
            delivering.current = transitional.id
            yield Install(transitional)

    def openings(below: int | None) -> Iterator[Effect]:
        while course.boundaries and (below is None or course.boundaries[0].opening.number <= below):
            if course.boundaries[0].is_late:
                yield from signal()
            yield from course.open()

    for _, mark, birth, cargo in exchange.owed():
        yield from openings(birth)
        if not exchange.is_before_signal(mark):
            yield from signal()
        effect = delivering.cargo(cargo)
        if effect is not None:
            yield effect
    yield from openings(None)
    yield from signal()
    yield from course.leftover()


def _note(what: Occurrence, count: int = 1) -> Effect:
    return Record(Occurred(what, count))


def _counted(counts: dict[Occurrence, int]) -> Iterator[Effect]:
    return (_note(what, count) for what, count in counts.items() if count)


def _is_void(effect: Effect) -> bool:
    return isinstance(effect, Subscribed) and not effect.groups
