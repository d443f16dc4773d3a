"""`ordercast topology`: a network of rings as one of its daemons sees it, in sentences, and as a plan on paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from ordercast.cli.engine_section import HERE, Document, Json, Place, print_page, print_sentences, status_with
from ordercast.cli.event_text import listed
from ordercast.cli.quantities import duration_from, seeds_from
from ordercast.cli.short_commands import short_for
from ordercast.cli.tables import new_table
from ordercast.cli.terminal import output, write_json
from ordercast.cli.topology_plan import Drawn, PlannedNetwork, drawn_file, drawn_joins, drawn_robust, plan_lines
from ordercast.cli.topology_text import drawing_of, explained, lasted, waits_for
from ordercast.model.errors import UsageError
from ordercast.order.gateways.promised import ENGINE

EXAMPLE = "Example: ordercast topology :4791"
EXPLAIN = "Example: ordercast topology explain 10.0.0.1:4790"
PLAN = "Example: ordercast topology plan --rings 16 --gateways 4 --rotation 2ms"
STUDY = "Example: ordercast topology study --seeds 1..300 --out graphs"

app = typer.Typer(cls=short_for("show", is_bare=True), help="A network of rings.", epilog=EXAMPLE)


@app.callback()
def topology() -> None:
    """A network of rings: who is on which, who joins them, what delivery waits for.

    `ordercast topology ADDRESS` is short for `ordercast topology show ADDRESS`.
    """


@app.command(epilog=EXAMPLE)
def show(address: Place = HERE, as_json: Json = False) -> int:
    """Show the rings of a network, their members, gateways and fronts, and who holds whom up.

    Every daemon knows the whole network: any of them may be asked. Exit status 1 when messages do not flow there.
    """
    status = _status(address)
    return print_page(status, ENGINE, _page(status, status[ENGINE]), as_json=as_json)


@app.command(epilog=EXPLAIN)
def explain(address: Place = HERE, as_json: Json = False) -> int:
    """Say in sentences what delivery waits for now, what to do about it, and what the network would not survive."""
    return print_sentences(explained(_status(address)[ENGINE]), as_json=as_json)


@app.command(epilog=PLAN)
def plan(
    joins: Annotated[
        list[str] | None,
        typer.Argument(metavar="[JOIN]…", help="A gateway each, as the rings that it joins: office-lab lab-store."),
    ] = None,
    rings: Annotated[int | None, typer.Option(min=1, max=255, help="Draw a network of so many rings …")] = None,
    gateways: Annotated[int, typer.Option(min=1, max=64, help="… with so many gateways on each.")] = 4,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="The rings of a cluster file.")] = None,
    rotation: Annotated[str, typer.Option(metavar="TIME", help="Of a token on a ring under load.")] = "1ms",
    seeds: Annotated[str, typer.Option(metavar="A..B", help="Orders in which gateways are lost.")] = "1..200",
    as_json: Json = False,
) -> int:
    """Judge a network on paper: lengths of ways, what alone keeps it in one piece, latency, and what would help."""
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
    if config is not None:
        return drawn_file(config)
    return drawn_joins(joins) if joins else drawn_robust(rings or 1, gateways)


@app.command(epilog=STUDY)
def study(
    seeds: Annotated[str, typer.Option(metavar="A..B", help="Networks of each kind, and their losses.")] = "1..300",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write a page and its pictures into this folder.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Lose gateways of robust and of random networks of 50 rings until they part: the paper's Figures 5.21 to 5.23."""
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
    lines.append(Text(f"{section['undelivered']:,} packets wait here{': ' + phrase if phrase else ''}"))
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
