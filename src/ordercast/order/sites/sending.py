"""What a daemon gives to its ring, and when: what the tape asks for, what is wanted here, and messages of its users.

Messages go in small helpings, as long as the view is regular, no application anywhere is behind, and not too much of
the own is under way that others are not known to have (`window.py`). As much may wait here for that as may be under
way: whoever sends more has to wait itself, and knows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ordercast.model.effects import Effect, Room, Subscribed
from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND, Instant
from ordercast.model.inputs import Interest, Submission, Submissions
from ordercast.order.engine import granted
from ordercast.order.layered import InnerRing
from ordercast.order.outbox import cost
from ordercast.order.ring.config import RingConfig
from ordercast.order.sites.codec import UNIT_HEAD_SIZE, encode
from ordercast.order.sites.config import SitesConfig
from ordercast.order.sites.feed import RingFeed
from ordercast.order.sites.frames import BehindFrame, DataEntry
from ordercast.order.sites.interest import NEVER, Wishes
from ordercast.order.sites.outbox import WideOutbox, queued_from
from ordercast.order.sites.states import REGULAR
from ordercast.order.sites.tape import Tape, Where
from ordercast.order.sites.window import UnstableWindow

VISITS = 2  # of the token, that the ring is given messages for


class Sending:
    def __init__(self, inner: InnerRing, config: RingConfig, sites: SitesConfig) -> None:
        self._config = config
        self._prunes = sites.prune
        self._window = UnstableWindow(sites.window)
        self._share: int | None = None  # what this daemon may have under way; None: there are no other sites
        self._wanted = 0  # room that the layer above waits for
        self._said_behind = False
        self.is_behind = False  # the layer above cannot take more
        self.outbox = WideOutbox(config.whole_size_max - UNIT_HEAD_SIZE - 1)
        self.wishes = Wishes(sites.unlearn_ns)
        self.feed = RingFeed(inner)

    @property
    def is_idle(self) -> bool:
        return not (self.outbox or self.wishes or self.feed)

    def deadlines(self, state: str) -> tuple[Instant | None, ...]:
        """Return when `collect` is due: what is not wanted any more can be told in a regular view alone."""
        late = self.wishes.deadline
        return self._window.deadline, late if late != NEVER and state == REGULAR else None

    # The layer above

    def room(self) -> int:
        most = self._config.queue_size_max
        if self._share is not None and self.outbox.size:
            most = min(most, self._share)
        return max(0, most - self.outbox.size)

    def want_room(self, size: int) -> None:
        self._wanted = max(self._wanted, min(size, self._config.queue_size_max))

    def submit(self, submissions: Sequence[Submission | Submissions]) -> None:
        """Let messages wait; UsageError when there is no room for all of them."""
        lots = [lot for one in submissions for lot in queued_from(one, self._config.message_size_max)]
        size = cost(lots)
        if size > self.room():
            self.want_room(size)
            raise UsageError(f"no room for {size} bytes; wait for a Room effect")
        self.outbox.add(lots)
        if self._share is None and self.room() < self._config.queue_size_max // 4:
            self.want_room(self._config.queue_size_max // 2)

    def offer_room(self) -> list[Effect]:
        if not self._wanted or self.room() < self._wanted:
            return []
        self._wanted = 0
        return [Room(self.room())]

    def interest(self, changes: Sequence[Interest], now: Instant) -> list[Effect]:
        """Hear what is wanted here; return the answer, where it is known at once."""
        if not self._prunes:
            return granted(changes)
        self.wishes.change(changes, now)
        return []

    # The ring

    def ring_changed(self) -> None:
        """The others of the ring have not heard whether the layer above is behind."""
        self._said_behind = False

    def collect(self, tape: Tape, brought: Iterable[tuple[int, bytes]], where: Where, now: Instant) -> list[Effect]:
        """Gather what has to go on the ring: what links have brought and control first, then messages as far as they
        may be under way. Return the answer to wishes that are known to everybody by now.

        Control lies above all stamps that were read: those of a former ring may be higher than those of the ring that
        follows it, and a view begins above the clocks that its STATEs tell."""
        self._window.look(max(tape.queues.values()) * MILLISECOND if tape.queues else 0, now)
        self._share = self._window.share(len(tape.view.members)) if tape.is_wide else None
        for stamp, entry in brought:
            self.feed.add([entry], stamp)
        if tape.entries:
            self.feed.add(tape.entries, tape.clock)
            tape.entries = []
        if self.is_behind != self._said_behind:
            self._said_behind = self.is_behind
            self.feed.add([encode(BehindFrame(self.is_behind))])
        if tape.state != REGULAR or where is not Where.REGULAR:
            return []
        effects = self._tell_wishes(tape, now)
        while (room := self._may_send(tape)) > 0:
            entries = self.outbox.next(tape.view.digest, room, tape.interests.needs)
            if not entries:
                break
            self.feed.add(entries)
        return effects

    def _tell_wishes(self, tape: Tape, now: Instant) -> list[Effect]:
        """Tell what is wanted here; a join waits for the answer."""
        wishes = self.wishes
        if wishes.is_still(tape.view):
            return []
        for body in wishes.due(tape.view, now) if self._prunes else ():
            self.feed.add([encode(DataEntry(tape.view.digest, (), body))])
        wishes.stable_at(tape.order.stable)
        groups, wishes.granted = tuple(wishes.granted), []
        return [Subscribed(groups)] if groups else []

    def _may_send(self, tape: Tape) -> int:
        """Return how many packets the ring may be given."""
        if self.is_behind or tape.behind_here or tape.behind:
            return 0
        packets = VISITS * self._config.visit_max - self.outbox.under_way
        if self._share is None:
            return packets
        size = self._config.packet_size_max
        left = self._share - tape.order.own_size - self.outbox.under_way * size
        if left <= 0 and self.outbox.is_waiting:
            self._window.keeps_back()
        return min(packets, -(-left // size))
