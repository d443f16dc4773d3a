"""Events of sites in time, as the thesis' model has them. (6.2)

The thesis says of a message that a site sends or gets it. Here each transmission is a *copy* with a number, so that it
is known which of them the network has lost; requests and nulls are copies without a message.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

Site = str


class Multicasted(NamedTuple):
    """A message: its source, and its number there."""

    source: Site
    number: int

    def __str__(self) -> str:
        return f"{self.source}.{self.number}"


class Kind(Enum):
    MULTICAST = "M"  # a source has done its part
    SEND = "S"
    GET = "G"
    DELIVER = "D"
    FAIL = "F"
    AWAKE = "A"
    RECOVER = "R"


@dataclass(frozen=True, slots=True)
class Happening:
    """One event. Events of one site have different places in the list, which is their order there."""

    time: int
    kind: Kind
    site: Site
    message: Multicasted | None = None
    copy: int = -1  # of sends and gets
    to: Site = ""  # of sends


class SiteHistory:
    """What happened, indexed for judges."""

    def __init__(self, events: Sequence[Happening], members: Sequence[Site], network: int, end: int) -> None:
        """Take events in their order; `network` is φ_N, `end` when nobody looked any more."""
        self.events, self.members, self.network, self.end = events, tuple(members), network, end

    @cached_property
    def of_kind(self) -> dict[Kind, list[Happening]]:
        found: dict[Kind, list[Happening]] = defaultdict(list)
        for event in self.events:
            found[event.kind].append(event)
        return found

    @cached_property
    def multicasts(self) -> dict[Multicasted, int]:
        """When each message was multicast."""
        return {event.message: event.time for event in self.of_kind[Kind.MULTICAST] if event.message}

    @cached_property
    def deliveries(self) -> dict[tuple[Site, Multicasted], list[Happening]]:
        found: dict[tuple[Site, Multicasted], list[Happening]] = defaultdict(list)
        for event in self.of_kind[Kind.DELIVER]:
            assert event.message is not None
            found[event.site, event.message].append(event)
        return found

    def delivered(self, site: Site, message: Multicasted) -> int | None:
        """Return when a site delivered a message first."""
        found = self.deliveries.get((site, message))
        return found[0].time if found else None

    @cached_property
    def sequences(self) -> dict[Site, list[Multicasted]]:
        """First deliveries of each site, in its order."""
        found: dict[Site, dict[Multicasted, None]] = {member: {} for member in self.members}
        for event in self.of_kind[Kind.DELIVER]:
            assert event.message is not None
            found[event.site].setdefault(event.message)
        return {site: list(messages) for site, messages in found.items()}

    @cached_property
    def gets(self) -> dict[int, int]:
        """When each copy came first; a copy that is not there was lost, or met nobody."""
        found: dict[int, int] = {}
        for event in self.of_kind[Kind.GET]:
            found.setdefault(event.copy, event.time)
        return found

    @cached_property
    def first_gets(self) -> dict[tuple[Site, Multicasted], int]:
        found: dict[tuple[Site, Multicasted], int] = {}
        for event in self.of_kind[Kind.GET]:
            if event.message is not None:
                found.setdefault((event.site, event.message), event.time)
        return found

    @cached_property
    def first_sends(self) -> dict[tuple[Site, Site, Multicasted], int]:
        """When one site first sent a message to another."""
        found: dict[tuple[Site, Site, Multicasted], int] = {}
        for event in self.of_kind[Kind.SEND]:
            if event.message is not None:
                found.setdefault((event.site, event.to, event.message), event.time)
        return found
