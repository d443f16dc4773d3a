"""The index of a history: fed once, event by event, and read by every checker.

Each message gets a number, in the order of submission. The columns of the index say who it is, which service it asked
for, which message of its sender came before it, and what its submitter had delivered when it was submitted. A delivery
then costs one dictionary lookup, which at the same time compares identity, digest, service and size with what was
submitted; what does not fit is kept as an `Oddity` for the checkers to name.

A history that contradicts itself, or lacks events in its middle, has a `fault`: then nothing can be said of any
promise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ordercast.checker.life import SLOT_BITS, Life, Run, Stay, place_from
from ordercast.checker.linear import extensions_of
from ordercast.checker.matters import Matter
from ordercast.model.configuration import ConfigurationKind
from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, ProcessId, process_text
from ordercast.model.notes import Opened
from ordercast.model.promises import Promise, Promises
from ordercast.model.service import Service
from ordercast.trace.records import (
    UNSTAMPED,
    Crashed,
    DeliveredBatch,
    DeliveredMessage,
    Departed,
    Ended,
    Event,
    Gap,
    Healed,
    Installed,
    MessageId,
    Noted,
    Saturated,
    Started,
    StorageTurned,
    Submitted,
    SubmittedMessage,
    Unrecorded,
    Wanted,
)

NONE = -1  # no message
NEVER = 1 << 62  # later than any event
EPOCH_BITS = 35  # below the epoch in the number of a position, on engines with epochs


@dataclass(frozen=True, slots=True)
class Oddity:
    """A delivery that is not what was submitted. `number` is NONE when the bytes carry no identity; `expected` is None
    when nothing of that identity had been submitted by then."""

    process: ProcessId
    view: ConfigurationId
    delivered: DeliveredMessage
    number: int
    expected: SubmittedMessage | None


Mark = tuple[int, int]  # index of a stay in its life, and how much had been delivered in it


@dataclass(slots=True)
class Window:
    """A time of saturation: where each life stood when it began and ended."""

    senders: tuple[ProcessId, ...]
    begins: dict[ProcessId, Mark]
    ends: dict[ProcessId, Mark] | None = None


@dataclass(slots=True)
class Columns:
    """What is known of each message, by number."""

    submissions: list[SubmittedMessage] = field(default_factory=list)
    services: list[int] = field(default_factory=list)
    streams: list[int] = field(default_factory=list)  # which sender of which process, as a small number
    previous: list[int] = field(default_factory=list)  # the message of that sender before it, among fifo and better
    seen_homes: list[ConfigurationId] = field(default_factory=list)  # where the submitter had delivered last by then
    seen_counts: list[int] = field(default_factory=list)  # and how many there


@dataclass(frozen=True, slots=True)
class Bound:
    """Where a message is to go, if not to all; known of engines that prune."""

    destinations: tuple[str, ...]
    submitted: int  # the number of the event


@dataclass(frozen=True, slots=True)
class Placements:
    """Where each delivered message stands, by its first delivery. Origin and place are its position in the order; its
    home is the regular configuration in which, or behind which, it was delivered. What the one says of the other the
    engine alone knows."""

    origins: Mapping[int, ConfigurationId]
    places: Mapping[int, int]
    homes: Mapping[int, ConfigurationId]


class History:
    def __init__(self) -> None:
        self.columns = Columns()
        self.oddities: list[Oddity] = []
        self.windows: list[Window] = []
        self.healed: Healed | None = None
        self.ended: Ended | None = None
        self.gaps: list[Unrecorded] = []
        self.unstamped: dict[ProcessId, DeliveredMessage] = {}  # of each that sends without a stamp, what came first
        self.service_min: int = max(Service)
        self.now = 0  # events so far
        self.prunes = False  # a message reaches only those who want it
        self.is_by_groups = False  # the order is one among those who share groups, not of all messages
        self.shares_views = True  # a message is delivered in one configuration, or in the one that ends it
        self.early: frozenset[int] = frozenset()  # services whose messages may come before their place in the order
        self.bound: dict[int, Bound] = {}  # of messages that are not for all, where nothing else is known
        self.last_delivered: dict[int, int] = {}  # by which event a message was last delivered, where that matters
        self.matters: set[Matter] = set()  # what others counted in messages that are not here (`matters.py`)
        self._lives: dict[ProcessId, Life] = {}
        self._exact: dict[tuple[MessageId | None, int, int, int], int] = {}  # submissions, field by field
        self._numbers: dict[MessageId, int] = {}
        self._streams: dict[tuple[ProcessId, int], int] = {}
        self._ids: dict[ConfigurationId, ConfigurationId] = {}  # one object for equal ones, so that `is` compares them
        self._last_of_stream: dict[int, int] = {}
        self._fault: str | None = None
        self._placements: Placements | None = None
        self._homes: dict[int, set[ConfigurationId]] = {}
        self._epochs: dict[int, set[tuple[ConfigurationId, int]]] = {}
        self._homes_at = NONE  # the event up to which these two are known
        self._handlers: dict[type[Event], Callable[[Any], None]] = {
            Started: self._on_started,
            Submitted: self._on_submitted,
            DeliveredBatch: self._on_delivered,
            Installed: self._on_installed,
            Crashed: self._on_crashed,
            Departed: self._on_departed,
            Noted: self._on_noted,
            Healed: self._on_healed,
            Saturated: self._on_saturated,
            Ended: self._on_ended,
            Unrecorded: self._on_unrecorded,
            StorageTurned: self._on_storage_turned,
            Wanted: self._on_wanted,
        }

    def observe(self, event: Event) -> None:
        if self.ended is not None:
            self.add_fault("there are events after the end of the record")
        self.now += 1
        self._handlers[type(event)](event)

    # What the checkers ask.

    def lives(self) -> list[Life]:
        """In the order in which the processes first appear."""
        return list(self._lives.values())

    def life(self, process: ProcessId) -> Life | None:
        return self._lives.get(process)

    def running(self) -> list[Life]:
        return [life for life in self._lives.values() if life.is_running]

    @property
    def is_complete(self) -> bool:
        return self.ended is not None and self.ended.complete

    def lacks(self, process: ProcessId, *gaps: Gap) -> bool:
        """One of these is missing of this process."""
        return any(gap.process == process and gap.gap in gaps for gap in self.gaps)

    def identity(self, number: int) -> MessageId:
        return self.columns.submissions[number].message

    def was_submitted(self, number: int) -> bool:
        return self.columns.submissions[number] in self._exact

    def at_least(self, service: Service, numbers: list[int]) -> list[int]:
        """Return the messages that asked for this service or a stronger one; the same list when all did."""
        if self.service_min >= service:
            return numbers
        services = self.columns.services
        return [number for number in numbers if services[number] >= service]

    def ordered(self, numbers: list[int]) -> list[int]:
        """Return the messages that are delivered at their place in the order; the same list when all are."""
        if not self.early:
            return numbers
        services = self.columns.services
        return [number for number in numbers if services[number] not in self.early]

    def passed(self, life: Life, number: int) -> ConfigurationId | None:
        """Return the first regular configuration with which a process went past a delivered message: a later one than
        the message's, or, where those who are cut off may be in different ones, one at a higher position."""
        placements = self.placements()
        if self.shares_views:
            return life.regular_after(placements.homes[number])
        return life.regular_past(placements.origins[number], placements.places[number])

    def placements(self) -> Placements:
        """Computed when asked for, and kept until the next delivery."""
        if self._placements is None:
            origins: dict[int, ConfigurationId] = {}
            places: dict[int, int] = {}
            homes: dict[int, ConfigurationId] = {}
            for life in reversed(self.lives()):  # so that the first to appear has the last word
                for stay, run in life.runs():
                    origins.update(dict.fromkeys(run.numbers, run.origin))
                    places.update(zip(run.numbers, run.places, strict=True))
                    homes.update(dict.fromkeys(run.numbers, stay.home))
            if self.is_by_groups:
                origins, places = homes, self._linear_places(homes)
            self._placements = Placements(origins, places, homes)
        return self._placements

    def _linear_places(self, homes: Mapping[int, ConfigurationId]) -> dict[int, int]:
        """Where positions are only names, places are those of an order that is found from the deliveries."""
        extensions = extensions_of(self)
        return {number: extensions[home].places.get(number, 0) for number, home in homes.items()}

    def epochs_of(self, number: int) -> set[tuple[ConfigurationId, int]]:
        """Return the configurations in which a message was delivered, each with the epoch that its position names."""
        self._find_homes()
        return self._epochs.get(number, set())

    def homes_of_all(self) -> Mapping[int, set[ConfigurationId]]:
        """Return for each message the configurations in which it was delivered."""
        self._find_homes()
        return self._homes

    def is_again(self, number: int) -> bool:
        """Whether a message was ordered again in a later configuration, where nobody knew that it had a place."""
        return self.is_by_groups and len(self.homes_of_all().get(number, ())) > 1

    def _find_homes(self) -> None:
        if self._homes_at == self.now:
            return
        self._homes_at, self._homes, self._epochs = self.now, {}, {}
        for life in self.lives():
            for stay, run in life.runs():
                for number, place in zip(run.numbers, run.places, strict=True):
                    self._homes.setdefault(number, set()).add(stay.home)
                    self._epochs.setdefault(number, set()).add((stay.home, place >> SLOT_BITS + EPOCH_BITS))

    # What makes a history unfit to be judged.

    def add_fault(self, text: str) -> None:
        if self._fault is None:
            self._fault = text

    def fault(self) -> str | None:
        if self._fault is not None:
            return self._fault
        if not self._lives:
            return "the history is empty"
        for life in self._lives.values():
            if life.started is None:
                return f"{process_text(life.process)} has events but never started"
        return self._contradiction()

    def _contradiction(self) -> str | None:
        known: Promises | None = None
        for life in self._lives.values():
            assert life.started is not None
            if known is not None and life.started.promises != known:
                return f"{process_text(life.process)} promises something else than those that started before it"
            known = life.started.promises
        return None

    # Events.

    def _life(self, process: ProcessId) -> Life:
        life = self._lives.get(process)
        if life is None:
            life = self._lives[process] = Life(process)
        elif life.crashed or life.departed:
            self.add_fault(f"{process_text(process)} has events after it had gone")
        return life

    def _on_started(self, event: Started) -> None:
        if event.process in self._lives:
            self.add_fault(f"{process_text(event.process)} started after events of its own")
        self._life(event.process).started = event
        self.prunes = event.promises.prunes
        self.shares_views = event.promises.shares_views
        self.is_by_groups = Promise.TOTAL_ORDER not in event.promises.promises and (
            Promise.MULTIPLE_GROUP_ORDER in event.promises.promises
        )
        self.early = frozenset(event.promises.early)

    def _on_submitted(self, event: Submitted) -> None:
        life = self._life(event.process)
        for submission in event.messages:
            number = self._submit(submission, life)
            life.submitted.append(number)
            if self.prunes and event.destinations:
                self.bound[number] = Bound(event.destinations, self.now)

    def _submit(self, submission: SubmittedMessage, life: Life) -> int:
        message, columns = submission.message, self.columns
        if message.process != life.process:
            self.add_fault(f"{process_text(life.process)} submitted a message stamped by another process")
        number = self._numbers.get(message)
        if number is None:
            number = self._add_message(submission)
        elif self.was_submitted(number):
            self.add_fault(f"{process_text(life.process)} submitted two messages with one identity")
        columns.submissions[number] = submission
        columns.services[number] = submission.service
        self.service_min = min(self.service_min, submission.service)
        columns.seen_homes[number] = life.home
        columns.seen_counts[number] = life.home_count
        if submission.service >= Service.FIFO:
            stream = columns.streams[number]
            columns.previous[number] = self._last_of_stream.get(stream, NONE)
            self._last_of_stream[stream] = number
        self._exact[submission] = number
        return number

    def _add_message(self, submission: SubmittedMessage) -> int:
        columns, message = self.columns, submission.message
        number = self._numbers[message] = len(columns.submissions)
        columns.submissions.append(submission)
        columns.services.append(submission.service)
        columns.streams.append(self._streams.setdefault((message.process, message.sender), len(self._streams)))
        columns.previous.append(NONE)
        columns.seen_homes.append(NO_CONFIGURATION)
        columns.seen_counts.append(0)
        return number

    def _on_delivered(self, event: DeliveredBatch) -> None:
        process, view, origin, messages = event.process, event.configuration, event.origin, event.messages
        life = self._lives.get(process)
        if life is None or life.crashed or life.departed:
            life = self._life(process)
        exact = self._exact
        try:
            numbers = [exact[delivered[:4]] for delivered in messages]
            places = [(delivered[4] << SLOT_BITS) + delivered[5] for delivered in messages]
        except KeyError:
            numbers, places = self._numbers_of_odd(event)
        if life.view != view:
            life.stays[-1].misnamed.append(view)
        run = life.run
        if run is None or run.origin != origin:
            run = self._run_of(life, origin)
        run.numbers += numbers
        run.places += places
        life.home_count += len(numbers)
        life.delivered.update(numbers)
        life.delivered_count += len(numbers)
        if self.prunes:
            self.last_delivered.update(dict.fromkeys(numbers, self.now))
        self._placements = None

    def _run_of(self, life: Life, origin: ConfigurationId) -> Run:
        stay = life.stays[-1]
        if life.home != stay.home:
            life.home, life.home_count = stay.home, 0
        life.run = Run(self._ids.setdefault(origin, origin))
        stay.runs.append(life.run)
        return life.run

    def _numbers_of_odd(self, event: DeliveredBatch) -> tuple[list[int], list[int]]:
        """The same as for a batch in which all is well, and an oddity for each delivery that is not. What carries no
        identity has no number: it can be judged by its bytes alone."""
        numbers, places = [], []
        for delivered in event.messages:
            number = self._exact.get(delivered[:4])
            if number is None:
                number = self._number_of_odd(event, delivered)
            if number != NONE:
                numbers.append(number)
                places.append(place_from(delivered.number, delivered.slot))
        return numbers, places

    def _number_of_odd(self, event: DeliveredBatch, delivered: DeliveredMessage) -> int:
        number, expected = NONE, None
        if delivered.message is not None and delivered.message.counter == UNSTAMPED:
            self.unstamped.setdefault(delivered.message.process, delivered)
            return NONE
        if delivered.message is not None:
            known = self._numbers.get(delivered.message)
            if known is None:
                stand_in = SubmittedMessage(delivered.message, delivered.digest, delivered.service, delivered.size)
                known = self._add_message(stand_in)
            elif self.was_submitted(known):
                expected = self.columns.submissions[known]
            number = known
        self.oddities.append(Oddity(event.process, event.configuration, delivered, number, expected))
        return number

    def _on_installed(self, event: Installed) -> None:
        life, view = self._life(event.process), event.configuration
        before = life.stays[-1]
        if view.kind is ConfigurationKind.REGULAR:
            home = self._ids.setdefault(view.id, view.id)
        else:
            home = before.home if before.is_regular else NO_CONFIGURATION
        life.stays.append(Stay(view, home, is_stored=life.has_storage))
        life.view, life.run = event.configuration.id, None
        life.submitted_before_view = len(life.submitted)

    def _on_crashed(self, event: Crashed) -> None:
        life = self._lives.get(event.process)
        if life is None:
            life = self._life(event.process)
        life.crashed = not life.departed  # the end of a process that has left is no failure

    def _on_departed(self, event: Departed) -> None:
        self._life(event.process).departed = True

    def _on_noted(self, event: Noted) -> None:
        """Notes explain; nothing is judged by them but what a process is owed where the engine prunes by epochs."""
        if isinstance(event.note, Opened):
            self._life(event.process).opened[event.note.configuration, event.note.birth] = frozenset(event.note.groups)

    def _on_storage_turned(self, event: StorageTurned) -> None:
        life = self._life(event.process)
        life.has_storage = event.in_use
        if event.in_use:
            for stay in life.stays:
                stay.is_stored = True

    def _on_wanted(self, event: Wanted) -> None:
        wanted = self._life(event.process).wanted
        for destination in event.destinations:
            times = wanted.setdefault(destination, [])
            if event.begins:
                times.append((self.now, NEVER))
            elif times and times[-1][1] == NEVER:  # else a wish is given up that was never answered
                times[-1] = times[-1][0], self.now

    def _on_healed(self, event: Healed) -> None:
        self.healed = event
        for process in event.alive:
            life = self._lives.get(process)
            if life is None or not life.is_running:
                self.add_fault(f"{process_text(process)} is called alive, but does not run")

    def _on_saturated(self, event: Saturated) -> None:
        marks = {process: (len(life.stays) - 1, life.stays[-1].length) for process, life in self._lives.items()}
        if event.begins:
            self.windows.append(Window(event.senders, marks))
        elif self.windows and self.windows[-1].ends is None:
            self.windows[-1].ends = marks
        else:
            self.add_fault("a time of saturation ends that never began")

    def _on_ended(self, event: Ended) -> None:
        self.ended = event

    def _on_unrecorded(self, event: Unrecorded) -> None:
        self.gaps.append(event)
        if event.gap is Gap.EVENTS:
            self.add_fault(event.why)
