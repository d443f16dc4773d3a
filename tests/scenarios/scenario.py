"""A scenario: a script for the simulator, and the whole timeline that it must give.

    # what it shows
    nodes 3                          how many; also `seed 4`, `until 400` (milliseconds; then the network heals)
    at 100 submit n0 [safe]          at that time
    after 120 when n0 enters Gather: isolate n4; submit n1
    after 120 when n3 installs 0 1 2: ...          once, at the first such event after that time

Acts: submit, crash, restart, leave, isolate and rejoin a node; `partition 0 1 | 2 3`; `heal`; `cut 0>2`;
`lose data n3>n4` (packets that n3 numbered, on their way to n4); `lose tokens n4`; `obey` (no more
such losses). Everything below the line of dashes is the timeline.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.ids import MILLISECOND, ConfigurationId, ProcessId, node_of, process_text
from ordercast.model.notes import Moved
from ordercast.model.service import Service
from ordercast.sim.options import SimOptions
from ordercast.sim.run import Result, simulate
from ordercast.sim.world import World
from ordercast.trace.records import Crashed, DeliveredBatch, Departed, Event, Healed, Installed, Noted, Started
from ordercast.wire.head import KIND_AT
from ordercast.wire.header import MessageKind
from tests.packets import originator_of

LINE = "-" * 40
SIZE = 40


@dataclass
class Trigger:
    after: int
    node: int
    verb: str  # enters, installs
    what: str
    acts: list[str]


@dataclass
class Scenario:
    script: list[str]
    timeline: list[str] = field(default_factory=list)
    nodes: int = 3
    seed: int = 1
    until: int = 400
    timed: list[tuple[int, str]] = field(default_factory=list)
    triggers: list[Trigger] = field(default_factory=list)
    isolated: set[int] = field(default_factory=set)
    lost_data: set[tuple[int, int]] = field(default_factory=set)
    lost_tokens: set[int] = field(default_factory=set)
    names: dict[ConfigurationId, str] = field(default_factory=dict)
    worlds: list[World] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        for line in self.script:
            words = line.split()
            match words:
                case []:
                    continue
                case ["#", *_]:
                    continue
                case ["nodes", number]:
                    self.nodes = int(number)
                case ["seed", number]:
                    self.seed = int(number)
                case ["until", number]:
                    self.until = int(number)
                case ["at", moment, *act]:
                    self.timed.append((int(float(moment) * MILLISECOND), " ".join(act)))
                case ["after", moment, "when", node, verb, *_]:
                    condition, _, acts = line.partition(":")
                    what = condition.partition(verb)[2].strip()
                    each = [act.strip() for act in acts.split(";")]
                    self.triggers.append(Trigger(int(moment) * MILLISECOND, int(node[1:]), verb, what, each))
                case _:
                    raise AssertionError(f"the script does not know: {line}")

    def run(self) -> Result:
        options = SimOptions(
            nodes=self.nodes,
            messages=0,
            fault_time_ns=self.until * MILLISECOND,
            delay_max_ns=100_000,
        )
        return simulate(options, self.seed, observer=self._observe, script=self._set_up)

    @property
    def world(self) -> World:
        return self.worlds[0]

    def _set_up(self, world: World) -> None:
        self.worlds.append(world)
        world.rule = self._passes
        for at, act in self.timed:
            world.schedule(at, self._act, act)

    def _passes(self, source: int, target: int, packet: bytes) -> bool:
        kind = packet[KIND_AT]
        if {source, target} & self.isolated:
            return False
        if kind == MessageKind.DATA:
            return (originator_of(packet, self.events), target) not in self.lost_data
        return kind != MessageKind.TOKEN or target not in self.lost_tokens

    # Acts

    def _act(self, act: str) -> None:
        world = self.world
        self._tell(f"-- {act}")
        verb, *words = act.split()
        node = int(words[0][1:]) if words and words[0].startswith("n") and words[0][1:].isdigit() else 0
        simple: dict[str, Callable[[], object]] = {
            "crash": lambda: world.hosts[node].crash(),
            "restart": lambda: world.hosts[node].start(),
            "leave": lambda: world.hosts[node].leave(),
            "heal": world.network.heal,
            "isolate": lambda: self.isolated.add(node),
            "rejoin": lambda: self.isolated.discard(node),
            "obey": self._obey,
        }
        if verb in simple:
            simple[verb]()
        elif verb == "submit":
            service = Service.SAFE if "safe" in words else Service.AGREED
            assert world.hosts[node].submit(0, service, SIZE, bytes(SIZE - 20))
        elif verb == "partition":
            groups = " ".join(words).split("|")
            world.network.partition([int(one) for one in group.split()] for group in groups)
        elif verb == "cut":
            links = [word.split(">") for word in words]
            world.network.cuts.update((int(one), int(other)) for one, other in links)
        elif verb == "lose":
            self._lose(*words)
        else:
            raise AssertionError(f"the script does not know: {act}")

    def _lose(self, what: str, *names: str) -> None:
        for name in names:
            if what == "data":
                source, target = name.replace("n", "").split(">")
                self.lost_data.add((int(source), int(target)))
            else:
                self.lost_tokens.add(int(name[1:]))

    def _obey(self) -> None:
        self.lost_tokens.clear()
        self.lost_data.clear()

    # The timeline

    def _tell(self, text: str, process: ProcessId | None = None) -> None:
        who = process_text(process) if process is not None else ""
        self.timeline.append(f"{self.world.now / MILLISECOND:7.1f} {who:<5} {text}".rstrip())

    def _observe(self, event: Event) -> None:
        self.events.append(event)
        match event:
            case Started():
                self._tell("starts", event.process)
            case Crashed():
                self._tell("crashes", event.process)
            case Departed():
                self._tell("has left", event.process)
            case Installed():
                self._tell(self._view_text(event.configuration), event.process)
            case DeliveredBatch():
                texts = [f"{process_text(m.message.process)}/{m.message.counter}" for m in event.messages if m.message]
                self._tell(f"delivers {' '.join(texts)} in {self.names[event.configuration]}", event.process)
            case Noted(note=Moved(origin, target, reason)):
                because = f": {reason.text}" if reason is not None else ""
                self._tell(f"{origin} → {target}{because}", event.process)
            case Healed():
                self._tell("-- from here on nothing bad happens")
            case _:
                pass
        self._pull(event)

    def _view_text(self, view: Configuration) -> str:
        members = " ".join(map(process_text, view.members))
        shown = f"[{members}]" if view.kind is ConfigurationKind.REGULAR else f"({members})"
        self.names[view.id] = shown
        return (
            f"{shown} as {view.id}: {view.reason.text}"
            if view.kind is ConfigurationKind.REGULAR
            else f"{shown} as {view.id}"
        )

    def _pull(self, event: Event) -> None:
        for trigger in list(self.triggers):
            if self.world.now >= trigger.after and _meets(event, trigger):
                self.triggers.remove(trigger)
                for act in trigger.acts:
                    self._act(act)


def _meets(event: Event, trigger: Trigger) -> bool:
    if isinstance(event, Noted) and isinstance(event.note, Moved) and trigger.verb == "enters":
        return node_of(event.process) == trigger.node and event.note.target == trigger.what
    if isinstance(event, Installed) and trigger.verb == "installs":
        members = " ".join(str(node_of(member)) for member in event.configuration.members)
        is_regular = event.configuration.kind is ConfigurationKind.REGULAR
        return is_regular and node_of(event.process) == trigger.node and members == trigger.what
    return False


def read(path: Path) -> tuple[list[str], list[str]]:
    """The script and the expected timeline."""
    script, _, timeline = path.read_text(encoding="utf-8").partition(f"{LINE}\n")
    return script.splitlines(), timeline.splitlines()


def write(path: Path, script: list[str], timeline: list[str]) -> None:
    path.write_text("\n".join([*script, LINE, *timeline]) + "\n", encoding="utf-8")
