"""What simulated clients do next: everything that a real one might, drawn from the run's generator.

Few names and few groups, so that names are used again and groups are shared, emptied and founded anew. Clients read at
once, slowly or not at all, have chosen what happens then, and some come back when their daemon has sent them away.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND, node_of
from ordercast.model.service import Service
from ordercast.session.frames import SlowPolicy, encode_names
from ordercast.session.pieces import FrameKind, frame
from ordercast.sim.client import Outgoing, Pace, SimClient
from ordercast.sim.group_tally import GroupOccurrence
from ordercast.sim.options import SimOptions
from ordercast.sim.station import Station
from ordercast.trace.client_records import End
from ordercast.trace.records import STAMP_SIZE

if TYPE_CHECKING:
    from ordercast.sim.world import World

_DEEDS = ("join", "leave", "send", "disconnect", "crash")
_WEIGHTS = (32, 26, 30, 5, 7)
_LARGE_PROBABILITY = 0.02
_LARGE_SIZE = 5_000  # several packets
_BURSTS = (1, 1, 1, 1, 2, 8)  # messages that travel together
_AGAIN_NS = (MILLISECOND, 20 * MILLISECOND)
_TRIES_MAX = 8  # of a client to connect again
_PACES = {
    Pace.AT_ONCE: GroupOccurrence.READS_AGAIN,
    Pace.SLOWLY: GroupOccurrence.SLOWLY,
    Pace.NOT_AT_ALL: GroupOccurrence.STOPPED,
}


class Crowd:
    def __init__(self, world: World) -> None:
        self._world = world
        self._is_calm = False  # everybody has spoken for the last time

    @property
    def _rng(self) -> Random:
        return self._world.rng

    @property
    def _options(self) -> SimOptions:
        return self._world.options

    def act(self, station: Station) -> None:
        """One deed of one client; a name that nobody has connects first, and mostly joins at once."""
        rng = self._rng
        name = f"c{rng.randrange(self._options.clients)}"
        client = next((each for each in station.clients.values() if each.name.startswith(f"{name}@")), None)
        if client is None:
            self._connect(station, name)
        elif not self._world.is_healed and rng.random() < self._options.pace_changes:
            self._change_pace(station, client)
        elif not self._world.is_healed and rng.random() < self._options.rudeness:
            client.be_rude(self._rude(client))
        else:
            self._do(client, rng.choices(_DEEDS, _WEIGHTS)[0])

    @staticmethod
    def say(client: SimClient, group: str, service: Service, data: bytes) -> None:
        """Let a client send one message, as a plot asks for."""
        client.send(Outgoing((group,), service, (data,)))

    def _connect(self, station: Station, name: str) -> None:
        rng = self._rng
        try:
            client = station.connect(name, rng.choice(tuple(SlowPolicy)))
        except UsageError:
            station.tally.count(GroupOccurrence.NAME_REFUSED)
            return
        client.reconnects = rng.random() < 0.5
        if rng.random() < 0.8:
            client.join(self._everywhere if rng.random() < 0.5 else self._some(self._everywhere))

    def _do(self, client: SimClient, deed: str) -> None:
        match deed:
            case "join" | "leave":
                self._move(client, joins=deed == "join")
            case "send":
                self._send(client, is_large=self._rng.random() < _LARGE_PROBABILITY)
            case "disconnect":
                client.disconnect()
            case _:
                client.crash()

    def _move(self, client: SimClient, *, joins: bool) -> None:
        """Join groups that it is not in, or leave some that it is in, whatever of this can be done."""
        inside = sorted(client.joined)
        outside = [group for group in self._everywhere if group not in client.joined]
        if outside and (joins or not inside):
            client.join(self._some(outside))
        else:
            client.leave(self._some(inside))

    def _change_pace(self, station: Station, client: SimClient) -> None:
        pace = self._rng.choice([pace for pace in Pace if pace is not client.pace])
        station.tally.count(_PACES[pace])
        client.read(pace)

    def _rude(self, client: SimClient) -> bytes:
        """Something that no client library says."""
        wrong = [frame(FrameKind.WELCOME), frame(FrameKind.SEND, b"?"), encode_names(FrameKind.LEAVE, ())]
        if client.joined:
            wrong.append(encode_names(FrameKind.JOIN, sorted(client.joined)))
        return self._rng.choice(wrong)

    def _send(self, client: SimClient, *, is_large: bool = False) -> None:
        rng, options = self._rng, self._options
        service = options.services[rng.randrange(len(options.services))]
        sizes = [rng.randrange(options.size_min, options.size_max + 1) for _ in range(rng.choice(_BURSTS))]
        destinations = self._destinations()
        fillers = tuple(rng.randbytes(size - STAMP_SIZE) for size in ([_LARGE_SIZE] if is_large else sizes))
        client.send(Outgoing(destinations, service, fillers, rng.random() < 0.2, rng.random() < 0.2))

    @property
    def _everywhere(self) -> tuple[str, ...]:
        return tuple(f"g{number}" for number in range(self._options.groups))

    def _some(self, groups: Sequence[str]) -> tuple[str, ...]:
        """Mostly one."""
        rng = self._rng
        count = 1 if rng.random() < 0.8 else rng.randrange(1, len(groups) + 1)
        return tuple(sorted(rng.sample(groups, count)))

    def _destinations(self) -> tuple[str, ...]:
        """Groups, a client, or both."""
        rng, options = self._rng, self._options
        chance = rng.random()
        private = f"c{rng.randrange(options.clients)}@n{rng.randrange(options.nodes)}"
        if chance < 0.15:
            return (private,)
        numbers = rng.sample(range(options.groups), rng.randrange(1, options.groups + 1))
        groups = tuple(f"g{number}" for number in numbers)
        if chance < 0.25:
            return (*groups, private)
        return groups if chance < 0.5 else groups[:1]

    def lost(self, client: SimClient, how: End) -> None:
        """A client has ended; some try again, with what they were in."""
        if client.reconnects and not self._is_calm and how not in (End.ORDERLY, End.CRASHED):
            self._try_later(client, 1)

    def _try_later(self, client: SimClient, tries: int) -> None:
        self._world.later(self._rng.randrange(*_AGAIN_NS), self._try_again, client, tries)

    def _try_again(self, client: SimClient, tries: int) -> None:
        station = self._world.station_at(node_of(client.id.process))
        try:
            again = None if station is None else station.connect(client.name.partition("@")[0], client.policy)
        except UsageError:  # its last connection is not yet known to be gone, or somebody else has its name
            again = None
        if station is None or again is None:
            if tries < _TRIES_MAX:
                self._try_later(client, tries + 1)
            return
        station.tally.count(GroupOccurrence.RECONNECTED)
        again.reconnects = True
        again.join(tuple(sorted(client.joined)))

    def speak_last(self, stations: list[Station]) -> None:
        """All is calm: everybody once more, to the groups and to each other."""
        rng, options, self._is_calm = self._rng, self._options, True
        names = [client.name for station in stations for client in station.clients.values()]
        for station in stations:
            for client in station.clients.values():
                self._send(client)
                service = options.services[rng.randrange(len(options.services))]
                client.send(Outgoing((rng.choice(names),), service, (b"",)))
