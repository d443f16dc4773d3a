"""`ordercast archive read | follow | list | verify`: reads what was kept. What keeps it: `archiving.py`."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ordercast.archive.entries import News, record_bytes
from ordercast.archive.layout import segments_of
from ordercast.archive.places import place_from, position_text, view_text
from ordercast.archive.reader import Archive
from ordercast.archive.reading import Entry, Lost
from ordercast.cli.event_text import listed
from ordercast.cli.payload_text import payload_document, shown
from ordercast.cli.tables import new_table
from ordercast.cli.terminal import Meter, complain, note, output, wipe, write_json
from ordercast.model.errors import WireError
from ordercast.model.events import Message, Transition, View
from ordercast.model.printable import json_text, safe
from ordercast.model.quantities import size_text


def read(group: str, folder: Path, start: str, end: str, count: int | None, as_json: bool, raw: bool) -> int:
    found = Archive(folder).read(group, start, place_from(end) if end else None, is_raw=raw)
    return _show(found, count, as_json)


def follow(group: str, folder: Path, start: str, count: int | None, as_json: bool, raw: bool) -> int:
    try:
        return _show(Archive(folder).tail(group, start, is_raw=raw), count, as_json)
    except KeyboardInterrupt:
        wipe()
    return 0


def _show(entries: Iterable[Entry], count: int | None, as_json: bool) -> int:
    try:
        for number, entry in enumerate(entries, 1):
            line = json_text(_document(entry)) if as_json else safe(_line(entry))
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
            if number == count:
                break
    except WireError as error:
        complain(f"the archive is damaged from here on: {error}. `ordercast archive verify` says what else is")
        return 1
    return 0


def _line(entry: Entry) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.time_ns / 1e9))
    found = entry.entry
    if isinstance(found, Message):
        return f"{entry.place}  {when}  {found.sender}  {shown(found.data)}"
    return f"{entry.place}  {when}  ·  {_news(found)}"


def _news(news: News) -> str:
    match news:
        case View():
            who = f": {listed(news.who)}" if news.who else f": {news.why}" if news.why else ""
            return f"{listed(news.members)} ({news.reason.value}{who})"
        case Transition():
            return f"perhaps lost; here remain {listed(news.remaining)}"
        case _:
            return f"something is missing here, behind {listed([str(place) for place in news.after])}"


def _document(entry: Entry) -> dict[str, Any]:
    found = entry.entry
    document: dict[str, Any] = {"branch": entry.place.branch, "number": entry.place.number, "time": entry.time_ns / 1e9}
    match found:
        case Message():
            document |= {"kind": "message", "groups": found.groups, "sender": found.sender, "view": entry.view}
            document |= {"position": position_text(found.position), "service": found.service.name.lower()}
            document |= payload_document(found.data)
            if found.headers:
                document["headers"] = dict(found.headers)
            if entry.commit is not None:
                document["commit"] = {"sink": entry.commit.sink, "batch": entry.commit.batch}
        case View():
            document |= {"kind": "view", "view": view_text(found.id), "members": found.members}
            document |= {"reason": found.reason.value, "who": found.who, "why": found.why}
        case Transition():
            document |= {"kind": "transition", "view": view_text(found.view), "remaining": found.remaining}
        case _:
            document |= {"kind": "gap", "after": [str(place) for place in found.after]}
    return document


def list_command(folder: Path, as_json: bool) -> int:
    rows = [row for group in Archive(folder).groups() for row in _branches(Archive(folder), group)]
    if as_json:
        write_json(rows)
        return 0
    table = new_table("group", "branch", "behind", "first", "last", "size", "", right=("first", "last", "size"))
    for row in rows:
        mark = "← tip" if row["is_tip"] else ""
        behind = ", ".join(row["behind"]) or "the beginning"
        table.add_row(
            row["group"],
            f"{row['branch']} ({row['cause']})",
            behind,
            f"{row['first']:,}",
            f"{row['last']:,}",
            size_text(row["size"]),
            mark,
        )
    output().print(table)
    _say_if_none(folder, rows)
    return 0


def _say_if_none(folder: Path, found: Sequence[object]) -> None:
    if not found:
        note(f"no group has an archive in {folder}", always=True)


def _branches(found: Archive, group: str) -> list[dict[str, Any]]:
    reader = found.group(group)
    tip = reader.tip()
    rows = []
    for name, branch in sorted(reader.tree().items(), key=lambda one: (one[1].base, one[0])):
        segments = segments_of(reader.path / name)
        span = reader.span(name)
        rows.append(
            {
                "group": group,
                "branch": name,
                "cause": branch.cause.value,
                "behind": [str(place) for place in branch.parents],
                "first": span[0] if span else branch.base + 1,
                "last": span[1] if span else branch.base,
                "size": sum(path.stat().st_size for _, path in segments),
                "is_tip": tip is not None and tip.branch == name,
            }
        )
    return rows


def verify(folder: Path, as_json: bool) -> int:
    found = Archive(folder)
    results = [_verified(found, group) for group in found.groups()]
    if as_json:
        write_json(results)
    else:
        table = new_table("group", "entries", "digest", "verdict", right=("entries",))
        for result in results:
            table.add_row(result["group"], f"{result['entries']:,}", result["digest"][:16], result["verdict"])
        output().print(table)
        _say_if_none(folder, results)
    for result in results:
        if result["verdict"] != "VALID":
            complain(f"{result['group']}: {result['why']}")
    return int(any(result["verdict"] != "VALID" for result in results))


def _verified(found: Archive, group: str) -> dict[str, Any]:
    digest, entries, expected, why = hashlib.sha256(), 0, None, ""
    stretches = found.group(group).stretches()
    total = sum(stretch.last - stretch.first + 1 for stretch in stretches)
    try:
        with Meter(f"verifying {group}", total) as meter:
            for entry in found.read(group, is_raw=True):
                if expected is not None and entry.place.number < expected:
                    raise WireError(f"{entry.place} comes where number {expected} was expected")
                expected = entry.place.number + 1
                digest.update(hashlib.sha256(record_bytes(entry.place, entry.entry, entry.commit)).digest())
                entries += 1
                if entries % 10_000 == 0:
                    meter.show(entries)
    except (WireError, Lost) as error:
        why = str(error)
    verdict = "INVALID" if why else "VALID"
    return {"group": group, "entries": entries, "digest": digest.hexdigest(), "verdict": verdict, "why": why}
