"""A link on a hostile path, judged while it runs. A run depends on its seed alone.

Packets are lost, doubled, delayed, reordered, old ones come back; one direction or both are cut for a while; one end
begins anew, which makes a new epoch. `Broken` says what a link did that it may not do.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from ordercast.model.ids import MILLISECOND, Instant
from ordercast.order.links.config import FAR, NEAR, LinkConfig
from ordercast.order.links.rate import Fair, Fixed
from ordercast.order.links.regulator import Open, Regulator
from tests.unit.order.links.pair import Broken, Pair, make_link

MS = MILLISECOND
RIDING = 60  # seeds from this one on have riders, and regulators in turn
REGULATORS: tuple[Callable[[LinkConfig], Regulator], ...] = (
    lambda config: Open(config.window),
    lambda config: Fixed(1_000_000, config.window, burst=2_000),
    lambda config: Fair(config.window, config.packet_size),
)
SILENT_AFTER = 12_000 * MS  # no link lives on so long on a path that carries nothing


@dataclass
class Path:
    """What becomes of packets."""

    rng: Random
    loss: float
    duplication: float
    jitter: float
    delay: int
    cut: set[int] = field(default_factory=set)  # ends whose packets go nowhere
    happened: Counter[str] = field(default_factory=Counter)

    def fate(self, end: int, packet: bytes, now: int) -> list[int]:
        rng = self.rng
        if end in self.cut or rng.random() < self.loss:
            self.happened["lost"] += 1
            return []
        copies = [self._delay()]
        if rng.random() < self.duplication:
            self.happened["doubled"] += 1
            copies.append(min(self._delay() * rng.randrange(1, 30), 2_000 * MS))
        return copies

    def _delay(self) -> int:
        if self.rng.random() < self.jitter:
            self.happened["delayed"] += 1
            return self.delay * self.rng.randrange(1, 8)
        return self.delay


def _rider(number: int) -> bytes:
    return number.to_bytes(8, "big")


def path_from(rng: Random, is_near: bool) -> Path:
    delay = (rng.choice((1, 5)) * MS // 10) if is_near else rng.choice((2, 10, 50)) * MS
    loss, jitter = rng.choice((0.0, 0.05, 0.2)), rng.choice((0.0, 0.1, 0.4))
    return Path(rng, loss, rng.choice((0.0, 0.1)), jitter, delay)


class Trial:
    """One run: two ends that send at random moments, and what is owed of it."""

    def __init__(self, seed: int, is_checked: bool = True) -> None:
        self.rng = rng = Random(seed)
        self.is_checked = is_checked  # also from inside
        is_near = rng.random() < 0.5
        window = rng.choice((4, 64, 1024))
        base = NEAR if is_near else FAR
        ack_every = min(base.ack_every, window // 2)
        self.config = replace(base, window=window, ack_every=ack_every, packet_size=400, payload_max=4000)
        if seed >= RIDING:
            self.config = replace(self.config, rider_size=8)
        self.config.validate()
        self.regulators = REGULATORS[seed % len(REGULATORS)] if seed >= RIDING else REGULATORS[0]
        self.riders = [0, 0]
        self.path = path_from(rng, is_near)
        self.serial = 0
        self.epoch = 0
        self.happened = self.path.happened
        self.pair = self._anew()

    def _anew(self) -> Pair:
        """Both ends begin a new epoch; packets of the old one are still under way."""
        self.epoch += 1
        old = getattr(self, "pair", None)
        now = old.now if old else 0
        tags = (self.epoch, 1000 + self.epoch)
        self.sent: tuple[list[bytes], list[bytes]] = ([], [])
        ends = [make_link(self.config, end, now, self.regulators(self.config), tags) for end in (0, 1)]
        pair = Pair(ends, self.path.fate, now)
        self.riders = [0, 0]
        pair.is_checked = self.is_checked
        if old:
            pair.take_over(old)
        return pair

    def run(self) -> Counter[str]:
        for _ in range(self.rng.randrange(10, 40)):
            self._act()
            self.pair.run(self.pair.now + self.rng.randrange(1, 40) * MS)
            self._hello()
            self._judge()
        self._finish()
        return self.happened

    def _act(self) -> None:
        choice = self.rng.random()
        if choice < 0.06:
            self.path.cut = {self.rng.randrange(2)} if self.rng.random() < 0.7 else {0, 1}
            self.happened["cut"] += 1
            self._pass(self.rng.choice((0, 0, 400, 3000)) * MS)
        elif choice < 0.2:
            self.path.cut = set()
        elif choice < 0.26:
            self.pair = self._anew()
            self.happened["began anew"] += 1
        else:
            self._send(self.rng.randrange(2))

    def _send(self, end: int) -> None:
        payloads = [self._payload(end) for _ in range(self.rng.choice((1, 1, 3, 30)))]
        self.sent[end].extend(payloads)
        self.pair.send(end, payloads)
        self._ride(end)

    def _ride(self, end: int) -> None:
        """Let a number ride that rises; whatever was to be sent has left, or waits for room."""
        if self.config.rider_size:
            self.happened["ridden"] += 1
            self.riders[end] += self.serial % 3
            self.pair.ends[end].ride(_rider(self.riders[end]), Instant(self.pair.now))
            self.pair.flush(end)

    def _payload(self, end: int) -> bytes:
        self.serial += 1
        size = self.rng.choice((0, 10, 200, 3000))
        self.happened["in parts"] += size == 3000
        return b"%d %d %d " % (self.epoch, end, self.serial) + bytes(size)

    def _hello(self) -> None:
        """Idle traffic is the engine's: it is heard where the path carries it."""
        for end in (0, 1):
            if 1 - end not in self.path.cut:
                self.pair.ends[end].hear(Instant(self.pair.now))

    # What must hold

    def _judge(self) -> None:
        for end in (0, 1):
            arrived, sent = self.pair.arrived[1 - end], self.sent[end]
            if len(set(arrived)) != len(arrived):
                raise Broken("a payload arrived twice")
            if not set(arrived) <= set(sent):
                raise Broken("a payload arrived that was never sent in this epoch")
            if self.config.is_ordered and arrived != sent[: len(arrived)]:
                raise Broken("payloads arrived out of order")
            if not self.config.is_ordered and self.pair.late[1 - end]:
                raise Broken("a payload came and was not passed up at once")

    def _finish(self) -> None:
        """On a good path everything arrives, or the link had failed; then it is silent. On a dead one it fails."""
        self.path.cut, self.path.loss, self.path.jitter = set(), 0.0, 0.0
        for _ in range(60):
            ends = self.pair.ends
            if not (any(link.failure for link in ends) or all(link.is_quiet for link in ends)):
                self._pass(1_000 * MS)
        self._pass(3_000 * MS)  # old copies come, and are acknowledged
        self._judge()
        for link in self.pair.ends:
            self.happened[link.failure.name if link.failure else "stayed"] += 1
        if not any(link.failure for link in self.pair.ends):
            self._judge_end()
        elif not self.happened["cut"]:
            raise Broken("a link failed on a path that works")
        self._die()

    def _judge_end(self) -> None:
        for end in (0, 1):
            if len(self.pair.arrived[1 - end]) != len(self.sent[end]):
                raise Broken("a payload never arrived")
            if self.config.rider_size and max(self.pair.riders[1 - end], default=bytes(8)) != _rider(self.riders[end]):
                raise Broken("the last rider never arrived")
        before = len(self.pair.on_wire)
        self._pass(1_000 * MS)
        if len(self.pair.on_wire) != before:
            raise Broken("an idle link is not silent")

    def _die(self) -> None:
        """The path carries nothing any more, in one direction or both, and both ends have something to send. An end
        that hears nothing fails; so does every end of a link that has to move."""
        self.path.cut = self.rng.choice(({0}, {1}, {0, 1}))
        for end in (0, 1):
            if not self.pair.ends[end].failure:
                self.pair.send(end, [b"in vain"])
        self._pass(SILENT_AFTER)
        for end, link in enumerate(self.pair.ends):
            must_fail = 1 - end in self.path.cut or self.config.stall_ns
            if must_fail and link.failure is None:
                raise Broken("a link lives on without the other side")
            self.happened[f"at last {link.failure.name if link.failure else 'lives'}"] += 1

    def _pass(self, time: int) -> None:
        until = self.pair.now + time
        while self.pair.now < until:
            self.pair.run(min(until, self.pair.now + 500 * MS))
            self._hello()


def main(seeds: int) -> None:
    happened: Counter[str] = Counter()
    for seed in range(seeds):
        try:
            happened += Trial(seed).run()
        except Broken as broken:
            raise Broken(f"seed {seed}: {broken}") from broken
    sys.stdout.writelines(f"{count:8} {what}\n" for what, count in sorted(happened.items()))


if __name__ == "__main__":
    main(int(sys.argv[1]))
