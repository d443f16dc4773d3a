"""Time, a network that delays, doubles and loses, and sites that fail: where the thesis' protocols run.

A code fragment takes at most φ_P: it begins a little after what it is for, and sends a little after it began, so that a
site may fail between delivering a message and sending it on. What is in `stable` outlives a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random
from typing import Any, NamedTuple

from ordercast.checker.reliability.events import Happening, Kind, Multicasted, Site, SiteHistory

FRAGMENT = 100  # φ_P, in units of time
NETWORK = 1_000  # φ_N
NULLS = 8_000  # δ
END = 400_000


class Copy(NamedTuple):
    """One transmission. `message` is None for requests and for whatever else has no message."""

    number: int
    sender: Site
    kind: str
    message: Multicasted | None
    body: Any = None
    came_at: int = 0


@dataclass(frozen=True, slots=True)
class Climate:
    """How bad the world is."""

    members: int = 5
    messages: int = 30
    loss: float = 0.0  # of a copy, while the network is bad
    doubles: float = 0.0
    failures: int = 0  # of members
    down_max: int = 30_000


class Laboratory:
    def __init__(self, rng: Random, climate: Climate) -> None:
        self.rng, self.climate = rng, climate
        self.now = 0
        self.events: list[Happening] = []
        self.sites: dict[Site, Actor] = {}
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._count = self._copies = 0
        self._bad = _periods(rng) if climate.loss else []

    def at(self, time: int, act: Callable[[], None]) -> None:
        self._count += 1
        heappush(self._queue, (time, self._count, act))

    def run(self, end: int = END) -> None:
        while self._queue and self._queue[0][0] <= end:
            self.now, _, act = heappop(self._queue)
            act()

    def record(self, kind: Kind, site: Site, message: Multicasted | None = None, copy: int = -1, to: Site = "") -> None:
        self.events.append(Happening(self.now, kind, site, message, copy, to))

    def history(self, members: Iterable[Site]) -> SiteHistory:
        return SiteHistory(self.events, tuple(members), NETWORK, END)

    def send(self, sender: Site, to: Site, kind: str, message: Multicasted | None, body: Any) -> None:
        """Send one copy. It is lost while the network is bad and chance will have it, and comes twice now and then."""
        self._copies += 1
        copy = Copy(self._copies, sender, kind, message, body)
        self.record(Kind.SEND, sender, message, copy.number, to)
        is_bad = any(start <= self.now < end for start, end in self._bad)
        if is_bad and self.rng.random() < self.climate.loss:
            return
        for _ in range(1 + (self.rng.random() < self.climate.doubles)):
            self.at(self.now + self.rng.randint(1, NETWORK), lambda: self.sites[to].get(copy))


def _periods(rng: Random) -> list[tuple[int, int]]:
    """Draw when the network is bad."""
    starts = sorted(rng.randrange(0, END * 3 // 4) for _ in range(4))
    return [(start, start + rng.randint(NETWORK, 4 * NULLS)) for start in starts]


@dataclass
class Actor:
    """A site. Whoever is one says what a copy means, and what to do after a failure."""

    world: Laboratory
    name: Site
    stable: dict[str, Any] = field(default_factory=dict)
    lives: int = 0  # failures so far
    is_awake: bool = True
    is_up: bool = True
    _sends_at: int = 0

    # What a protocol has of its own

    def __post_init__(self) -> None:
        """Begin with nothing."""

    def on_copy(self, copy: Copy) -> None:
        raise NotImplementedError

    def on_awake(self) -> None:
        """Begin after a failure; what is not stable is lost."""
        self.recover()

    def on_fail(self) -> None:
        """Forget what is not stable."""

    # What it does it with

    def get(self, copy: Copy) -> None:
        if not self.is_awake:
            return
        self.world.record(Kind.GET, self.name, copy.message, copy.number)
        arrived = copy._replace(came_at=self.world.now)
        self.soon(lambda: self.on_copy(arrived))

    def soon(self, act: Callable[[], None]) -> None:
        """Do something within the first quarter of φ_P."""
        self.after(self.world.rng.randint(0, FRAGMENT // 4), act)

    def after(self, span: int, act: Callable[[], None]) -> None:
        """Do something later, unless the site fails until then."""
        life = self.lives

        def due() -> None:
            if self.lives == life and self.is_awake:
                act()

        self.world.at(self.world.now + span, due)

    def send(self, to: Site, kind: str, message: Multicasted | None = None, body: Any = None) -> None:
        """Send within half of φ_P, behind what was sent before."""
        wanted = self.world.now + self.world.rng.randint(1, FRAGMENT // 2)
        self._sends_at = max(self._sends_at + 1, wanted)
        self.after(self._sends_at - self.world.now, lambda: self.world.send(self.name, to, kind, message, body))

    def send_now(self, to: Site, kind: str, message: Multicasted | None = None, body: Any = None) -> None:
        self.world.send(self.name, to, kind, message, body)

    def deliver(self, message: Multicasted) -> None:
        self.world.record(Kind.DELIVER, self.name, message)

    def recover(self) -> None:
        if not self.is_up:
            self.is_up = True
            self.world.record(Kind.RECOVER, self.name)

    def fail(self) -> None:
        if self.is_awake:
            self.lives += 1
            self.is_awake = self.is_up = False
            self._sends_at = 0
            self.world.record(Kind.FAIL, self.name)
            self.on_fail()

    def awake(self) -> None:
        if not self.is_awake:
            self.is_awake = True
            self.world.record(Kind.AWAKE, self.name)
            self.on_awake()


def fail_now_and_then(world: Laboratory, names: list[Site]) -> None:
    """Draw failures of sites, and when they awake."""
    for _ in range(world.climate.failures):
        site = world.sites[world.rng.choice(names)]
        start = world.rng.randrange(END * 3 // 4)
        world.at(start, site.fail)
        world.at(start + world.rng.randint(1, world.climate.down_max), site.awake)
