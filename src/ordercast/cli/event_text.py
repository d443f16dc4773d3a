"""What a client is told, as a sentence for people and as a document for machines. Pure.

A view says who is in a group. What has changed since the view before is worked out here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

from ordercast.cli.payload_text import payload_document, place_document
from ordercast.model.events import Dropped, Event, Left, Message, Reason, Reconnected, Transition, View
from ordercast.model.quantities import size_text

SHOWN_NAMES_MAX = 12

News = View | Transition | Left | Dropped | Reconnected


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def waiting(count: int, noun: str) -> str:
    """Return `1 packet waits`, `2 packets wait`."""
    return f"{counted(count, noun)} {'waits' if count == 1 else 'wait'}"


def listed(names: Collection[str]) -> str:
    """`a, b and c`; of many only the first."""
    shown = list(names)
    if len(shown) > SHOWN_NAMES_MAX:
        shown = [*shown[: SHOWN_NAMES_MAX - 1], f"{len(shown) - SHOWN_NAMES_MAX + 1:,} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else "nobody"


def verb(names: Collection[str], one: str, several: str) -> str:
    return one if len(names) == 1 else several


@dataclass(slots=True)
class Roster:
    """The members of the groups of one reader, by its views."""

    members: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def changes(self, view: View) -> tuple[list[str], list[str]]:
        """Who came and who is gone with this view."""
        before = self.members.get(view.group, ())
        self.members[view.group] = view.members
        known, now = set(before), set(view.members)
        return [name for name in view.members if name not in known], [name for name in before if name not in now]

    def lost(self, transition: Transition) -> list[str]:
        remaining = set(transition.remaining)
        return [name for name in self.members.get(transition.group, ()) if name not in remaining]


@dataclass(slots=True)
class Narrator:
    """Tells news of groups to somebody who watches them. `me`: the reader's full name."""

    me: str
    roster: Roster = field(default_factory=Roster)

    def tell(self, news: News) -> str:
        match news:
            case View():
                return self._view(news)
            case Transition():
                lost = self.roster.lost(news)
                return f"the network is changing: what comes next may not reach {listed(lost)}"
            case Left():
                self.roster.members.pop(news.group, None)
                return "left: nothing more comes from here"
            case Dropped():
                dropped = counted(news.messages, "message")
                return f"{dropped} ({size_text(news.size)}) dropped here, as this reader was too slow"
            case Reconnected():
                self.me = news.name
                return reconnected_text(news)
            case _:
                assert_never(news)

    def _view(self, view: View) -> str:
        came, gone = self.roster.changes(view)
        members = f"{counted(len(view.members), 'member')}: {listed(view.members)}"
        if view.reason is Reason.NETWORK:
            return f"{network_text(view, came, gone)}; {members}"
        verbs = {Reason.JOIN: "joined", Reason.LEAVE: "left", Reason.DISCONNECT: "disconnected"}
        who = "this client" if self.me in view.who else listed(view.who)
        return f"{who} {verbs[view.reason]}; {members}"


def network_text(view: View, came: Sequence[str], gone: Sequence[str]) -> str:
    """What the network did to a group, and who knows the same as the reader."""
    changes = []
    if gone:
        changes.append(f"{listed(gone)} {verb(gone, 'is', 'are')} out of reach")
    if came:
        changes.append(f"{listed(came)} came, and {verb(came, 'has', 'have')} not seen what was sent here before")
    why = f" ({view.why})" if view.why else ""
    return f"the network changed{why}: {', '.join(changes) or 'nobody came or went'}"


def reconnected_text(news: Reconnected) -> str:
    last = "" if news.last is None else f" after {news.last}"
    own = (
        f"; of {counted(news.unconfirmed, 'own message')} it is not known whether they were sent"
        if news.unconfirmed
        else ""
    )
    return f"connected again, as {news.name}: what was sent{last} until now is missing here{own}"


def event_document(event: Event) -> dict[str, Any]:
    match event:
        case Message():
            return {
                "kind": "message",
                "groups": list(event.groups),
                "sender": event.sender,
                **payload_document(event.data),
                **({"headers": dict(event.headers)} if event.headers else {}),
                "service": event.service.name.lower(),
                "position": place_document(event.position),
            }
        case View():
            return {
                "kind": "view",
                "group": event.group,
                "members": list(event.members),
                "transitional": list(event.transitional),
                "reason": event.reason.value,
                "who": list(event.who),
                "why": event.why,
            }
        case Transition():
            return {"kind": "transition", "group": event.group, "remaining": list(event.remaining)}
        case Left():
            return {"kind": "left", "group": event.group}
        case Dropped():
            return {"kind": "dropped", "messages": event.messages, "bytes": event.size}
        case Reconnected():
            return {
                "kind": "reconnected",
                "name": event.name,
                "joined": list(event.joined),
                "unconfirmed": event.unconfirmed,
                "last": None if event.last is None else place_document(event.last),
                "why": event.why,
            }
        case _:
            assert_never(event)
