"""What the representative of a ring does for it: it alone speaks on links, and brings what it hears there to the tape.

Transit does not wait for the tape: what comes on a link is passed on along the tree of its source at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ordercast.model.effects import Effect, Record, noted
from ordercast.model.errors import WireError
from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, Instant, ProcessId
from ordercast.model.notes import Occurrence, PacketDropped
from ordercast.order.membership.bounds import CLOCK_LEAP
from ordercast.order.sites.codec import decode, encode
from ordercast.order.sites.config import SitesConfig
from ordercast.order.sites.convening import NEVER, Convener
from ordercast.order.sites.early import EarlyFrame, EarlyFrames
from ordercast.order.sites.frames import (
    Contradiction,
    ProposeFrame,
    QueueFrame,
    ReachRecord,
    RecoveredFrame,
    RoutesFrame,
    SpreadFrame,
    StateFrame,
    UnitFrame,
    UpdateFrame,
    VectorFrame,
)
from ordercast.order.sites.neighbours import Neighbours
from ordercast.order.sites.promised import WIDE
from ordercast.order.sites.routes import SourceTree, children, reaches, trees_of
from ordercast.order.sites.spreading import Spreading
from ordercast.order.sites.states import REGULAR
from ordercast.order.sites.stuck import StuckSites
from ordercast.order.sites.tape import Tape
from ordercast.order.sites.topology import Records
from ordercast.order.sites.units import Unit
from ordercast.order.sites.update import Owing, SitePressure
from ordercast.order.sites.views import EVERYBODY, Fragment, WideProposal
from ordercast.order.sites.window import QueueReport


class Speaker:
    def __init__(self, me: ProcessId, neighbours: Neighbours, config: SitesConfig, tape: Tape) -> None:
        self._me = me
        self._neighbours = neighbours
        self._config = config
        self._tape = tape
        self._records = Records(config.record_ns)
        self._convener = Convener(me, config, self._records, tape)
        self._number = 0  # of own records
        self._told: ReachRecord | None = None  # the record as others know it
        self._told_links = 0  # the changes of links that it tells
        self._tell_at = Instant(0)
        self._has_news = True  # the convener has not seen all that there is
        self._view: ConfigurationId = NO_CONFIGURATION  # whose trees are in force
        self._owing: Owing | None = None
        self._taken: WideProposal | None = None  # the highest attempt that was
        self._attempt_trees: tuple[SourceTree, ...] = ()
        self._early = EarlyFrames(config.window)
        self.entries: list[tuple[int, bytes]] = []  # for the own ring, with the stamp that its clock has to hear first
        self.occurred: Counter[Occurrence] = Counter()
        self.spreading = Spreading(neighbours, self.occurred)
        self.dropped: list[str] = []  # why frames were
        self._stuck = StuckSites(config.stuck_ns)
        self._alarms: list[Effect] = []
        self._queue = QueueReport()

    @property
    def is_open(self) -> bool:
        return self._neighbours.is_open

    @property
    def neighbours(self) -> Neighbours:
        return self._neighbours

    @property
    def _pressure(self) -> SitePressure:
        return SitePressure(bool(self._tape.behind_here), self._queue.told_ms)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is owed, under way or waited for."""
        is_settled = self._convener.deadline == NEVER or self._tape.state == REGULAR
        return not self.is_open or (is_settled and self._owed_at(Instant(0)) == NEVER)

    # The ring and its tape

    def ring_changed(self, ring: Fragment, now: Instant) -> list[Effect]:
        """The ring has other members: speak on links, or leave that to another one."""
        was_open = self.is_open
        effects = self._neighbours.represent(ring.representative, now)
        if was_open and not self.is_open:
            self._records.clear()
            self._early.clear()
            self._told = None
        if self.is_open and not was_open:
            self._tell_at, self._convener.deadline = now, NEVER
        return effects

    def after_entry(self, now: Instant) -> None:
        """Spread what an entry of the tape has brought, if it is this ring's own."""
        tape = self._tape
        if tape.view.id != self._view:
            self._begin_view()
        heard, control = tape.heard, tape.control
        if not (heard or control):
            return
        tape.heard, tape.control = [], []
        if not self.is_open:
            return
        if tape.is_wide:
            for unit in heard:
                for single in unit.singles():
                    self._heed(single, now)
        for spread in control:
            if self._taken is not None and spread.attempt == self._taken.id:
                self._pass_on_control(spread, encode(spread))

    def _begin_view(self) -> None:
        view = self._tape.view
        early = self._early.of_view(self._view, view.digest)
        self._view = view.id
        self.spreading.begin(self._tape.order)
        self._queue = QueueReport()
        self._owing = Owing(self._config, self._tape.order.base, len(view.members))
        self.occurred[Occurrence.SITES_EARLY_FRAME] += len(early)
        self._take_late(early)

    def _heed(self, unit: Unit, now: Instant) -> None:
        order = self._tape.order
        assert self._owing is not None
        is_own = unit.rank == order.rank
        self._owing.heed(unit, now, is_foreign=not is_own)
        if is_own and unit.previous is not None:
            place = self._tape.view.members.index(unit.originator)
            aru = order.arus[order.rank]
            numbers = unit.rank, place, unit.stamp, unit.previous, aru, unit.needs
            frame = UnitFrame(self._tape.view.digest, *numbers, unit.body)
            self.spreading.spread(frame, encode(frame))
            self._owing.said(unit.stamp + 1, aru, None, None)

    # Spreading

    def _pass_on_control(self, spread: SpreadFrame, data: bytes) -> None:
        assert self._taken is not None
        tree, rank = self._attempt_trees[spread.source], self._taken.rank_of[self._me]
        for child in children(tree, rank):
            if spread.needs & reaches(tree, child):
                self._send(self._taken.fragments[child].representative, data, is_urgent=True)

    def _send(self, peer: ProcessId, data: bytes, *, is_urgent: bool = False) -> None:
        """Send on a link; where it has failed, a new view will follow."""
        link = self._neighbours.link_to(peer)
        if link is not None:
            link.send([data], is_urgent)

    # What comes on links

    def receive(self, packet: bytes, now: Instant) -> list[Effect]:
        """Take a packet of another site; a WireError: it is dropped, and nothing has changed."""
        payloads, effects = self._neighbours.receive(packet, now)
        for peer, payload in payloads:
            try:
                self._take(peer, payload, now)
            except WireError as error:
                self.dropped.append(str(error))
                if isinstance(error, Contradiction):
                    self._neighbours.fail(peer)
        return effects

    def _take(self, peer: ProcessId, data: bytes, now: Instant) -> None:
        frame = decode(data)
        match frame:
            case ReachRecord():
                self._neighbours.check(frame.fragment)
                if frame.process != self._me and self._records.take(frame, now):
                    self._has_news = True
                    self._flood(data, peer)
            case UnitFrame() | UpdateFrame():
                self._take_of_view(frame, data)
            case RoutesFrame():
                self._take_routes(frame, data, peer)
            case VectorFrame():
                self.spreading.take_vector(peer, frame)
            case ProposeFrame():
                self._take_proposal(frame.proposal, data)
            case SpreadFrame():
                self._take_control(frame, data)
            case _:
                raise WireError(f"a {type(frame).__name__} does not travel on links")

    def _flood(self, data: bytes, besides: ProcessId | None = None) -> None:
        for link in self._neighbours.up():
            if link.peer != besides:
                self._send(link.peer, data, is_urgent=True)

    def _take_of_view(self, frame: UnitFrame | UpdateFrame, data: bytes) -> None:
        tape = self._tape
        if frame.view != tape.view.digest:
            self._early.keep(frame, data)
            return
        if frame.rank >= len(tape.view.fragments) or frame.rank == tape.rank:
            raise WireError("a frame of a fragment that is not there, or of my own")
        if frame.highest > max(tape.clock, tape.order.base) + CLOCK_LEAP:  # believed, it would never heal
            raise WireError("a frame from a time that cannot be")
        if self.spreading.is_copy(frame, data):
            self.occurred[Occurrence.SITES_COPY] += isinstance(frame, UnitFrame)  # an update was overtaken
            return
        is_for_tape = self.spreading.is_news(frame)
        self.spreading.spread(frame, data)
        if isinstance(frame, UnitFrame) and self.spreading.lacks(frame):
            self._ask(frame.rank)
        if is_for_tape and not tape.order.is_held:
            stamp = frame.stamp if isinstance(frame, UnitFrame) else frame.line
            self.entries.append((stamp, data))

    def _ask(self, source: int) -> None:
        """A unit came hollow that somebody here or beyond needs, since routes have changed: ask for it whole."""
        self.occurred[Occurrence.SITES_ASKED_WHOLE] += 1
        asked = self.spreading.ask(source)
        if asked is not None:
            self._send(asked[0], encode(asked[1]), is_urgent=True)

    def _take_routes(self, frame: RoutesFrame, data: bytes, peer: ProcessId | None = None) -> None:
        """Use other links, and tell it on; whoever has a new parent tells it what is here."""
        spreading, fragments = self.spreading, len(self._tape.view.fragments)
        if frame.view != self._tape.view.digest or frame.epoch <= spreading.epoch:
            return
        if any(edge.high >= fragments for edge in frame.edges):
            raise WireError("an edge between fragments that are not in the view")
        self._has_news = True
        self._flood(data, peer)
        for parent, vector in spreading.take_routes(frame):
            self._send(parent, encode(vector), is_urgent=True)

    def _take_proposal(self, proposal: WideProposal, data: bytes) -> None:
        if self._tape.ring not in proposal.fragments or self._tape.ring.representative != self._me:
            return
        if self._taken is not None and proposal.id <= self._taken.id:
            return
        coordinator = proposal.rank_of.get(proposal.id.representative)
        if coordinator is None:
            raise WireError("a proposal of somebody who is not in it")
        self._taken = proposal
        self._convener.highest = max(self._convener.highest, proposal.id.seq)
        self._attempt_trees = trees_of(len(proposal.fragments), proposal.edges)
        for link in self._neighbours.links():
            link.withdraw()
        self._pass_on_control(SpreadFrame(proposal.id, coordinator, EVERYBODY, b""), data)
        self.entries.append((0, data))
        self._take_late(self._early.of_attempts())

    def _take_late(self, frames: Sequence[EarlyFrame]) -> None:
        """Take frames that came too early. One that cannot be true is dropped: nobody knows any more who brought it."""
        for frame, data in frames:
            try:
                if isinstance(frame, SpreadFrame):
                    self._take_control(frame, data)
                else:
                    self._take_of_view(frame, data)
            except WireError as error:
                self.dropped.append(str(error))

    def _take_control(self, spread: SpreadFrame, data: bytes) -> None:
        taken = self._taken
        if taken is None or spread.attempt > taken.id:
            self._early.keep(spread, data)
            return
        if spread.attempt < taken.id:
            return
        if spread.source >= len(taken.fragments):
            raise WireError("control of a fragment that is not in the attempt")
        frame = decode(spread.frame)
        self._pass_on_control(spread, data)
        if spread.needs & 1 << taken.rank_of[self._me]:
            stamp = frame.clock if isinstance(frame, StateFrame) else 0
            stamp = frame.stamp if isinstance(frame, RecoveredFrame) else stamp
            self.entries.append((stamp, data))

    # Time

    def forgive(self, now: Instant) -> None:
        """This process was paused: what others failed to say meanwhile is not their fault."""
        self._neighbours.forgive(now)
        self._records.forgive(now)
        self._convener.forgive(now)
        self._stuck.forgive()
        self.occurred[Occurrence.SITES_FORGIVEN] += 1

    def step(self, now: Instant) -> list[Effect]:
        """Do what is due, and return what leaves."""
        neighbours = self._neighbours
        if self.is_open:
            raised, neighbours.raised = neighbours.raised, []
            for peer in raised:
                for record in self._records.all():
                    self._send(peer, encode(record), is_urgent=True)
                if self.spreading.routes is not None:
                    self._send(peer, encode(self.spreading.routes), is_urgent=True)
            self._tell_record(now)
            self._look_for_stuck(now)
            self._convene(now)
            self._tell_queue()
            self._update(now)
        effects = neighbours.flush(now)
        if neighbours.failed and self.is_open:
            self.occurred[Occurrence.SITES_LINK_FAILED] += len(neighbours.failed)
            self._tell_record(now)
            effects += neighbours.flush(now)
        neighbours.failed.clear()
        return effects

    def _look_for_stuck(self, now: Instant) -> None:
        """Leave out of the next view whoever answers and holds up all others."""
        tape = self._tape
        if now < self._stuck.look_at or tape.state != REGULAR or not self._tape.is_wide:
            return
        for fragment in self._stuck.look(tape.order, now):
            if self._convener.leave_out(fragment.representative, now):
                self._has_news = True
                self.occurred[Occurrence.SITES_STUCK] += 1
                self._alarms.append(self._stuck.alarm(fragment))

    def _tell_queue(self) -> None:
        """Tell the own ring how long its links' queues are, when they have become long or short."""
        if self._tape.is_wide and self._tape.state == REGULAR and self._queue.is_news(self._neighbours.queue_ns()):
            self.entries.append((0, encode(QueueFrame(self._queue.told_ms))))

    def _convene(self, now: Instant) -> None:
        """Look whether a view is to be proposed, when something has changed or it is time."""
        if not self._has_news and now < self._convener.deadline:
            return
        self._has_news = False
        neighbours = self._neighbours
        proposal = self._convener.look(neighbours.round_trip(), self.spreading.edges, neighbours.left, now)
        edges, self._convener.routes = self._convener.routes, None
        if edges is not None:
            routes = RoutesFrame(self._tape.view.digest, self.spreading.epoch + 1, edges)
            self._take_routes(routes, encode(routes))
        if proposal is not None:
            self._take_proposal(proposal, encode(ProposeFrame(proposal)))

    def _tell_record(self, now: Instant) -> None:
        """Tell everybody who is here, when that has changed or was told long ago."""
        tape, told = self._tape, self._told
        assert tape.ring is not None
        view = tape.view.id if tape.state == REGULAR else NO_CONFIGURATION
        seq = max(tape.known_seq, self._convener.highest)
        is_same = told is not None and (told.view, told.seq) == (view, seq) and told.fragment == tape.ring
        if is_same and self._told_links == self._neighbours.changes and now < self._tell_at:
            return
        links, self._told_links = tuple(self._neighbours.up()), self._neighbours.changes
        self._number += 1
        self._told = ReachRecord(self._number, tape.ring, links, view, seq)
        self._tell_at = Instant(now + self._config.hello_ns)
        self._records.take(self._told, now)
        self._records.forget(self._me, now)
        self._has_news = True
        self._flood(encode(self._told))

    def _owed_at(self, now: Instant) -> Instant:
        owing, order = self._owing, self._tape.order
        if owing is None or self._tape.state != REGULAR or not self._tape.is_wide:
            return NEVER
        return owing.due(order.own.line, order.arus[order.rank], self._pressure, now)

    def _update(self, now: Instant) -> None:
        if self._owed_at(now) > now:
            return
        order = self._tape.order
        line, aru = order.own.line, order.arus[order.rank]
        numbers = order.rank, order.own.through, line, aru
        frame = UpdateFrame(self._tape.view.digest, *numbers, self._pressure.is_behind, self._pressure.queue_ms)
        self.spreading.spread(frame, encode(frame))
        assert self._owing is not None
        self._owing.said(line, aru, self._pressure, now)
        self.occurred[Occurrence.SITES_UPDATE] += 1

    def notes(self) -> list[Effect]:
        """Return what has happened since this was asked last."""
        if not (self.occurred or self.dropped or self._alarms or self._neighbours.alarms):
            return []
        effects: list[Effect] = [*noted(self.occurred)]
        effects += (Record(PacketDropped(why), WIDE) for why in self.dropped)
        effects += [*self._alarms, *self._neighbours.alarms]
        self._alarms.clear()
        self._neighbours.alarms.clear()
        self.occurred.clear()
        self.dropped.clear()
        return effects

    @property
    def next_deadline(self) -> Instant | None:
        deadlines = [self._neighbours.next_deadline]
        if self.is_open and self._tape.is_begun:
            deadlines += [self._tell_at, self._convener.deadline, self._owed_at(Instant(0))]
            if self._tape.is_wide and self._tape.state == REGULAR:
                deadlines.append(self._stuck.look_at)
        due = [one for one in deadlines if one is not None and one != NEVER]
        return min(due, default=None)
