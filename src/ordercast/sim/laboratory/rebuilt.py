"""Protocol 5: a tree that is built anew without its root when the root has failed. (Thesis, 7.2.2)

The root numbers what sources send; all sites have the same numbers. Who comes next in rank takes over when it has heard
nothing from the root for δ: it tells all directly, collects what they have beyond it, gives them what they lack, and
opens again. What nobody has, the sources send anew, and it gets a new place.

The thesis' code is corrected: numbers of sources begin at 1; a new root finds what it has of each source after it has
caught up, and tells it to the source, which at once sends the rest in order (asking for it, as printed, takes a round
trip longer than P4 allows); a site says in its answer what it has, and gets what it lacks, before anything else; data
of a dead root are refused; parents tell children now and then what there is, more often than δ, and gaps are asked for.
"""

from __future__ import annotations

from ordercast.checker.reliability.events import Kind, Multicasted, Site
from ordercast.sim.laboratory.atomic import SOURCES, drawn_tree
from ordercast.sim.laboratory.world import END, FRAGMENT, NETWORK, NULLS, Actor, Copy, Laboratory

FROM_SOURCE, DATA, BEAT, REQUEST = "from source", "data", "beat", "request"
NEW_TREE, ANSWER, NEW_ROOT = "new tree", "answer", "new root"
BEATS = NULLS // 4
PATIENCE = NULLS - NETWORK - FRAGMENT  # from the last word of a root; its last one may have been under way
CLOSED_FOR = 3 * FRAGMENT + 2 * NETWORK
APART = NULLS + 3 * FRAGMENT + 2 * NETWORK  # A8: between failures of roots


class RebuiltSource(Actor):
    """A source, which sends anew what a new root has not got."""

    def begin(self, root: Site, times: list[int]) -> None:
        self.root, self._count = root, 0
        for time in sorted(times):
            self.world.at(time, self._multicast)

    def _multicast(self) -> None:
        self._count += 1
        self._send(self._count)
        self.world.record(Kind.MULTICAST, self.name, Multicasted(self.name, self._count))

    def _send(self, number: int) -> None:
        self.send_now(self.root, FROM_SOURCE, Multicasted(self.name, number), number)

    def on_copy(self, copy: Copy) -> None:
        self.root = copy.sender
        for number in range(copy.body + 1, self._count + 1):
            self._send(number)


class Protocol5(Actor):
    def begin(self, order: list[Site], parents: dict[Site, Site | None]) -> None:
        self._order, self._parents = order, dict(parents)
        self._root_place = 0  # rank of the root
        self._log: list[Multicasted] = []
        self._early: dict[int, Multicasted] = {}
        self._from_sources: dict[Multicasted, None] = {}  # what came out of order at the root
        self._answered: set[Site] = set()  # while closed: who may be sent something
        self._is_open = True
        self._heard_at = 0
        self._beat()
        self._watch()

    # Where a site is

    @property
    def _is_root(self) -> bool:
        return self._order[self._root_place] == self.name

    @property
    def _children(self) -> list[Site]:
        return [site for site, parent in self._parents.items() if parent == self.name]

    def _move(self, place: int) -> None:
        """Put the site of this rank where the root was."""
        old, new = self._order[self._root_place], self._order[place]
        for site, parent in self._parents.items():
            if parent == old:
                self._parents[site] = new
        self._parents[new], self._root_place = None, place
        self._parents.pop(old, None)

    # Copies

    def on_copy(self, copy: Copy) -> None:
        if copy.kind == FROM_SOURCE:
            self._order_message(copy)
        elif copy.kind == NEW_TREE:
            self._adopt(copy)
        elif copy.kind == ANSWER:
            self._catch_up(copy)
        elif copy.kind == REQUEST:
            self._send_beyond(copy.sender, copy.body)
        elif copy.sender in (self._parents.get(self.name), *self._reporters(copy)):
            self._take(copy)

    def _reporters(self, copy: Copy) -> list[Site]:
        """Return who else may send data: anybody, to a new root that catches up."""
        return [copy.sender] if self._is_root and not self._is_open else []

    def _order_message(self, copy: Copy) -> None:
        if not (self._is_root and self._is_open) or copy.message in self._log:
            return
        assert copy.message is not None
        self._from_sources[copy.message] = None
        following = Multicasted(copy.sender, self._known_of(copy.sender) + 1)
        while following in self._from_sources:
            del self._from_sources[following]
            self._process(following)
            following = Multicasted(copy.sender, following.number + 1)

    def _known_of(self, source: Site) -> int:
        return max((message.number for message in self._log if message.source == source), default=0)

    def _take(self, copy: Copy) -> None:
        """Take data in the order of their numbers; a beat says how many there are."""
        if copy.sender == self._parents.get(self.name):
            self._heard_at = self.world.now
        if copy.message is not None and copy.body > len(self._log):
            self._early[copy.body] = copy.message
        while (following := len(self._log) + 1) in self._early:
            self._process(self._early.pop(following))
        if copy.body > len(self._log) and copy.kind == BEAT:
            self.send(copy.sender, REQUEST, None, len(self._log))

    def _process(self, message: Multicasted) -> None:
        self._log.append(message)
        self.deliver(message)
        for child in self._children:
            if self._is_open or child in self._answered:
                self.send(child, DATA, message, len(self._log))

    def _send_beyond(self, site: Site, number: int) -> None:
        for place in range(number, len(self._log)):
            self.send(site, DATA, self._log[place], place + 1)

    def _beat(self) -> None:
        if self._is_open:
            for child in self._children:
                self.send(child, BEAT, None, len(self._log))
        self.after(BEATS, self._beat)

    # A root that has failed

    def _watch(self) -> None:
        """Take over when the root is silent and this site comes next."""
        next_place = self._root_place + 1
        is_next = next_place < len(self._order) and self._order[next_place] == self.name
        if is_next and self.world.now - self._heard_at >= PATIENCE:
            self._take_over(next_place)
        self.after(FRAGMENT // 2, self._watch)

    def _take_over(self, place: int) -> None:
        self._move(place)
        self._is_open, self._early, self._answered = False, {}, set()
        for site in self._order[place + 1 :]:
            self.send(site, NEW_TREE, None, (place, len(self._log)))
        self.after(CLOSED_FOR, self._open)

    def _adopt(self, copy: Copy) -> None:
        place, known = copy.body
        self._move(place)
        self._heard_at = self.world.now
        self.send(copy.sender, ANSWER, None, len(self._log))
        self._send_beyond(copy.sender, known)

    def _catch_up(self, copy: Copy) -> None:
        self._answered.add(copy.sender)
        if copy.sender in self._children:
            self._send_beyond(copy.sender, copy.body)

    def _open(self) -> None:
        self._is_open = True
        for source in SOURCES:
            self.send(source, NEW_ROOT, None, self._known_of(source))


def rebuilt_world(world: Laboratory) -> dict[Site, Site | None]:
    """Put sources and a tree into a world whose roots fail one after another (A6, A7, A8)."""
    members = [f"m{place}" for place in range(1, world.climate.members + 1)]
    parents = drawn_tree(world, members)
    order = list(parents)
    sites = {name: Protocol5(world, name) for name in members}
    sources = {name: RebuiltSource(world, name) for name in SOURCES}
    world.sites = {**sites, **sources}
    for site in sites.values():
        site.begin(order, parents)
    failures: list[int] = []
    for name in order[: world.climate.failures]:
        failures.append((failures[-1] if failures else 0) + APART + world.rng.randrange(END // 8))
        world.at(failures[-1], sites[name].fail)
    for source in sources.values():
        source.begin(order[0], _times(world, failures))
    return {}


def _times(world: Laboratory, failures: list[int]) -> list[int]:
    """Draw when a source speaks: now and then, and much before a root fails, so that it has what nobody else has."""
    rng, count = world.rng, world.climate.messages // len(SOURCES)
    found = [rng.randrange(END // 2) for _ in range(count // 3)]
    while failures and len(found) < count:
        found.append(rng.choice(failures) - rng.randrange(NETWORK))
    return found
