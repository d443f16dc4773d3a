"""Archivers over daemons with groups, over streams as extended virtual synchrony allows them. No files, no network: an
archive is a dictionary, and fetching is copying, at a time that the steps choose."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ordercast.archive.branches import Branch, Stretch, ancestors, history
from ordercast.archive.entries import News, record_bytes
from ordercast.archive.lineage import Begin, Fetch, Lineage, Say, StopFetching, Write
from ordercast.archive.places import Place
from ordercast.archive.statements import statement_bytes, statement_from
from ordercast.groups.layer import data_head, disconnect_payload, join_payload
from ordercast.groups.names import control_group
from ordercast.model.events import Batch, Left, Message, Transition, View
from ordercast.model.ids import Places
from tests.properties.group_world import Host, Session, Step, World

GROUP = "g"
CONTROL = control_group(GROUP)


def batch_of(message: Message) -> Batch:
    places = Places(*message.position, each=1, first=0)
    return Batch(message.groups, message.sender, [message.data], [int(message.service)], places)


@dataclass
class Archiver:
    """One archive, and the lives of its archiver."""

    name: str  # of the client
    host: Host
    tree: dict[str, Branch] = field(default_factory=dict)
    records: dict[Place, bytes] = field(default_factory=dict)
    own: list[str] = field(default_factory=list)  # branches that it wrote to as they came
    lineage: Lineage | None = None
    session: Session | None = None
    read: int = 0  # of what the session has heard
    wanted: Place | None = None
    tip: Place | None = None  # the last on disk of its own history

    @property
    def is_up(self) -> bool:
        return self.session is not None and not self.session.has_ended

    def has_all(self, stretches: list[Stretch]) -> bool:
        return all(Place(s.branch, n) in self.records for s in stretches for n in range(s.first, s.last + 1))


class ArchiveWorld(World):
    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.met: Counter[str] = Counter()
        self.archivers = [Archiver("arch", host) for host in self.hosts]

    def take(self, step: Step) -> None:
        kind, who, what, more = step
        archiver = self.archivers[who % len(self.archivers)]
        if kind < 2:
            self.start(archiver)
        elif kind == 2 and what % 3 == 0:
            self.kill(archiver)
        elif kind == 3:
            self.fetch(archiver)
        elif kind == 4:
            super().take((0, who, what, 0))  # a client joins
        else:
            super().take((3 if kind == 5 else kind, who, what, 0 if kind == 5 else more))
        self.work()

    def start(self, archiver: Archiver) -> None:
        full = f"{archiver.name}@n{archiver.host.process}"
        if archiver.is_up or archiver.host.groups.is_connected(full):
            return
        host = archiver.host
        session = archiver.session = Session(full, len(host.sessions) + 1)
        host.groups.connect(archiver.name, session.number)
        host.sessions[session.number] = session
        host.queue.append(join_payload(full, [CONTROL, GROUP]))
        archiver.lineage = Lineage(GROUP, full, archiver.tip)
        archiver.read, archiver.wanted = 0, None

    def kill(self, archiver: Archiver) -> None:
        if not archiver.is_up:
            return
        assert archiver.session is not None
        archiver.host.queue.append(disconnect_payload(archiver.session.name))
        archiver.session.has_ended = True
        archiver.lineage = None

    def work(self) -> None:
        """Archivers read what they have heard."""
        for archiver in self.archivers:
            while archiver.is_up and archiver.session is not None and archiver.read < len(archiver.session.heard):
                heard = archiver.session.heard[archiver.read]
                archiver.read += 1
                lineage = archiver.lineage
                assert lineage is not None
                if isinstance(heard, Message):
                    if heard.groups == (CONTROL,):
                        lineage.on_statement(heard.sender, statement_from(heard.data, GROUP))
                    elif GROUP in heard.groups:
                        lineage.on_item(batch_of(heard))
                elif isinstance(heard, View | Transition):
                    (lineage.on_control if heard.group == CONTROL else lineage.on_item)(heard)
                else:
                    assert isinstance(heard, Left)
                self.obey(archiver, lineage)

    def obey(self, archiver: Archiver, lineage: Lineage) -> None:
        actions, lineage.actions = lineage.actions, []
        for action in actions:
            match action:
                case Say(statement):
                    self.met[statement.kind.value] += 1
                    assert archiver.session is not None
                    payload = data_head(archiver.session.name, (CONTROL,)) + statement_bytes(statement)
                    archiver.host.queue.append(payload)
                case Begin(branch):
                    archiver.tree[branch.name] = branch
                    archiver.own.append(branch.name)
                    archiver.tip = Place(branch.name, branch.base)
                case Write(item):
                    entries = list(item) if isinstance(item, Batch) else [item]
                    for entry in entries:
                        self.write(archiver, entry)
                case Fetch(place):
                    self.met["fetch" if archiver.wanted is None else "refetch"] += 1
                    archiver.wanted = place
                case StopFetching():
                    self.met["give up"] += archiver.wanted is not None
                    archiver.wanted = None
                    assert lineage.stopped == archiver.tip

    def write(self, archiver: Archiver, entry: Message | News) -> None:
        assert archiver.tip is not None
        place = archiver.tip = Place(archiver.tip.branch, archiver.tip.number + 1)
        assert place not in archiver.records, "nothing is written below what is there"
        archiver.records[place] = record_bytes(place, entry)

    def fetch(self, archiver: Archiver) -> None:
        """From any archive that has all of it, whose archiver runs."""
        wanted, lineage = archiver.wanted, archiver.lineage
        if wanted is None or lineage is None:
            return
        for donor in self.archivers:
            if donor is archiver or not donor.is_up or wanted.branch not in donor.tree:
                continue
            stretches = history(donor.tree, wanted, archiver.own)
            if donor.has_all(stretches):
                behind = ancestors(donor.tree, wanted.branch)
                archiver.tree |= {name: donor.tree[name] for name in behind}
                for place, record in donor.records.items():
                    if place.branch in behind and (place.branch != wanted.branch or place.number <= wanted.number):
                        archiver.records.setdefault(place, record)
                archiver.wanted, archiver.tip = None, wanted
                lineage.stopped = wanted
                lineage.filled(wanted)
                self.obey(archiver, lineage)
                return

    def flow(self, who: int) -> None:
        """Everything that is underway on one host's ring is ordered, delivered and read."""
        ring = self.hosts[who % len(self.hosts)].ring
        hosts = [host for host in self.hosts if host.ring == ring]
        while any(host.queue for host in hosts):
            for host in hosts:
                self.order(host, len(host.queue))
            for host in hosts:
                self.deliver(host, len(self.logs[ring]))
            self.work()

    def settle_all(self) -> None:
        """The network heals, everybody runs, and everything is fetched, ordered and read."""
        for archiver in self.archivers:
            self.start(archiver)
        for _ in range(12):
            self.settle()
            self.work()
            for archiver in self.archivers:
                self.start(archiver)
                self.fetch(archiver)
                self.work()
