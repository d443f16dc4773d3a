"""A campaign as its file describes it: engine × parameters × fault schedule × seeds. Pure but for reading the file.

A *grid* is every combination of the values of its axes; one combination with one fault schedule is a *cell*, and every
cell is run with every seed. The name of a cell says what is particular to it, and finds it again:

    load: load=400, service=agreed, faults=crash

docs/reference/campaigns.md has every key.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from ordercast.model.errors import UsageError
from ordercast.model.quantities import duration_from
from ordercast.order.catalogue import DEFAULT
from ordercast.pipeline.campaign.comparison import Comparison, comparison_from
from ordercast.pipeline.campaign.gauge import Measure
from ordercast.pipeline.campaign.model import Limit, Model
from ordercast.pipeline.campaign.settings import flat, is_setting, options_from
from ordercast.sim.calm_swarm import usual_options
from ordercast.sim.fault_text import fault_from
from ordercast.sim.faults import Fault
from ordercast.sim.options import SimOptions
from ordercast.sim.swarm import SwarmKind, options_of

HOSTILE = ("plain", "groups", "replicated")
_TOP = (
    "title",
    "text",
    "seeds",
    "hostile",
    "engine",
    "options",
    "measure",
    "schedules",
    "axes",
    "grids",
    "model",
    "comparisons",
)


@dataclass(frozen=True, slots=True)
class Cell:
    """Runs that differ in their seeds alone."""

    name: str
    grid: str
    axes: Mapping[str, Any]  # what is particular to it: the labels of its places on the axes
    schedule: str  # name of its faults; empty: the campaign has none
    hostile: str  # options are drawn from the seed first; empty: they are not
    settings: Mapping[str, Any]
    faults: tuple[Fault, ...]
    measure: Measure | None

    def options(self, seed: int) -> SimOptions:
        engine = str(self.settings.get("engine", DEFAULT))
        base = usual_options(engine)
        if self.hostile:
            base = options_of(seed, SwarmKind(self.hostile), engine)
        options = options_from(self.settings, base)
        if not self.faults:
            return options
        return replace(options, faults=(*options.faults, *self.faults))

    @property
    def is_plainly_hostile(self) -> bool:
        """What `ordercast sim --hostile` runs."""
        return bool(self.hostile and not set(self.settings) - {"engine"} and not self.faults)

    @property
    def key(self) -> str:
        """The same for cells that run the same, whatever they are called."""
        told = [self.hostile, dict(self.settings), [repr(fault) for fault in self.faults], repr(self.measure)]
        text = json.dumps(told, sort_keys=True, default=str)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


@dataclass(frozen=True, slots=True)
class Campaign:
    path: Path
    title: str
    text: str
    seeds: range
    cells: Sequence[Cell]
    comparisons: Sequence[Comparison] = field(default_factory=tuple)
    engine: str | None = None  # that was chosen instead of the file's
    model: Model | None = None  # of the paper's formulas; None: as the options of each cell say

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def runs(self) -> int:
        """Cells that run the same, such as where two grids cross, are run once."""
        return len({cell.key for cell in self.cells}) * len(self.seeds)

    def cell(self, name: str) -> Cell:
        found = next((cell for cell in self.cells if cell.name == name), None)
        if found is None:
            known = "; ".join(cell.name for cell in self.cells[:5])
            raise UsageError(f"{self.path} has no cell {name!r}: it has {len(self.cells)}, such as {known}")
        return found


def campaign_from(path: Path, engine: str | None = None) -> Campaign:
    """UsageError says what is wrong with the file, and where. `engine` is run instead of the file's."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise UsageError(f"the campaign {path} cannot be read: {reason}; give the path of a TOML file") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the campaign {path} is not TOML: {error}") from error
    try:
        return _campaign(path, document if engine is None else document | {"engine": engine}, engine)
    except (UsageError, KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
        raise UsageError(f"the campaign {path} cannot be run: {reason}") from error


def _campaign(path: Path, document: Mapping[str, Any], engine: str | None) -> Campaign:
    _known(document, _TOP, "the file")
    cells = list(_cells(document))
    seeds = seeds_from(document["seeds"])
    names = [cell.name for cell in cells]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two cells have the name {twice!r}: give the grids names of their own")
    for cell in cells:
        try:
            cell.options(seeds[0]).validate()
        except UsageError as error:
            raise UsageError(f"cell {cell.name!r}: {error}") from error
    comparisons = [comparison_from(table) for table in document.get("comparisons", [])]
    for comparison in comparisons:
        comparison.check(cells)
    return Campaign(
        path,
        str(document["title"]),
        str(document.get("text", "")),
        seeds,
        cells,
        comparisons,
        engine,
        _model(document.get("model")),
    )


def _model(table: Any) -> Model | None:
    if table is None:
        return None
    _known(table, ("member_ns", "packet_ns", "byte_ns"), "model")
    return Model(float(table["member_ns"]), (Limit(float(table["packet_ns"]), float(table["byte_ns"])),))


def _cells(document: Mapping[str, Any]) -> Iterator[Cell]:
    common = flat(document.get("options", {}))
    if "engine" in document:
        common["engine"] = document["engine"]
    hostile = document.get("hostile", "")
    if hostile and hostile not in HOSTILE:
        raise UsageError(f"hostile = {hostile!r} cannot be used: choose among {', '.join(HOSTILE)}")
    usual_measure = document.get("measure")
    for grid in document.get("grids", [{"axes": document.get("axes", {})}]):
        _known(grid, ("name", "options", "axes", "measure", "schedules"), "a grid")
        texts = grid.get("schedules", document.get("schedules", {}))
        schedules = {schedule: tuple(map(fault_from, faults)) for schedule, faults in texts.items()}
        name = str(grid.get("name", ""))
        axes = [_axis(key, values) for key, values in grid.get("axes", {}).items()]
        measure = _measure(grid.get("measure", usual_measure))
        for places in product(*axes):
            settings = common | flat(grid.get("options", {}))
            labels = {}
            for axis, label, more in places:
                settings |= more
                labels[axis] = label
            for schedule, faults in (schedules or {"": ()}).items():
                title = _name(name, labels, schedule)
                yield Cell(title, name, labels, schedule, hostile, settings, faults, measure)


def _axis(name: str, values: Any) -> list[tuple[str, Any, dict[str, Any]]]:
    """Each place: the axis, its label, and the settings that it stands for."""
    if not isinstance(values, list) or not values:
        raise UsageError(f"axis {name!r} has no values: write {name} = [1, 2, 3]")
    places = []
    for value in values:
        if isinstance(value, dict):
            settings = flat({key: item for key, item in value.items() if key != "label"})
            places.append((name, value["label"], settings))
        elif is_setting(name):
            places.append((name, value, {name: value}))
        else:
            raise UsageError(f"axis {name!r} is no setting: write its values as tables, {{label = …, SETTING = …}}")
    return places


def _name(grid: str, labels: Mapping[str, Any], schedule: str) -> str:
    words = [f"{axis}={_word(label)}" for axis, label in labels.items()]
    words += [f"faults={schedule}"] if schedule else []
    rest = ", ".join(words)
    return f"{grid}: {rest}" if grid and rest else grid or rest or "all"


def _word(label: Any) -> str:
    return str(label).lower() if isinstance(label, bool) else str(label)


def _measure(table: Any) -> Measure | None:
    if table is None:
        return None
    _known(table, ("window", "saturated"), "measure")
    if table.get("saturated"):
        return Measure(0, 0, saturated=True)
    low, dots, high = str(table["window"]).partition("..")
    if not dots:
        raise UsageError('measure.window is a stretch of time: write window = "0.5s..3s"')
    measure = Measure(duration_from(low), duration_from(high))
    if measure.end_ns <= measure.start_ns:
        raise UsageError(f"measure.window ends at {high} and begins at {low}: nothing lies between")
    return measure


def seeds_from(text: Any) -> range:
    """`A..B`, both included."""
    low, dots, high = str(text).partition("..")
    if not low.isdigit() or (dots and not high.isdigit()) or int(high or low) < int(low):
        raise UsageError(f'seeds = {text!r} cannot be used: write "1..100"')
    return range(int(low), int(high or low) + 1)


def _known(table: Mapping[str, Any], names: Sequence[str], where: str) -> None:
    stranger = next((key for key in table if key not in names), None)
    if stranger is not None:
        raise UsageError(f"{where} has no key {stranger!r}: it may have {', '.join(names)}")
