"""`ordercast topology`: a network of rings as one of its daemons sees it, in sentences, and as a plan on paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from ordercast.cli.engine_section import (
    Document,
    lasted,
    missing_sentences,
    print_page,
    print_sentences,
    status_with,
)
from ordercast.cli.event_text import listed, waiting
from ordercast.cli.quantities import duration_from, seeds_from
from ordercast.cli.tables import new_table
from ordercast.cli.terminal import output, write_json
from ordercast.cli.topology_text import drawing_of, explained, waits_for
from ordercast.model.errors import UsageError
from ordercast.order.gateways.promised import ENGINE

if TYPE_CHECKING:
    from ordercast.cli.topology_plan import Drawn


def show(address: str, as_json: bool) -> int:
    status = _status(address)
    return print_page(status, ENGINE, _page(status, status[ENGINE]), as_json=as_json)


def explain(address: str, as_json: bool) -> int:
    return print_sentences(explained(_status(address)[ENGINE]), as_json=as_json)


def plan(
    joins: list[str] | None,
    rings: int | None,
    gateways: int,
    config: Path | None,
    rotation: str,
    seeds: str,
    as_json: bool,
) -> int:
    from ordercast.cli.topology_plan import PlannedNetwork, plan_lines

    drawn = _drawn(joins, rings, gateways, config)
    planned = PlannedNetwork(drawn, duration_from(rotation, default_unit="ms"), seeds_from(seeds))
    if as_json:
        write_json(planned.document())
        return 0
    console = output()
    for part in plan_lines(planned):
        console.print(part, soft_wrap=isinstance(part, Text))
    return 0


def _drawn(joins: list[str] | None, rings: int | None, gateways: int, config: Path | None) -> Drawn:
    if bool(joins) + (rings is not None) + (config is not None) != 1:
        raise UsageError(
            "give the gateways of a network, as in office-lab lab-store, or --rings and --gateways, or --config"
        )
    from ordercast.cli.topology_plan import drawn_file, drawn_joins, drawn_robust

    if config is not None:
        return drawn_file(config)
    return drawn_joins(joins) if joins else drawn_robust(rings or 1, gateways)


def study(seeds: str, out: Path | None, as_json: bool) -> int:
    from ordercast.cli.topology_study import studied

    return studied(seeds_from(seeds), out, as_json=as_json)


# What a daemon says


def _status(address: str) -> Document:
    """Return the status of a daemon whose engine has several rings."""
    return status_with(ENGINE, address, "topology", "network of rings")


def _page(status: Document, section: Document) -> list[RenderableType]:
    drawing, rings, gateways = drawing_of(section)
    vital = {gateways[place] for place in drawing.vital_gateways()}
    members = section["attached"]
    counts = ((len(rings), "ring"), (len(members), "member"), (len(gateways), "gateway"))
    told = ", ".join(f"{count} {what}{'' if count == 1 else 's'}" for count, what in counts)
    head = f"{told}, as {status['me']['name']} sees them"
    lines: list[RenderableType] = [Text(head, "bold"), _rings_table(section, vital)]
    phrase = waits_for(section)
    lines.append(Text(f"{waiting(section['undelivered'], 'packet')} here{': ' + phrase if phrase else ''}"))
    lines += [Text(f"! {sentence}", "yellow") for sentence in missing_sentences(section)]
    lines += [
        Text(f"! {hold['process']} holds everybody up for {lasted(hold['for_ns'])}: {hold['reason']}", "yellow")
        for hold in section["holds"]
    ]
    if vital:
        lines.append(Text(f"* the only way to other rings: {listed(sorted(vital))}", "yellow"))
    return lines


def _rings_table(section: Document, vital: set[str]) -> RenderableType:
    numbers = ("front", "ahead", "waiting", "to carry")
    table = new_table("ring", "members", "gateways", *numbers, "waits for", right=numbers)
    queues = {own["ring"]: own["queue_size"] for own in section["attachments"]}
    waiting = section["waiting"] or {"rings": ()}
    for part in section["parts"]:
        name = part["name"]
        style = "bold yellow" if name in waiting["rings"] else "bold" if part["is_own"] else ""
        table.add_row(
            Text(name, style),
            " ".join(part["members"]),
            " ".join(f"{gateway}*" if gateway in vital else gateway for gateway in part["gateways"]),
            f"{part['front']:,}",
            f"{part['front'] - section['place']:+,}",
            f"{part['undelivered']:,}",
            f"{queues[name]:,}" if name in queues else "",
            _held_up(part, section, waiting["rings"]),
        )
    return table


def _held_up(part: Document, section: Document, late: list[str]) -> str:
    """Return what a ring's packets wait for."""
    if part["awaited"]:
        return f"the word of {listed(part['awaited'])}"
    if part["name"] in late:
        return "(all wait for it)"
    return listed(late) if part["undelivered"] and late else ""
