"""What simulated clients do next: everything that a real one might, drawn from the run's generator.

Few names and few groups, so that names are used again and groups are shared, emptied and founded anew.
"""

from __future__ import annotations

from random import Random

from ordercast.model.errors import UsageError
from ordercast.sim.group_tally import GroupOccurrence
from ordercast.sim.options import SimOptions
from ordercast.sim.station import Client, Station
from ordercast.trace.records import STAMP_SIZE

_DEEDS = ("join", "leave", "send", "disconnect", "crash")
_WEIGHTS = (25, 15, 48, 5, 7)
_LARGE_PROBABILITY = 0.02
_LARGE_SIZE = 5_000  # several packets


def act(station: Station, options: SimOptions, rng: Random) -> None:
    """One deed of one client; a name that nobody has connects first, and mostly joins at once."""
    name = f"c{rng.randrange(options.clients)}"
    client = next((each for each in station.clients.values() if each.name.startswith(f"{name}@")), None)
    if client is None:
        try:
            client = station.connect(name)
        except UsageError:
            station.tally.count(GroupOccurrence.NAME_REFUSED)
            return
        if rng.random() < 0.8:
            everywhere = tuple(f"g{number}" for number in range(options.groups))
            station.join(client, everywhere if rng.random() < 0.5 else _groups(options, rng))
        return
    match rng.choices(_DEEDS, _WEIGHTS)[0]:
        case "join":
            station.join(client, _groups(options, rng))
        case "leave":
            station.leave(client, _groups(options, rng))
        case "send":
            send(station, client, options, rng, is_large=rng.random() < _LARGE_PROBABILITY)
        case "disconnect":
            station.disconnect(client)
        case _:
            station.crash(client)


def send(station: Station, client: Client, options: SimOptions, rng: Random, *, is_large: bool = False) -> None:
    service = options.services[rng.randrange(len(options.services))]
    size = _LARGE_SIZE if is_large else rng.randrange(options.size_min, options.size_max + 1)
    station.send(
        client,
        _destinations(options, rng),
        service,
        rng.randbytes(size - STAMP_SIZE),
        self_discard=rng.random() < 0.2,
        confirm=rng.random() < 0.2,
    )


def _groups(options: SimOptions, rng: Random) -> tuple[str, ...]:
    """Mostly one."""
    count = 1 if rng.random() < 0.8 else rng.randrange(1, options.groups + 1)
    return tuple(f"g{number}" for number in sorted(rng.sample(range(options.groups), count)))


def _destinations(options: SimOptions, rng: Random) -> tuple[str, ...]:
    """Groups, a client, or both."""
    chance = rng.random()
    private = f"c{rng.randrange(options.clients)}@n{rng.randrange(options.nodes)}"
    if chance < 0.15:
        return (private,)
    groups = tuple(f"g{number}" for number in rng.sample(range(options.groups), rng.randrange(1, options.groups + 1)))
    if chance < 0.25:
        return (*groups, private)
    return groups if chance < 0.5 else groups[:1]


def farewell_round(stations: list[Station], options: SimOptions, rng: Random) -> None:
    """All is calm: everybody once more, to the groups and to each other."""
    names = [client.name for station in stations for client in station.clients.values()]
    for station in stations:
        for client in station.clients.values():
            send(station, client, options, rng)
            service = options.services[rng.randrange(len(options.services))]
            station.send(client, (rng.choice(names),), service, b"")
