"""Protocol 4: the propagation graph of one group that never changes. (Thesis, 7.2.1)

Sources number their messages and send them to the root; every parent numbers what it passes on to its children, all of
which get all. Whoever misses a number asks where it comes from. While a site is down, those below it wait.

The thesis' code is corrected in four places: numbers of sources begin at 1, where the root expects them; nulls of
parents have numbers and are in the log, so that a lost one can be sent again; counters are found in the log after a
failure; what is logged is delivered, in one act. A site that is awake answers requests and sends nulls, recovered or
not.
"""

from __future__ import annotations

from typing import Any

from ordercast.checker.reliability.events import Kind, Multicasted, Site
from ordercast.sim.laboratory.world import END, NULLS, Actor, Copy, Laboratory, fail_now_and_then

FROM_SOURCE, FROM_PARENT, REQUEST = "from source", "from parent", "request"
SOURCES = ("s1", "s2")


class AtomicSource(Actor):
    """A source, which keeps all that it has sent and never fails."""

    def begin(self, root: Site, messages: int) -> None:
        self.root, self._spoke_at = root, 0
        self._log: list[Multicasted | None] = []  # None: a null
        for time in sorted(self.world.rng.randrange(END * 3 // 4) for _ in range(messages)):
            self.world.at(time, self._multicast)
        self.after(NULLS, self._speak_if_silent)

    def _multicast(self) -> None:
        message = Multicasted(self.name, len(self._log) + 1)
        self._say(message)
        self.world.record(Kind.MULTICAST, self.name, message)

    def _say(self, message: Multicasted | None) -> None:
        self._log.append(message)
        self._spoke_at = self.world.now
        self._send(len(self._log))

    def _send(self, number: int) -> None:
        self.send_now(self.root, FROM_SOURCE, self._log[number - 1], number)

    def _speak_if_silent(self) -> None:
        if self.world.now - self._spoke_at >= NULLS:
            self._say(None)
        self.after(self._spoke_at + NULLS - self.world.now, self._speak_if_silent)

    def on_copy(self, copy: Copy) -> None:
        for number in copy.body:
            self._send(number)


class Protocol4(Actor):
    """A site of the tree. What came, by where it comes from, and what it has passed on are on stable storage."""

    def begin(self, parent: Site | None, children: list[Site]) -> None:
        self.parent, self.children = parent, children
        self.stable |= {"log": [], "last": {}, "early": {}}
        self._spoke_at = 0
        self._watch()

    def _watch(self) -> None:
        if self.children:
            self.after(NULLS, self._speak_if_silent)

    def on_awake(self) -> None:
        """Wait for the next message: it is the recovery."""
        self._spoke_at = self.world.now
        self._watch()

    def on_copy(self, copy: Copy) -> None:
        if copy.kind == REQUEST:
            for number in copy.body:
                self.send(copy.sender, FROM_PARENT, self.stable["log"][number - 1], number)
            return
        self.recover()
        self._take(copy)

    def _take(self, copy: Copy) -> None:
        """Deliver in the order of numbers, those of each source at the root, those of the parent elsewhere."""
        last: dict[Site, int] = self.stable["last"]
        early: dict[tuple[Site, int], Any] = self.stable["early"]
        sender, known = copy.sender, last.get(copy.sender, 0)
        if copy.body > known:
            early[sender, copy.body] = copy.message
        while (sender, known + 1) in early:
            known += 1
            self._process(early.pop((sender, known)))
        last[sender] = known
        missing = [number for number in range(known + 1, copy.body) if (sender, number) not in early]
        if missing:
            self.send(sender, REQUEST, None, missing)

    def _process(self, message: Multicasted | None) -> None:
        """Log, deliver and pass on. Nulls end here: each parent has its own."""
        if message is not None:
            self.deliver(message)
            self._pass_on(message)

    def _pass_on(self, message: Multicasted | None) -> None:
        self.stable["log"].append(message)
        self._spoke_at = self.world.now
        for child in self.children:
            self.send(child, FROM_PARENT, message, len(self.stable["log"]))

    def _speak_if_silent(self) -> None:
        if self.world.now - self._spoke_at >= NULLS:
            self._pass_on(None)
        self.after(self._spoke_at + NULLS - self.world.now, self._speak_if_silent)


def drawn_tree(world: Laboratory, members: list[Site]) -> dict[Site, Site | None]:
    """Draw a tree, its sites in the order of their levels."""
    parents: dict[Site, Site | None] = {members[0]: None}
    depths = {members[0]: 0}
    for name in members[1:]:
        deepest = max(depths.values())
        above = [other for other, depth in depths.items() if depth >= deepest - 1]
        parent = world.rng.choice(above)
        parents[name], depths[name] = parent, depths[parent] + 1
    order = sorted(members, key=lambda name: depths[name])
    return {name: parents[name] for name in order}


def atomic_world(world: Laboratory) -> dict[Site, Site | None]:
    """Put sources and a tree into a world."""
    members = [f"m{place}" for place in range(1, world.climate.members + 1)]
    parents = drawn_tree(world, members)
    sites = {name: Protocol4(world, name) for name in members}
    sources = {name: AtomicSource(world, name) for name in SOURCES}
    world.sites = {**sites, **sources}
    for name, site in sites.items():
        site.begin(parents[name], [child for child in members if parents[child] == name])
    for source in sources.values():
        source.begin(members[0], world.climate.messages // len(SOURCES))
    fail_now_and_then(world, members)
    return parents
