"""A large state goes to a joiner while the group keeps working: time, rate before and during it, and memory.

Three members write all the time, each a process of its own; the state is filled first; then a fourth joins, and one of
the donors may be killed when the joiner has half of it.

    python -m bench.transfer [--mib 1024] [--value-kib 64] [--kill]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

from ordercast import Node, NodeConfig
from ordercast.daemon.config.node import NetworkConfig, SecurityConfig
from ordercast.order.ring.config import RingConfig
from ordercast.replicated import Changed, Dictionary, DictionaryFront, Majority, NotPrimary, Progress, Replica

ROOT = Path(__file__).resolve().parent.parent
MEMBERS = 3
PORT = 24_900
RATE_S = 1.0  # how often a writer tells its rate
UNDERWAY = 64
LOOK_S = 0.01
FILLING = 16  # large values underway


def say(**told: object) -> None:
    print(json.dumps(told), flush=True)


def memory_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def member(number: int, cluster: str, mib: int, value_kib: int) -> None:
    """Fills its share, then writes small values for ever; the joiner is the one beyond the members."""
    config = NodeConfig(
        name=f"h{number}",
        ring=RingConfig(cluster=cluster),
        network=NetworkConfig(port=PORT),
        security=SecurityConfig(insecure=True),
    )
    quorum = Majority({f"r@h{each}": 1 for each in range(1, MEMBERS + 1)})
    async with Node(config, name="r") as node, Replica(node, "large", Dictionary(), quorum=quorum) as entries:
        if number > MEMBERS:
            await join(entries)
            return
        await entries.ready()
        value = os.urandom(value_kib << 10)
        await fill(entries, range(number - 1, (mib << 10) // value_kib, MEMBERS), value)
        say(filled=True, memory_mib=memory_mib())
        await write(entries, number)


async def fill(entries: DictionaryFront, numbers: range, value: bytes) -> None:
    async def some(mine: range) -> None:
        for at in mine:
            await sure(entries, f"large {at}", at.to_bytes(8, "big") + value[8:])

    await asyncio.gather(*(some(numbers[first::FILLING]) for first in range(FILLING)))


async def sure(entries: DictionaryFront, key: str, value: bytes) -> None:
    """Set it, however often the component changes meanwhile."""
    while True:
        try:
            await entries.set(key, value)
            return
        except NotPrimary:
            await entries.ready()


async def write(entries: DictionaryFront, number: int) -> None:
    confirmed = 0

    async def one(slot: int) -> None:
        nonlocal confirmed
        while True:
            await sure(entries, f"small {number}.{slot}", b"x" * 100)
            confirmed += 1

    async def tell() -> None:
        nonlocal confirmed
        while True:
            begun, before = time.monotonic(), confirmed
            await asyncio.sleep(RATE_S)
            say(per_s=(confirmed - before) / (time.monotonic() - begun), memory_mib=memory_mib())

    await asyncio.gather(tell(), *(one(slot) for slot in range(UNDERWAY)))


async def longest_pause(longest: list[float]) -> None:
    """How late a callback of the event loop ever was, and how long its process had worked meanwhile: the rest of the
    time the machine was busy with others."""
    while True:
        begun, cpu = time.monotonic(), time.process_time()
        await asyncio.sleep(LOOK_S)
        longest[0] = max(longest[0], time.monotonic() - begun - LOOK_S)
        longest[1] = max(longest[1], time.process_time() - cpu)


async def join(entries: DictionaryFront) -> None:
    pause = [0.0, 0.0]
    begun = time.monotonic()
    beside = [asyncio.create_task(longest_pause(pause)), asyncio.create_task(tell_events(entries, pause))]
    await entries.ready()
    for task in beside:
        task.cancel()
    say(joined=time.monotonic() - begun, entries=len(entries), memory_mib=memory_mib(), pause_s=pause)


async def tell_events(entries: DictionaryFront, pause: list[float]) -> None:
    told = 0
    async for event in entries._caller.watch(Changed, Progress):
        if isinstance(event, Changed):
            say(primary=event.is_primary, members=event.members, reason=event.reason.value, pause_s=pause)
            continue
        if event.trouble:
            say(trouble=event.trouble)
        if event.size - told >= 16 << 20 or event.size < told or event.is_done:
            told = event.size
            say(donor=event.donor, mib=event.size / (1 << 20), done=event.is_done, memory_mib=memory_mib())


class Process:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(cls, *arguments: object) -> Process:
        command = ["-m", "bench.transfer", "--member", *map(str, arguments)]
        return cls(
            await asyncio.create_subprocess_exec(
                sys.executable, *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, limit=1 << 20
            )
        )

    async def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        told: dict[str, Any] = json.loads(line) if line else {"ended": True}
        return told


async def measure(mib: int, value_kib: int, kill: bool) -> None:
    cluster = f"transfer {os.getpid()}"
    members = [await Process.start(number, cluster, mib, value_kib) for number in range(1, MEMBERS + 1)]
    try:
        for each in members:
            while "filled" not in (told := await each.hear()):
                pass
            print(f"a member has filled its share: {told['memory_mib']:,.0f} MiB of memory")
        before = [(await members[-1].hear())["per_s"] for _ in range(4)][1:]
        print(f"one writer: {sum(before) / len(before):,.0f} commands/s before")
        during: list[dict[str, Any]] = []
        last = members[-1]
        joiner = await Process.start(MEMBERS + 1, cluster, mib, value_kib)
        hearing = asyncio.create_task(hear_rates(last, during))
        peak = await watch_joiner(joiner, members, mib, kill)
        hearing.cancel()
        await asyncio.gather(hearing, return_exceptions=True)
        if during:
            rates = sorted(told["per_s"] for told in during)
            mean = sum(rates) / len(rates)
            print(
                f"one writer: {mean:,.0f} commands/s during it ({mean / (sum(before) / len(before)):.0%} of before), "
                f"median {rates[len(rates) // 2]:,.0f}, at the least {rates[0]:,.0f}"
            )
            print(
                f"a member: {during[-1]['memory_mib']:,.0f} MiB of memory at most, the picture that it served included"
            )
        print(f"joiner: {peak:,.0f} MiB of memory at most")
        print(f"load average of the machine {os.getloadavg()[0]:.1f}")
    finally:
        for each in members:
            if each.process.returncode is None:
                each.process.kill()
            await each.process.wait()


async def hear_rates(process: Process, rates: list[dict[str, Any]]) -> None:
    while "per_s" in (told := await process.hear()):
        rates.append(told)


async def watch_joiner(joiner: Process, members: list[Process], mib: int, kill: bool) -> float:
    while "joined" not in (told := await joiner.hear()):
        if "ended" in told:
            raise SystemExit("the joiner has ended")
        if "trouble" in told:
            print(f"given up: {told['trouble']}")
        elif "primary" in told:
            standing = "primary" if told["primary"] else "not primary"
            print(f"{standing}: {told['reason']}: {' '.join(told['members'])}; {pauses(told)} so far")
        elif kill and told["mib"] > mib / 2:
            number = int(told["donor"].rpartition("h")[2])
            if number != MEMBERS:
                print(f"{told['donor']} is killed after {told['mib']:,.0f} MiB")
                members[number - 1].process.send_signal(signal.SIGKILL)
                kill = False
    print(pauses(told))
    print(f"joined in {told['joined']:.1f} s with {told['entries']:,} entries: {mib / told['joined']:,.0f} MiB/s")
    await joiner.process.wait()
    return float(told["memory_mib"])


def pauses(told: dict[str, Any]) -> str:
    late, cpu = told["pause_s"]
    return f"its event loop was late by {1e3 * late:,.0f} ms at most, {1e3 * cpu:,.0f} ms of work of its own at most"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--value-kib", type=int, default=64)
    parser.add_argument("--kill", action="store_true", help="kill the donor when half is there")
    parser.add_argument("--member", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.member:
        number, cluster, mib, value_kib = options.member
        asyncio.run(member(int(number), cluster, int(mib), int(value_kib)))
    else:
        asyncio.run(measure(options.mib, options.value_kib, options.kill))


if __name__ == "__main__":
    main()
