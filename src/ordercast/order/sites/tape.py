"""The tape: everything that changes a daemon's wide state comes to it in the order of its site's ring.

    DataEntry     messages of a daemon of the site, or what it wants: a unit of the view, or void
    UnitFrame     a unit of another site, as its representative brought it
    UpdateFrame   another site's promise and acknowledgement
    BehindFrame, QueueFrame
                  an application of the site cannot take more; what its links have to send waits for long
    ProposeFrame  BEGIN: from here on nothing of the old view is sent, taken or delivered
    SpreadFrame   STATE, RECOVERED and READY of an attempt, of this site or brought

So all members of a ring are in the same wide state at the same entry, and a new representative needs nothing from the
dead one. In the ring's transitional configuration the tape goes on up to the first gap: units, lines and updates count,
and controls are void in all of it. Beyond the gap units are kept and lines stand.
"""

from __future__ import annotations

from enum import Enum

from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import Effect, Record
from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, Instant, ProcessId
from ordercast.model.notes import Moved, Occurred, Occurrence
from ordercast.order.sites.attempt import WideAttempt
from ordercast.order.sites.codec import decode, encode
from ordercast.order.sites.frames import (
    BehindFrame,
    DataEntry,
    ProposeFrame,
    QueueFrame,
    ReadyFrame,
    RecoveredFrame,
    SpreadFrame,
    StateFrame,
    UnitFrame,
    UpdateFrame,
    WideFrame,
)
from ordercast.order.sites.interest import InterestTable, Wishes, wants_of
from ordercast.order.sites.order import WideOrder
from ordercast.order.sites.outbox import WideOutbox
from ordercast.order.sites.passage import Passage
from ordercast.order.sites.plan import WidePlan
from ordercast.order.sites.runs import EntriesInARow, EntryRun, read_entries
from ordercast.order.sites.states import BROKEN, EXCHANGE, RECOVERY, REGULAR, STARTING
from ordercast.order.sites.storage import WideStorage
from ordercast.order.sites.stream import UnitStream
from ordercast.order.sites.units import AnyUnit, BodyKind, Unit, UnitRun
from ordercast.order.sites.views import EVERYBODY, Fragment, WideProposal, WideView


class Where(Enum):
    """In which part of the ring's life an entry lies."""

    REGULAR = "regular"
    TRANSITIONAL = "transitional"
    BEYOND = "beyond a gap of the transitional configuration"


class Tape:
    """The wide state of one daemon."""

    def __init__(self, me: ProcessId, site: int, outbox: WideOutbox, storage: WideStorage, wishes: Wishes) -> None:
        self.me = me
        self.site = site
        self.outbox = outbox
        self.storage = storage
        self.wishes = wishes
        self.state = STARTING
        self.ring: Fragment | None = None  # the regular configuration of the site's ring
        self.attempt: WideAttempt | None = None
        self.clock = 0  # the highest stamp on the tape
        self.behind: set[int] = set()  # ranks of sites where an application cannot take more
        self._updated: dict[int, int] = {}  # the highest promise in an update of each rank: links reorder
        self.queues: dict[int, int] = {}  # how long those of sites are that are long, in milliseconds, by rank
        self.behind_here: set[ProcessId] = set()  # daemons of the site, likewise
        self.effects: list[Effect] = []  # for the driver; whoever takes them empties the list, likewise the next three
        self.entries: list[bytes] = []  # for the own ring
        self.heard: list[AnyUnit] = []  # new units, for the representative
        self.control: list[SpreadFrame] = []  # of the own ring, for the representative to spread
        self.known_seq = 0  # the highest of views and attempts
        self.view_seq = 0  # the highest of views that were installed or agreed to
        self.order: WideOrder  # of the view, and the next three, from the first view on
        self.view: WideView
        self.interests: InterestTable
        self.is_wide = False  # the view has several fragments
        self.is_begun = False
        self._passage = Passage(self.effects)

    @property
    def rank(self) -> int:
        return self.order.rank

    # The ring

    def begin(self, ring: Fragment, seq: int) -> None:
        """Begin a life alone, in a view of the own."""
        self.ring = ring
        self.known_seq = self.view_seq = seq
        view = WideView(ConfigurationId(seq, self.me), WideProposal(ConfigurationId(seq, self.me), (ring,), ()), 0)
        self.enter(view)
        self.is_begun = True
        self._move(REGULAR, None, "alone")
        self._passage.begin(view.id, view.members, (self.me,), ChangeReason.STARTED)

    def enter(self, view: WideView) -> None:
        """Order messages of this view from now on."""
        self.order, self.view, self.interests = WideOrder(view, self.me), view, InterestTable(view)
        self.is_wide = len(view.fragments) > 1

    def ring_changed(self, ring: Fragment, reason: ChangeReason) -> None:
        """The site's ring has another regular configuration: the stream of the old one has ended, and so does the
        view."""
        if self.attempt is not None:
            is_late = self.attempt.plan is not None
            self._occurred(Occurrence.SITES_RECOVERY_CUT if is_late else Occurrence.SITES_EXCHANGE_CUT)
        self.ring, self.attempt = ring, None
        self.behind_here.clear()
        self._move(BROKEN, reason, "the ring of the site changed")

    # Entries

    def take(self, data: bytes, originator: ProcessId, seq: int, stamp: int, where: Where) -> None:
        """Take an entry. What cannot be read is void; no member of the ring has written it."""
        try:
            frame = decode(data)
        except WireError:
            return
        self.clock = max(self.clock, stamp)
        self._take(frame, originator, stamp, where)
        if where is not Where.BEYOND and self.state == REGULAR:
            self.order.tape_at(seq, stamp)

    def take_alike(self, row: EntriesInARow, where: Where) -> int:
        """Take the first of entries in a row, and with it those of messages behind it that are alike; return how many
        were taken. Stamps that do not rise were forged: `take` refuses what has one."""
        originator, seq, step, entries, stamps = row.originator, row.seq, row.step, row.entries, row.stamps
        run = None
        if where is Where.REGULAR:
            run = self.outbox.given(entries) if originator == self.me else None
            run = run or read_entries(entries)
        if run is None or stamps[0] < self.order.own.line:
            self.take(entries[0], originator, seq, stamps[0], where)
            return 1
        count = row.evenly(run.entries)
        if count < run.entries:
            run = run.between(0, count)
        behind = (count - 1) * step
        self.clock = max(self.clock, stamps[count - 1])
        self._take_run(run, count, originator, stamps[0], step)
        if self.state == REGULAR:
            self.order.tape_at(seq + behind, stamps[count - 1])
        return count

    def _take_run(self, said: EntryRun, count: int, originator: ProcessId, stamp: int, step: int) -> None:
        is_void = self._is_void(said.view)
        if originator == self.me:
            self._see_own(count, is_void)
        if is_void:
            return
        order, needs = self.order, self.interests.needs(said.destinations)
        own = order.own
        run = UnitRun(order.rank, stamp, own.through, originator, said.run, said.each, said.payloads, needs, step)
        order.take_run(run)
        self.heard.append(run)

    def _is_void(self, view: bytes) -> bool:
        """Whether messages for this view come when another one is installed, or none."""
        return self.state != REGULAR or view != self.view.digest

    def _see_own(self, count: int, is_void: bool) -> None:
        """So many helpings of this daemon are on the tape."""
        self.outbox.seen(count, is_void=is_void)
        if is_void:
            self._occurred(Occurrence.SITES_VOID, count)

    def _take(self, frame: WideFrame, originator: ProcessId, stamp: int, where: Where) -> None:
        match frame:
            case DataEntry():
                self._take_data(frame, originator, stamp, where)
            case UnitFrame():
                self._take_unit(frame, where)
            case UpdateFrame() if where is not Where.BEYOND:  # lines stand there
                self._take_update(frame)
            case BehindFrame():
                (self.behind_here.add if frame.is_behind else self.behind_here.discard)(originator)
            case QueueFrame():
                self._take_queue(self.rank, frame.queue_ms)
            case ProposeFrame() if where is Where.REGULAR:
                self._take_begin(frame.proposal)
            case SpreadFrame() if where is Where.REGULAR:
                self._take_control(frame)

    def _take_data(self, entry: DataEntry, originator: ProcessId, stamp: int, where: Where) -> None:
        is_void = self._is_void(entry.view)
        if originator == self.me:
            self._see(entry, stamp, is_void)
        if is_void:
            return
        order = self.order
        previous = None if where is Where.BEYOND else order.own.through
        unit = Unit(order.rank, stamp, previous, originator, entry.body, self.interests.needs(entry.destinations))
        if order.take(unit):
            self.heard.append(unit)
            self._learn(order.rank)
        self._occurred(Occurrence.SITES_BEYOND_GAP, int(previous is None))

    def _see(self, entry: DataEntry, stamp: int, is_void: bool) -> None:
        """What this daemon gave to the ring is on the tape. What is void of its interests the next view tells anew."""
        if entry.body.kind is not BodyKind.INTEREST:
            self._see_own(1, is_void)
        elif not is_void:
            self.wishes.seen(entry.body, stamp)

    def _learn(self, rank: int) -> None:
        """Know what daemons want from the place on at which everything before it is here."""
        stream = self.order.streams[rank]
        for unit in stream.told:
            self.interests.take(unit.originator, wants_of(unit.body))
            self._occurred(Occurrence.SITES_INTEREST)
        stream.told.clear()

    def _is_of_view(self, view: bytes, rank: int) -> bool:
        order = self.order
        return view == self.view.digest and not order.is_held and rank < len(order.streams) and rank != order.rank

    def _take_unit(self, frame: UnitFrame, where: Where) -> None:
        """Take a unit of another site. Beyond a gap it is kept, and the line of its stream stands."""
        if not self._is_of_view(frame.view, frame.rank) or frame.place >= len(self.view.members):
            return
        originator = self.view.members[frame.place]
        previous = None if where is Where.BEYOND else frame.previous
        unit = Unit(frame.rank, frame.stamp, previous, originator, frame.body, frame.needs)
        if unit.is_hollow and unit.needs >> self.rank & 1:
            return  # it came for a fragment that is in one ring with this one since: whole in the recovery
        is_new = self.order.take(unit)
        if is_new:
            self.heard.append(unit)
            self._learn(frame.rank)
            self._occurred(Occurrence.SITES_HOLLOW, int(unit.is_hollow))
        self._occurred(Occurrence.SITES_LATE_CARRIER, int(is_new and self.state == BROKEN))
        if where is not Where.BEYOND:
            self.order.acknowledge(frame.rank, frame.aru)

    def _take_update(self, frame: UpdateFrame) -> None:
        if not self._is_of_view(frame.view, frame.rank):
            return
        self.order.promise(frame.rank, frame.through, frame.line, frame.aru)
        if frame.line < self._updated.get(frame.rank, 0):
            return  # the site has changed its mind since
        self._updated[frame.rank] = frame.line
        (self.behind.add if frame.is_behind else self.behind.discard)(frame.rank)
        self._take_queue(frame.rank, frame.queue_ms)

    def _take_queue(self, rank: int, queue_ms: int) -> None:
        if queue_ms:
            self.queues[rank] = queue_ms
        else:
            self.queues.pop(rank, None)

    # Attempts

    def _take_begin(self, proposal: WideProposal) -> None:
        if self.ring not in proposal.fragments or (self.attempt is not None and proposal.id <= self.attempt.id):
            return
        if self.attempt is not None:
            self._occurred(Occurrence.SITES_ATTEMPT_REPLACED)
        self.attempt = WideAttempt(proposal, self.me)
        self.known_seq = max(self.known_seq, proposal.id.seq)
        self.order.unroll()
        self.order.is_held = True
        self._move(EXCHANGE, ChangeReason(proposal.reason), f"attempt {proposal.id}")
        self._say(encode(self._state_frame(proposal.id)))

    def _state_frame(self, attempt: ConfigurationId) -> StateFrame:
        order = self.order
        return StateFrame(
            attempt,
            self.me,
            self.view.id,
            tuple(stream.line for stream in order.streams),
            tuple(_held(stream, is_hollow=False) for stream in order.streams),
            order.place[:2],
            tuple(sorted(order.commits)),
            self.clock,
            self.view_seq,
            order.rank,
            tuple(
                tuple((stamp, stream.units[stamp].needs) for stamp in _held(stream, is_hollow=True))
                for stream in order.streams
            ),
        )

    def _say(self, frame: bytes, needs: int = EVERYBODY) -> None:
        """Put control on the own tape; the representative spreads it from there."""
        assert self.attempt is not None
        self.entries.append(encode(SpreadFrame(self.attempt.id, self.attempt.rank, needs, frame)))

    def _take_control(self, spread: SpreadFrame) -> None:
        attempt = self.attempt
        if attempt is None or spread.attempt != attempt.id:
            return
        try:
            frame = decode(spread.frame)
        except WireError:
            return
        if spread.source == attempt.rank:
            self.control.append(spread)
        match frame:
            case StateFrame() if frame.attempt == attempt.id:
                if attempt.take_state(frame):
                    self._recover(attempt)
            case RecoveredFrame() if frame.attempt == attempt.id:
                self._take_recovered(attempt, frame)
            case ReadyFrame() if frame.attempt == attempt.id:
                if attempt.take_ready(frame):
                    self._install(attempt)

    def _recover(self, attempt: WideAttempt) -> None:
        """All have said what they have: send what others lack, and wait for what is lacking here."""
        plan = attempt.plan
        assert plan is not None
        self._move(RECOVERY, None, f"{len(plan.companions)} come along, {len(plan.lacking)} units are lacking")
        self.view_seq = max(self.view_seq, plan.view.id.seq)
        self.known_seq = max(self.known_seq, self.view_seq)
        for (rank, stamp), needs in sorted(plan.to_send.items()):
            unit = self.order.streams[rank].single(stamp)
            frame = RecoveredFrame(attempt.id, self.view.digest, rank, unit.originator, stamp, unit.needs, unit.body)
            self._say(encode(frame), needs)
            self._occurred(Occurrence.SITES_HOLLOW_RECOVERED, int(unit.is_hollow))

    def _take_recovered(self, attempt: WideAttempt, frame: RecoveredFrame) -> None:
        if frame.view != self.view.digest or (frame.rank, frame.stamp) not in attempt.lacking:
            return
        attempt.lacking.discard((frame.rank, frame.stamp))
        self.order.hold(Unit(frame.rank, frame.stamp, None, frame.originator, frame.body, frame.needs))
        self._occurred(Occurrence.SITES_RECOVERED)

    def go_on(self, now: Instant) -> None:
        """Deliver what may be; be ready for a view as soon as all that companions had is here, and its number is
        stored."""
        attempt = self.attempt
        if attempt is None or attempt.plan is None or attempt.is_said or attempt.lacking:
            self._pass_up()
            return
        if not attempt.has_all:
            attempt.has_all = True
            self._occurred(Occurrence.SITES_COMMITS_KEPT, int(self._has_kept(attempt.plan)))
            self.order.take_over(attempt.plan.lines, attempt.plan.commits)
        seq = attempt.plan.view.id.seq
        self.effects += self.storage.want(seq, now)
        if self.storage.has(seq):
            attempt.is_said = True
            self._say(encode(ReadyFrame(attempt.id, self.me)))

    def _has_kept(self, plan: WidePlan) -> bool:
        """Whether somebody is in the commits who does not come along."""
        return not plan.commits <= set(plan.companions)

    # Views

    def _pass_up(self) -> None:
        if self.order.has_news:
            self.order.walk()
            self._passage.deliver(self.order)
            self.effects += self.order.told_unfinished()

    def _install(self, attempt: WideAttempt) -> None:
        """Everybody is ready: end the old view and begin the new one, at this entry of the tape."""
        plan, reason = attempt.plan, ChangeReason(attempt.proposal.reason)
        assert plan is not None
        self._occurred(Occurrence.SITES_ORPHANED, int(plan.is_orphan))
        beyond, dropped = self._passage.end(self.order, plan, reason)
        self.effects += self.order.told_unfinished()
        self._occurred(Occurrence.SITES_BEYOND_LINE, beyond)
        self._occurred(Occurrence.SITES_DROPPED, dropped)
        self.enter(plan.view)
        self.attempt = None
        self.behind.clear()
        self.queues.clear()
        self._updated.clear()
        self._move(REGULAR, None, f"view {plan.view.id}")
        self._passage.begin(plan.view.id, plan.view.members, plan.companions, reason)

    # Notes

    def _move(self, state: str, reason: ChangeReason | None, text: str) -> None:
        origin, self.state = self.state, state
        self.effects.append(Record(Moved(origin, state, reason, text)))

    def _occurred(self, what: Occurrence, count: int = 1) -> None:
        if count:
            self.effects.append(Record(Occurred(what, count)))


def _held(stream: UnitStream, *, is_hollow: bool) -> tuple[int, ...]:
    """Return the stamps of the units of a stream that are held, those with messages or those without."""
    return tuple(sorted(stamp for stamp, unit in stream.units.items() if unit.is_hollow is is_hollow))
