"""What this process's users have sent: numbered, kept until it is stable, and sent again when nobody has it.

The entry rule keeps the order of one process's messages over all groups: the next cargo enters at its own entry, or at
the highest entry above it of those that were sent and are not known to be stable; and while something is sent and not
ordered at another entry, or in another birth, it waits. What goes everywhere goes by the control stream, which is above
all entries: it waits until everything sent is ordered, and what follows waits until it is in effect here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ordercast.model.errors import UsageError
from ordercast.model.ids import ProcessId
from ordercast.model.inputs import Submission, Submissions
from ordercast.model.service import Service
from ordercast.order.outbox import OVERHEAD
from ordercast.order.tree.blocks import PAYLOADS_MAX, Cargo, GivenPlace, Offer
from ordercast.order.tree.forest import Forest, Tree
from ordercast.order.tree.promised import SERVICES
from ordercast.wire.header import Part

LENGTH_SIZE = 4  # before each payload
EntryKey = tuple[int, ProcessId]  # a birth, and one of its entries


def size_of(submissions: Sequence[Submission | Submissions], message_size_max: int) -> int:
    """Return the room that submissions take. UsageError for what the engine does not take at all."""
    size = 0
    for one in submissions:
        if one.service not in SERVICES:
            raise UsageError(f"the engine does not serve {Service(one.service).name} messages")
        payloads = (one.data,) if isinstance(one, Submission) else one.payloads
        if any(len(payload) > message_size_max for payload in payloads):
            raise UsageError(f"a message is larger than {message_size_max} bytes")
        size += sum(len(payload) + OVERHEAD for payload in payloads)
    return size


@dataclass(slots=True)
class SourceWish:
    """Messages in a row of one sender that go to the same destinations, as they were submitted."""

    destinations: tuple[str, ...]
    sender: int
    service: int
    payloads: tuple[bytes, ...]
    part: int = Part.WHOLE
    source: int = 0  # its number, once it was sent
    whole: SourceWish | None = None  # the message that it is a part of
    is_given_up: bool = False  # its parts: it goes another way
    birth: int = 0  # of the tree that its first part went to
    is_again: bool = False  # it may have been ordered where its entry was cut off

    @property
    def size(self) -> int:
        return sum(map(len, self.payloads))

    def mark_again(self) -> None:
        self.is_again = True
        if self.whole is not None:
            self.whole.is_again = True

    @property
    def cost(self) -> int:
        """What it takes of the room; of parts the last one pays for all."""
        if self.whole is not None:
            return self.whole.cost if self.part == Part.LAST else 0
        return self.size + OVERHEAD * len(self.payloads)


@dataclass(slots=True)
class Sent:
    """A cargo that is not known to be stable."""

    wish: SourceWish
    offer: Offer
    place: GivenPlace | None = None  # once it is ordered
    is_stable: bool = False
    is_outside: bool = False  # this process is not owed it


class SourceTurn(NamedTuple):
    """What to do next."""

    wish: SourceWish
    tree: Tree | None = None  # None: by the control stream
    entry: ProcessId | None = None


@dataclass(slots=True)
class TreeSource:
    me: ProcessId
    whole_max: int  # bytes of messages in one cargo
    window: int
    waiting: deque[SourceWish] = field(default_factory=deque)
    sent: dict[int, Sent] = field(default_factory=dict)  # by source number, ascending
    refused: list[SourceWish] = field(default_factory=list)
    begun: list[SourceWish] = field(default_factory=list)  # parts of a large message whose last part is not released
    flying: list[SourceWish] = field(default_factory=list)  # submitted to the control stream, and not ordered
    is_stale: bool = False  # these were submitted in a configuration that has ended: they have no effect any more
    in_control: int = 0  # submitted to the control stream, and not in effect here
    size: int = 0  # what is kept, overhead included
    placed: list[Sent] = field(default_factory=list)  # whose places are final, of what this process is not owed
    avoided: set[ProcessId] = field(default_factory=set)  # to whom nothing passes on links: what enters there goes by
    # the control stream
    safe: int = 0  # safe messages among what is sent
    entry_raised: int = 0
    entry_waited: int = 0
    _shut: tuple[int, ProcessId] | None = None  # birth and entry that refused something
    _number: int = 0
    _unordered: int = 0
    _unordered_size: int = 0
    _used: dict[EntryKey, int] = field(default_factory=dict)  # how much of what is sent to groups is where
    _asked: dict[EntryKey, int] = field(default_factory=dict)  # likewise, of what is not ordered

    @property
    def is_empty(self) -> bool:
        return not self.waiting and not self.sent and not self.refused and not self.in_control

    @property
    def unordered(self) -> Iterator[Sent]:
        """What is sent and not ordered, as far as is known here."""
        return (one for one in self.sent.values() if one.place is None)

    def add(self, submissions: Sequence[Submission | Submissions]) -> None:
        for one in submissions:
            payloads = (one.data,) if isinstance(one, Submission) else tuple(one.payloads)
            for wish in self._wishes(one, payloads):
                self.waiting.append(wish)
                self.size += wish.cost

    def _wishes(self, one: Submission | Submissions, payloads: tuple[bytes, ...]) -> Iterator[SourceWish]:
        """Cut into cargoes: messages in a row, as many as fit."""
        row: list[bytes] = []
        size = 0
        for payload in payloads:
            if row and (size + len(payload) + LENGTH_SIZE > self.whole_max or len(row) == PAYLOADS_MAX):
                yield SourceWish(one.destinations, one.sender, int(one.service), tuple(row))
                row, size = [], 0
            row.append(payload)
            size += len(payload) + LENGTH_SIZE
        if row:
            yield SourceWish(one.destinations, one.sender, int(one.service), tuple(row))

    # What is sent next

    def next(self, forest: Forest) -> SourceTurn | None:
        """Return what may be sent now; the caller says `offered` or `submitted`."""
        if not self.waiting or self.refused or self.is_stale:
            return None
        wish = self.waiting[0]
        if not wish.destinations:
            return None if self._unordered else SourceTurn(wish)
        if self.in_control or self._unordered_size >= self.window:
            return None
        trees = forest.of_groups(wish.destinations)
        if len(trees) > 1:
            return None if self._unordered else SourceTurn(self._in_one_piece(wish))
        tree = trees[0] if trees else forest.of(self.me)
        if tree is None or (self.sent and not trees):
            return None  # what is for nobody enters here, and must not overtake what has not come back
        if self._shut is not None and tree.birth == self._shut[0] and tree.has(self._shut[1]):
            return None  # it has closed, and the next one is not open here
        if wish.whole is not None and wish.part != Part.FIRST and wish.whole.birth != tree.birth:
            self._start_anew(wish)
            return None
        wish = self._cut(wish)
        entry = self._entry(wish, tree) if trees else self.me
        if entry in self.avoided:
            return None if self._unordered else SourceTurn(self._in_one_piece(wish))
        if self._is_asked_elsewhere((tree.birth, entry)):
            self.entry_waited += 1
            return None
        return SourceTurn(wish, tree, entry)

    def _is_asked_elsewhere(self, entry: EntryKey) -> bool:
        """Whether something is sent and not ordered at another entry than this one."""
        return bool(self._asked.keys() - {entry})

    def _start_anew(self, wish: SourceWish) -> None:
        """All receivers of a large message must have all its parts: its tree has changed, so it begins once more, when
        the parts that were ordered are stable."""
        if not any(one.wish.whole is wish.whole for one in self.sent.values()):
            self.waiting.extendleft(reversed(self.begun))
            self.begun = []

    def _cut(self, wish: SourceWish) -> SourceWish:
        """Cut a message that does not fit into parts, the first of which is returned. They were sent before if it has a
        number, that of its last part, and are numbered as they were: what follows keeps its numbers too, and with lower
        ones than a message before it would be dropped."""
        if wish.whole is not None or wish.size + LENGTH_SIZE <= self.whole_max or len(wish.payloads) > 1:
            return wish
        self.waiting.popleft()
        (payload,), step = wish.payloads, self.whole_max - LENGTH_SIZE
        pieces = [payload[at : at + step] for at in range(0, len(payload), step)]
        kinds = [Part.FIRST, *[Part.MIDDLE] * (len(pieces) - 2), Part.LAST]
        numbers = range(wish.source - len(pieces) + 1, wish.source + 1) if wish.source else [0] * len(pieces)
        parts = [
            replace(wish, payloads=(piece,), part=kind, whole=wish, source=number)
            for piece, kind, number in zip(pieces, kinds, numbers, strict=True)
        ]
        self.waiting.extendleft(reversed(parts))
        return parts[0]

    def _in_one_piece(self, wish: SourceWish) -> SourceWish:
        """Take back the parts of a message that has to go another way, which takes it whole."""
        whole = wish.whole
        if whole is None:
            return wish
        whole.is_given_up = True
        last = wish
        while self.waiting and self.waiting[0].whole is whole:
            last = self.waiting.popleft()
        self.begun = []
        again = replace(whole, is_given_up=False, source=last.source)  # whoever has delivered it knows that number
        self.waiting.appendleft(again)
        return again

    def _entry(self, wish: SourceWish, tree: Tree) -> ProcessId:
        own = entry = tree.entry(tree.places(wish.destinations), self.me)
        for birth, used in self._used:
            if birth == tree.birth and tree.has(used) and tree.is_above(used, entry):
                entry = used
        self.entry_raised += entry != own
        return entry

    def offered(self, turn: SourceTurn, epoch: int) -> Offer:
        """The first that waits is sent to its entry."""
        wish, tree, entry = turn
        assert tree is not None and entry is not None and self.waiting[0] is wish
        self.waiting.popleft()
        if wish.whole is not None and wish.part == Part.FIRST:
            wish.whole.birth = tree.birth
        if not wish.source:
            self._number += 1
            wish.source = self._number
        groups = tree.places(wish.destinations)
        head = self.me, wish.source, epoch, wish.sender, wish.service, wish.part
        cargo = Cargo(*head, groups, wish.payloads, wish.is_again)
        offer = Offer(tree.birth, entry, cargo)
        is_outside = bool(groups) and self.me not in tree.receivers(groups)  # what is for nobody comes back
        self.sent[wish.source] = Sent(wish, offer, is_outside=is_outside)
        self._unordered += 1
        self._unordered_size += wish.size
        self.safe += wish.service == Service.SAFE
        at = tree.birth, entry
        self._asked[at] = self._asked.get(at, 0) + 1
        if groups:
            self._used[at] = self._used.get(at, 0) + 1
        return offer

    def submitted(self, turn: SourceTurn) -> None:
        """The first that waits went to the control stream, message by message."""
        self.waiting.popleft()
        self.in_control += len(turn.wish.payloads)
        self.flying += (replace(turn.wish, payloads=(payload,)) for payload in turn.wish.payloads)

    def came_back(self, sender: int, *, has_effect: bool) -> None:
        """The control stream has ordered what a sender here submitted first; in a later configuration than it was
        submitted in, without effect: when all of that is back, it is sent again."""
        index = next(index for index, wish in enumerate(self.flying) if wish.sender == sender and not wish.is_given_up)
        if has_effect:
            del self.flying[index]
            return
        self.flying[index].is_given_up = True
        if all(wish.is_given_up for wish in self.flying):
            again, self.flying = self.flying, []
            self.in_control -= len(again)
            self.is_stale = False
            self.waiting.extendleft(reversed(_rejoined(again)))

    def in_effect(self, size: int) -> None:
        """A message of so many bytes that this process has submitted to the control stream is in effect here."""
        self.in_control -= 1
        self.size -= size + OVERHEAD

    # Answers

    def ordered(self, place: GivenPlace) -> bool:
        """Hear the place of a cargo; False when it was known."""
        sent = self.sent.get(place.source)
        if sent is None or sent.place is not None:
            return False
        sent.place = place
        self._answered(sent)
        return True

    def _answered(self, sent: Sent) -> None:
        """An entry has answered; the last answer may be a place, which comes another way than a refusal."""
        self._unordered -= 1
        self._unordered_size -= sent.wish.size
        _take_one(self._asked, sent)
        if self.refused and not self._unordered:
            self.waiting.extendleft(reversed(self.refused))
            self.refused = []

    def refuse(self, source: int) -> bool:
        """Hear that a cargo came too late; all refused ones are sent anew, in order, when everything is answered."""
        sent = self.sent.get(source)
        if sent is None or sent.place is not None:
            return False
        self._drop(sent)
        self._shut = sent.offer.birth, sent.offer.entry
        self.refused.append(sent.wish)
        self._answered(sent)
        return True

    def stable(self, source: int) -> Sent | None:
        """Hear that a cargo is stable: what is stable is released, in order. Return the cargo, if it was kept."""
        sent = self.sent.get(source)
        if sent is None or sent.place is None:
            return None
        sent.is_stable = True
        while self.sent and (first := next(iter(self.sent.values()))).is_stable:
            self._release(first)
        return sent

    def _drop(self, sent: Sent) -> None:
        del self.sent[sent.wish.source]
        self.safe -= sent.wish.service == Service.SAFE
        if sent.offer.cargo.groups:
            _take_one(self._used, sent)

    def _release(self, sent: Sent) -> None:
        wish = sent.wish
        self._drop(sent)
        if wish.whole is not None and wish.part != Part.LAST:
            if not wish.whole.is_given_up:
                self.begun.append(wish)
            return
        self.size -= wish.cost
        self.begun.clear()
        if sent.is_outside:
            self.placed.append(sent)

    # The end of a configuration

    def start_over(self, held: set[tuple[int, int]], along: Collection[ProcessId] | None) -> tuple[int, int]:
        """Everything that somebody holds, by source number and birth, was delivered; the rest is sent again, in order.
        Return how many cargoes and how many large messages that are. `along`: who comes along, if the configuration
        has ended. Nobody here knows whether others have ordered what was sent to them."""
        again: list[SourceWish] = []
        for sent in list(self.sent.values()):
            if sent.place is not None or (sent.wish.source, sent.offer.birth) in held:
                self._release(sent)
            else:
                again.append(sent.wish)
                if along is not None and sent.offer.entry not in along:
                    sent.wish.mark_again()
        self.sent, self._shut, self._used, self._asked = {}, None, {}, {}
        self._unordered = self._unordered_size = self.safe = 0
        cut = 0
        wishes = sorted([*again, *self.refused], key=lambda wish: wish.source)  # answers may have been on their way
        if self.begun:
            wishes = [*self.begun, *wishes]
            cut, self.begun = 1, []
        self.refused = []
        self.waiting.extendleft(reversed(wishes))
        self.is_stale = bool(self.flying) and (self.is_stale or along is not None)
        if along is not None:
            self.avoided = set()
        return len(again), cut


def _rejoined(wishes: Iterable[SourceWish]) -> list[SourceWish]:
    """Return what went message by message. Messages that have had one number before have one again: whoever has
    delivered the first of them with it would drop the others."""
    found: list[SourceWish] = []
    for wish in wishes:
        if found and wish.source and found[-1].source == wish.source:
            found[-1].payloads += wish.payloads
        else:
            found.append(replace(wish, is_given_up=False))
    return found


def _take_one(counts: dict[EntryKey, int], sent: Sent) -> None:
    at = sent.offer.birth, sent.offer.entry
    counts[at] -= 1
    if not counts[at]:
        del counts[at]
