"""Everything that is counted of what arrives: one monitor per member for messages, one for announcements, one for
tokens, and the problem counters of the active style. It names networks to be marked; it marks none.

Announcements are sent on every network in every style, also by an idle ring: they find faults between members that
exchange no tokens. A member that says of a network that it is on trial there, or has marked it, sends more on it than
its share, or nothing: it is not measured there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ordercast.model.ids import Instant, ProcessId
from ordercast.model.notes import Evidence
from ordercast.networks.config import NetworksConfig
from ordercast.networks.marks import Marks
from ordercast.networks.monitors import ArrivalCounts, Problems


class NetworkSuspicion(NamedTuple):
    network: int
    evidence: Evidence
    process: ProcessId | None
    text: str  # the counts behind it


class WatchedMember:
    """The monitors of one member."""

    __slots__ = ("announcements", "excused", "messages", "process", "tokens")

    def __init__(self, process: ProcessId, networks: int, config: NetworksConfig, lag: int) -> None:
        self.process = process
        self.excused: frozenset[int] = frozenset()  # networks on which it says that it is not measured
        self.messages = ArrivalCounts(networks, lag, config.catch_up, ())
        self.announcements = ArrivalCounts(networks, config.token_lag_max, config.catch_up, ())
        self.tokens = ArrivalCounts(networks, config.token_lag_max, config.catch_up, ())

    def reset(self, good: tuple[int, ...]) -> None:
        judged = tuple(network for network in good if network not in self.excused)
        for counts in (self.messages, self.announcements, self.tokens):
            counts.reset(judged)


class Watch:
    __slots__ = ("_config", "_lag", "_marks", "members", "messages", "problems")

    def __init__(self, config: NetworksConfig, marks: Marks, message_lag: int) -> None:
        self._config = config
        self._marks = marks
        self._lag = message_lag
        self.problems = Problems(config.count, config.problem_threshold, config.decay_ns, config.decay_tokens)
        self.members: dict[bytes, WatchedMember] = {}  # by process, as it stands in a packet
        self.messages: dict[bytes, ArrivalCounts] = {}  # of each of them

    def begin(self, members: tuple[ProcessId, ...]) -> None:
        """A new ring of me and these: everything starts anew."""
        self.members = {
            process.to_bytes(8, "big"): WatchedMember(process, self._config.count, self._config, self._lag)
            for process in members
        }
        self.messages = {process: member.messages for process, member in self.members.items()}
        self.reset()

    def reset(self) -> None:
        """The marks changed: who is compared with whom is another matter now."""
        self.problems.reset()
        for member in self.members.values():
            member.reset(self._marks.good)

    def excuse(self, process: ProcessId, networks: frozenset[int]) -> None:
        member = self.members.get(process.to_bytes(8, "big"))
        if member is not None and member.excused != networks:
            member.excused = networks
            member.reset(self._marks.good)

    def expired(self, brought: int, now: Instant) -> list[NetworkSuspicion]:
        missing = [network for network in self._marks.good if not brought >> network & 1]
        failed = self.problems.expired(missing, now)
        counters = self.problems.counters
        return [NetworkSuspicion(n, Evidence.TOKEN_TIMER, None, f"{counters[n]} times of late") for n in failed]

    def in_time(self, brought: int) -> None:
        for network in self._marks.good:
            if brought >> network & 1:
                self.problems.brought(network)


def suspicions(
    behind: Sequence[int], evidence: Evidence, member: WatchedMember, counts: ArrivalCounts
) -> list[NetworkSuspicion]:
    listed = ", ".join(str(counts.counts[network]) for network in counts.judged)
    return [NetworkSuspicion(network, evidence, member.process, f"{listed} by network") for network in behind]
