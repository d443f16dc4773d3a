"""`ordercast status --all`: every node of a cluster in one table, each asked for its own word.

One node says who there is and where. All are asked at once, and each has a second to answer, so one that hangs keeps
nobody waiting. For those who do not answer, the table has how they were silent (nothing listens; it is reached and says
nothing; it is not reached) and what the others said last of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from ordercast.cli.latency_text import bound_text, latency_from
from ordercast.cli.status import Unanswered, fetch, place_from, place_of
from ordercast.cli.status_drawing import uptime_text
from ordercast.cli.tables import new_table
from ordercast.cli.terminal import output, write_json
from ordercast.model.errors import UsageError
from ordercast.model.ids import SECOND

ANSWER_S = 1.0
ASKED_MAX = 64  # at a time

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node of the table."""

    name: str
    node: int
    state: str  # its own word; or how it was silent
    is_heard: bool
    view: str = ""
    members: int = 0
    messages_per_s: float = 0.0
    clients: int = 0
    up_ns: int = 0
    latency_s: float | None = None  # 99 of 100 agreed messages were delivered within it
    version: str = ""
    away_ns: int | None = None  # since others last saw it in a view
    last_words: str = ""


def status_all(address: str, watch: bool, as_json: bool) -> int:
    if watch:
        raise UsageError("--all shows the cluster once: leave out --watch, or run it under watch(1)")
    host, port = place_of(address)
    first = fetch(host, port)
    rows = rows_from(first, asked(first))
    if as_json:
        write_json({"cluster": first["me"]["cluster"], "nodes": [asdict(row) for row in rows]})
    else:
        output().print(table_of(first["me"]["cluster"], rows))
    together = {row.view for row in rows}
    return 0 if all(row.is_heard for row in rows) and len(together) == 1 else 1


def asked(first: Document) -> dict[int, Document | Unanswered]:
    """What each node says, or why it says nothing."""
    places = {node["node"]: node["status"] for node in first["everybody"] if node["node"] != first["me"]["node"]}
    known = [(node, place) for node, place in places.items() if place is not None]
    with ThreadPoolExecutor(max_workers=min(ASKED_MAX, len(known)) or 1) as pool:
        answers = pool.map(_ask, [place for _, place in known])
        said = {node: _own_word(node, place, answer) for (node, place), answer in zip(known, answers, strict=True)}
    nowhere = Unanswered("not asked", "its status is served on its own host alone: set address in [status]")
    return {first["me"]["node"]: first} | {node: said.get(node, nowhere) for node in places}


def _own_word(node: int, place: str, answer: Document | Unanswered) -> Document | Unanswered:
    """Return what the node said, unless somebody else answers where it was looked for."""
    if isinstance(answer, Unanswered) or answer["me"]["node"] == node:
        return answer
    return Unanswered("not asked", f"{answer['me']['name']} answers at {place}: where its status is, is not known here")


def _ask(place: str) -> Document | Unanswered:
    try:
        return fetch(*place_from(place), timeout_s=ANSWER_S)
    except Unanswered as error:
        return error


def rows_from(first: Document, answers: dict[int, Document | Unanswered]) -> list[NodeRow]:
    """A row for each, in the order of their numbers. A silent one is described by whoever was with it last."""
    heard = [answer for answer in answers.values() if not isinstance(answer, Unanswered)]
    names = {node["node"]: node["name"] for node in first["everybody"]}
    rows = []
    for number in sorted(answers):
        answer = answers[number]
        if isinstance(answer, Unanswered):
            rows.append(_silent(names[number], number, answer, heard))
        else:
            rows.append(_answering(answer))
    return rows


def _words_on(number: int, heard: Sequence[Document]) -> list[Document]:
    """What nodes that answer have to say of another."""
    return [node for document in heard for node in document["everybody"] if node["node"] == number]


def _silent(name: str, number: int, why: Unanswered, heard: Sequence[Document]) -> NodeRow:
    words = _words_on(number, heard)
    missed = [word for word in words if word["away_ns"] is not None]
    if any(word["is_member"] for word in words):
        text, away = "the others still count it in", None
    elif missed:
        last = min(missed, key=lambda word: int(word["away_ns"]))
        text, away = f"last in view {last['last_view']}: {last['why']}", last["away_ns"]
    else:
        text, away = "not seen since they started", None
    return NodeRow(name, number, why.kind, False, away_ns=away, last_words=f"{why.remark}; {text}")


def _answering(document: Document) -> NodeRow:
    me, here = document["me"], document["configuration"]
    agreed = [latency_from(each) for each in document["latency"] if each["service"] == "agreed"]
    warnings = document["warnings"]
    pauses = document["pauses"]
    notes = []
    if pauses["last_at"]:
        notes.append(
            f"did not run for up to {pauses['longest_ns'] / SECOND:.1f} s, last at {pauses['last_at'][11:19]} UTC"
        )
    notes += [f"missing: {' '.join(here['missing'])}"] if here["missing"] else []
    notes += [f"{len(warnings)} warning{'' if len(warnings) == 1 else 's'}"] if warnings else []
    return NodeRow(
        name=me["name"],
        node=me["node"],
        state=here["state"].lower(),
        is_heard=True,
        view=here["id"],
        members=len(here["members"]),
        messages_per_s=document["rates"]["messages_delivered"],
        clients=document["clients"]["sessions"],
        up_ns=document["uptime_ns"],
        latency_s=agreed[0].quantile_s(0.99) if agreed else None,
        version=me["version"],
        last_words="; ".join(notes),
    )


def table_of(cluster: str, rows: Sequence[NodeRow]) -> Table:
    numbers = ("members", "messages/s", "clients", "99 in 100 within", "up")
    heard = sum(row.is_heard for row in rows)
    title = f"cluster {cluster}: {heard} of {len(rows)} answer"
    table = new_table("node", "state", "view", *numbers, "last words", right=numbers, title=title)
    for row in rows:
        table.add_row(Text(row.name, style="bold"), *map(_cell, _cells(row)))
    return table


def _cell(text: str | Text) -> Text:
    return text if isinstance(text, Text) else Text(text)


def _cells(row: NodeRow) -> tuple[str | Text, ...]:
    if not row.is_heard:
        age = "" if row.away_ns is None else f"away for {uptime_text(row.away_ns)}: "
        return Text(row.state, style="bold red"), "", "", "", "", "", "", f"{age}{row.last_words}"
    within = "" if row.latency_s is None else bound_text(row.latency_s)
    rate = f"{row.messages_per_s:,.0f}"
    figures = str(row.members), rate, f"{row.clients:,}", within, uptime_text(row.up_ns)
    return row.state, row.view, *figures, row.last_words
