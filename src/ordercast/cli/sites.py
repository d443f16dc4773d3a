"""`ordercast sites`: several sites as one of their daemons sees them, and in sentences what delivery waits for."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from ordercast.cli.engine_section import Document, missing_sentences, print_page, print_sentences, status_with
from ordercast.cli.event_text import listed
from ordercast.cli.status_drawing import round_trip_text
from ordercast.cli.tables import new_table
from ordercast.model.errors import UsageError
from ordercast.model.quantities import size_text
from ordercast.order.sites.promised import ENGINE


def show(address: str, source: str | None, as_json: bool) -> int:
    status = _status(address)
    section = status[ENGINE]
    if source is not None and source not in section["trees"]:
        raise UsageError(f"{source!r} is no site of the view: there are {listed(list(section['trees']))}")
    return print_page(status, ENGINE, _page(status, section, source), as_json=as_json)


def explain(address: str, as_json: bool) -> int:
    return print_sentences(explained(_status(address)[ENGINE]), as_json=as_json)


def explained(section: Document) -> Iterator[str]:
    """Return what delivery waits for now, the most pressing first."""
    if section["attempt"] is not None:
        missing = listed(section["attempt"]) if section["attempt"] else "nobody any more"
        yield f"A new view is attempted, and messages wait for it: it lacks the word of {missing}."
    yield _waiting(section["waiting"])
    for site in section["sites"]:
        if site["is_behind"]:
            yield f"Nobody sends, for an application in {site['name']} does not take its deliveries."
    yield from missing_sentences(section)
    in_view = {site["name"] for site in section["sites"]}
    for site, why in section["failed"].items():
        if site not in in_view:
            yield f"The last link to {site} failed: {why}."
    for link in section["links"]:
        if link["queue_size"]:
            yield f"{size_text(link['queue_size'])} wait for the link to {link['site']}: it carries less than is sent."
    if not section["is_representative"]:
        yield f"{section['representative']} speaks for {section['site']}: ask it for the links."


def _waiting(waiting: Document | None) -> str:
    if waiting is None:
        return "Nothing waits: everything that is known here has been delivered."
    what = f"{'A safe' if waiting['is_safe'] else 'A'} message of {waiting['sender']} in {waiting['site']}"
    if not waiting["sites"]:
        return f"{what} is next, and is delivered now."
    need = "have it, or promise that nothing comes before it" if waiting["is_safe"] else "promise nothing before it"
    return f"{what} is next, and waits until {listed(waiting['sites'])} {need}."


# What a daemon says


def _status(address: str) -> Document:
    """Return the status of a daemon of several sites."""
    return status_with(ENGINE, address, "sites", "sites")


def _page(status: Document, section: Document, source: str | None) -> Iterator[RenderableType]:
    parts, sites = len(section["sites"]), len({site["name"] for site in section["sites"]})
    seen = "1 site" if sites == 1 else f"{sites} sites"
    seen += f" in {parts} parts" if parts > sites else ""
    speaks = "which speaks for it" if section["is_representative"] else f"for which {section['representative']} speaks"
    yield Text(f"{seen}, as {status['me']['name']} of {section['site']} sees them, {speaks}", "bold")
    yield _sites_table(section)
    if section["links"]:
        yield _links_table(section)
    yield Text(_waiting(section["waiting"]))
    yield from (Text(f"! {sentence}", "yellow") for sentence in missing_sentences(section))
    if source is not None:
        yield Text(f"What {source} sends:", "bold")
        yield from (Text(f"  {site} gets it from {parent}") for site, parent in section["trees"][source].items())


def _sites_table(section: Document) -> RenderableType:
    numbers = ("line", "everybody has", "waiting")
    table = new_table("site", "representative", "members", *numbers, "", right=numbers)
    late = section["waiting"]["sites"] if section["waiting"] else ()
    for site in section["sites"]:
        note = "its application is behind" if site["is_behind"] else "(all wait for it)" if site["name"] in late else ""
        table.add_row(
            Text(site["name"], "bold" if site["is_own"] else ""),
            site["representative"],
            " ".join(site["members"]),
            f"{site['line']:,}",
            f"{site['aru']:,}",
            f"{site['undelivered']:,}",
            note,
        )
    return table


def _links_table(section: Document) -> RenderableType:
    numbers = ("round trip", "loss", "rate", "queue", "under way")
    table = new_table("link to", "node", "state", *numbers, "failed last", right=numbers)
    linked = {link["site"] for link in section["links"] if link["state"] == "up"}
    for link in section["links"]:
        table.add_row(
            link["site"],
            link["peer"],
            Text(link["state"], "" if link["state"] == "up" or link["site"] in linked else "yellow"),
            round_trip_text(link),
            f"{link['loss']:.1%}",
            f"{link['rate'] / 1e6:.1f} Mbit/s" if link["rate"] else "free",
            size_text(link["queue_size"]),
            f"{link['under_way']:,}",
            link["failed_last"] or "",
        )
    return table
