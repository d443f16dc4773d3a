"""Groups: the layer between an engine and the clients of one daemon.

Inputs: clients of this daemon (`connect`, and what the functions at the end write for them), and the engine's ordered
stream (`deliver`, `install`). Outputs, in order: runs of messages and notices for local sessions, and what is to be
submitted to the engine before anything else.

A join, a leave, a disconnection are ordered messages like any other, so the groups are the same at all daemons of a
configuration, and nothing more is said when daemons are lost. When daemons come together, each tells which clients it
has (a snapshot, taken when the configuration is installed); what the stream brings before all snapshots are here is
kept, and applied after them. The states and their names in the paper (section 6.4.1):

    steady        GOP       nothing special
    transitional  GTRANS    the old configuration ends, the new one is awaited
    gathering     GGATHER   snapshots are awaited
    interrupted   GGT       the configuration ends while snapshots are awaited: the rest may still come
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ordercast.groups.envelope import (
    CONFIRM,
    FLAGS_AT,
    KIND_AT,
    SELF_DISCARD,
    Head,
    Kind,
    decode_head,
    encode_head,
    head_bytes_of,
    sender_of,
)
from ordercast.groups.envelope import data_head as data_head
from ordercast.groups.envelope import join_payload as join_payload
from ordercast.groups.envelope import leave_payload as leave_payload
from ordercast.groups.names import AT, checked_client, checked_daemon, daemon_of
from ordercast.groups.runs import Confirmed as Confirmed
from ordercast.groups.runs import MessageRun as MessageRun
from ordercast.groups.snapshot import Snapshot, decode_snapshot, encode_snapshot
from ordercast.groups.table import Notice, Table
from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.effects import Deliver, Install, Parted, Placed
from ordercast.model.errors import UsageError, WireError
from ordercast.model.events import Left, ViewId
from ordercast.model.ids import ConfigurationId, Places, ProcessId, process_text
from ordercast.model.roster import Roster
from ordercast.model.service import Service
from ordercast.wire.roster import decode_roster, encode_roster

GONE_MAX = 1000  # daemons that have left and are remembered
ROUTES_MAX = 10_000  # heads whose receivers are remembered


class Announce(NamedTuple):
    """Submit these to the engine, agreed, before anything of a client."""

    payloads: list[bytes]


class Warned(NamedTuple):
    """Daemons have one name: a person has to change that."""

    text: str


class Relisted(NamedTuple):
    """An operator's change of the node list has its place in the order."""

    roster: Roster


class Changed(NamedTuple):
    """A join, a leave or a disconnection of a client here has come in order, of these groups."""

    groups: tuple[str, ...]
    is_join: bool


class PassedOver(NamedTuple):
    """A message of this daemon was passed over, by all daemons alike. There are few reasons, so that they can be
    counted one by one."""

    originator: ProcessId
    why: str


Output = MessageRun | Notice | Announce | Confirmed | Warned | PassedOver | Relisted | Changed


# Messages in a row, as the stream brought them: in columns, as in `model.effects.Parcel`. (A plain tuple on the data
# path, where one is made of every run of packets; named where they are kept.)
_Columns = tuple[ConfigurationId, Places, ProcessId, Sequence[int], Sequence[bytes]]


class _Stretch(NamedTuple):
    """Messages in a row that are kept."""

    configuration: ConfigurationId
    places: Places
    originator: ProcessId
    services: Sequence[int]
    payloads: Sequence[bytes]


@dataclass(slots=True)
class _Gathering:
    """Snapshots being awaited."""

    view: Configuration
    reports: dict[ProcessId, dict[str, list[str]]] = field(default_factory=dict)
    behind: dict[ProcessId, set[str]] = field(default_factory=dict)  # groups whose views were made behind an end
    complete: set[ProcessId] = field(default_factory=set)
    names: dict[ProcessId, str] = field(default_factory=dict)  # of the daemons that have told something
    kept: list[_Stretch | Install | Parted] = field(default_factory=list)  # what the stream brought meanwhile
    interruption: Configuration | None = None  # the transitional configuration that came meanwhile

    def keeps(self, originator: ProcessId) -> bool:
        """Whether something of this daemon's is kept."""
        return any(isinstance(kept, _Stretch) and kept.originator == originator for kept in self.kept)

    def add(self, daemon: ProcessId, name: str, snapshot: Snapshot) -> None:
        """WireError when the daemon gives itself another name than before."""
        if self.names.setdefault(daemon, name) != name:
            raise WireError(f"a snapshot of a daemon that is called {self.names[daemon]} and {name}")
        report = self.reports.setdefault(daemon, {})
        if snapshot.behind:
            self.behind.setdefault(daemon, set()).update(snapshot.behind)
        for group, members in snapshot.groups.items():
            if group in report:
                report[group] += members
            else:
                report[group] = members
        if snapshot.is_last:
            self.complete.add(daemon)

    @property
    def is_complete(self) -> bool:
        return self.complete.issuperset(self.view.members)


class Groups:
    def __init__(self, me: ProcessId, daemon: str) -> None:
        self._me = me
        self._daemon = checked_daemon(daemon)  # so that others can read it in snapshots
        self._sessions: dict[str, int] = {}  # by full name, until the disconnection has come back in order
        self.table = Table(me, self._sessions)
        self._routes: dict[tuple[ProcessId, bytes], tuple[int, ...] | Head] = {}
        self._together: frozenset[ProcessId] = frozenset((me,))  # daemons that have known what we know
        self._names = {me: self._daemon}  # what these are called: whose clients they may speak for
        self._gone: dict[ProcessId, None] = {}  # daemons that had names and have left, the latest last
        self._transition: Configuration | None = None
        self._parted: set[str] | None = None  # the groups for which it has begun; None: all
        self._behind: dict[str, ViewId] = {}  # groups whose present view here was made behind it, where others differ
        self._gathering: _Gathering | None = None
        self._twins: set[tuple[str, tuple[ProcessId, ...]]] = set()  # daemons of one name, as told
        self.own_changes = 0  # joins, leaves and disconnections of clients here that have come, in the order of sending
        self.malformed = 0  # messages of daemons that could not be read, or that spoke for another's clients

    # Clients of this daemon

    def connect(self, name: str, session: int) -> str:
        """The client's full name. UsageError when the name is bad, or in use."""
        full = checked_client(name) + AT + self._daemon
        if full in self._sessions:
            raise UsageError(f"the name {name!r} is in use at {self._daemon}: choose another, or wait until it is free")
        self._sessions[full] = session
        self._routes.clear()  # messages to its name had no way before
        return full

    def is_connected(self, full: str) -> bool:
        return full in self._sessions

    @property
    def is_steady(self) -> bool:
        """No snapshots are awaited: clients may send."""
        return self._gathering is None

    # The engine's ordered stream

    def deliver(self, deliver: Deliver) -> list[Output]:
        """Take messages in order; those that the engine delivers early pass at any time, also while snapshots are
        awaited, and change nothing. While they are, what is FIFO waits with what its sender sent before it."""
        outputs: list[Output] = []
        for number, originator, _, services, payloads, each, base in deliver.parcels:
            places = Places(deliver.origin, number, base, each, 0)
            stretch = deliver.views_of or deliver.configuration, places, originator, services, payloads
            index = 0
            while index < len(payloads):
                if self._gathering is not None and (
                    deliver.ordered or (services[index] != Service.RELIABLE and self._gathering.keeps(originator))
                ):
                    index = self._keep(self._gathering, stretch, index, outputs)
                else:
                    index = self._take(stretch, index, outputs, ordered=deliver.ordered)
        return outputs

    def install(self, view: Configuration, *, parts: bool = False, is_uneven: bool = False) -> list[Output]:
        """`parts`: a transitional configuration begins for groups when the engine says so (`part`). `is_uneven`: those
        who came along into a regular one may have come by different views of groups."""
        outputs: list[Output] = []
        if view.kind is ConfigurationKind.TRANSITIONAL:
            self._end_configuration(Install(view, parts=parts), outputs)
        else:
            self._begin_configuration(view, outputs, is_uneven=is_uneven)
        return outputs

    def part(self, parted: Parted) -> list[Output]:
        """The transitional configuration begins for some groups, or for all that are left."""
        outputs: list[Output] = []
        if self._gathering is not None:
            self._gathering.kept.append(parted)
        else:
            self._part(parted, outputs)
        return outputs

    def placed(self, placed: Placed) -> list[Output]:
        """Confirm messages of clients here that no client here is to get."""
        outputs: list[Output] = []
        for number, originator, _, services, payloads, each, base in placed.parcels:
            places, index = Places(placed.origin, number, base, each, 0), 0
            while index < len(payloads):
                try:
                    head = head_bytes_of(payloads[index])
                except WireError:
                    self._refuse(originator, "a group message whose head is wrong", outputs)
                    index += 1
                    continue
                end = _end_of_row(payloads, index, head)
                session = self._sessions.get(sender_of(head)) if head[FLAGS_AT] & CONFIRM else None
                if session is not None and head[KIND_AT] == Kind.DATA:
                    run = MessageRun((), head, places.after(index), services[index:end], payloads[index:end])
                    outputs.append(Confirmed(session, run))
                index = end
        return outputs

    def _take(self, stretch: _Columns, index: int, outputs: list[Output], *, ordered: bool = True) -> int:
        """Take the message at this index, with those behind it that have the same head; return where the next one
        is."""
        configuration, places, originator, services, payloads = stretch
        try:
            head = head_bytes_of(payloads[index])
            route = self._routes.get((originator, head)) or self._find_route(originator, head)
        except WireError:
            self._refuse(originator, "a group message whose head is wrong", outputs)
            return index + 1
        if isinstance(route, Head) and not ordered:
            self._refuse(originator, "a change of groups that came out of order", outputs)
            return index + 1
        if isinstance(route, Head):
            at = ViewId(configuration, places.at(index))
            self._control(route, originator, payloads[index][len(head) :], at, outputs)
            return index + 1
        end = _end_of_row(payloads, index, head)
        wants_confirmation = originator == self._me and head[FLAGS_AT] & CONFIRM
        if route != _NOBODY or wants_confirmation:
            run = MessageRun(
                route, head, places.after(index) if index else places, services[index:end], payloads[index:end]
            )
            if route != _NOBODY:
                outputs.append(run)
            if wants_confirmation and (session := self._sessions.get(sender_of(head))) is not None:
                outputs.append(Confirmed(session, run))
        return end

    def _find_route(self, originator: ProcessId, data: bytes) -> tuple[int, ...] | Head:
        """The local sessions that messages with this head are for; the head itself when it is for the groups."""
        head = decode_head(data)
        if head.kind is not Kind.DATA:
            return head
        sessions: set[int] = set()
        for name in head.groups:
            if AT in name:
                sessions.update(self._sessions[full] for full in (name,) if full in self._sessions)
            else:
                sessions.update(self.table.local_sessions(name))
        if head.flags & SELF_DISCARD and originator == self._me:
            sessions.discard(self._sessions.get(head.sender, -1))
        if len(self._routes) >= ROUTES_MAX:
            self._routes.clear()
        route = self._routes[originator, data] = tuple(sorted(sessions)) or _NOBODY
        return route

    def _refuse(self, originator: ProcessId, why: str, outputs: list[Output]) -> None:
        self.malformed += 1
        outputs.append(PassedOver(originator, why))

    def _call(self, names: dict[ProcessId, str]) -> None:
        """These are the daemons from here on, and what they are called."""
        for daemon in self._names.keys() - names.keys():
            self._gone[daemon] = None
        for daemon in self._gone.keys() & names.keys():
            del self._gone[daemon]
        while len(self._gone) > GONE_MAX:
            del self._gone[next(iter(self._gone))]
        self._names = names

    def _control(self, head: Head, originator: ProcessId, data: bytes, at: ViewId, outputs: list[Output]) -> None:
        if originator in self._gone:
            return  # an engine may still bring what it had sent before it left, and its clients are gone
        speaks_for = head.sender if head.kind is Kind.ROSTER else daemon_of(head.sender)
        if head.kind is not Kind.GROUPS and speaks_for != self._names.get(originator):
            self._refuse(originator, "a change of groups in the name of another daemon's client", outputs)
            return
        self._routes.clear()
        is_own = originator == self._me and head.kind not in (Kind.GROUPS, Kind.ROSTER)
        self.own_changes += is_own
        groups = self.table.joined_by(head.sender, originator) if head.kind is Kind.DISCONNECT else head.groups
        match head.kind:
            case Kind.JOIN:
                for group in head.groups:
                    of_group, remaining = self._view_id(group, at), self._remaining(group)
                    outputs += self.table.join(head.sender, originator, group, of_group, remaining)
            case Kind.LEAVE:
                for group in head.groups:
                    outputs += self.table.leave(head.sender, originator, group, at)
            case Kind.DISCONNECT:
                outputs += self.table.disconnect(head.sender, originator, at)
                if originator == self._me:
                    self._sessions.pop(head.sender, None)
            case Kind.ROSTER:
                try:
                    outputs.append(Relisted(decode_roster(data)))
                except WireError:
                    self._refuse(originator, "a node list that cannot be read", outputs)
            case Kind.GROUPS | Kind.DATA:
                pass  # a snapshot for a configuration that is over
        if is_own:
            outputs.append(Changed(groups, head.kind is Kind.JOIN))

    # Configurations of daemons

    def _end_configuration(self, ending: Install, outputs: list[Output]) -> None:
        if self._gathering is not None:
            self._gathering.interruption = ending.configuration
            self._gathering.kept.append(ending)
            return
        self._transition = ending.configuration
        self._routes.clear()
        if ending.parts:
            self._parted = set()
        else:
            outputs += self.table.partition(ending.configuration.members)

    def _part(self, parted: Parted, outputs: list[Output]) -> None:
        assert self._transition is not None, "groups part in a transitional configuration"
        outputs += self.table.partition(self._transition.members, parted.groups)
        if parted.groups is None:
            self._parted = None
        elif self._parted is not None:
            self._parted.update(parted.groups)

    def _remaining(self, group: str) -> tuple[ProcessId, ...] | None:
        """The daemons with which a group goes on; None while its configuration has not ended."""
        if self._transition is None or (self._parted is not None and group not in self._parted):
            return None
        return self._transition.members

    def _view_id(self, group: str, at: ViewId) -> ViewId:
        """Return the id of the view that a join makes here. Whoever is cut off may have taken the join before any
        signal, and then has another view, since it loses others at another place."""
        if self._transition is None or not self.table.is_signalled(group):
            return at
        return ViewId(self._transition.id, at.position)

    def _begin_configuration(self, view: Configuration, outputs: list[Output], *, is_uneven: bool) -> None:
        at = ViewId(view.id, view.position)
        self._routes.clear()
        has_merged = self._gathering is None and not is_uneven
        if self._gathering is not None:
            self._give_up(self._gathering, outputs)
        behind = self._made_behind(self._transition, is_uneven=is_uneven)
        self._transition = self._parted = None
        self._together = self._together.intersection(view.transitional)
        self._call({daemon: self._names[daemon] for daemon in self._together})
        if has_merged and self._together.issuperset(view.members):
            outputs += self.table.settle(at, view.reason.text)
            return
        self.table.drop_partitioned()
        self._gathering = _Gathering(view)
        head = encode_head(Head(Kind.GROUPS, self._daemon, ()))
        outputs.append(Announce([head + piece for piece in encode_snapshot(view.id, self.table.report(), behind)]))

    def _made_behind(self, end: Configuration | None, *, is_uneven: bool) -> Collection[str]:
        """Return the groups whose present views here were made behind the end of a configuration: others who came along
        may have made theirs before it, if it ended unevenly."""
        views = self.table.own_views() if is_uneven or self._behind else {}
        self._behind = {group: view for group, view in self._behind.items() if views.get(group) == view}
        if is_uneven and end is not None:
            self._behind |= {group: view for group, view in views.items() if view.configuration == end.id}
        return self._behind.keys()

    def _keep(self, gathering: _Gathering, stretch: _Columns, index: int, outputs: list[Output]) -> int:
        """Take the snapshot at this index, or keep what comes before the next snapshot; return where to go on."""
        configuration, places, originator, services, payloads = stretch
        rest = range(index, len(payloads))
        end = next((at for at in rest if payloads[at][KIND_AT:FLAGS_AT] == _SNAPSHOT), len(payloads))
        if end > index:
            kept = _Stretch(configuration, places.after(index), originator, services[index:end], payloads[index:end])
            gathering.kept.append(kept)
            return end
        try:
            self._take_snapshot(gathering, originator, payloads[index])
        except WireError:
            self._refuse(originator, "a snapshot of groups that is wrong", outputs)
        if gathering.is_complete:
            self._merge(gathering, outputs)
        return index + 1

    def _take_snapshot(self, gathering: _Gathering, originator: ProcessId, payload: bytes) -> None:
        head = head_bytes_of(payload)
        name = decode_head(head).sender
        snapshot = decode_snapshot(payload[len(head) :], name)
        if snapshot.configuration == gathering.view.id:
            gathering.add(originator, name, snapshot)

    def _merge(self, gathering: _Gathering, outputs: list[Output]) -> None:
        """All snapshots are here, at the same place in the order at everybody who gets them all."""
        view, self._gathering = gathering.view, None
        self._routes.clear()
        self._look_for_twins(gathering.names, outputs)
        at = ViewId(view.id, view.position)
        notices = self.table.merge(gathering.reports, self._together, at, view.reason.text, gathering.behind)
        self._behind = {}
        outputs += notices
        outputs += [Changed((notice.news.group,), False) for notice in notices if isinstance(notice.news, Left)]
        self._together = frozenset(view.members)
        self._call(gathering.names)
        for kept in gathering.kept:
            if isinstance(kept, Install):
                self._end_configuration(kept, outputs)
            elif isinstance(kept, Parted):
                self._part(kept, outputs)
            else:
                self._replay(kept, outputs)

    def _look_for_twins(self, names: dict[ProcessId, str], outputs: list[Output]) -> None:
        """A client's full name is its only identity: two daemons of one name mix up their clients."""
        called: dict[str, list[ProcessId]] = {}
        for process in sorted(names):
            called.setdefault(names[process], []).append(process)
        twins = {(name, tuple(processes)) for name, processes in called.items() if len(processes) > 1}
        outputs += [Warned(_twins_text(name, processes)) for name, processes in sorted(twins - self._twins)]
        self._twins = twins

    def _give_up(self, gathering: _Gathering, outputs: list[Output]) -> None:
        """Some snapshots will never come: nobody who goes on with us has them. What was kept is delivered among those
        who have been together, as in the transitional configuration that ends the attempt; the others' joins and
        leaves will be in their next snapshots."""
        interruption = gathering.interruption
        assert interruption is not None, "a regular configuration follows a transitional one"
        known = self._together
        self._gathering, self._transition = None, interruption
        self._together = known.intersection(interruption.members)
        outputs += self.table.partition(self._together)
        for kept in gathering.kept:
            if isinstance(kept, _Stretch):
                is_known = kept.originator in known
                self._replay(kept._replace(configuration=interruption.id), outputs, with_control=is_known)

    def _replay(self, kept: _Stretch, outputs: list[Output], *, with_control: bool = True) -> None:
        index = 0
        while index < len(kept.payloads):
            if with_control or _kind_of(kept.payloads[index]) in (Kind.DATA, None):
                index = self._take(kept, index, outputs)
            else:
                index += 1

    def check_invariants(self) -> None:
        self.table.check_invariants()
        assert self._me in self._together
        assert self._names.keys() >= self._together, "daemons that were together know what they are called"
        assert self._transition is None or self._gathering is None


_SNAPSHOT = bytes((Kind.GROUPS,))
_NOBODY = (-1,)  # nobody here: unlike an empty tuple, a route that is known


def _twins_text(name: str, processes: Sequence[ProcessId]) -> str:
    which = " and ".join(map(process_text, processes))
    return (
        f"{len(processes)} processes are called {name}: {which}. Clients of one name there take each other's places in "
        "groups, and their joins may never return: give each daemon a name of its own"
    )


def _kind_of(data: bytes) -> Kind | None:
    """None when it cannot be read."""
    try:
        return decode_head(head_bytes_of(data)).kind
    except WireError:
        return None


def disconnect_payload(full: str) -> bytes:
    return encode_head(Head(Kind.DISCONNECT, full, ()))


def roster_payload(daemon: str, roster: Roster) -> bytes:
    return encode_head(Head(Kind.ROSTER, daemon, ())) + encode_roster(roster)


def _end_of_row(payloads: Sequence[bytes], index: int, head: bytes) -> int:
    """Return where the payloads end that begin with this head as the one at the index does. More are compared at a time
    the longer the row is: C code does it, and a row that ends costs little."""
    end, width, size = index + 1, 4, len(head)
    while end < len(payloads):
        heads = [payload[:size] for payload in payloads[end : end + width]]
        if heads.count(head) < len(heads):
            return end + next(at for at, one in enumerate(heads) if one != head)
        end += len(heads)
        width *= 4
    return end
