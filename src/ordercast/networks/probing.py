"""How a network comes back. (Beyond the paper, which never takes a network back)

Who does not think a network good probes it: a small numbered packet on it, now and then, that says what its sender
thinks of the network and whether it hears every member there. A marked network goes on trial when from every other
member enough probes in a row have come, none missing, and each said that its sender hears everybody: so every path of
it works, both ways, and loses little. It is good again when every member is on trial there or thinks it good. All get
there within about one probe of each other, and nobody blames it before.
"""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.ids import Instant, ProcessId
from ordercast.model.notes import NetworkState
from ordercast.networks.config import NetworksConfig
from ordercast.networks.probe import Probe


@dataclass(slots=True)
class Word:
    """The last probe of one member on one network."""

    number: int
    since: Instant  # from then on it was never unheard
    at: Instant
    state: NetworkState
    is_whole: bool
    is_in_need: bool
    row: int  # how many came in a row, each whole and none missing


class Probing:
    """Probes one network, among the members of one configuration."""

    __slots__ = ("_config", "_words", "marked_at", "members", "number", "tried_at")

    def __init__(self, config: NetworksConfig) -> None:
        self._config = config
        self._words: dict[ProcessId, Word] = {}
        self.members: tuple[ProcessId, ...] = ()  # all but me
        self.number = 0  # of my last probe
        self.tried_at = Instant(0)  # when the trial began
        self.marked_at: Instant | None = None  # until it was told who is not heard there since

    def begin(self, members: tuple[ProcessId, ...], now: Instant) -> None:
        """A new configuration: nothing is known."""
        self._words.clear()
        self.marked_at = None
        self.members = members
        self.tried_at = now

    def restart(self, now: Instant) -> None:
        """The network was marked."""
        self.marked_at = now
        self.doubt()

    def doubt(self) -> None:
        """What was proved before counts no more."""
        for word in self._words.values():
            word.row = 0

    def silent(self, now: Instant) -> tuple[ProcessId, ...]:
        """Who was not heard since the mark though there was time; told once."""
        marked_at = self.marked_at
        if marked_at is None or now - marked_at < self._config.proof * self._config.probe_ns:
            return ()
        self.marked_at = None
        return tuple(m for m in self.members if m not in self._words or self._words[m].at < marked_at)

    def hear(self, probe: Probe, now: Instant) -> bool:
        """Note a member's probe; False when a newer one came before it."""
        before = self._words.get(probe.sender)
        row, since = 1, now
        if before is not None:
            if probe.number <= before.number:
                return False
            row = before.row + 1 if probe.number == before.number + 1 else 1
            since = before.since if now - before.at < self._config.unheard_ns else now
        if not probe.is_whole:
            row = 0
        word = Word(probe.number, since, now, probe.state, probe.is_whole, probe.is_in_need, row)
        self._words[probe.sender] = word
        return True

    def hears_all(self, now: Instant) -> bool:
        return all(self.is_heard(member, now) for member in self.members)

    def is_proved(self, level: int, now: Instant) -> bool:
        wanted = self._config.proof << level
        return self.hears_all(now) and all(self._words[member].row >= wanted for member in self.members)

    def is_used_by_all(self, now: Instant) -> bool:
        """Everybody hears everybody, and nobody thinks it faulty."""
        if not self.hears_all(now):
            return False
        words = [self._words[member] for member in self.members]
        return all(word.is_whole and word.state is not NetworkState.FAULTY for word in words)

    def unheard(self, now: Instant) -> ProcessId | None:
        """A member that was not heard here since the trial began, or for too long."""
        if now - self.tried_at < self._config.unheard_ns:
            return None
        return next((member for member in self.members if not self.is_heard(member, now)), None)

    def is_probed(self, now: Instant) -> bool:
        """Somebody else thinks it less than good, and wants to know what we think."""
        return any(
            word.state is not NetworkState.GOOD and now - word.at < self._config.unheard_ns
            for word in self._words.values()
        )

    def is_needed(self, now: Instant) -> bool:
        """Somebody has no network on which it hears everybody."""
        return any(word.is_in_need and now - word.at < self._config.unheard_ns for word in self._words.values())

    def state_at(self, member: ProcessId, now: Instant) -> NetworkState:
        """What a member says; who says nothing, or no longer, has nothing against it."""
        return self._words[member].state if self.is_heard(member, now) else NetworkState.GOOD

    def is_heard(self, member: ProcessId, now: Instant) -> bool:
        word = self._words.get(member)
        return word is not None and now - word.at < self._config.unheard_ns

    def is_heard_for_long(self, member: ProcessId, now: Instant) -> bool:
        """So long that it would have been heard on every network that brings its packets."""
        return self.is_heard(member, now) and now - self._words[member].since >= self._config.unheard_ns
