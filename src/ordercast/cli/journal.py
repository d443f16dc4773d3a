"""What a replica's journal knows, for operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ordercast.cli.terminal import output, write_json
from ordercast.model.errors import UsageError
from ordercast.replicated.journal import JOURNAL, NEW, JournalReading, read_journal
from ordercast.replicated.wire import decode_preface


def show_journal(folder: Path, *, as_json: bool) -> int:
    names = sorted(path.name for path in folder.glob(f"*{JOURNAL}")) if folder.is_dir() else []
    if not names:
        raise UsageError(f"there is no journal in {folder}: name the folder that a replica was given as journal=")
    data = (folder / names[-1]).read_bytes()
    try:
        reading, end = read_journal(data)
        document = _document(folder / names[-1], reading, end, len(data))
    except UsageError as error:
        document = {"file": str(folder / names[-1]), "bytes": len(data), "damage": str(error)}
    document["unfinished"] = sorted(path.name for path in folder.glob(f"*{NEW}"))
    if as_json:
        write_json(document)
    else:
        _draw(document)
    return 1 if "damage" in document else 0


def _document(path: Path, reading: JournalReading, end: int, size: int) -> dict[str, Any]:
    stance, picture = reading.stance, reading.picture
    rank = None if stance is None else stance.rank
    formed = None if stance is None else stance.formed
    return {
        "file": str(path),
        "bytes": size,
        "torn_bytes": size - end,
        "name": None if reading.owner is None else reading.owner.name,
        "group": None if reading.owner is None else reading.owner.group,
        "memory": None if reading.owner is None else f"{reading.owner.memory:016x}",
        "has_state": rank is not None,
        "batches": reading.count,
        "batches_in_picture": 0 if picture is None else decode_preface(picture.preface).applied,
        "digest": None if rank is None else reading.digest.hex(),
        "era": None if stance is None else stance.era,
        "component": None if rank is None else str(rank.term.view),
        "voters": [] if formed is None else [life.name for life in formed.lives],
    }


def _draw(document: dict[str, Any]) -> None:
    console = output()
    console.print(f"journal    {document['file']}, {document['bytes']:,} bytes", soft_wrap=True, highlight=False)
    if "damage" in document:
        console.print(f"damaged    {document['damage']}", soft_wrap=True, highlight=False)
        return
    console.print(f"of         {document['name']} in {document['group']}", highlight=False)
    if not document["has_state"]:
        console.print("state      none yet: it was in no primary component", highlight=False)
    else:
        told = f"{document['batches']:,} batches of commands, {document['batches_in_picture']:,} of them in its picture"
        console.print(f"state      {told}; digest {document['digest']}", soft_wrap=True, highlight=False)
        console.print(f"component  {document['component']}, era {document['era']}", soft_wrap=True, highlight=False)
    console.print(f"voters     {', '.join(document['voters']) or 'none known'}", soft_wrap=True, highlight=False)
    if document["torn_bytes"]:
        console.print(f"torn       {document['torn_bytes']:,} bytes at the end: cut off when the replica begins")
    if document["unfinished"]:
        console.print(f"unfinished {', '.join(document['unfinished'])}: removed when the replica begins")
