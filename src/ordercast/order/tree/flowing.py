"""What goes on in a configuration while it lasts: blocks come from links and go out, messages enter and are passed up,
openings take effect, the manager changes the forest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ordercast.model.effects import Effect, Record
from ordercast.model.errors import WireError
from ordercast.model.ids import Instant
from ordercast.model.inputs import Submission
from ordercast.model.notes import Occurred, Occurrence, PacketDropped
from ordercast.model.service import Service
from ordercast.order.tree.blocks import OF_STABILITY
from ordercast.order.tree.bundle import Bundle
from ordercast.order.tree.control import (
    Broken,
    Reconcile,
    encode_broken,
    encode_closed,
    encode_cross,
    encode_everywhere,
    encode_load,
    encode_opening,
    encode_reconcile,
)
from ordercast.order.tree.course import Course
from ordercast.order.tree.loads import Loads
from ordercast.order.tree.managing import Manager
from ordercast.order.tree.saying import Saying
from ordercast.order.tree.story import ForestStory
from ordercast.order.tree.stream import BadBlock


@dataclass(slots=True)
class TreeFlow:
    saying: Saying
    manager: Manager
    loads: Loads
    spare: int  # bytes of the control stream's room that users may not fill
    story: ForestStory = field(default_factory=ForestStory)

    def go_on(self, course: Course, bundle: Bundle, now: Instant) -> Iterator[Effect]:
        """Let everything go on that can."""
        is_moving = True
        while is_moving:
            opened = course.opened
            yield from self._blocks(course, bundle)
            yield from course.settle()
            self._send(course)
            course.enter()
            yield from course.branch.deliver()
            yield from course.placed()
            outgoing = course.flush()
            hurried = course.branch.hurried()
            if hurried is None:
                bundle.hurry(now)
            for process, block in outgoing:
                can_wait = block[0] in OF_STABILITY and hurried is not None and process not in hurried
                bundle.send(process, block, now, can_wait=can_wait)
            is_moving = course.opened > opened or (bool(outgoing) and course.may_move)
        yield from course.occurrences()
        self._note_story(course, now)
        self.saying.own.extend((encode_closed(closed), Service.AGREED) for closed in course.closed)
        course.closed.clear()
        for process in bundle.broken():
            yield Record(Occurred(Occurrence.TREE_LINK_BROKEN))
            self.saying.own.append((encode_broken(Broken(process, course.links_epoch)), Service.AGREED))
        if (load := self.loads.due(now)) is not None:
            self.saying.own.append((encode_load(load), Service.AGREED))
        change = self.manager.change(course, now)
        if isinstance(change, Reconcile):
            self.saying.own.append((encode_reconcile(change), Service.AGREED))
        elif change is not None:
            self.saying.own.append((encode_opening(change.opening), Service.AGREED))
            yield from self.manager.notes(change)

    def _blocks(self, course: Course, bundle: Bundle) -> Iterator[Effect]:
        """Take what links have brought, in order; blocks of an epoch that is not open here wait, in order too, and hold
        up none of those that are: an opening may wait for what comes behind."""
        inbound = bundle.inbound
        for process in sorted(inbound) if inbound else ():
            blocks = inbound[process]
            for _ in range(len(blocks)):
                block = blocks.popleft()
                if course.must_wait(block):
                    course.branch.happened[Occurrence.TREE_BEFORE_BIRTH] += 1
                    blocks.append(block)
                    continue
                try:
                    course.take(block, process)
                except (WireError, BadBlock) as error:
                    yield Record(PacketDropped(str(error)))
                    bundle.fail(process)
                    break
            if not blocks:
                inbound.pop(process, None)

    def _note_story(self, course: Course, now: Instant) -> None:
        """Take note of what status displays tell of the forest."""
        self.story.steps.extend(course.steps)
        course.steps.clear()
        stream = course.branch.stream
        self.story.look(stream is None or stream.is_closed, now)

    def _send(self, course: Course) -> None:
        """Send what the users of this process have waiting."""
        source = course.source
        while (turn := source.next(course.forest)) is not None and not course.branch.is_shut(turn):
            if turn.tree is not None:
                self.loads.count(turn.wish.destinations, len(turn.wish.payloads))
                course.offer(source.offered(turn, course.opened))
                course.enter()
                continue
            wish = turn.wish
            is_settled = course.is_introduced and course.branch.is_settled()
            if not is_settled or not self.saying.fits(wish.cost + self.spare):
                return
            course.branch.happened[Occurrence.TREE_SEVERAL_TREES] += bool(wish.destinations)
            source.submitted(turn)
            for payload in wish.payloads:
                groups = wish.destinations
                cross = encode_cross(course.opened, groups, payload, is_again=wish.is_again, source=wish.source)
                data = cross if groups else encode_everywhere(payload)
                self.saying.users.append(Submission(self.saying.tagged(data), Service(wish.service), wish.sender))
            return
