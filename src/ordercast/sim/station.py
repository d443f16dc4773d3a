"""The desk of one life of a simulated host, with the clients that are connected to it: what a daemon does.

The host gives it the engine's stream and submits what the desk (`groups/desk.py`) says is next. Clients speak with it
as they do with a live daemon: in frames, over connections with a delay (`pipe.py`), through both halves of a session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, assert_never

from ordercast.groups.desk import DeskOutput, GroupDesk
from ordercast.groups.layer import Confirmed, MessageRun, PassedOver, Relisted, Warned
from ordercast.groups.table import Notice
from ordercast.groups.turns import Turn
from ordercast.model.effects import Deliver, Install, Parcel, Parted, Placed
from ordercast.model.errors import UsageError
from ordercast.model.ids import Instant, ProcessId, node_of
from ordercast.model.service import Service
from ordercast.order.catalogue import entry_of
from ordercast.order.outbox import OVERHEAD
from ordercast.session.client_half import ClientHalf
from ordercast.session.counters import ClientCounters
from ordercast.session.desk import ClientRules
from ordercast.session.frames import SlowPolicy
from ordercast.session.handouts import Handouts, Session
from ordercast.session.quota import ALL_MEMBERSHIPS_MAX, Quota
from ordercast.sim.client import Pace, SimClient
from ordercast.sim.group_tally import GroupOccurrence, GroupTally
from ordercast.sim.pipe import Pipe
from ordercast.sim.served import Served
from ordercast.sim.session_witness import SessionWitness
from ordercast.trace.client_records import ClientEvent, ClientId, Connected, Disconnected, End, KnownGroups
from ordercast.trace.records import STAMP_SIZE

if TYPE_CHECKING:
    from ordercast.sim.host import Host

SESSIONS_MAX = 1000
LOOKS = 20  # at a client for which all wait, in the time that it is given


class Station:
    def __init__(self, host: Host, process: ProcessId) -> None:
        options = host.world.options
        self.process = process
        self.clients: dict[int, SimClient] = {}  # those that are connected, by session
        self.desk = GroupDesk(
            process,
            station_name(process),
            overhead=OVERHEAD + STAMP_SIZE,
            portion_size_max=options.sizes.queue_size_max,
            overtakes=entry_of(options.engine).overtakes,
        )
        self.tally = GroupTally(host.world.group_counts, host.world.names)
        self.rules = ClientRules(
            options.sizes.message_size_max,
            SESSIONS_MAX,
            options.client_queue or None,
            options.hold_ns,
            options.hold_ns // 2,
            options.send_credit or None,
        )
        self.quota = Quota(all_max=options.memberships_max or ALL_MEMBERSHIPS_MAX)
        self.counters = ClientCounters()
        self._host = host
        self._world = host.world
        self._handouts = Handouts()
        self._served: list[Served] = []
        self._holding: set[int] = set()  # sessions for which all wait

    # Services for clients and connections

    @property
    def rng(self) -> Random:
        return self._world.session_rng

    @property
    def room(self) -> bytearray:
        return self._world.session_room

    @property
    def witness(self) -> SessionWitness:
        return self._world.session_witness

    @property
    def may_refuse(self) -> bool:
        """Clients may ask for more groups than they may be in."""
        return bool(self._world.options.memberships_max)

    def tell(self, event: ClientEvent) -> None:
        self._world.tell(event)

    def clock(self) -> Instant:
        return Instant(self._world.now)

    def later(self, delay_ns: int, action: Callable[[], None]) -> None:
        self._world.schedule(self._world.now + delay_ns, action)

    def look_later(self, action: Callable[[], None]) -> None:
        """A client for which all wait is looked at again."""
        self.later(self.rules.hold_ns // LOOKS, lambda: self.when_running(action))

    def when_running(self, action: Callable[[], None]) -> None:
        """At once, or when a daemon that is paused goes on; never when it has ended."""
        if self._host.is_paused:
            self._world.schedule(self._host.paused_until, self.when_running, action)
        elif self._host.life is not None and self._host.life.station is self:
            action()

    # The engine's stream

    def install(self, install: Install) -> None:
        view = install.configuration
        self.tally.installs(self.desk.groups, view)
        self._carry_out(self.desk.install(view, parts=install.parts, is_uneven=install.is_uneven))
        self.tally.installed(self.desk.groups)

    def part(self, parted: Parted) -> None:
        self._carry_out(self.desk.part(parted))

    def placed(self, placed: Placed) -> None:
        self._carry_out(self.desk.placed(Placed(placed.origin, _bare(placed.parcels))))

    def deliver(self, deliver: Deliver) -> None:
        """Payloads as the engine has them, each with the stamp of its daemon before it."""
        bare = replace(deliver, parcels=_bare(deliver.parcels))
        self.tally.delivers(bare)
        self._carry_out(self.desk.deliver(bare))
        self.tally.delivered(self.desk.groups)

    def _carry_out(self, outputs: list[DeskOutput]) -> None:
        for output in outputs:
            match output:
                case MessageRun() | Notice() | Confirmed():
                    if isinstance(output, Notice):
                        self.tally.notifies(output.news)
                    self._handouts.give(output)
                case Warned():
                    raise AssertionError(f"every host here has a name of its own, yet: {output.text}")
                case Relisted():
                    raise AssertionError("node lists are changed by reloads here")
                case PassedOver():
                    raise AssertionError(f"every host here is honest, yet of {output.originator}: {output.why}")
                case _:
                    assert_never(output)
        self.desk.groups.check_invariants()
        self._handouts.flush()
        if self.desk.has_something:
            self._host.submit_for_clients()

    def submitting(self, turn: Turn) -> None:
        self.witness.submits(self.process, turn, is_steady=self.desk.groups.is_steady)

    def submitted(self, turn: Turn) -> None:
        """The host has submitted what the desk had said."""
        if turn.accepted is not None:
            turn.accepted()
            if (session := self.sessions.get(turn.session)) is not None:
                session.flush()

    # Sessions, as their desks see the daemon (see `session/desk.py`, SessionHost)

    @property
    def sessions(self) -> dict[int, Session]:
        return self._handouts.sessions

    def open_session(self, session: Session, name: str) -> tuple[int, str]:
        number, full = self.desk.open(name)
        self.sessions[number] = session
        return number, full

    def close_session(
        self, number: int, full: str, groups: int = 0, accepted: Callable[[], None] | None = None
    ) -> None:
        if self.sessions.pop(number, None) is not None:
            self.desk.close(number, full, groups, accepted)
            self._host.submit_for_clients()

    def request(
        self,
        number: int,
        payloads: Sequence[bytes],
        service: Service = Service.AGREED,
        accepted: Callable[[], None] | None = None,
        changes: int = 0,
    ) -> None:
        if accepted is not None and not changes:
            accepted = partial(self._accept, ClientId(self.process, number), accepted)
        self.desk.request(number, payloads, service, accepted, changes)
        self._host.submit_for_clients()

    def _accept(self, client: ClientId, accepted: Callable[[], None]) -> None:
        self.witness.accepts(client)
        accepted()

    @property
    def is_behind(self) -> bool:
        return bool(self._holding)

    def hold(self, number: int, is_holding: bool) -> None:
        """All wait for this session, or no longer."""
        was_behind = self.is_behind
        (self._holding.add if is_holding else self._holding.discard)(number)
        if self.is_behind != was_behind:
            self._host.fall_behind(not was_behind)

    def sends_away(self, session: int, why: str) -> None:
        """A client has said something wrong, and only those do who mean to."""
        client = self.clients.get(session)
        assert client is None or client.is_rude, f"{client.name} is sent away: {why}"
        self.tally.count(GroupOccurrence.WRONG)

    # What clients do

    def connect(self, name: str, policy: SlowPolicy = SlowPolicy.WAIT) -> SimClient:
        """UsageError while the name is in use. The greeting takes no time, and passes through both halves."""
        client = SimClient(self, ClientHalf(name, policy, self._world.options.receive_credit or None), policy)
        is_prompt = self._world.options.prompt_clients
        served = Served(self, Pipe(self._world, self.rng, client.arrive, client.ended, is_prompt))
        client.up = served.up = Pipe(self._world, self.rng, served.arrive, served.ended, is_prompt)
        welcome = served.greet(client.half.hello())
        if served.refusal:
            client.is_over = True
            raise UsageError(served.refusal)
        client.welcome(welcome, ClientId(self.process, served.desk.number))
        self._served.append(served)
        self.clients[client.id.session] = client
        self.tally.connects(self.process, name)
        self.tell(Connected(self.clock(), client.id, client.name))
        return client

    def end(self, client: SimClient, how: End) -> None:
        """The client has ended, and is told nothing more."""
        if client.is_over:
            return
        client.is_over = True
        del self.clients[client.id.session]
        self.tally.ends(self.desk.groups, how)
        self.tell(Disconnected(self.clock(), client.id, how))
        if client.listener is not None:
            client.listener.ended(how)
        self._world.crowd.lost(client, how)

    def close(self, how: End) -> None:
        """The daemon ends, and all its clients with it."""
        for client in list(self.clients.values()):
            self.end(client, how)

    def heal(self) -> None:
        for client in list(self.clients.values()):
            client.read(Pace.AT_ONCE)

    # The end of a run

    def is_quiet(self) -> bool:
        self._served = [served for served in self._served if not (served.is_closing and served.is_idle)]
        return (
            self.desk.is_quiet()
            and all(client.is_idle for client in self.clients.values())
            and all(served.is_idle for served in self._served)
        )

    def known(self) -> KnownGroups:
        table = self.desk.groups.table
        return KnownGroups(
            self.clock(), self.process, tuple((name, table.members_of(name)) for name in sorted(table.groups()))
        )


def _bare(parcels: Sequence[Parcel]) -> list[Parcel]:
    """Return messages without the stamps of their daemons."""
    return [
        (number, originator, senders, services, [payload[STAMP_SIZE:] for payload in payloads], each, base)
        for number, originator, senders, services, payloads, each, base in parcels
    ]


def station_name(process: ProcessId) -> str:
    return f"n{node_of(process)}"
