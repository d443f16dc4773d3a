"""Archivers as clients in simulated networks of rings: the shipped lineage over what real groups deliver.

What an archiver has is a dictionary from places to records, and fetching is copying; the first archiver writes files
too, as `archive/keeper.py` does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from ordercast.archive.branches import Branch, ancestors, history
from ordercast.archive.entries import record_bytes
from ordercast.archive.files import GroupFiles
from ordercast.archive.layout import group_folder
from ordercast.archive.lineage import Begin, Fetch, Lineage, Say, Write
from ordercast.archive.pen import Pen
from ordercast.archive.places import Place
from ordercast.archive.statements import statement_bytes, statement_from
from ordercast.groups.names import control_group
from ordercast.model.events import Batch, Message, Piece, Transition, View
from ordercast.model.ids import MILLISECOND
from ordercast.model.service import Service
from ordercast.sim.client import Outgoing, SimClient
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import SimOptions
from ordercast.sim.run import Result, simulate
from ordercast.sim.world import World
from ordercast.trace.records import STAMP_SIZE

GROUP = "g0"
CONTROL = control_group(GROUP)
APPEAR_NS = 300 * MILLISECOND

# Two rings and a gateway; the rings are parted, the gateway dies and comes back.
OPTIONS = SimOptions(
    nodes=5,
    engine="gateways",
    attachments=((0, 1), (0,), (0,), (1,), (1,)),
    clients=1,
    groups=1,
    messages=120,
    size_max=60,
    prompt_clients=True,
    faults=(
        Fault(600 * MILLISECOND, FaultKind.PARTITION, groups=((0, 1, 2), (3, 4)), segment=1),
        Fault(900 * MILLISECOND, FaultKind.HEAL),
        Fault(1300 * MILLISECOND, FaultKind.CRASH, node=0),
        Fault(1500 * MILLISECOND, FaultKind.RESTART, node=0),
    ),
    fault_time_ns=1800 * MILLISECOND,
)


@dataclass
class Archiver:
    client: SimClient
    disk: GroupFiles | None = None
    pen: Pen = field(default_factory=Pen)
    tree: dict[str, Branch] = field(default_factory=dict)
    own: list[str] = field(default_factory=list)  # branches that it wrote to as they came
    records: dict[Place, bytes] = field(default_factory=dict)
    tip: Place | None = None
    wanted: Place | None = None
    lineage: Lineage = field(init=False)

    def __post_init__(self) -> None:
        self.lineage = Lineage(GROUP, self.client.name)

    def take(self, piece: Piece) -> None:
        if isinstance(piece, View | Transition):
            (self.lineage.on_control if piece.group == CONTROL else self.lineage.on_item)(piece)
        elif isinstance(piece, Batch) and piece.groups == (CONTROL,):
            for data in piece.data:
                self.lineage.on_statement(piece.sender, statement_from(data[STAMP_SIZE:], GROUP))
        elif isinstance(piece, Batch) and GROUP in piece.groups:  # others are private
            self.lineage.on_item(piece)
        self.obey()

    def obey(self) -> None:
        actions, self.lineage.actions = self.lineage.actions, []
        for action in actions:
            match action:
                case Say(statement):
                    self.client.send(Outgoing((CONTROL,), Service.AGREED, (statement_bytes(statement),)))
                case Begin(branch):
                    self._begin(branch)
                case Write(item):
                    self.pen.write(item)
                    for entry in item if isinstance(item, Batch) else [item]:
                        self._write(entry)
                case Fetch(place):
                    self.wanted = place
        self.flush()

    def _begin(self, branch: Branch) -> None:
        self.flush()
        self.tree[branch.name] = branch
        self.own.append(branch.name)
        self.tip = Place(branch.name, branch.base)
        self.pen.begin(self.tip, ())
        if self.disk is not None:
            self.disk.begin(branch, is_own=True)

    def _write(self, entry: object) -> None:
        assert self.tip is not None and isinstance(entry, Message | View | Transition)
        self.tip = Place(self.tip.branch, self.tip.number + 1)
        self.records[self.tip] = record_bytes(self.tip, entry)

    def flush(self) -> None:
        """Have everything on disk, where there is one."""
        self.pen.flush()
        for draft in self.pen.drafts if self.disk is not None else ():
            assert self.disk is not None
            self.disk.append(draft.branch, [draft.seal(1)], draft.start, is_own=True)
        self.pen.drafts.clear()

    def fetch(self, donor: Archiver) -> None:
        """Take what is wanted from another archiver, if that one has it."""
        wanted = self.wanted
        if wanted is None or wanted.branch not in donor.tree:
            return
        behind = ancestors(donor.tree, wanted.branch)
        self.tree |= {name: donor.tree[name] for name in behind}
        self.records |= {place: record for place, record in donor.records.items() if place.branch in behind}
        self.wanted, self.tip, self.lineage.stopped = None, wanted, wanted
        self.pen.begin(wanted, ())
        self.lineage.filled(wanted)
        self.obey()

    def history(self) -> list[Place]:
        """The places of its own past, in order."""
        assert self.tip is not None
        stretches = history(self.tree, self.tip, self.own)
        return [Place(one.branch, number) for one in stretches for number in range(one.first, one.last + 1)]


class Archives:
    """The archivers of a run, on these hosts; the first one has a disk."""

    def __init__(self, folder: Path, hosts: tuple[int, ...]) -> None:
        self._folder = folder
        self._hosts = hosts
        self.archivers: dict[SimClient, Archiver] = {}

    def run(self, options: SimOptions, seed: int) -> Result:
        record = SimClient._record

        def recorded(client: SimClient, piece: Piece) -> None:
            record(client, piece)
            if client in self.archivers:
                self.archivers[client].take(piece)

        with patch.object(SimClient, "_record", recorded):
            result = simulate(options, seed, keep_events=True, script=self._script)
        for archiver in self.archivers.values():
            if archiver.disk is not None:
                archiver.disk.close()
        return result

    def _script(self, world: World) -> None:
        for number, host in enumerate(self._hosts):
            world.schedule(APPEAR_NS + number * 50 * MILLISECOND, self._appear, world, host)
        world.schedule(0, self._fetch, world)

    def _appear(self, world: World, host: int) -> None:
        station = world.station_at(host)
        assert station is not None
        client = station.connect("archive")
        disk = None if self.archivers else GroupFiles(group_folder(self._folder, GROUP))
        self.archivers[client] = Archiver(client, disk)
        client.join((CONTROL, GROUP))

    def _fetch(self, world: World) -> None:
        """Now and then, so that what is wanted comes late."""
        for archiver in self.archivers.values():
            for donor in self.archivers.values():
                archiver.fetch(donor)
        if not world.is_healed:
            world.schedule(world.now + 7 * MILLISECOND, self._fetch, world)
