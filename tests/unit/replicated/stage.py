"""A group of cores without a network: views, signals and messages are given by hand, in one order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from ordercast.model.events import Reason, Transition, View, ViewId
from ordercast.model.ids import ConfigurationId, Position, ProcessId
from ordercast.replicated.core import SLICE_SIZE, Core
from ordercast.replicated.effects import Changed, Confirm, Effect, Fetch, Freeze, GoOn, Point, Refuse, Release, Send
from ordercast.replicated.machine import Origin, SideState
from ordercast.replicated.quorum import Majority, Rule

ALL = ("a", "b", "c")
EQUAL = Majority(dict.fromkeys(ALL, 1))


class Words:
    """A state that is the list of all commands."""

    def __init__(self) -> None:
        self.words: list[bytes] = []

    def apply(self, command: bytes, origin: Origin) -> bytes:
        self.words.append(command)
        return b"%d" % len(self.words)

    def freeze(self) -> WordsPicture:
        return WordsPicture(tuple(self.words))

    def load(self, pieces: Iterable[bytes]) -> None:
        self.words = list(pieces)


class Bag(Words):
    """The same, of which every side goes on: united are those words that are on any side."""

    def __init__(self) -> None:
        super().__init__()
        self.united: list[tuple[SideState, ...]] = []

    def unite(self, sides: Sequence[SideState]) -> None:
        self.united.append(tuple(sides))
        words = [list(self.words) if side.pieces is None else list(side.pieces) for side in sides]
        self.words = sorted(set().union(*words))


class WordsPicture:
    def __init__(self, words: tuple[bytes, ...]) -> None:
        self._words = words

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        return iter(self._words[start:])


def view_id(number: int) -> ViewId:
    configuration = ConfigurationId(number, ProcessId(1))
    return ViewId(configuration, Position(configuration, 0, 0))


class Stage:
    def __init__(self, *names: str, rule: Rule = EQUAL, slice_size: int = SLICE_SIZE) -> None:
        self.rule = rule
        self.slice_size = slice_size
        self.cores: dict[str, Core] = {}
        self.machines: dict[str, Words] = {}
        self.told: dict[str, list[Effect]] = {}
        self.pictures: dict[tuple[str, Point], Freeze] = {}
        self.queue: deque[tuple[str, bytes]] = deque()  # sent, and not yet delivered
        self.goes_on = True  # GoOn is answered at once
        self._lives = 0
        for name in names:
            self.start(name)

    def start(self, name: str, *, founding: bool = True, structure: str = "") -> None:
        self._lives += 1
        self.machines[name], self.told[name] = Bag() if self.rule.goes_on else Words(), []
        self.cores[name] = Core(
            name,
            self._lives,
            self.machines[name],
            self.rule,
            founding=founding,
            slice_size=self.slice_size,
            structure=structure,
        )

    def view(self, number: int, *members: str, at: Iterable[str] = ()) -> None:
        """Installed by all its members, or by those of them in `at`."""
        self.queue.clear()
        for name in sorted(at or members):
            news = View("g", tuple(sorted(members)), (), Reason.NETWORK, (), view_id(number))
            self.carry_out(name, self.cores[name].on_view(news))

    def signal(self, number: int, *names: str) -> None:
        for name in names:
            self.carry_out(name, self.cores[name].on_transition(Transition("g", names, view_id(number))))

    def deliver(self, *names: str, count: int | None = None) -> None:
        """What is in the queue, to these."""
        for _ in range(len(self.queue) if count is None else count):
            sender, payload = self.queue.popleft()
            for name in names:
                self.carry_out(name, self.cores[name].on_messages(sender, [payload]))

    def settle(self, *names: str) -> None:
        while self.queue:
            self.deliver(*names)

    def cut_off(self, *names: str) -> None:
        for name in names:
            self.carry_out(name, self.cores[name].cut_off(name))

    def submit(self, name: str, command: bytes) -> int:
        request, effects = self.cores[name].submit(command)
        self.carry_out(name, effects)
        return request

    def carry_out(self, name: str, effects: list[Effect]) -> None:
        self.told[name] += effects
        for effect in effects:
            if isinstance(effect, Send):
                self.queue += [(name, payload) for payload in effect.payloads]
            elif isinstance(effect, Freeze):
                self.pictures[name, effect.point] = effect
            elif isinstance(effect, Release):
                del self.pictures[name, effect.point]
        self.cores[name].check_invariants()
        if self.goes_on and any(isinstance(effect, GoOn) for effect in effects):
            self.carry_out(name, self.cores[name].go_on())

    def transfer(self, name: str) -> None:
        """Bring what was asked for last, from the first donor."""
        fetch = self.fetches(name)[-1]
        picture = self.pictures[fetch.donors[0].name, fetch.point]
        self.carry_out(name, self.cores[name].loaded(fetch.point, picture.preface, picture.frozen.pieces()))

    # What was told

    def fetches(self, name: str) -> list[Fetch]:
        return [effect for effect in self.told[name] if isinstance(effect, Fetch)]

    def confirmed(self, name: str) -> list[tuple[int, int]]:
        return [(effect.request, effect.position) for effect in self.told[name] if isinstance(effect, Confirm)]

    def refused(self, name: str) -> list[Refuse]:
        return [effect for effect in self.told[name] if isinstance(effect, Refuse)]

    def last(self, name: str) -> Changed:
        return [effect for effect in self.told[name] if isinstance(effect, Changed)][-1]

    def words(self, *names: str) -> list[list[bytes]]:
        return [self.machines[name].words for name in names]


def begun(rule: Rule = EQUAL) -> Stage:
    """Three replicas in a primary component, with one command applied."""
    stage = Stage(*ALL, rule=rule)
    stage.view(1, *ALL)
    stage.settle(*ALL)
    stage.submit("a", b"one")
    stage.settle(*ALL)
    return stage
