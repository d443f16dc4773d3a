"""`ordercast sim`: one simulated run, told as a timeline and judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

from rich.console import Console
from rich.text import Text

from ordercast.checker import Outcome
from ordercast.cli.declare import Given
from ordercast.cli.documents import recording_document
from ordercast.cli.drawing import closing_line, draw_timeline, draw_witnesses, process_table, verdict_table
from ordercast.cli.quantities import chance_from, delays_from, duration_from, range_from, size_from
from ordercast.cli.recording import Recording, record, run_info
from ordercast.cli.swarm import kind_from
from ordercast.cli.terminal import Meter, output, write_json
from ordercast.model.errors import UsageError
from ordercast.model.ids import SECOND
from ordercast.model.service import Service
from ordercast.networks.config import Replication
from ordercast.order.catalogue import DEFAULT
from ordercast.order.gateways.promised import ENGINE as GATEWAYS
from ordercast.sim.calm_swarm import usual_options
from ordercast.sim.fault_text import fault_from
from ordercast.sim.network_swarm import SIM_NETWORKS
from ordercast.sim.options import SimOptions
from ordercast.sim.ring_topologies import attachments_of, topology_from
from ordercast.sim.run_options import drawn_text, replay_command
from ordercast.sim.swarm import options_of
from ordercast.sim.topology import Attachments
from ordercast.sim.topology_text import attachments_from, links_from_text, rate_from_text
from ordercast.trace.parquet import RUN_MAX, prepare_folder
from ordercast.trace.records import Event


def sim(
    given: Given,
    engine: str | None,
    nodes: int,
    messages: int,
    clients: int,
    sizes: str,
    service: list[str] | None,
    seed: int,
    loss: str,
    duplication: str,
    straggler: str,
    delay: str,
    duration: str,
    attach: list[str] | None,
    topology: str | None,
    rings: int | None,
    link: list[str] | None,
    rate: list[str] | None,
    accelerated: bool,
    faults: int,
    fault: list[str] | None,
    hostile: bool,
    groups: bool,
    replicated: bool,
    networks: bool,
    replication: str,
    sealed: bool,
    redundant: int,
    campaign: Path | None,
    cell: str | None,
    trace: Path | None,
    as_json: bool,
) -> int:
    check_seed(seed)
    command = None
    if campaign is not None:
        _refuse_overridden(given, "--campaign takes every option from its file", _WITH_CAMPAIGN)
        options, command = _from_campaign(campaign, cell, seed, engine)
    elif cell is not None:
        raise UsageError("--cell goes with --campaign: name the file that has the cell")
    elif hostile:
        _refuse_overridden(given, "--hostile draws every option from the seed", _WITH_HOSTILE)
        kind = kind_from(groups=groups, replicated=replicated, networks=networks, sealed=sealed)
        drawn_on = None if topology is None else topology_from(topology)
        options = options_of(seed, kind, engine or DEFAULT, drawn_on)
        command = replay_command(options, seed, is_hostile=True, topology=drawn_on)
    elif replicated or networks or sealed:
        asked = "replicated" if replicated else "networks" if networks else "sealed"
        raise UsageError(f"--{asked} goes with --hostile")
    elif groups:
        raise UsageError("--groups goes with --hostile: without it write --clients, and how many")
    else:
        size_min, size_max = range_from(sizes, size_from)
        options = replace(
            _network(loss, duplication, straggler, delay),
            engine=engine or DEFAULT,
            nodes=nodes,
            messages=messages,
            clients=clients,
            services=_services(service, engine or DEFAULT),
            attachments=_attachments(engine or DEFAULT, attach, topology, rings, nodes, seed),
            links=tuple(one for text in link or () for one in links_from_text(text)),
            rates=tuple(rate_from_text(text) for text in rate or ()),
            random_faults=faults,
            faults=tuple(fault_from(text) for text in fault or ()),
            fault_time_ns=duration_from(duration),
            size_min=size_min,
            size_max=size_max,
        )
        options = replace(
            options,
            ring=replace(options.ring, accelerated=accelerated),
            networks=replace(SIM_NETWORKS, count=redundant, replication=_replication(replication)),
        )
    options.validate()
    recording = _run(options, seed, trace, command or replay_command(options, seed, is_hostile=False))
    path = None if trace is None else str(recording.write(trace))
    if as_json:
        write_json(recording_document(recording, path))
    else:
        draw_recording(output(), recording, path)
    return 0 if recording.is_valid else 1


def check_seed(seed: int) -> None:
    if not 0 <= seed <= RUN_MAX:
        raise UsageError(f"seed {seed} cannot be used: write a whole number of at least 0 and below 2^63")


_WITH_HOSTILE = (
    "seed",
    "hostile",
    "groups",
    "replicated",
    "networks",
    "sealed",
    "engine",
    "topology",
    "trace",
    "as_json",
)
_WITH_CAMPAIGN = ("seed", "campaign", "cell", "engine", "trace", "as_json")


def _refuse_overridden(given: Given, why: str, allowed: tuple[str, ...]) -> None:
    """What would silently be overridden."""
    for name in sorted(given):
        if name not in allowed:
            raise UsageError(f"{why}: leave out --{name}, or leave out {why.split()[0]}")


def _from_campaign(file: Path, name: str | None, seed: int, engine: str | None) -> tuple[SimOptions, str]:
    """The options of a cell, and the command that replays it."""
    from ordercast.pipeline.campaign.plan import campaign_from
    from ordercast.pipeline.campaign.replay import replay_of

    campaign = campaign_from(file, engine)
    if name is None and len(campaign.cells) > 1:
        raise UsageError(
            f"{file} has {len(campaign.cells)} cells: choose one with --cell, such as {campaign.cells[0].name!r}"
        )
    cell = campaign.cells[0] if name is None else campaign.cell(name)
    return cell.options(seed), replay_of(campaign, cell, seed)


def _network(loss: str, duplication: str, straggler: str, delay: str) -> SimOptions:
    delay_min_ns, delay_max_ns = delays_from(delay)
    return SimOptions(
        loss=chance_from(loss),
        duplication=chance_from(duplication),
        straggler=chance_from(straggler),
        delay_min_ns=delay_min_ns,
        delay_max_ns=delay_max_ns,
    )


def _attachments(
    engine: str, attach: list[str] | None, topology: str | None, rings: int | None, nodes: int, seed: int
) -> Attachments:
    """Return the segments of each host, as they are written out or by the name of a topology."""
    if topology is None:
        if rings is not None:
            raise UsageError("--rings goes with --topology: say how gateways join them")
        return attachments_from(attach or (), nodes)
    if attach:
        raise UsageError("--topology attaches every host: leave out --attach, or leave out --topology")
    if engine != GATEWAYS:
        raise UsageError("--topology goes with --engine gateways: other engines have no gateways to join rings by")
    return attachments_of(topology_from(topology), rings, nodes, Random(f"rings {seed}"))


def _replication(name: str) -> Replication:
    styles = {style.value: style for style in Replication}
    if name not in styles:
        raise UsageError(f"there is no replication {name!r}: choose among {', '.join(styles)}")
    return styles[name]


def _services(names: list[str] | None, engine: str) -> tuple[Service, ...]:
    """Return the services that are named; without names, all that the engine serves."""
    known = {service.name.lower(): service for service in usual_options(engine).services}
    for name in names or ():
        if name.lower() not in known:
            raise UsageError(f"there is no service {name!r} to simulate: choose among {', '.join(known)}")
    return tuple(known[name.lower()] for name in names) if names else tuple(known.values())


def _run(options: SimOptions, seed: int, trace: Path | None, command: str) -> Recording:
    if trace is not None:  # better to hear of it before a long run than after
        prepare_folder(trace, run_info(options, seed, command))
    with Meter("simulating", options.fault_time_ns + options.settle_ns // 10) as meter:

        def watch(event: Event) -> None:
            meter.show(event.at, f"{event.at / SECOND:.3f} s of virtual time")

        keep = trace is not None
        return record(options, seed, command, keep_events=keep, watch=watch)


def draw_recording(console: Console, recording: Recording, path: str | None) -> None:
    if "--hostile" in recording.command.split():
        console.print(Text(f"drawn    {drawn_text(recording.options)}\n"), soft_wrap=True)
    draw_timeline(console, recording.timeline.entries)
    console.print()
    console.print(process_table(recording.timeline.tallies))
    draw_judgement(console, recording)
    if path is not None:
        console.print(Text(f"trace    {path}"), soft_wrap=True)
    console.print(Text(f"digest   {recording.digest or 'none, the run did not end'}"), soft_wrap=True)
    console.print(Text(f"replay   {recording.command}"), soft_wrap=True)


def draw_judgement(console: Console, recording: Recording) -> None:
    """Verdicts, witnesses, and one line that says it all."""
    if recording.error is not None:
        console.print(Text(recording.error.rstrip(), style="red"), soft_wrap=True)
    else:
        console.print(verdict_table(recording.verdicts))
        draw_witnesses(console, recording.verdicts)
    outcome, sentence = _in_one(recording)
    console.print(closing_line(outcome, sentence, _rates(recording)), soft_wrap=True)


def _in_one(recording: Recording) -> tuple[Outcome, str]:
    """The combined outcome; a run that did not settle is not VALID, whatever the checkers say."""
    outcome, sentence = recording.verdict.outcome, recording.verdict.sentence
    if outcome is Outcome.INVALID:
        broken = [
            verdict.promise.value for verdict in recording.verdicts if verdict.outcome is outcome and verdict.promise
        ]
        sentence = f"broken: {', '.join(broken)}"
    if recording.result is not None and not recording.settled:
        patience = recording.options.settle_ns / SECOND
        sentence = f"not settled {patience:g} s after the network healed; {sentence}"
        outcome = Outcome.UNKNOWN if outcome is Outcome.VALID else outcome
    return outcome, sentence


def _rates(recording: Recording) -> list[str]:
    virtual = recording.virtual_ns / SECOND
    return [
        f"{virtual:.3f} s virtual in {recording.seconds:.2f} s",
        f"{recording.submitted:,} messages, {recording.delivered:,} deliveries",
        f"{recording.inputs:,} inputs, {recording.inputs / recording.seconds:,.0f}/s",
    ]
