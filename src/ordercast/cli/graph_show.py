"""What `ordercast graph show` and `graph explain` say of a running cluster: its forest, a daemon's place in it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text
from rich.tree import Tree

from ordercast.cli.engine_section import Document, print_page, print_sentences, status_with
from ordercast.cli.event_text import counted, listed
from ordercast.cli.tables import new_table
from ordercast.model.ids import MILLISECOND
from ordercast.model.quantities import size_text
from ordercast.order.tree.promised import ENGINE

ENTRIES_SHOWN = 10


def shown(address: str, *, as_json: bool) -> int:
    """Print the forest; return 1 when messages do not flow there."""
    status = _status(address)
    return print_page(status, ENGINE, _page(status, status[ENGINE]), as_json=as_json)


def told(address: str, *, as_json: bool) -> int:
    """Print what is to be said of it; return 0."""
    status = _status(address)
    return print_sentences(explained(status["me"]["name"], status[ENGINE]), as_json=as_json)


def _status(address: str) -> Document:
    return status_with(ENGINE, address, "graph show", "forest")


def explained(me: str, section: Document) -> Iterator[str]:
    """Return where this daemon stands, what messages wait for, the most pressing first, and why the forest changed."""
    yield _place(me, section)
    for name in section["behind"]:
        yield f"Groups that {name} wants wait, for its application takes no deliveries; other senders' groups flow on."
    for one, other in section["broken"]:
        yield f"No tree uses the link between {one} and {other}, which failed, until the members change."
    if section["queued"]:
        yield f"{counted(section['queued'], 'block')} here wait until a safe message is known to be everywhere."
    if section["waiting"]:
        yield f"{counted(section['waiting'], 'message')} of this daemon's clients wait for their turn to be sent."
    for edge in section["children"]:
        if edge["undone"]:
            blocks = counted(edge["undone"], "block")
            yield f"{blocks} for {edge['node']}, and those below it, are not known to have come."
    yield _entering(section)
    if section["pauses"]:
        yield (
            f"This daemon was between two trees {counted(section['pauses'], 'time')}, "
            f"{_ms(section['pause_median_ns'])} in the median and {_ms(section['longest_pause_ns'])} at most."
        )
    if section["changes"]:
        yield f"The forest changed last with opening {section['changes'][-1]}."


def _place(me: str, section: Document) -> str:
    if section["birth"] is None:
        waits = f", until the trees of {listed(section['closing'])} have closed" if section["closing"] else ""
        return f"{me} is between two trees{waits}: what its clients send waits."
    above = "the root of its tree" if section["parent"] is None else f"below {section['parent']['node']}"
    children = [child["node"] for child in section["children"]]
    below = f"passes messages on to {listed(children)}" if children else "passes on nothing"
    return f"{me} is {above}, and {below}; {section['manager']} decides when the forest changes."


def _entering(section: Document) -> str:
    count, rate = section["entries_count"], sum(entry["rate"] for entry in section["entries"])
    if not count:
        return "No group's messages enter here."
    groups = counted(count, "group")
    rates = f", {counted(rate, 'message')} a second as senders told last" if rate else ""
    return f"Messages of {groups} enter here{rates}."


def _page(status: Document, section: Document) -> Iterator[RenderableType]:
    me, forest = status["me"]["name"], section["forest"]
    trees = sum(node["parent"] is None for node in forest)
    several = f"{counted(trees, 'tree')} of {counted(len(forest), 'daemon')}"
    yield Text(f"{several}, as {me} sees them; opening {section['opened']}, by {section['manager']}", "bold")
    yield from _drawn(me, section)
    yield Text(_place(me, section))
    if section["entries"]:
        yield _entries(section)
    if (more := section["entries_count"] - ENTRIES_SHOWN) > 0:
        yield Text(f"and {counted(more, 'group')} more", "dim")
    if section["changes"]:
        yield Text("Changes of the forest, the last one last:", "bold")
        yield from (Text(f"  {change}") for change in section["changes"])


def _drawn(me: str, section: Document) -> Iterator[RenderableType]:
    children: dict[str | None, list[Document]] = {}
    for node in section["forest"]:
        children.setdefault(node["parent"], []).append(node)

    def label(node: Document) -> Text:
        count = node["entries"]
        groups = f" ({counted(count, 'group')} {'enters' if count == 1 else 'enter'} here)" if count else ""
        return Text(node["name"] + groups, "bold" if node["name"] == me else "")

    for root in children.get(None, []):
        top = Tree(label(root))
        todo = [(root, top)]
        while todo:
            node, drawn = todo.pop()
            todo.extend((child, drawn.add(label(child))) for child in children.get(node["name"], []))
        yield top


def _entries(section: Document) -> RenderableType:
    numbers = ("messages/s", "members", "visited", "not yet everywhere")
    table = new_table("enters here", *numbers, right=numbers)
    for entry in section["entries"][:ENTRIES_SHOWN]:
        sizes = f"{entry['rate']:,}", str(entry["members"]), str(entry["visited"]), size_text(entry["unstable_size"])
        table.add_row(entry["group"], *sizes)
    return table


def _ms(duration_ns: int) -> str:
    return f"{duration_ns / MILLISECOND:.1f} ms"
