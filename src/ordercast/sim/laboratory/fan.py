"""Protocols 0 to 3: a source that sends to each member itself. (Thesis, 6.4)

One source numbers its messages. Members deliver what comes (0), in the order of numbers (1), ask for what is missing
(2), and after a failure for all that they have missed (3). Nulls of the source have numbers, and are not delivered.
"""

from __future__ import annotations

from functools import partial

from ordercast.checker.reliability.events import Kind, Multicasted, Site
from ordercast.sim.laboratory.world import END, NETWORK, NULLS, Actor, Copy, Laboratory, fail_now_and_then

DATA, NULL, REQUEST = "data", "null", "request"
SOURCE = "s"


class FanSource(Actor):
    """The source, which never fails (A1)."""

    has_nulls = False

    def begin(self, members: list[Site]) -> None:
        self.members = members
        self.log: list[str] = []  # what was sent: a kind for each number
        self._spoke_at = 0
        for time in sorted(self.world.rng.randrange(END * 3 // 4) for _ in range(self.world.climate.messages)):
            self.world.at(time, partial(self._multicast, DATA))
        if self.has_nulls:
            self.after(NULLS, self._speak_if_silent)

    def _multicast(self, kind: str) -> None:
        self.log.append(kind)
        self._spoke_at = self.world.now
        number = len(self.log)
        for member in self.members:
            self._send(member, number)
        if kind == DATA:
            self.world.record(Kind.MULTICAST, self.name, Multicasted(self.name, number))

    def _send(self, member: Site, number: int) -> None:
        kind = self.log[number - 1]
        self.send_now(member, kind, Multicasted(self.name, number) if kind == DATA else None, number)

    def _speak_if_silent(self) -> None:
        if self.world.now - self._spoke_at >= NULLS:
            self._multicast(NULL)
        self.after(self._spoke_at + NULLS - self.world.now, self._speak_if_silent)

    def on_copy(self, copy: Copy) -> None:
        for number in copy.body:
            self._send(copy.sender, number)


class Protocol0(Actor):
    """Deliver on receipt."""

    source_class: type[FanSource] = FanSource

    def on_copy(self, copy: Copy) -> None:
        if copy.message is not None:
            self.deliver(copy.message)


class Protocol1(Protocol0):
    """Deliver by number. L, the last number delivered, is stable; P, what came early, is not."""

    def __post_init__(self) -> None:
        self.stable["last"] = 0
        self._early: dict[int, Multicasted | None] = {}
        self._awoke_at = 0

    def on_fail(self) -> None:
        self._early = {}

    def on_awake(self) -> None:
        self._awoke_at = self.world.now

    def on_copy(self, copy: Copy) -> None:
        if self.is_up:
            self._take(copy)
        else:
            self._recover_by(copy)

    def _recover_by(self, copy: Copy) -> None:
        """Skip what was missed. What is under way at the awakening may come until φ_N later, out of order."""
        if copy.came_at - self._awoke_at > NETWORK and copy.body > self.stable["last"]:
            self._skip_to(copy.body)
            self.recover()
            self._take(copy)
        else:
            self._early[copy.body] = copy.message

    def _skip_to(self, number: int) -> None:
        self.stable["last"] = number - 1
        self._early = {early: message for early, message in self._early.items() if early >= number}

    def _take(self, copy: Copy) -> None:
        if copy.body > self.stable["last"]:
            self._early[copy.body] = copy.message
        while (following := self.stable["last"] + 1) in self._early:
            self.stable["last"] = following
            message = self._early.pop(following)
            if message is not None:
                self.deliver(message)


class Protocol2(Protocol1):
    """Ask the source for what is missing."""

    def _take(self, copy: Copy) -> None:
        super()._take(copy)
        missing = [number for number in range(self.stable["last"] + 1, copy.body) if number not in self._early]
        if missing:
            self.send(SOURCE, REQUEST, None, missing)

    def _recover_by(self, copy: Copy) -> None:
        if copy.body > self.stable["last"]:
            self._skip_to(copy.body)
            self.recover()
            self._take(copy)


class SourceWithNulls(FanSource):
    has_nulls = True


class Protocol3(Protocol2):
    """Ask for all that was missed while down; nulls of the source tell that there is something."""

    source_class = SourceWithNulls

    def _skip_to(self, number: int) -> None:
        """Skip nothing."""


def fan_world(world: Laboratory, protocol: type[Protocol0]) -> dict[Site, Site | None]:
    """Put a source and its members into a world."""
    members = [f"m{place}" for place in range(1, world.climate.members + 1)]
    source = protocol.source_class(world, SOURCE)
    world.sites = {SOURCE: source, **{name: protocol(world, name) for name in members}}
    source.begin(members)
    fail_now_and_then(world, members)
    return {}
