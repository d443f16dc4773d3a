"""What an archive holds: messages, in runs as they came; views; transitions; gaps.

Whatever differs between two readers of one stream is left out: the transitional set of a view is the reader's own. So
two archivers have the same entries for the same messages and views, and `record_bytes` says the same bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ordercast.archive.places import Place, place_from, position_text, view_id_of_text, view_text
from ordercast.model.events import Batch, Message, Reason, Transition, View


@dataclass(frozen=True, slots=True)
class Gap:
    """The archive missed something here: nobody who is in the group has what came after these places."""

    after: tuple[Place, ...]


class Outcome(Enum):
    COMMITTED = "committed"
    REPEATED = "repeated"  # the batch was committed before
    INCOMPLETE = "incomplete"  # parts of it are not here: it has to be sent again
    FOREIGN = "foreign"  # another query uses the name of this sink


@dataclass(frozen=True, slots=True)
class SinkCommit:
    """What a sink's marker does at its place. The rows of `parts` stand here, in this order."""

    sink: str
    batch: int
    outcome: Outcome
    parts: tuple[Place, ...] = ()


News = View | Transition | Gap
Item = Batch | News  # what is written; messages in batches

_JSON_OPTIONS: dict[str, Any] = {"separators": (",", ":"), "sort_keys": True}


def news_bytes(news: News) -> bytes:
    return json.dumps(_document(news), **_JSON_OPTIONS).encode()


def _document(news: News) -> dict[str, Any]:
    match news:
        case View():
            return {
                "view": view_text(news.id),
                "group": news.group,
                "members": news.members,
                "reason": news.reason.value,
                "who": news.who,
                "why": news.why,
            }
        case Transition():
            return {"transition": view_text(news.view), "group": news.group, "remaining": news.remaining}
        case Gap():
            return {"gap": [str(place) for place in news.after]}


def news_from(data: bytes) -> News:
    """ValueError, KeyError or TypeError when these are no news."""
    found = json.loads(data)
    if "view" in found:
        members, who = tuple(found["members"]), tuple(found["who"])
        identity = view_id_of_text(found["view"])
        return View(found["group"], members, members, Reason(found["reason"]), who, identity, found["why"])
    if "transition" in found:
        return Transition(found["group"], tuple(found["remaining"]), view_id_of_text(found["transition"]))
    return Gap(tuple(place_from(text) for text in found["gap"]))


def count_of(item: Item) -> int:
    """How many numbers it takes."""
    return len(item) if isinstance(item, Batch) else 1


def commit_bytes(commit: SinkCommit) -> bytes:
    parts = [str(place) for place in commit.parts]
    document = {"sink": commit.sink, "batch": commit.batch, "outcome": commit.outcome.value, "parts": parts}
    return json.dumps(document, **_JSON_OPTIONS).encode()


def commit_from(data: bytes) -> SinkCommit:
    """ValueError, KeyError or TypeError when it is none."""
    found = json.loads(data)
    parts = tuple(place_from(text) for text in found["parts"])
    return SinkCommit(found["sink"], found["batch"], Outcome(found["outcome"]), parts)


def record_bytes(place: Place, entry: Message | News, commit: SinkCommit | None = None) -> bytes:
    """One entry, its place included, in bytes that are the same in every archive that has it."""
    if commit is not None:
        return commit_bytes(commit) + b"\n" + record_bytes(place, entry)
    if isinstance(entry, Message):
        said: list[Any] = [str(place), entry.groups, entry.sender, position_text(entry.position), int(entry.service)]
        if entry.headers:
            said.append(dict(entry.headers))
        head = json.dumps(said, **_JSON_OPTIONS)
        return head.encode() + b"\n" + entry.data
    return json.dumps(str(place)).encode() + b"\n" + news_bytes(entry)
