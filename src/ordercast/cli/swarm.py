"""`ordercast swarm`: many hostile runs on all cores; failing seeds with the command that replays each."""

from __future__ import annotations

import os
import signal
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ordercast.cli import INTERRUPTED
from ordercast.cli.drawing import coverage_table
from ordercast.cli.quantities import seeds_from
from ordercast.cli.recording import record, run_info
from ordercast.cli.smallest import draw_smallest, shrunken
from ordercast.cli.terminal import Meter, complain, failed_text, note, output, write_json
from ordercast.model.errors import UsageError
from ordercast.order.catalogue import DEFAULT
from ordercast.sim.options import SimOptions
from ordercast.sim.ring_topologies import RingTopology, topology_from
from ordercast.sim.run_options import replay_command
from ordercast.sim.swarm import Outline, SwarmKind, expected_rows, options_of, swarm
from ordercast.trace.arrow import TraceError
from ordercast.trace.parquet import prepare_folder

PROCESSES_MAX = 1024


def kind_from(*, groups: bool, replicated: bool, networks: bool, sealed: bool) -> SwarmKind:
    """Return the kind that is asked for. UsageError when it is more than one."""
    if groups + replicated + networks + sealed > 1:
        raise UsageError("--groups, --replicated, --networks and --sealed are different swarms: choose one of them")
    kinds = (SwarmKind.GROUPS, SwarmKind.REPLICATED, SwarmKind.NETWORKS, SwarmKind.SEALED)
    asked = dict(zip(kinds, (groups, replicated, networks, sealed), strict=True))
    return next((kind for kind, is_asked in asked.items() if is_asked), SwarmKind.PLAIN)


@dataclass(slots=True)
class Harvest:
    """The sum of all runs so far."""

    engine: str = DEFAULT
    kind: SwarmKind = SwarmKind.PLAIN
    topology: RingTopology | None = None  # of all runs; None: each draws its own
    runs: int = 0
    inputs: int = 0
    submissions: int = 0
    failures: list[Outline] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    processes: int = 1
    is_interrupted: bool = False
    traces: dict[int, str] = field(default_factory=dict)  # of failing seeds

    def add(self, outline: Outline) -> None:
        self.runs += 1
        self.inputs += outline.inputs
        self.submissions += outline.submissions
        self.counts.update(outline.counts)
        if not outline.is_valid:
            self.failures.append(outline)

    @property
    def rate(self) -> float:
        """Inputs per second and core."""
        return self.inputs / self.seconds / self.processes if self.seconds else 0.0

    def expected(self) -> list[str]:
        return expected_rows(self.kind, self.engine)

    def never(self) -> list[str]:
        return [name for name in self.expected() if not self.counts[name]]


def run_swarm(
    seeds: str,
    engine: str | None,
    topology: str | None,
    groups: bool,
    replicated: bool,
    networks: bool,
    sealed: bool,
    processes: int | None,
    trace: Path | None,
    strict_coverage: bool,
    shrinks: bool,
    as_json: bool,
) -> int:
    wanted = seeds_from(seeds)
    if processes is not None and not 1 <= processes <= PROCESSES_MAX:
        raise UsageError(f"--processes {processes} cannot be used: write a number of 1 to {PROCESSES_MAX}")
    kind = kind_from(groups=groups, replicated=replicated, networks=networks, sealed=sealed)
    chosen = None if topology is None else topology_from(topology)
    harvest = Harvest(engine or DEFAULT, kind, chosen, processes=min(processes or os.cpu_count() or 1, len(wanted)))
    _options(wanted[0], harvest).validate()  # what cannot be run is told before anything is
    if trace is not None:
        _prepare(trace, wanted[0], harvest)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: what has been run is told
    _gather(harvest, wanted, processes)
    if trace is not None:
        _write_traces(harvest, trace)
    smallest = None
    if shrinks and harvest.failures and not harvest.is_interrupted:
        seed = harvest.failures[0].seed
        smallest = shrunken(_options(seed, harvest), seed)
    if as_json:
        write_json(_document(harvest, wanted) | ({} if smallest is None else {"smallest": smallest.document()}))
    else:
        _draw(output(), harvest)
        if smallest is not None:
            draw_smallest(output(), smallest)
        elif shrinks and not harvest.failures:
            note("nothing to shrink: no seed failed")
    if harvest.failures or (strict_coverage and harvest.never()):
        return 1
    return INTERRUPTED if harvest.is_interrupted else 0


def _options(seed: int, harvest: Harvest) -> SimOptions:
    return options_of(seed, harvest.kind, harvest.engine, harvest.topology)


def _prepare(folder: Path, seed: int, harvest: Harvest) -> None:
    prepare_folder(folder, run_info(_options(seed, harvest), seed, _replay(seed, harvest)))


def _gather(harvest: Harvest, seeds: range, processes: int | None) -> None:
    with Meter("swarm", len(seeds), shown_after_s=0) as meter:
        meter.show(0, "the first results come in batches")
        try:
            for outline in swarm(seeds, processes, harvest.kind, harvest.engine, harvest.topology):
                harvest.add(outline)
                harvest.seconds = meter.seconds
                meter.show(harvest.runs, _progress_note(harvest, len(seeds)))
        except KeyboardInterrupt:
            if not harvest.runs:
                raise
            harvest.is_interrupted = True  # what has been run is told


def _progress_note(harvest: Harvest, total: int) -> Text:
    rate, failed = harvest.inputs / harvest.seconds, failed_text(len(harvest.failures))
    return Text.assemble(f"{harvest.runs:,} of {total:,}, ", failed, f", {rate:,.0f} inputs/s")


def _write_traces(harvest: Harvest, folder: Path) -> None:
    with Meter("writing traces", len(harvest.failures)) as meter:
        for number, failure in enumerate(harvest.failures):
            meter.show(number, f"seed {failure.seed}")
            options = _options(failure.seed, harvest)
            recording = record(options, failure.seed, _replay(failure.seed, harvest), keep_events=True)
            try:
                harvest.traces[failure.seed] = str(recording.write(folder))
            except TraceError as error:  # the summary of a long swarm is worth more than this trace
                complain(str(error))


def _replay(seed: int, harvest: Harvest) -> str:
    return replay_command(_options(seed, harvest), seed, is_hostile=True, topology=harvest.topology)


def _document(harvest: Harvest, seeds: range) -> dict[str, Any]:
    return {
        "engine": harvest.engine,
        "seeds": [seeds[0], seeds[-1]],
        "interrupted": harvest.is_interrupted,
        "runs": harvest.runs,
        "valid": harvest.runs - len(harvest.failures),
        "failed": len(harvest.failures),
        "failures": [
            {
                "seed": failure.seed,
                "sentence": failure.sentence.strip(),
                "replay": _replay(failure.seed, harvest),
                "trace": harvest.traces.get(failure.seed),
            }
            for failure in harvest.failures
        ],
        "inputs": harvest.inputs,
        "submissions": harvest.submissions,
        "seconds": round(harvest.seconds, 6),
        "processes": harvest.processes,
        "inputs_per_second_per_core": round(harvest.rate, 1),
        "counts": dict(sorted(harvest.counts.items())),
        "never": harvest.never(),
    }


def _draw(console: Console, harvest: Harvest) -> None:
    console.print(coverage_table(harvest.counts, harvest.expected()))
    never = harvest.never()
    if never:
        count = f"{len(never)} of {len(harvest.expected())} expected things never happened, so they were not tested"
        console.print(Text(f"{count}: {'; '.join(never)}. Run more seeds.", style="red"), soft_wrap=True)
    else:
        console.print(Text("Everything that was expected to happen happened.", style="green"))
    for failure in harvest.failures:
        _draw_failure(console, failure, harvest)
    console.print(_closing(harvest), soft_wrap=True)


def _draw_failure(console: Console, failure: Outline, harvest: Harvest) -> None:
    trace = harvest.traces.get(failure.seed)
    console.print(Text(f"\nseed {failure.seed} failed: {failure.sentence.strip()}", style="bold red"), soft_wrap=True)
    console.print(Text(f"  replay   {_replay(failure.seed, harvest)}"), soft_wrap=True)
    if trace is not None:
        console.print(Text(f"  trace    {trace}"), soft_wrap=True)


def _closing(harvest: Harvest) -> Text:
    failed = len(harvest.failures)
    line = Text("\n")
    line.append(" FAILED " if failed else " VALID ", style="reverse bold red" if failed else "reverse green")
    runs = "run" if harvest.runs == 1 else "runs"
    if harvest.is_interrupted:
        line.append("  interrupted after")
    line.append(f"  {harvest.runs:,} {runs}: {harvest.runs - failed:,} valid, {failed:,} failed")
    cores = "core" if harvest.processes == 1 else "cores"
    line.append(f"  ·  {harvest.submissions:,} messages, {harvest.inputs:,} inputs")
    line.append(f"  ·  {harvest.rate:,.0f} inputs per second per core on {harvest.processes} {cores}")
    line.append(f"  ·  {harvest.seconds:.1f} s")
    return line
