"""TreeNode: the engine. One process of a forest: an engine under this one for control, links for data.

Each input goes to the control engine, or to a link; what they bring goes to the course of the configuration
(`course.py`), or to the exchange that ends it (`exchange.py`). Then everything that can go on does: openings take
effect, what waits enters or is sent, messages are passed up, links are flushed. Control is any engine behind the face
of an inner ring; its stream is consumed, all its other effects are passed on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.effects import Broadcast, Deliver, Effect, Install, LeaveDone, Persist, Record, Room, SendTo, noted
from ordercast.model.errors import UsageError, WireError
from ordercast.model.ids import (
    MAIN,
    NO_CONFIGURATION,
    Attachment,
    Incarnation,
    Instant,
    ProcessId,
    process_id_from,
)
from ordercast.model.inputs import Interest, Lane, Packet, Stored, Submission, Submissions
from ordercast.model.notes import Occurrence, PacketDropped
from ordercast.model.roster import Roster
from ordercast.model.service import Service
from ordercast.order.tree.bundle import Bundle
from ordercast.order.tree.control import ControlKind
from ordercast.order.tree.course import Course
from ordercast.order.tree.delivering import Delivering, Spot
from ordercast.order.tree.exchange import TreeExchange
from ordercast.order.tree.facts import CONTROL, TreeFacts
from ordercast.order.tree.finishing import finished, note, recovery_notes, regular_after, transitional_of
from ordercast.order.tree.reports import Recovered, Report, encode_recovered, encode_report
from ordercast.order.tree.saying import TAG_END
from ordercast.order.tree.source import TreeSource, size_of

PASSED_ON = Broadcast | SendTo | Record  # of the control engine, which is no business of this one


class TreeNode(TreeFacts):
    # Inputs

    def start(self, stored: Stored, incarnation: Incarnation, now: Instant) -> list[Effect]:
        self._me = process_id_from(self._node, incarnation)
        self._source = TreeSource(self._me, self._config.cargo_size, self._config.source_window)
        kept = {f"{CONTROL}.{key}": value for key, value in stored.items()}
        return self._go_on(self._control.start(kept, incarnation, now), now)

    def submit(self, submissions: Sequence[Submission | Submissions], now: Instant) -> list[Effect]:
        if self._is_leaving:
            raise UsageError("this process is leaving: it sends nothing more")
        size = size_of(submissions, self._sizes.message_size_max)
        if size > self.room():
            self.want_room(size)
            raise UsageError(f"no room for {size} bytes; wait for a Room effect")
        self._source.add(submissions)
        if self._source.size > self._sizes.queue_size_max // 4 * 3:
            self.want_room(self._sizes.queue_size_max // 2)
        return self._go_on([], now)

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        of_control = [one for one in packets if one.lane is not Lane.LINK]
        told = self._control.receive(of_control, now) if of_control else []
        if self._bundle is not None:
            self._bundle.visited(self._observed.stats.visits, now)
        if len(of_control) == len(packets) and self._is_unmoved(told, now):
            return told
        effects = self._taken(told, now)
        bundle = self._bundle
        for packet in packets:
            if packet.lane is Lane.LINK and bundle is not None and self._is_regular:
                faults = bundle.read(bytes(packet.data), packet.segment_size, now)
                effects += [Record(PacketDropped(str(fault))) for fault in faults]
        return self._go_on([], now, effects)

    def _is_unmoved(self, effects: list[Effect], now: Instant) -> bool:
        """Whether the control engine has spoken to others alone, and nothing here is due: most of what members of a
        large control ring say to each other."""
        bundle, saying = self._bundle, self._saying
        if bundle is None or self._exchange is not None or self._is_leaving or self._wants_room:
            return False
        if self._source.waiting or not saying.is_empty or bundle.inbound:
            return False
        if not all(isinstance(effect, PASSED_ON) for effect in effects):
            return False
        due = [bundle.next_deadline(), self._manager.next_deadline(self._course_now), self._loads.next_look]
        return all(at is None or now < at for at in due)

    def persisted(self, key: str, now: Instant) -> list[Effect]:
        return self._go_on(self._control.persisted(f"{CONTROL}.{key}", now), now)

    def interest(self, changes: Sequence[Interest], now: Instant) -> list[Effect]:
        for change in changes:
            self._saying.want(change.group, change.is_wanted)
        return self._go_on([], now)

    def enlist(self, roster: Roster, now: Instant, attachment: Attachment = MAIN) -> list[Effect]:
        return self._go_on(self._control.enlist(roster, now), now)

    def wake(self, now: Instant) -> list[Effect]:
        deadline = self._control.next_deadline()
        return self._go_on(self._control.wake(now) if deadline is not None and deadline <= now else [], now)

    def behind(self, is_behind: bool, now: Instant) -> list[Effect]:
        self._saying.is_behind = is_behind
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
        if data[1:TAG_END] != self._saying.tag:
            if data[0] in (ControlKind.EVERYWHERE, ControlKind.CROSS) and originator == self._me:
                self._source.came_back(sender, has_effect=False)
            return
        try:
            control = self.read_control(data[:1] + data[TAG_END:])
        except WireError as error:
            yield Record(PacketDropped(str(error)))
            return
        if isinstance(control, Report):
            if self._exchange is not None and self._is_regular:
                again = self._exchange.report(originator, control)
                if again:
                    yield note(Occurrence.TREE_SENT_AGAIN, len(again))
                self._saying.own.extend((encode_recovered(one), Service.SAFE) for one in again)
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
            if course.is_cut and not course.is_frozen:
                self._reconcile(course)
            yield from course.settle()

    def _reconcile(self, course: Course) -> None:
        """All trees end within the configuration: report what is held, as when members change."""
        course.is_frozen = True
        self._bundle = None
        self._exchange = self.make_exchange(course, course.configuration.members, {})
        self._saying.own.append((encode_report(self._exchange.mine), Service.SAFE))

    def _installed(self, configuration: Configuration, now: Instant) -> Iterator[Effect]:
        if configuration.kind is ConfigurationKind.TRANSITIONAL:
            self._is_regular = False
            if self._course is not None and self._exchange is None:
                self._course.is_frozen = True
            return
        self._is_regular = True
        came = {} if self._exchange is None else self._exchange.came
        yield from self._interrupted()
        self._saying.have_effect_in(configuration.id)
        if self._course is None:
            delivering = Delivering(configuration.id)
            self._course = self.make_course(self._me, configuration, self._config, self._source, delivering)
            yield from self._begin(Install(configuration), ())
            return
        self._saying.own.clear()
        self._bundle = None
        if self._course.ended_by == NO_CONFIGURATION:
            self._course.ended_by = configuration.id
        self._next = configuration
        self._exchange = self.make_exchange(self._course, configuration.members, came)
        self._saying.own.append((encode_report(self._exchange.mine), Service.SAFE))

    def _interrupted(self) -> Iterator[Effect]:
        """An exchange fails. What the control stream has brought meanwhile belongs to a configuration that this process
        never installs; or, when trees were being reconciled, to the one that ends: others have let it take effect."""
        exchange, ahead = self._exchange, self._ahead
        self._exchange, self._ahead = None, []
        if exchange is None:
            return
        interrupted = Occurrence.TREE_EXCHANGE_INTERRUPTED, Occurrence.TREE_RECOVERY_INTERRUPTED
        yield note(interrupted[exchange.plan is not None])
        for message in ahead if self._next is None else ():
            yield from self._ordered(*message)

    def _complete(self) -> Iterator[Effect]:
        """Deliver what is left of the old configuration, and begin the new one; or go on in it, with new trees."""
        exchange, following, course = self._exchange, self._next, self._course_now
        if exchange is None or not exchange.is_complete:
            return
        assert exchange.plan is not None
        yield from recovery_notes(exchange)
        if following is None:
            yield from self._reconciled(exchange)
            return
        old, along = course.configuration, exchange.companions
        if old.members[0] not in along and (course.boundaries or course.unclosed or course.unopened):
            yield note(Occurrence.TREE_MANAGER_LOST)
        transitional = transitional_of(old, along, following)
        yield from finished(exchange, transitional)
        again, cut = course.source.start_over(exchange.own_held, along)
        yield from course.placed()
        yield from noted({Occurrence.TREE_ORDERED_AGAIN: again, Occurrence.LARGE_SENT_AGAIN: cut})
        cut = course.delivering.begin(following.id)
        yield from noted({Occurrence.LARGE_CUT: cut})
        if exchange.is_uneven:
            yield note(Occurrence.TREE_ENDED_UNEVENLY)
        view = regular_after(transitional, following)
        self._course = self.make_course(self._me, view, self._config, course.source, course.delivering)
        self._exchange = self._next = None
        ahead, self._ahead = self._ahead, []
        yield from self._begin(Install(view, is_uneven=exchange.is_uneven), ahead)

    def _reconciled(self, exchange: TreeExchange) -> Iterator[Effect]:
        """Everybody has the same of all trees that were: go on in the configuration."""
        course = self._course_now
        assert exchange.plan is not None
        yield from finished(exchange, None)
        again, cut = course.source.start_over(exchange.own_held, None)
        yield from noted(
            {
                Occurrence.TREE_RECONCILED: 1,
                Occurrence.TREE_ORDERED_AGAIN: again,
                Occurrence.LARGE_SENT_AGAIN: cut,
                Occurrence.LARGE_CUT: course.delivering.cut(),
            }
        )
        course.reconciled(exchange.plan.marks.values())
        self._exchange = None
        self._bundle = self._bundle_of(course)
        ahead, self._ahead = self._ahead, []
        for message in ahead:
            yield from self._ordered(*message)

    def _bundle_of(self, course: Course) -> Bundle:
        """Return new links; those of trees that were reconciled belong to another time."""
        view = course.configuration
        return Bundle(self._link_config, self._cluster, self._me, view.id, view.members, course.links_epoch)

    def _begin(self, view: Install, ahead: Sequence[tuple[Spot, ProcessId, int, int, bytes]]) -> Iterator[Effect]:
        """A configuration begins: say what is wanted here, and take what the control stream has brought in it."""
        self._bundle = self._bundle_of(self._course_now)
        self._manager.begin()
        self._loads.begin()
        self._flow.story.begin()
        self._saying.begin(f"={self._me:x}")
        yield view
        for message in ahead:
            yield from self._ordered(*message)

    # What comes of an input

    def _go_on(self, effects: list[Effect], now: Instant, before: Sequence[Effect] = ()) -> list[Effect]:
        """Let everything go on that can, until nothing more comes of it."""
        onward = [*before, *self._taken(effects, now)]
        is_moving = True
        while is_moving:
            onward += self._flowed(now)
            onward += self._told(now)
            is_moving = self._saying.has_turn
        if self._bundle is not None and self._exchange is None:
            onward += self._bundle.flush(now)
        onward += self._leave_if_done(now)
        if self._wants_room and self._course is not None and self.room() >= self._wants_room:
            self._wants_room = 0
            onward.append(Room(self.room()))
        return self._saying.answered(onward)

    def _flowed(self, now: Instant) -> Iterator[Effect]:
        course, bundle = self._course, self._bundle
        if course is None or bundle is None or self._exchange is not None or course.is_frozen:
            return iter(())
        return self._flow.go_on(course, bundle, now)

    def _told(self, now: Instant) -> list[Effect]:
        """Say on the control stream what there is to say."""
        if self._has_left:  # others wait for what is not said until it is out
            self._saying.own.clear()
            return []
        effects = self._taken(self._saying.users_words(now), now)
        if self._exchange is None and self._bundle is not None:
            self._saying.add_changes()
        while self._saying.has_turn:
            effects += self._taken(self._saying.next(now), now)
        return effects

    def _leave_if_done(self, now: Instant) -> list[Effect]:
        """Leave when everything that was submitted is stable, and what this process is owed was passed up."""
        course = self._course
        if not self._is_leaving or self._has_left or course is None or self._exchange is not None:
            return []
        stream = course.branch.stream
        is_done = self._source.is_empty and not course.boundaries and not (stream is not None and stream.queue)
        if not is_done or not self._observed.is_ready or self._saying.own or course.is_frozen:
            return []
        self._has_left = True
        notes = [note(Occurrence.TREE_INTERIOR_LEFT)] if stream is not None and stream.edges else []
        return notes + self._taken(self._control.leave(now), now)
