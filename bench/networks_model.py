"""Figures 6 to 9 of the paper in the simulator: throughput against message size, unreplicated, active and passive on
two networks, and active-passive on three, which the paper could not measure.

Every host always has something to send. A network carries 100 Mbit/s of each host; handing a packet to a network and
taking one from it cost processor time, so that either may be the limit, as on the paper's machines. `cpu` scales that
time: with faster processors passive comes nearer to the sum of its networks, and active to one network.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from ordercast.model.effects import Alarm
from ordercast.model.ids import MICROSECOND, MILLISECOND, SECOND
from ordercast.model.service import Service
from ordercast.networks.config import NetworksConfig, Replication
from ordercast.order.ring.config import RingConfig
from ordercast.sim.options import SimOptions
from ordercast.sim.run import simulate
from ordercast.sim.world import World
from ordercast.trace.records import STAMP_SIZE, DeliveredBatch, Event

RING = RingConfig()
STYLES: dict[str, NetworksConfig] = {
    "unreplicated": NetworksConfig(),
    "active, 2": NetworksConfig(count=2),
    "passive, 2": NetworksConfig(count=2, replication=Replication.PASSIVE),
    "active-passive, 2 of 3": NetworksConfig(count=3, replication=Replication.ACTIVE_PASSIVE),
}
BEGIN, SPAN = 2 * SECOND, 200 * MILLISECOND
TOP_UP_NS = 2 * MILLISECOND
QUEUED = 260_000  # bytes that every host has to send at any time


@dataclass(frozen=True)
class Point:
    style: str
    nodes: int
    size: int
    per_s: float  # messages delivered at one host
    kib_per_s: float
    alarms: int


def sizes(quick: bool) -> list[int]:
    """Around the sizes of which one, two or three fill a packet."""
    whole = RING.whole_size_max
    half = (RING.body_size_max - 14) // 2
    return [400, half, half + 1, whole, whole + 1] if quick else [
        100, 300, 500, half - 60, half, half + 1, 900, 1100, whole - 60, whole, whole + 1, 1800, 2500, 4000, 10_000
    ]  # fmt: skip


def point(style: str, nodes: int, size: int, cpu: float = 1.0, seed: int = 1) -> Point:
    options = SimOptions(
        nodes=nodes,
        ring=replace(RING, queue_size_max=1 << 22, message_size_max=1 << 20),
        networks=STYLES[style],
        messages=0,
        size_max=1 << 16,
        bandwidth=100_000_000,
        delay_min_ns=30 * MICROSECOND,
        delay_max_ns=30 * MICROSECOND,
        packet_ns=int(55 * MICROSECOND * cpu),
        send_ns=int(30 * MICROSECOND * cpu),
        token_ns=int(60 * MICROSECOND * cpu),
        receive_buffer=4000,
        fault_time_ns=BEGIN + SPAN,
        settle_ns=20 * SECOND,
    )
    delivered: Counter[str] = Counter()

    def observe(event: Event) -> None:
        if (
            isinstance(event, DeliveredBatch)
            and BEGIN + SPAN // 4 <= event.at < BEGIN + SPAN
            and event.process >> 48 == 0
        ):
            delivered["messages"] += len(event.messages)

    def script(world: World) -> None:
        def top_up() -> None:
            for host in world.hosts:
                life = host.life
                while life is not None and life.engine.room() > options.ring.queue_size_max - QUEUED:
                    host.submit(0, Service.AGREED, size, bytes(size - STAMP_SIZE))
            if world.now < BEGIN + SPAN:
                world.schedule(world.now + TOP_UP_NS, top_up)

        world.schedule(BEGIN, top_up)

    result = simulate(options, seed, observer=observe, script=script, verbose=False)
    assert result.is_valid, result.verdict.sentence
    span = SPAN * 3 / 4 / SECOND
    alarms = sum(isinstance(alarm, Alarm) and alarm.network is not None for _, _, alarm in result.alarms)
    per_s = delivered["messages"] / span
    return Point(style, nodes, size, per_s, per_s * size / 1024, alarms)


def figures(nodes: tuple[int, ...] = (4, 6), quick: bool = False) -> list[Point]:
    return [point(style, count, size) for count in nodes for size in sizes(quick) for style in STYLES]


def main(quick: bool = True) -> None:
    print("simulated, 100 Mbit/s a network: messages/s (KiB/s)")
    for count in (4, 6):
        print(f"  {count} nodes   " + "".join(f"{style:>26}" for style in STYLES))
        for size in sizes(quick):
            row = [point(style, count, size) for style in STYLES]
            print(f"  {size:>7} B " + "".join(f"{p.per_s:>14,.0f} ({p.kib_per_s:>8,.0f})" for p in row), flush=True)
    print("  processors four times as fast, 4 nodes, a whole packet:")
    fast = [point(style, 4, RING.whole_size_max, cpu=0.25) for style in STYLES]
    print("            " + "".join(f"{p.per_s:>14,.0f} ({p.kib_per_s:>8,.0f})" for p in fast))


if __name__ == "__main__":
    main()
