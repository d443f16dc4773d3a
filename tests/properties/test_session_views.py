"""What a client makes of differences is what its daemon's groups say, whatever happened to them."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.groups.table import Notice, Table
from ordercast.model.events import GroupNews, Message, ViewId
from ordercast.model.ids import ConfigurationId, Position, ProcessId
from ordercast.session.client_half import ClientHalf
from ordercast.session.frames import SlowPolicy, Welcome, encode_welcome
from ordercast.session.news import NewsEncoder
from ordercast.session.pieces import HEADER, FrameKind
from tests.property_sizes import scaled

from .group_world import Session, Step, World

ME = ProcessId(1)
DAEMONS = tuple(map(ProcessId, (1, 2, 3)))
CLIENTS = ("a", "b")
GROUPS = ("g", "h")
PER_CONFIGURATION = 1000  # places in the order

steps = st.lists(
    st.tuples(
        st.sampled_from(("join",) * 6 + ("leave",) * 4 + ("disconnect", "part", "part", "meet")),
        st.sampled_from(DAEMONS),
        st.sampled_from(CLIENTS),
        st.sampled_from(("g", "g", "g", "h")),
        st.sets(st.sampled_from(DAEMONS)),
    ),
    min_size=20,
    max_size=80,
)


def _client(name: str) -> ClientHalf:
    half = ClientHalf(name.partition("@")[0], SlowPolicy.WAIT)
    half.receive(FrameKind.WELCOME, encode_welcome(Welcome(name, 1000, 1000))[HEADER.size :])
    return half


def _told(half: ClientHalf, encoded: bytes) -> object:
    return half.receive(encoded[HEADER.size - 1], encoded[HEADER.size :])


@dataclass
class Daemon:
    """A table of groups, and those whom it tells. In a transition, some daemons are out of reach; the next
    configuration brings back any of them, with whatever their clients have become."""

    sessions: dict[str, int] = field(default_factory=dict)
    halves: dict[int, ClientHalf] = field(default_factory=dict)
    encoder: NewsEncoder = field(default_factory=NewsEncoder)
    remaining: frozenset[ProcessId] | None = None
    configuration: frozenset[ProcessId] = frozenset(DAEMONS)
    at: int = PER_CONFIGURATION
    differences: int = 0

    def __post_init__(self) -> None:
        self.table = Table(ME, self.sessions)

    def take(self, kind: str, daemon: ProcessId, client: str, group: str, others: set[ProcessId]) -> None:
        self.at += 1
        name = f"{client}@n{daemon}"
        match kind:
            case "part":
                if self.remaining is None:
                    self.remaining = frozenset((ME, *others)) & self.configuration
                    self.tell(self.table.partition(self.remaining))
            case "meet":
                self.meet(self.remaining if self.remaining is not None else self.configuration, others)
            case _ if daemon not in self.configuration:
                pass
            case "join":
                self.connect(name, daemon)
                self.tell(self.table.join(name, daemon, group, self.place(), self.remaining))
            case "leave":
                self.tell(self.table.leave(name, daemon, group, self.place()))
            case _:
                self.tell(self.table.disconnect(name, daemon, self.place()))
                self.halves.pop(self.sessions.pop(name, 0), None)

    def connect(self, name: str, daemon: ProcessId) -> None:
        if daemon == ME and name not in self.sessions:
            self.sessions[name] = self.at
            self.halves[self.at] = _client(name)

    def place(self) -> ViewId:
        ring = ConfigurationId(self.at // PER_CONFIGURATION, ME)
        return ViewId(ring, Position(ring, self.at % PER_CONFIGURATION, self.at % 3))

    def meet(self, together: frozenset[ProcessId], others: set[ProcessId]) -> None:
        """The next regular configuration."""
        self.at = (self.at // PER_CONFIGURATION + 1) * PER_CONFIGURATION
        newcomers = frozenset(others) - together
        self.remaining, self.configuration = None, together | newcomers
        if not newcomers:
            self.tell(self.table.settle(self.place(), "settled"))
            return
        self.table.drop_partitioned()
        reports: dict[ProcessId, dict[str, list[str]]] = {daemon: {} for daemon in sorted(self.configuration)}
        for group in self.table.groups():
            for member in self.table.members_of(group):
                reports[ProcessId(int(member[-1]))].setdefault(group, []).append(member)
        for daemon in newcomers:  # they tell of clients that nobody here has heard of for long
            reports[daemon] = {GROUPS[0]: [f"a@n{daemon}", f"b@n{daemon}"], GROUPS[1]: [f"b@n{daemon}"]}
        self.tell(self.table.merge(reports, together, self.place(), "met"))

    def tell(self, notices: list[Notice]) -> None:
        self.table.check_invariants()
        for notice in notices:
            encoded = self.encoder.encode(notice.news)
            self.differences += encoded[HEADER.size - 1] == FrameKind.CHANGE
            for session in notice.sessions:
                assert _told(self.halves[session], encoded) == notice.news


@settings(max_examples=scaled(80))
@given(steps)
def test_views_told_by_differences_are_those_of_the_table(
    drawn: list[tuple[str, ProcessId, str, str, set[ProcessId]]],
) -> None:
    daemon = Daemon()
    for step in drawn:
        daemon.take(*step)


def test_without_trouble_in_the_network_all_but_the_first_view_are_differences() -> None:
    daemon = Daemon()
    for number in range(1, 4):
        for client in CLIENTS:
            daemon.take("join", ProcessId(number), client, "g", set())
    for client in CLIENTS:
        daemon.take("leave", ProcessId(2), client, "g", set())
        daemon.take("disconnect", ProcessId(3), client, "g", set())
    assert daemon.differences == 1 + 4 + 4


def test_a_leave_that_is_not_told_in_a_transition_shows_in_the_next_view() -> None:
    """The one who left was the only one out of reach: the view looks as if nothing else had happened."""
    daemon = Daemon()
    for number, client in ((1, "a"), (2, "a"), (3, "a")):
        daemon.take("join", ProcessId(number), client, "g", set())
    daemon.take("part", ME, "", "", {ProcessId(1), ProcessId(2)})
    daemon.take("leave", ProcessId(3), "a", "g", set())
    daemon.take("join", ProcessId(2), "b", "g", set())
    assert daemon.table.members_of("g") == ("a@n1", "a@n2", "b@n2")


world_steps = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 15), st.integers(0, 15)), min_size=5, max_size=60
)


@given(world_steps, st.integers(2, 4))
def test_clients_of_daemons_that_part_and_meet_can_follow_all_that_they_are_told(drawn: list[Step], size: int) -> None:
    world = World(size)
    for step in drawn:
        world.take(step)
    world.settle()
    for session in world.sessions:
        news = _news_of(session)
        half, encoder = _client(session.name), NewsEncoder()
        assert [_told(half, encoder.encode(one)) for one in news] == news


def _news_of(session: Session) -> list[GroupNews]:
    return [heard for heard in session.heard if not isinstance(heard, Message)]
