"""What a campaign with clients wants to have seen: counted by the driver of the groups, from what passes it by.

Nothing here reads the layer's state but the one question that drivers ask, whether it is steady.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum

from ordercast.groups.envelope import CONFIRM, SELF_DISCARD, Head, Kind, decode_head, head_bytes_of
from ordercast.groups.layer import Groups
from ordercast.groups.names import AT
from ordercast.groups.snapshot import decode_snapshot
from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.effects import Deliver
from ordercast.model.errors import WireError
from ordercast.model.events import GroupNews, Transition, View
from ordercast.model.ids import ConfigurationId, ProcessId, node_of
from ordercast.trace.client_records import End


class GroupOccurrence(Enum):
    """The rows that a swarm of clients adds to its table."""

    SETTLED = "groups: nobody new came, settled without a word"
    GATHERING = "groups: snapshots asked for"
    MERGED = "groups: snapshots complete, merged"
    INTERRUPTED = "groups: gathering interrupted"
    COMPLETED_LATE = "groups: gathering interrupted, yet completed"
    COMPLETED_WITH_LOSS = "groups: gathering interrupted by the loss of a daemon, yet completed"
    GIVEN_UP = "groups: gathering given up"
    GIVEN_UP_AGAIN = "groups: gathering given up after another one"
    GIVEN_UP_SIGNALLED = "groups: gathering given up with a group that was signalled before"
    KEPT = "groups: message kept while gathering"
    KEPT_JOIN = "groups: join kept while gathering"
    KEPT_FAREWELL = "groups: disconnection kept while gathering"
    GIVEN_UP_KEPT = "groups: gathering given up with messages kept"
    GIVEN_UP_CONTROL = "groups: gathering given up with joins, leaves or disconnections kept"
    LATE_KEPT = "groups: gathering completed late with messages kept"
    STALE_SNAPSHOT = "groups: snapshot of another configuration ignored"
    JOIN_TRANSITIONAL = "groups: join in a transitional configuration"
    JOIN_PARTITIONED = "groups: join in a transitional configuration, from a daemon out of reach"
    JOIN_SIGNALLED = "groups: join to a group that was signalled"
    LEAVE_SIGNALLED = "groups: leave from a group that was signalled"
    FAREWELL_SIGNALLED = "groups: disconnection from a group that was signalled"
    SIGNAL = "groups: transitional signal"
    CLIENT_VIEW = "groups: view after a join, leave or disconnection"
    NETWORK_VIEW = "groups: view after a change of the network"
    DATA_TRANSITIONAL = "groups: message in a transitional configuration"
    CRASH_GATHERING = "groups: client gone while gathering"
    NAME_REUSED = "groups: name used again at the same daemon"
    NAME_REUSED_RESTART = "groups: name used again after the daemon's restart"
    NAME_REFUSED = "groups: name refused, still in use"
    ORDERLY = "groups: client disconnected"
    CRASHED = "groups: client crashed"
    DAEMON_CRASHED = "groups: client lost with its daemon"
    DAEMON_LEFT = "groups: client of a daemon that left"
    SEVERAL = "groups: message to several groups"
    PRIVATE = "groups: private message"
    DISCARDED = "groups: message with self-discard"
    CONFIRM = "groups: message to be confirmed"
    SENT_AWAY = "sessions: client sent away by its daemon"
    WRONG = "sessions: client said something wrong"
    GROUPS_REFUSED = "sessions: join of too many groups refused"
    SLOWLY = "sessions: client begins to read slowly"
    STOPPED = "sessions: client stops reading"
    READS_AGAIN = "sessions: client reads again"
    NO_ROOM = "sessions: messages wait, for the client gives no credit"
    TOO_SLOW = "sessions: client dropped for slowness"
    DROPPED = "sessions: messages dropped by policy"
    HOLD_BEGAN = "sessions: all begin to wait for a client"
    HOLD_ENDED = "sessions: all waited for a client, which has caught up"
    HOLD_GIVEN_UP = "sessions: all waited for a client, which took nothing"
    HELD_TOO_LONG = "sessions: all waited for a client, which took too little"
    CREDIT_EXHAUSTED = "sessions: client has no credit for what it sends"
    CREDIT_WANTED = "sessions: client wants credit for a large frame"
    CREDIT_BACK = "sessions: credit came back"
    RECONNECTED = "sessions: client connected again"


# Too seldom to be asked for below seed 10,000: in one seed of a hundred. Plots aim at it (`client_plots.py`).
SELDOM = frozenset({GroupOccurrence.HELD_TOO_LONG})
_ENDS = {
    End.ORDERLY: GroupOccurrence.ORDERLY,
    End.CRASHED: GroupOccurrence.CRASHED,
    End.DAEMON_CRASHED: GroupOccurrence.DAEMON_CRASHED,
    End.DAEMON_LEFT: GroupOccurrence.DAEMON_LEFT,
    End.SENT_AWAY: GroupOccurrence.SENT_AWAY,
}


@dataclass(slots=True)
class GroupTally:
    """Tallies one life of a daemon; `counts` and `names` are the whole run's."""

    counts: Counter[str]
    names: dict[tuple[int, str], ProcessId]  # who had a client of this name last, by node and name
    is_gathering: bool = False
    is_interrupted: bool = False
    failures: int = 0  # gatherings in a row that were given up
    kept: int = 0
    kept_control: int = 0
    configuration: ConfigurationId | None = None  # the regular one
    size: int = 0  # how many daemons it has
    transition: Configuration | None = None
    signalled: set[str] = field(default_factory=set)

    def count(self, what: GroupOccurrence) -> None:
        self.counts[what.value] += 1

    # Configurations

    def installs(self, groups: Groups, view: Configuration) -> None:
        if view.kind is ConfigurationKind.TRANSITIONAL:
            self.transition = view
            if not groups.is_steady:
                self.is_interrupted = True
                self.count(GroupOccurrence.INTERRUPTED)
            return
        self.configuration, self.size, self.transition = view.id, len(view.members), None
        if not groups.is_steady:
            self._gives_up()
        self.is_interrupted, self.kept, self.kept_control = False, 0, 0

    def installed(self, groups: Groups) -> None:
        self.is_gathering = not groups.is_steady
        if self.transition is None:
            self.count(GroupOccurrence.GATHERING if self.is_gathering else GroupOccurrence.SETTLED)

    def _gives_up(self) -> None:
        self.count(GroupOccurrence.GIVEN_UP)
        if self.failures:
            self.count(GroupOccurrence.GIVEN_UP_AGAIN)
        if self.signalled:
            self.count(GroupOccurrence.GIVEN_UP_SIGNALLED)
        if self.kept:
            self.count(GroupOccurrence.GIVEN_UP_KEPT)
        if self.kept_control:
            self.count(GroupOccurrence.GIVEN_UP_CONTROL)
        self.failures += 1

    # Messages

    def delivers(self, deliver: Deliver) -> None:
        for _, _, originator, _, _, payload in deliver.messages():
            try:
                head = decode_head(head_bytes_of(payload))
            except WireError:
                continue
            if head.kind is Kind.GROUPS:
                if decode_snapshot(payload[len(head_bytes_of(payload)) :], head.sender)[0] != self.configuration:
                    self.count(GroupOccurrence.STALE_SNAPSHOT)
            elif self.is_gathering:
                self._keeps(head)
            else:
                self._takes(head, originator)

    def delivered(self, groups: Groups) -> None:
        if self.is_gathering and groups.is_steady:
            self.is_gathering, self.failures = False, 0
            self.count(GroupOccurrence.MERGED)
            if self.is_interrupted:
                self.count(GroupOccurrence.COMPLETED_LATE)
                if self.transition is not None and len(self.transition.members) < self.size:
                    self.count(GroupOccurrence.COMPLETED_WITH_LOSS)
                if self.kept:
                    self.count(GroupOccurrence.LATE_KEPT)

    def _keeps(self, head: Head) -> None:
        self.kept += 1
        self.count(GroupOccurrence.KEPT)
        if head.kind is not Kind.DATA:
            self.kept_control += 1
        if head.kind is Kind.JOIN:
            self.count(GroupOccurrence.KEPT_JOIN)
        if head.kind is Kind.DISCONNECT:
            self.count(GroupOccurrence.KEPT_FAREWELL)

    def _takes(self, head: Head, originator: ProcessId) -> None:
        is_signalled = bool(self.signalled.intersection(head.groups))
        if head.kind is Kind.DATA:
            self._takes_data(head)
        elif head.kind is Kind.JOIN:
            if is_signalled:
                self.count(GroupOccurrence.JOIN_SIGNALLED)
            if self.transition is not None:
                self.count(GroupOccurrence.JOIN_TRANSITIONAL)
                if originator not in self.transition.members:
                    self.count(GroupOccurrence.JOIN_PARTITIONED)
        elif head.kind is Kind.LEAVE and is_signalled:
            self.count(GroupOccurrence.LEAVE_SIGNALLED)
        elif head.kind is Kind.DISCONNECT and self.signalled:
            self.count(GroupOccurrence.FAREWELL_SIGNALLED)

    def _takes_data(self, head: Head) -> None:
        if self.transition is not None:
            self.count(GroupOccurrence.DATA_TRANSITIONAL)
        if len(head.groups) > 1:
            self.count(GroupOccurrence.SEVERAL)
        if any(AT in name for name in head.groups):
            self.count(GroupOccurrence.PRIVATE)
        if head.flags & SELF_DISCARD:
            self.count(GroupOccurrence.DISCARDED)
        if head.flags & CONFIRM:
            self.count(GroupOccurrence.CONFIRM)

    def notifies(self, news: GroupNews) -> None:
        if isinstance(news, Transition):
            self.signalled.add(news.group)
            self.count(GroupOccurrence.SIGNAL)
        elif isinstance(news, View):
            self.signalled.discard(news.group)
            self.count(GroupOccurrence.NETWORK_VIEW if not news.who else GroupOccurrence.CLIENT_VIEW)

    # Clients

    def connects(self, process: ProcessId, name: str) -> None:
        key = node_of(process), name
        before = self.names.get(key)
        if before is not None:
            self.count(GroupOccurrence.NAME_REUSED if before == process else GroupOccurrence.NAME_REUSED_RESTART)
        self.names[key] = process

    def ends(self, groups: Groups, how: End) -> None:
        self.count(_ENDS[how])
        if not groups.is_steady:
            self.count(GroupOccurrence.CRASH_GATHERING)
