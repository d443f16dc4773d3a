"""Daemons with their groups, and the ordered streams between them, played by hand: no engine, no network.

A test says which daemons form a configuration and in which order messages come; the stage makes the effects that an
engine would, and writes down what every client hears. Clients are called a@n1, b@n2 …; in what they hear only the first
part is shown, so that a line is short:

    g = a b; with a; join b       a view: members; transitional set; reason and whose
    g ends; a remain              a transition
    left g
    hello                         a message
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ordercast.groups.envelope import decode_head
from ordercast.groups.layer import (
    Announce,
    Groups,
    MessageRun,
    Output,
    data_head,
    disconnect_payload,
    join_payload,
    leave_payload,
)
from ordercast.groups.table import Notice
from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.effects import Deliver, Parcel, Parted
from ordercast.model.events import GroupNews, Left, Message, Transition, ViewId
from ordercast.model.events import View as GroupView
from ordercast.model.ids import NO_CONFIGURATION, NO_SEQ, SLOT_MAX, ConfigurationId, Position, ProcessId, Seq
from ordercast.model.service import Service

AGREED = Service.AGREED
Heard = Message | GroupNews


def process_of(daemon: str) -> ProcessId:
    """n3 is process 3."""
    return ProcessId(int(daemon.removeprefix("n")))


def daemon_of(client: str) -> str:
    return client.partition("@")[2]


def view_of(
    kind: ConfigurationKind,
    ring: ConfigurationId,
    members: Sequence[int],
    transitional: Sequence[int],
    previous: ConfigurationId = NO_CONFIGURATION,
) -> Configuration:
    together = tuple(ProcessId(process) for process in transitional)
    everybody = tuple(ProcessId(process) for process in members)
    slot = 0 if kind is ConfigurationKind.REGULAR else SLOT_MAX
    return Configuration(kind, ring, everybody, previous, together, ChangeReason.MERGE, Position(ring, NO_SEQ, slot))


def parcel_of(
    seq: int, originator: ProcessId, *payloads: bytes, service: Service = AGREED, packets: int = 1, base: int = 0
) -> Parcel:
    """One packet, or several in a row with equally many."""
    each, rest = divmod(len(payloads), packets)
    assert not rest, "equally many in each packet"
    return seq, originator, (0,) * len(payloads), (int(service),) * len(payloads), payloads, each, base


def messages_of(run: MessageRun) -> Iterator[Message]:
    head = decode_head(run.head)
    origin, number, base, each, first = run.places
    for place, (service, payload) in enumerate(zip(run.services, run.payloads, strict=True), first):
        position = Position(origin, number + place // each, base + place % each)
        yield Message(head.groups, head.sender, payload[len(run.head) :], position, Service(service))


def heard_in(outputs: Sequence[Output]) -> Iterator[tuple[int, Heard]]:
    """One by one: the session, and what it hears."""
    for output in outputs:
        match output:
            case MessageRun():
                for message in messages_of(output):
                    yield from ((session, message) for session in output.sessions)
            case Notice():
                yield from ((session, output.news) for session in output.sessions)
            case _:
                pass


def _short(names: Sequence[str]) -> str:
    return " ".join(name.partition("@")[0] for name in names)


def text_of(heard: Heard) -> str:
    match heard:
        case Message():
            return heard.data.decode()
        case Left():
            return f"left {heard.group}"
        case Transition():
            return f"{heard.group} ends; {_short(heard.remaining)} remain"
        case GroupView():
            why = f"{heard.reason.value} {_short(heard.who)}".strip()
            return f"{heard.group} = {_short(heard.members)}; with {_short(heard.transitional)}; {why}"


@dataclass
class Daemon:
    name: str
    process: ProcessId
    groups: Groups
    ring: ConfigurationId
    configuration: ConfigurationId  # the ring's, or the transitional one that follows
    transitional: tuple[ProcessId, ...] = ()
    announced: list[bytes] = field(default_factory=list)  # submitted, and not yet ordered
    names: dict[int, str] = field(default_factory=dict)  # of the clients, by session


class Stage:
    """Each daemon begins alone, in a ring of its own."""

    def __init__(self, *names: str) -> None:
        self.heard: dict[str, list[Heard]] = {}
        self.daemons: dict[str, Daemon] = {}
        self._seqs: dict[ConfigurationId, int] = {}
        self._ring_seq = 0
        for name in names:
            self.start(name)

    def start(self, name: str, process: ProcessId | None = None) -> Groups:
        """A daemon's life begins; under another process it is not its first."""
        me = process_of(name) if process is None else process
        daemon = self.daemons[name] = Daemon(name, me, Groups(me, name), NO_CONFIGURATION, NO_CONFIGURATION)
        self._install(daemon, ConfigurationId(self._next_ring_seq(), me), (me,), (me,))
        return daemon.groups

    def __getitem__(self, name: str) -> Groups:
        return self.daemons[name].groups

    # Configurations

    def end(self, *names: str, parts: bool = False) -> None:
        """The transitional configuration of those who go on together, for each ring that they come from. `parts`: it
        begins for groups when `part` says so."""
        self._ring_seq += 4
        for daemon in self._daemons(names):
            together = sorted(other.process for other in self._daemons(names) if other.ring == daemon.ring)
            ring = ConfigurationId(self._ring_seq - 2, together[0])
            daemon.transitional, daemon.configuration = tuple(together), ring
            view = view_of(ConfigurationKind.TRANSITIONAL, ring, together, together, daemon.ring)
            self._take(daemon, daemon.groups.install(view, parts=parts))

    def part(self, *names: str, groups: tuple[str, ...] | None = None) -> None:
        """The transitional configuration begins for these groups, or for all that are left."""
        for daemon in self._daemons(names):
            self._take(daemon, daemon.groups.part(Parted(groups)))

    def begin(self, *names: str, is_uneven: bool = False) -> ConfigurationId:
        """The regular configuration; `end` has been called for the same daemons. `is_uneven`: the engine says so."""
        members = tuple(sorted(daemon.process for daemon in self._daemons(names)))
        ring = ConfigurationId(self._ring_seq, members[0])
        for daemon in self._daemons(names):
            self._install(daemon, ring, members, daemon.transitional, is_uneven=is_uneven)
        return ring

    def form(self, *names: str) -> ConfigurationId:
        self.end(*names)
        return self.begin(*names)

    def together(self, *names: str) -> ConfigurationId:
        """A configuration whose snapshots have all come."""
        ring = self.form(*names)
        self.exchange(*names)
        return ring

    # The ordered stream

    def order(self, daemon: str, *payloads: bytes, to: Sequence[str] = (), service: Service = AGREED) -> Seq:
        """The next packet of the daemon's ring, at all who are on it, or at these."""
        sender = self.daemons[daemon]
        seq = self._seqs[sender.ring] = self._seqs.get(sender.ring, 0) + 1
        for receiver in self._daemons(to) if to else [other for other in self._all() if other.ring == sender.ring]:
            parcel = parcel_of(seq, sender.process, *payloads, service=service)
            self._take(receiver, receiver.groups.deliver(Deliver(receiver.configuration, receiver.ring, [parcel])))
        return Seq(seq)

    def exchange(self, *names: str, to: Sequence[str] = ()) -> None:
        """What these daemons announced is ordered."""
        for daemon in self._daemons(names):
            waiting, daemon.announced = daemon.announced, []
            for payload in waiting:
                self.order(daemon.name, payload, to=to)

    # Clients

    def connect(self, *clients: str) -> None:
        for client in clients:
            daemon = self.daemons[daemon_of(client)]
            session = len(daemon.names) + 1
            assert daemon.groups.connect(client.partition("@")[0], session) == client
            daemon.names[session] = client
            self.heard[client] = []

    def join(self, client: str, *groups: str, to: Sequence[str] = ()) -> Seq:
        if client not in self.heard:
            self.connect(client)
        return self.order(daemon_of(client), join_payload(client, groups), to=to)

    def leave(self, client: str, *groups: str, to: Sequence[str] = ()) -> Seq:
        return self.order(daemon_of(client), leave_payload(client, groups), to=to)

    def disconnect(self, client: str, to: Sequence[str] = ()) -> Seq:
        return self.order(daemon_of(client), disconnect_payload(client), to=to)

    def send(
        self, client: str, groups: Sequence[str], text: str, to: Sequence[str] = (), service: Service = AGREED
    ) -> Seq:
        return self.order(daemon_of(client), data_head(client, tuple(groups)) + text.encode(), to=to, service=service)

    # What was heard

    def told(self, client: str) -> list[str]:
        """Since the last time somebody asked."""
        heard = self.heard[client]
        texts = [text_of(item) for item in heard]
        heard.clear()
        return texts

    def forget(self) -> None:
        for heard in self.heard.values():
            heard.clear()

    def view_ids(self, client: str) -> list[ViewId]:
        return [heard.id for heard in self.heard[client] if isinstance(heard, GroupView)]

    def last_view(self, client: str) -> GroupView:
        return [heard for heard in self.heard[client] if isinstance(heard, GroupView)][-1]

    def members(self, group: str) -> list[str]:
        """As each daemon has them."""
        return [_short(daemon.groups.table.members_of(group)) for daemon in self._all()]

    # Within

    def _all(self) -> list[Daemon]:
        return [self.daemons[name] for name in sorted(self.daemons)]

    def _daemons(self, names: Sequence[str]) -> list[Daemon]:
        return [self.daemons[name] for name in names]

    def _next_ring_seq(self) -> int:
        self._ring_seq += 4
        return self._ring_seq

    def _install(
        self,
        daemon: Daemon,
        ring: ConfigurationId,
        members: Sequence[ProcessId],
        transitional: Sequence[ProcessId],
        *,
        is_uneven: bool = False,
    ) -> None:
        previous, daemon.ring, daemon.configuration = daemon.configuration, ring, ring
        daemon.announced.clear()  # an engine would send it in the new configuration, where it is ignored
        view = view_of(ConfigurationKind.REGULAR, ring, members, transitional, previous)
        self._take(daemon, daemon.groups.install(view, is_uneven=is_uneven))

    def _take(self, daemon: Daemon, outputs: Sequence[Output]) -> None:
        for output in outputs:
            if isinstance(output, Announce):
                daemon.announced += output.payloads
        for session, heard in heard_in(outputs):
            self.heard[daemon.names[session]].append(heard)
        daemon.groups.check_invariants()
