"""Daemons with groups over streams as extended virtual synchrony allows them, driven by a list of drawn steps.

Each ring has one log. A daemon delivers a prefix of it, as far as a step lets it; those who go on together from a ring
deliver the same prefix of it before their transitional configuration and the same behind that, and each component has
its own. What is submitted waits in its daemon's queue, over changes of configuration too. Some daemons also say what no
honest one does (`forgeries`).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ordercast.groups.envelope import Head, Kind, encode_head
from ordercast.groups.layer import (
    Announce,
    Groups,
    Output,
    data_head,
    disconnect_payload,
    join_payload,
    leave_payload,
)
from ordercast.groups.snapshot import encode_snapshot
from ordercast.model.configuration import ConfigurationKind
from ordercast.model.effects import Deliver
from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, ProcessId
from tests.unit.groups.stage import Heard, heard_in, parcel_of, view_of

GROUPS = ("g", "h")
CLIENTS = ("x", "y")

Step = tuple[int, int, int, int]


@dataclass
class Session:
    """One life of a client, from connecting on."""

    name: str
    number: int
    heard: list[Heard] = field(default_factory=list)
    has_ended: bool = False  # it asked to be disconnected


@dataclass
class Sent:
    session: Session
    group: str
    data: bytes
    heard: int  # how much the sender had heard before


@dataclass
class Host:
    process: ProcessId
    groups: Groups
    ring: ConfigurationId = NO_CONFIGURATION
    configuration: ConfigurationId = NO_CONFIGURATION
    transitional: tuple[ProcessId, ...] = ()
    delivered: int = 0
    queue: deque[bytes] = field(default_factory=deque)
    sessions: dict[int, Session] = field(default_factory=dict)
    clients: dict[str, Session] = field(default_factory=dict)  # the present ones


def forgeries(me: ProcessId, ring: ConfigurationId) -> list[bytes]:
    """In the name of other daemons' clients, with names that are none, and snapshots that tell of both."""
    other = f"x@n{me % 4 + 1}"
    changes = [Head(kind, name, ("g",)) for kind in (Kind.JOIN, Kind.LEAVE) for name in (other, "\x1b[2J@n1", "x")]
    ends = [Head(Kind.DISCONNECT, name, groups) for name, groups in ((other, ()), ("\x07@n1", ()), (other, ("g",)))]
    data = [Head(Kind.DATA, "\r@n1", ("g",)), Head(Kind.DATA, other, ("\x7f",)), Head(Kind.DATA, other, ())]
    payloads = [encode_head(head) + b"forged" * (head.kind is Kind.DATA) for head in (*changes, *ends, *data)]
    told = ({"g": [other]}, {"\n": [f"x@n{me}"]}, {"g": ["\x1b@n1"]}, {"h": [f"{'x' * 33}@n{me}"]})
    snapshots = [encode_snapshot(ring, report)[0] for report in told]
    return [*payloads, *(encode_head(Head(Kind.GROUPS, f"n{me}", ())) + piece for piece in snapshots)]


class World:
    def __init__(self, size: int) -> None:
        self.hosts: list[Host] = []
        self.logs: dict[ConfigurationId, list[tuple[ProcessId, bytes]]] = {}
        self.sent: list[Sent] = []
        self._ring_seq = 0
        for number in range(1, size + 1):
            me = ProcessId(number)
            host = Host(me, Groups(me, f"n{number}"))
            self.hosts.append(host)
            self.form([host], 0, 0)

    @property
    def sessions(self) -> list[Session]:
        return [session for host in self.hosts for session in host.sessions.values()]

    # Steps

    def take(self, step: Step) -> None:
        kind, who, what, more = step
        host = self.hosts[who % len(self.hosts)]
        if kind < 5:
            self.act(host, CLIENTS[what % 2], kind, GROUPS[more % 2])
        elif kind < 7:
            self.order(host, 1 + what % 4)
        elif kind < 9:
            self.deliver(host, host.delivered + 1 + what % 4)
        elif kind == 10:
            forged = forgeries(host.process, host.ring)
            host.queue.append(forged[(4 * what + more) % len(forged)])
        else:
            chosen = [other for place, other in enumerate(self.hosts) if what >> place & 1]
            self.form(chosen or [host], more & 3, more >> 2 & 3)

    def act(self, host: Host, name: str, kind: int, group: str) -> None:
        session = host.clients.get(name)
        if session is None:
            if host.groups.is_connected(f"{name}@n{host.process}"):
                return
            session = Session(f"{name}@n{host.process}", len(host.sessions) + 1)
            assert host.groups.connect(name, session.number) == session.name
            host.sessions[session.number] = host.clients[name] = session
        match kind:
            case 0 | 1:
                host.queue.append(join_payload(session.name, [group]))
            case 2:
                host.queue.append(leave_payload(session.name, [group]))
            case 3:
                data = f"m{len(self.sent)}".encode()
                self.sent.append(Sent(session, group, data, len(session.heard)))
                host.queue.append(data_head(session.name, (group,)) + data)
            case _:
                host.queue.append(disconnect_payload(session.name))
                session.has_ended = True
                del host.clients[name]

    def order(self, host: Host, count: int) -> None:
        log = self.logs[host.ring]
        for _ in range(min(count, len(host.queue))):
            log.append((host.process, host.queue.popleft()))

    def deliver(self, host: Host, end: int) -> None:
        log = self.logs[host.ring]
        parcels = [parcel_of(place + 1, *log[place]) for place in range(host.delivered, min(end, len(log)))]
        host.delivered += len(parcels)
        if parcels:
            self._take_outputs(host, host.groups.deliver(Deliver(host.configuration, host.ring, parcels)))

    def form(self, hosts: list[Host], before: int, behind: int) -> None:
        """These form a configuration. Components deliver so many more messages before and behind their signal."""
        self._ring_seq += 4
        ring = ConfigurationId(self._ring_seq, min(host.process for host in hosts))
        self.logs[ring] = []
        components: dict[ConfigurationId, list[Host]] = {}
        for host in hosts:
            components.setdefault(host.ring, []).append(host)
        for old, component in components.items():
            if old != NO_CONFIGURATION:
                self._end(component, before, behind)
        members = sorted(host.process for host in hosts)
        for host in hosts:
            transitional = [other.process for other in components[host.ring]]
            view = view_of(ConfigurationKind.REGULAR, ring, members, transitional, host.configuration)
            host.configuration, host.delivered = ring, 0
            self._take_outputs(host, host.groups.install(view))
        for host in hosts:
            host.ring = ring

    def _end(self, component: list[Host], before: int, behind: int) -> None:
        start = max(host.delivered for host in component) + before
        together = [host.process for host in component]
        own = [place for place, (sender, _) in enumerate(self.logs[component[0].ring], 1) if sender in together]
        end = max([start + behind, *own])  # what one of them sent, all of them have
        for host in component:
            self.deliver(host, start)
            previous, host.configuration = host.configuration, ConfigurationId(self._ring_seq - 2, min(together))
            view = view_of(ConfigurationKind.TRANSITIONAL, host.configuration, together, together, previous)
            self._take_outputs(host, host.groups.install(view))
            self.deliver(host, end)

    def settle(self) -> None:
        """All come together, and everything is ordered and delivered."""
        self.form(self.hosts, 3, 3)
        while any(host.queue for host in self.hosts):
            for host in self.hosts:
                self.order(host, len(host.queue))
            for host in self.hosts:
                self.deliver(host, len(self.logs[host.ring]))

    def _take_outputs(self, host: Host, outputs: list[Output]) -> None:
        for output in outputs:
            if isinstance(output, Announce):
                host.queue.extendleft(reversed(output.payloads))
        for number, heard in heard_in(outputs):
            host.sessions[number].heard.append(heard)
        host.groups.check_invariants()
