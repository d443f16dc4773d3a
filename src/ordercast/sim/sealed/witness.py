"""What passes the seal, seen from both sides of it: every packet that an engine hands down, every packet that one is
handed. It knows the truth, and what was sealed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ordercast.checker.verdict import Verdict
from ordercast.model.effects import Broadcast, Effect, Endpoint, SendTo, Then, Unicast
from ordercast.model.ids import NOBODY, Attachment, Instant, ProcessId
from ordercast.model.inputs import Lane, Packet
from ordercast.model.promises import SealPromise
from ordercast.order.engine import Engine
from ordercast.sealing.cipher import SALT_SIZE
from ordercast.sealing.layer import Sealing
from ordercast.sealing.packet import NONCE, SEALED_AT
from ordercast.sim.findings import Findings

Sent = tuple[bytes, Lane]


@dataclass(slots=True)
class SealWitness:
    findings: Findings = field(default_factory=Findings)
    _sealed: set[bytes] = field(default_factory=set)  # nonces, and what was sealed with them
    _nonces: set[tuple[bytes, bytes]] = field(default_factory=set)
    _sent: dict[Sent, list[tuple[int, ProcessId, tuple[int, ...]]]] = field(
        default_factory=dict
    )  # when, to whom (nobody is all), and on which networks
    _born: dict[ProcessId, int] = field(default_factory=dict)
    _counted: Counter[tuple[ProcessId, Attachment, int, Sent]] = field(default_factory=Counter)
    broadcasts: frozenset[Attachment] = frozenset()  # attachments on which all hear all
    is_clear: bool = False  # packets in the clear may count, and nobody answers for those

    def used(self, secret: bytes, nonce: bytes, sealed: bytes) -> None:
        """A packet was sealed so."""
        self._sealed.add(nonce + sealed)
        if (secret, nonce) in self._nonces:
            self.findings.add(SealPromise.NONCES, f"the nonce {nonce.hex()} was used again", NOBODY)
        self._nonces.add((secret, nonce))

    def opened(self, process: ProcessId, packets: Sequence[Packet], count: int) -> None:
        """So many of what came beneath the seal were taken for genuine."""
        singles = [bytes(read.data[at : at + read.segment_size]) for read in packets for at in _starts(read)]
        genuine = sum(not self._sealed.isdisjoint(_sealed_parts(packet)) for packet in singles)
        if count > genuine:
            self.findings.add(SealPromise.GENUINE, f"{count} packets were opened, and {genuine} were genuine", process)

    def birth(self, process: ProcessId) -> int:
        return self._born.get(process, 0)

    def born(self, process: ProcessId, now: int) -> None:
        self._born[process] = now

    def sends(self, effects: Sequence[Effect], now: int) -> None:
        for effect in effects:
            match effect:
                case Broadcast():
                    for packet in effect.packets:
                        self._sent.setdefault((packet, Lane.DATA), []).append((now, NOBODY, effect.networks))
                case SendTo():
                    self._sent.setdefault((effect.packet, Lane.TOKEN), []).append(
                        (now, effect.process, effect.networks)
                    )
                case Unicast():
                    for packet in effect.packets:
                        self._sent.setdefault((packet, Lane.LINK), []).append(
                            (now, self._target(effect), effect.networks)
                        )
                case Then():
                    effect.work = partial(self._seen, effect.work, now)
                case _:
                    pass

    def _seen(self, work: Callable[[], list[Effect]], now: int) -> list[Effect]:
        effects = work()
        self.sends(effects, now)
        return effects

    def _target(self, effect: Unicast) -> ProcessId:
        """Links that are greeted by address have tags of their own, and name nobody in the seal."""
        if isinstance(effect.target, Endpoint) or effect.attachment not in self.broadcasts:
            return NOBODY
        return effect.target

    def receives(self, process: ProcessId, packets: Sequence[Packet]) -> None:
        for packet in packets:
            data, size = bytes(packet.data), packet.segment_size
            for at in range(0, len(data), size):
                self._receive(process, packet, data[at : at + size])

    def _receive(self, process: ProcessId, packet: Packet, data: bytes) -> None:
        if self.is_clear:
            return
        name = data, packet.lane
        sent = [
            at
            for at, target, networks in self._sent.get(name, ())
            if target in (NOBODY, process) and packet.network in networks
        ]
        if not sent:
            self.findings.add(
                SealPromise.GENUINE, f"{data[:40].hex()} on lane {packet.lane.name} was not sent", process
            )
            return
        if max(sent) < self._born[process]:
            self.findings.add(SealPromise.FRESH, f"{data[:40].hex()} is older than its receiver", process)
        counted = process, packet.attachment, packet.network, name
        self._counted[counted] += 1
        if self._counted[counted] > len(sent):
            self.findings.add(SealPromise.ONCE, f"{data[:40].hex()} counts again", process)

    def verdicts(self) -> list[Verdict]:
        return self.findings.broken()


def _starts(read: Packet) -> range:
    return range(0, len(read.data), read.segment_size)


def _sealed_parts(packet: bytes) -> tuple[bytes, bytes]:
    """Return nonce and sealed bytes, if this is an ordinary packet, and if it is a presence."""
    nonce = packet[NONCE]
    return nonce + packet[SEALED_AT:], nonce + packet[SEALED_AT + SALT_SIZE :]


class SeenSealing(Sealing):
    """A seal whose judgement of what comes is seen by a witness."""

    witness: SealWitness

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        before = self.opener.opened + self.opener.copies
        effects = super().receive(packets, now)
        self.witness.opened(self.me, packets, self.opener.opened + self.opener.copies - before)
        return effects


class Witnessed:
    """An engine whose packets are seen by a witness, just above the seal."""

    def __init__(self, engine: Engine, witness: SealWitness, process: ProcessId, now: Any) -> None:
        self._engine, self._witness, self._process, self._global = engine, witness, process, now

    def __getattr__(self, name: str) -> Any:
        """Everything else is the engine's; what returns effects is seen."""
        found = getattr(self._engine, name)
        if name not in SEEN:
            return found

        def seen(*arguments: Any, **named: Any) -> list[Effect]:
            effects: list[Effect] = found(*arguments, **named)
            self._witness.sends(effects, self._global())
            return effects

        return seen

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        self._witness.receives(self._process, packets)
        effects = self._engine.receive(packets, now)
        self._witness.sends(effects, self._global())
        return effects


SEEN = frozenset({"start", "submit", "persisted", "interest", "enlist", "wake", "behind", "leave"})
