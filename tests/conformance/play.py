"""A whole ring in the simulator, with exact losses and acts at exact moments, and questions about what happened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.ids import MILLISECOND, ConfigurationId, node_of
from ordercast.model.notes import Moved, Occurred, Occurrence, Visited
from ordercast.model.service import Service
from ordercast.sim.options import SimOptions
from ordercast.sim.run import Result, simulate
from ordercast.sim.world import World
from ordercast.trace.records import DeliveredBatch, DeliveredMessage, Event, Installed, Noted
from ordercast.wire.head import KIND_AT
from ordercast.wire.header import MessageKind

SIZE = 40


def kind_of(packet: bytes) -> int:
    return packet[KIND_AT]


def is_data(packet: bytes) -> bool:
    return packet[KIND_AT] == MessageKind.DATA


def is_token(packet: bytes) -> bool:
    return packet[KIND_AT] == MessageKind.TOKEN


def options(**changes: Any) -> SimOptions:
    """Three calm hosts that send nothing by themselves."""
    calm: dict[str, Any] = {
        "nodes": 3,
        "messages": 0,
        "fault_time_ns": 300 * MILLISECOND,
        "delay_max_ns": 100_000,
    }
    return SimOptions(**{**calm, **changes})


@dataclass
class Play:
    """`rule` loses what it denies; `watch` sees every event; `at` and `submit` act."""

    options: SimOptions = field(default_factory=options)
    seed: int = 1
    rule: Callable[[int, int, bytes], bool] = lambda source, target, packet: True
    watch: Callable[[Event], None] = lambda event: None
    cut: set[int] = field(default_factory=set)  # nodes that nobody hears and that hear nobody
    events: list[Event] = field(default_factory=list)
    acts: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    worlds: list[World] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)

    def at(self, milliseconds: float, act: Callable[[], None]) -> None:
        self.acts.append((int(milliseconds * MILLISECOND), act))

    @property
    def world(self) -> World:
        return self.worlds[0]

    def submit(self, node: int, service: Service = Service.AGREED, size: int = SIZE) -> None:
        assert self.world.hosts[node].submit(0, service, size, bytes(size - 20))

    def crash(self, node: int) -> None:
        self.world.hosts[node].crash()

    def run(self) -> Play:
        result = simulate(self.options, self.seed, observer=self._observe, script=self._script)
        self.results.append(result)
        return self

    @property
    def result(self) -> Result:
        return self.results[0]

    @property
    def is_valid(self) -> bool:
        """All checkers are content, and in the end all that live are on one ring and idle."""
        return self.result.is_valid

    def _script(self, world: World) -> None:
        self.worlds.append(world)
        world.rule = self._rule
        for at, act in self.acts:
            world.schedule(at, act)

    def _rule(self, source: int, target: int, packet: bytes) -> bool:
        return source not in self.cut and target not in self.cut and self.rule(source, target, packet)

    def _observe(self, event: Event) -> None:
        self.events.append(event)
        self.watch(event)

    # Questions

    def views(self, node: int) -> list[Configuration]:
        return [e.configuration for e in self.events if isinstance(e, Installed) and node_of(e.process) == node]

    def memberships(self, node: int) -> list[list[int]]:
        """Of the regular views of a node."""
        return [members_of(view) for view in self.views(node) if view.kind is ConfigurationKind.REGULAR]

    def deliveries(self, node: int, ring: ConfigurationId | None = None) -> list[DeliveredMessage]:
        return [
            message
            for event in self.events
            if isinstance(event, DeliveredBatch) and node_of(event.process) == node and ring in (None, event.origin)
            for message in event.messages
        ]

    def story(self, node: int) -> list[str]:
        """Views and deliveries of one node: `[0 1]` a regular view, `(1)` a transitional one, `n3` a message of n3."""
        lines: list[str] = []
        for event in self.events:
            if isinstance(event, Installed) and node_of(event.process) == node:
                members = " ".join(map(str, members_of(event.configuration)))
                lines.append(
                    f"[{members}]" if event.configuration.kind is ConfigurationKind.REGULAR else f"({members})"
                )
            elif isinstance(event, DeliveredBatch) and node_of(event.process) == node:
                lines += [f"n{node_of(m.message.process)}" for m in event.messages if m.message is not None]
        return lines

    def visits(self, since_ms: float = 0) -> list[tuple[int, Visited]]:
        """(node, token visit), in order."""
        return [
            (node_of(event.process), event.note)
            for event in self.events
            if isinstance(event, Noted) and isinstance(event.note, Visited) and event.at >= since_ms * MILLISECOND
        ]

    def moves(self, node: int) -> list[Moved]:
        return [
            event.note
            for event in self.events
            if isinstance(event, Noted) and isinstance(event.note, Moved) and node_of(event.process) == node
        ]

    def count(self, what: Occurrence) -> int:
        return sum(
            event.note.count
            for event in self.events
            if isinstance(event, Noted) and isinstance(event.note, Occurred) and event.note.what is what
        )


def members_of(view: Configuration) -> list[int]:
    return [node_of(member) for member in view.members]


def has_installed(event: Event, members: list[int], node: int | None = None) -> bool:
    return (
        isinstance(event, Installed)
        and event.configuration.kind is ConfigurationKind.REGULAR
        and members_of(event.configuration) == members
        and node in (None, node_of(event.process))
    )


def has_entered(event: Event, node: int, state: str) -> bool:
    return (
        isinstance(event, Noted)
        and node_of(event.process) == node
        and isinstance(event.note, Moved)
        and event.note.target == state
    )
