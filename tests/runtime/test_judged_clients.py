"""Clients of three daemon processes send, join, leave and are killed; a daemon is killed and started again. What every
client saw and what the daemons did is recorded in one folder, and judged as `ordercast check` does."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ordercast import ConnectionLost, Service
from ordercast.api.recorded_client import RecordedClient, RecordedClients, recorded
from ordercast.checker import Outcome, Verdict
from ordercast.cli.check import judge
from ordercast.model.ids import ProcessId
from ordercast.model.promises import TOTALLY_ORDERED_GROUPS
from ordercast.order.ring.promised import PROMISED as RING_PROMISES
from ordercast.trace.cluster import append_cluster_event
from ordercast.trace.recording import Recorder
from tests.live.stage import live
from tests.runtime.cluster import NAMES, Cluster
from tests.runtime.cord import Cord

GROUPS = ("red", "green", "blue")
SERVICES = (Service.RELIABLE, Service.FIFO, Service.CAUSAL, Service.AGREED, Service.SAFE)
TRACE = '[trace]\nlevel = "full"\nfolder = "traces"\n'


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path, "unicast", TRACE)
    for name in NAMES:
        made.start(name)
    for name in NAMES:
        made.has_members(name, *NAMES)
    yield made
    made.end()


class Life:
    """What a client does all the time, at random."""

    def __init__(self, client: RecordedClient, seed: int) -> None:
        self.client = client
        self._rng = Random(seed)
        self._is_over = False
        self.task = asyncio.create_task(self._live())

    async def _live(self) -> None:
        try:
            while not self._is_over:
                await self._deed()
        except ConnectionLost:
            pass

    async def _deed(self) -> None:
        rng, client = self._rng, self.client
        joined = client.client.joined
        deed, group = rng.random(), rng.choice(GROUPS)
        if deed < 0.1:
            await (client.leave(group) if group in joined else client.join(group))
            return
        to = tuple(rng.sample(GROUPS, rng.choice((1, 1, 2))))
        if deed < 0.2:
            to = (*to, rng.choice(("a@alpha", "b@beta", "c@gamma")))
        await client.send(
            *to,
            filler=rng.randbytes(rng.choice((0, 100, 3000))),
            service=rng.choice(SERVICES),
            confirm=deed < 0.5,
            self_discard=0.3 < deed < 0.35,
        )
        await asyncio.sleep(rng.random() * 0.01)

    async def stop(self) -> None:
        self._is_over = True
        await self.task


async def everybody_hears(witnesses: list[RecordedClient], what: bytes) -> None:
    """All daemons are together, and all that was sent before has come."""
    for witness in witnesses:
        await witness.send("all", filler=what + witness.client.name.encode(), service=Service.SAFE)
    for witness in witnesses:
        await witness.hear(*(what + each.client.name.encode() for each in witnesses))


@live
async def test_clients_are_told_the_truth_whatever_happens(cluster: Cluster) -> None:
    processes: dict[str, ProcessId] = {}

    def look(name: str) -> None:
        processes[name] = ProcessId(cluster.has_members(name, *NAMES)["me"]["process"])

    for name in NAMES:
        await asyncio.to_thread(look, name)
    traces = cluster.folder / "traces"
    recorder = Recorder(traces, "clients of all")
    clients = RecordedClients(recorder.client, processes.__getitem__)
    witnesses = [await recorded(clients, cluster.unix(name), f"w{name[0]}") for name in ("alpha", "gamma")]
    for witness in witnesses:
        await witness.join("all", *GROUPS)

    places = (("alpha", "a"), ("beta", "b"), ("gamma", "c"), ("gamma", "d"))
    lives = []
    for number, (daemon, name) in enumerate(places):
        lives.append(Life(await recorded(clients, cluster.unix(daemon), name), number))
    cords = [Cord(cluster.folder / f"{name}.cord", cluster.folder / f"{name}.sock") for name in ("alpha", "gamma")]
    for number, cord in enumerate(cords):
        await cord.open()
        lives.append(Life(await recorded(clients, cord.address, f"victim{number}"), 10 + number))
    await everybody_hears(witnesses, b"first ")

    for cord in cords:  # clients are killed
        cord.cut()
    await everybody_hears(witnesses, b"second ")

    await asyncio.to_thread(cluster.stop, "beta", signal.SIGKILL)
    append_cluster_event(traces, "crashed", process="beta")
    await everybody_hears(witnesses, b"third ")
    cluster.start("beta")
    for name in NAMES:
        await asyncio.to_thread(look, name)
    witnesses.append(await recorded(clients, cluster.unix("beta"), "wb"))
    await witnesses[-1].join("all")
    lives.append(Life(await recorded(clients, cluster.unix("beta"), "b"), 20))

    await everybody_hears(witnesses, b"fourth ")
    for life in lives:
        await life.stop()
    await everybody_hears(witnesses, b"fifth ")
    append_cluster_event(traces, "calm")
    alive = [life.client for life in lives if not life.client.reading.done()]
    assert len(alive) == 4
    for number in range(20):
        for client in alive:
            await client.send(*GROUPS, service=SERVICES[number % len(SERVICES)], confirm=number == 19)
    await everybody_hears(witnesses, b"last ")
    for client in alive[:2]:
        await client.close()
    await everybody_hears(witnesses, b"after that ")
    for client in alive[2:]:
        await witnesses[0].send(client.client.name, filler=b"that is all", service=Service.AGREED)
        await client.hear(b"that is all")
    append_cluster_event(traces, "healed")
    for known in await clients.known(*witnesses):
        clients.tell(known)
    append_cluster_event(traces, "settled")
    for client in (*alive[2:], *witnesses):
        await client.close()
    await asyncio.to_thread(recorder.close)
    for name in NAMES:
        await asyncio.to_thread(cluster.stop, name, signal.SIGTERM)
    append_cluster_event(traces, "ended")
    judged = judge(traces)
    assert len(judged.verdicts) == len(RING_PROMISES) + len(TOTALLY_ORDERED_GROUPS)
    bad = [str(verdict) for verdict in judged.verdicts if not is_good(verdict)]
    assert not bad, "\n".join(bad)


def is_good(verdict: Verdict) -> bool:
    """Who is killed takes its last records along: what it had sent by then may be in nobody's record."""
    is_cut = verdict.outcome is Outcome.UNKNOWN and "the record of its submitter stops before it" in verdict.sentence
    return verdict.outcome in (Outcome.VALID, Outcome.NOT_EXERCISED) or is_cut
