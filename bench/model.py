"""The paper's model of token rotation time and latency against the simulator. (Paper, section 4.4)

    T = N b / (1 - r ρ)      agreed delivery after about T / 2, safe delivery after about 2 T

N members; ρ is the share of the medium that carries messages; b the time that one member adds to a rotation without
messages (propagation, transmission and processing of the token); r the ratio of the time that a message occupies a
member to the time that it occupies the medium: 1 where the network is the limit, above where the receivers are.

    python bench/model.py [--json]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from random import Random
from statistics import mean

from ordercast.model.ids import MICROSECOND, MILLISECOND, SECOND
from ordercast.model.notes import Visited
from ordercast.model.service import Service
from ordercast.sim.options import SIM_RING, SimOptions
from ordercast.sim.run import simulate
from ordercast.sim.world import World
from ordercast.trace.records import STAMP_SIZE, DeliveredBatch, Event, MessageId, Noted, Submitted
from ordercast.wire.codec import TOKEN_SIZE
from ordercast.wire.header import DESCRIPTOR_SIZE, HEADER_SIZE

BANDWIDTH = 100_000_000
SIZE = 1000
START_NS, END_NS = 200 * MILLISECOND, 800 * MILLISECOND


@dataclass(frozen=True)
class Case:
    members: int
    utilisation: float  # ρ
    packet_ns: int  # processing of a packet at a receiver
    delay_ns: int = 50 * MICROSECOND
    token_ns: int = 30 * MICROSECOND

    @property
    def message_ns(self) -> float:
        """a: how long one message occupies the medium."""
        return (HEADER_SIZE + DESCRIPTOR_SIZE + SIZE) * 8 * SECOND / BANDWIDTH

    @property
    def ratio(self) -> float:
        """r"""
        return max(1.0, self.packet_ns / self.message_ns)

    @property
    def member_ns(self) -> float:
        """b"""
        return self.delay_ns + self.token_ns + TOKEN_SIZE * 8 * SECOND / BANDWIDTH

    @property
    def rotation_ns(self) -> float:
        """T"""
        return self.members * self.member_ns / (1 - self.ratio * self.utilisation)


@dataclass(frozen=True)
class Compared:
    members: int
    utilisation: float
    ratio: float
    predicted_rotation_us: float
    simulated_rotation_us: float
    agreed_in_rotations: float  # mean over the members; the model says 0.5
    safe_in_rotations: float  # mean over the members; the model says 2
    safe_at_last: float  # until the last member has delivered

    @property
    def difference(self) -> float:
        return self.simulated_rotation_us / self.predicted_rotation_us - 1


@dataclass
class Observer:
    """Rotation times at one member; when each message was submitted, and when each member delivered it."""

    visits: list[int] = field(default_factory=list)
    submitted: dict[MessageId, int] = field(default_factory=dict)
    delivered: dict[MessageId, list[int]] = field(default_factory=dict)

    def observe(self, event: Event) -> None:
        if not START_NS <= event.at <= END_NS:
            return
        if isinstance(event, Noted) and isinstance(event.note, Visited):
            if event.process >> 48 == 0:
                self.visits.append(event.at)
        elif isinstance(event, Submitted):
            for message in event.messages:
                self.submitted[message.message] = event.at
        elif isinstance(event, DeliveredBatch):
            for delivery in event.messages:
                if delivery.message is not None:
                    self.delivered.setdefault(delivery.message, []).append(event.at)

    def latency(self, over: Callable[[list[int]], float]) -> float:
        """Mean over the messages, of the mean or the last time over the members."""
        return mean(
            over(times) - self.submitted[message]
            for message, times in self.delivered.items()
            if message in self.submitted
        )


def compare(case: Case, service: Service) -> tuple[float, float, float]:
    """Mean rotation time, mean latency and latency at the last member with Poisson arrivals, all of one service."""
    ring = replace(SIM_RING, packet_size_max=1472, window=200, visit_max=100, backlog_max=2000, rest_ns=1)
    options = SimOptions(
        nodes=case.members,
        ring=ring,
        messages=0,
        delay_min_ns=case.delay_ns,
        delay_max_ns=case.delay_ns,
        bandwidth=BANDWIDTH,
        packet_ns=case.packet_ns,
        token_ns=case.token_ns,
        receive_buffer=4096,
        fault_time_ns=END_NS,
    )
    rng = Random(1)

    def script(world: World) -> None:
        def submit(node: int) -> None:
            world.hosts[node].submit(0, service, SIZE, bytes(SIZE - STAMP_SIZE))

        at = float(START_NS // 2)
        while at < END_NS:
            at += rng.expovariate(case.utilisation / case.message_ns)
            world.schedule(int(at), submit, rng.randrange(case.members))

    observer = Observer()
    result = simulate(options, 1, observer=observer.observe, script=script)
    if not result.is_valid:
        raise SystemExit(f"the run is not valid: {result.verdict.sentence}")
    gaps = [later - earlier for earlier, later in zip(observer.visits, observer.visits[1:], strict=False)]
    return mean(gaps), observer.latency(mean), observer.latency(max)


def row(case: Case) -> Compared:
    rotation, agreed, _ = compare(case, Service.AGREED)
    safe_rotation, safe, safe_last = compare(case, Service.SAFE)
    return Compared(
        case.members,
        case.utilisation,
        case.ratio,
        case.rotation_ns / 1e3,
        rotation / 1e3,
        agreed / rotation,
        safe / safe_rotation,
        safe_last / safe_rotation,
    )


CASES = [
    *(Case(members, 0.1, 10 * MICROSECOND) for members in (2, 5, 10, 20)),
    *(Case(5, utilisation, 10 * MICROSECOND) for utilisation in (0.3, 0.5, 0.7)),
    *(Case(5, utilisation, 130 * MICROSECOND) for utilisation in (0.1, 0.2, 0.3)),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = [row(case) for case in CASES]
    if arguments.json:
        print(json.dumps([asdict(compared) | {"difference": compared.difference} for compared in rows]))
        return
    titles = (
        "N",
        "ρ",
        "r",
        "T predicted, µs",
        "T simulated, µs",
        "difference",
        "agreed / T",
        "safe / T",
        "safe, last / T",
    )
    print("| " + " | ".join(titles) + " |")
    print("|---" * len(titles) + "|")
    for r in rows:
        print(
            f"| {r.members} | {r.utilisation} | {r.ratio:.2f} | {r.predicted_rotation_us:.0f} "
            f"| {r.simulated_rotation_us:.0f} | {r.difference:+.0%} | {r.agreed_in_rotations:.2f} "
            f"| {r.safe_in_rotations:.2f} | {r.safe_at_last:.2f} |"
        )


if __name__ == "__main__":
    main()
