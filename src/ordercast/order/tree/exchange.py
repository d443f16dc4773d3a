"""The end of a configuration: those who come along tell each other what they hold, and deliver the same.

Everybody reports on the new configuration of the control stream. With all reports, those who come from the same
configuration compute the same plan; what one of them is owed and lacks is sent again, safe. When the control stream has
delivered the last of it in its *regular* configuration, everybody sorts what it is owed and delivers it. If that
configuration ends before, what came counts as held, and all begins again with those who are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.tree.blocks import Cargo, Ordered
from ordercast.order.tree.course import Course
from ordercast.order.tree.plan import TreePlan, lacks, plan_of
from ordercast.order.tree.reports import (
    CargoIdentity,
    HeldMark,
    Order,
    Recovered,
    Report,
    Unordered,
    mark_of,
)

Owed = tuple[Order, HeldMark | None, int, Cargo]  # its place, its mark if the plan has one, its birth


class TreeExchange:
    def __init__(self, course: Course, members: Iterable[ProcessId], came: Mapping[CargoIdentity, Recovered]) -> None:
        """`members`: of the new configuration; `came`: what an exchange that failed has brought."""
        self.course = course
        self._members = frozenset(members)
        self.came = dict(came)
        self.plan: TreePlan | None = None
        self.companions: tuple[ProcessId, ...] = ()
        self._reports: dict[ProcessId, Report] = {}
        self._missing: set[CargoIdentity] = set()
        self.mine = self._report()

    @property
    def installed(self) -> ConfigurationId:
        return self.course.configuration.id

    def _report(self) -> Report:
        course = self.course
        stream = course.branch.stream
        held = {mark.identity: mark for mark in self._marks()}
        unordered = tuple(
            Unordered(one.wish.source, one.offer.birth, one.offer.entry, one.offer.cargo.groups)
            for one in course.source.unordered
        )
        return Report(
            self.installed,
            stream.birth if stream is not None else 0,
            course.opened,
            course.branch.delivered,
            tuple(sorted(stream.counts.items())) if stream is not None else (),
            tuple(held[identity] for identity in sorted(held)),
            unordered,
            course.settled,
            course.ended_by,
        )

    def _marks(self) -> Iterator[HeldMark]:
        yield from (recovered.mark for recovered in self.came.values())
        yield from (mark_of(ordered) for ordered in self._held())

    def _held(self) -> Iterator[Ordered]:
        """Iterate over what was processed here and is not known to be stable, and over what this process has sent and
        knows to be ordered."""
        for stream in self.course.branch.streams:
            yield from (held.ordered for held in stream.held.values() if held.ordered is not None)
        for sent in self.course.source.sent.values():
            if sent.place is not None:
                birth, entry, cargo = sent.offer
                yield Ordered(birth, entry, sent.place.number, sent.place.rank, cargo)

    def receivers(self, mark: HeldMark) -> frozenset[ProcessId]:
        """Return who is owed a message; nobody, of an epoch that all have long left behind."""
        for tree in self.course.trees.get(mark.birth, ()):
            if tree.has(mark.entry) and mark.groups:
                return tree.receivers(mark.groups)
        return frozenset()

    # What the control stream brings

    def report(self, process: ProcessId, report: Report) -> list[Recovered]:
        """Take a report; return what this process has to send again, once all are here."""
        if process not in self._members or self.plan is not None:
            return []
        self._reports[process] = report
        if not self._members <= self._reports.keys():
            return []
        along = {one: known for one, known in self._reports.items() if self._is_companion(known)}
        self.companions = tuple(sorted(along))
        self.plan = plan_of(along, self.receivers)
        self._missing = set(self.plan.senders)
        cargoes = {(one.cargo.originator, one.cargo.source, one.birth): one.cargo for one in self._held()}
        offers = (sent.offer for sent in self.course.source.sent.values())
        cargoes |= {(self.course.me, offer.cargo.source, offer.birth): offer.cargo for offer in offers}
        cargoes |= {identity: one.cargo for identity, one in self.came.items()}
        return [
            Recovered(self.installed, self.plan.marks[identity], cargoes[identity])
            for identity, sender in sorted(self.plan.senders.items())
            if sender == self.course.me and identity in cargoes
        ]

    def _is_companion(self, known: Report) -> bool:
        """Whether a process comes from the same configuration, and the control stream ended that alike for both: who
        was cut off from others when it ended may lack what it brought these last, though all are together again."""
        return (known.installed, known.ended_by) == (self.mine.installed, self.mine.ended_by)

    def recovered(self, recovered: Recovered, *, is_regular: bool) -> None:
        """Take what was sent again. In the end of the control stream's configuration it is held, and counts for the
        next attempt alone."""
        if recovered.installed != self.installed:
            return
        self.came[recovered.mark.identity] = recovered
        if is_regular and self.plan is not None:
            self._missing.discard(recovered.mark.identity)

    @property
    def is_complete(self) -> bool:
        return self.plan is not None and not self._missing

    # What comes of it

    @property
    def is_uneven(self) -> bool:
        """Whether an opening has taken effect at some companions, and not at others: it makes views of groups in the
        configuration there, and behind its end here."""
        return len({self._reports[one].opened for one in self.companions}) > 1

    def owed(self) -> list[Owed]:
        """Return what this process still has to deliver, in order."""
        assert self.plan is not None
        course, counts = self.course, dict(self.mine.counts)
        found: dict[CargoIdentity, Owed] = {}
        for identity, mark in self.plan.marks.items():
            sent = course.source.sent.get(mark.source) if mark.originator == course.me else None
            if (
                sent is not None
                and sent.offer.birth == mark.birth
                and course.me in self.receivers(mark)
                and lacks(self.mine, counts, mark)
            ):
                found[identity] = mark.order, mark, mark.birth, sent.offer.cargo
        for identity, one in self.came.items():
            if course.me in self.receivers(one.mark) and lacks(self.mine, counts, one.mark):
                found[identity] = one.mark.order, one.mark, one.mark.birth, one.cargo
        stream = course.branch.stream
        for held in stream.queue if stream is not None else ():
            ordered = held.ordered
            assert ordered is not None
            identity = ordered.cargo.originator, ordered.cargo.source, ordered.birth
            order = ordered.birth, ordered.rank
            found[identity] = order, self.plan.marks.get(identity), ordered.birth, ordered.cargo
        owed = sorted(found.values(), key=lambda one: one[0])
        return [one for one in owed if one[0] > course.branch.delivered]  # all of it, unless something is forged

    def is_before_signal(self, mark: HeldMark) -> bool:
        """Whether a companion has delivered it in the configuration."""
        assert self.plan is not None
        return self.plan.is_before_signal(mark, self.receivers(mark))

    def names(self, mark: HeldMark) -> tuple[str, ...]:
        """Return the groups of a message."""
        for tree in self.course.trees.get(mark.birth, ()):
            if tree.has(mark.entry):
                return tuple(tree.names[place] for place in mark.groups)
        return ()

    @property
    def own_held(self) -> set[tuple[int, int]]:
        """The source numbers and births of this process's cargoes that need not be sent again."""
        assert self.plan is not None
        return {(source, birth) for originator, source, birth in self.plan.marks if originator == self.course.me}
