"""What this process thinks of each network: good, on trial or faulty. One place says so, everybody else asks.

The last good network is never marked: with nothing to rely on, nothing would be sent.
"""

from __future__ import annotations

from ordercast.model.ids import Instant
from ordercast.model.notes import NetworkState
from ordercast.networks.config import HOLD_OFF_LEVEL_MAX, NetworksConfig


class Marks:
    __slots__ = ("_calm_ns", "_states", "changes", "good", "good_bits", "levels", "repaired_at", "trial", "used")

    def __init__(self, config: NetworksConfig) -> None:
        self._states = [NetworkState.GOOD] * config.count
        self._calm_ns = config.calm_ns
        self.levels = [0] * config.count  # how often the proof that is asked of a network has doubled
        self.repaired_at: list[Instant | None] = [None] * config.count
        self.changes = 0  # rises with every change, so that others notice
        self.good: tuple[int, ...] = ()
        self.trial: tuple[int, ...] = ()
        self.used: tuple[int, ...] = ()  # both: where packets may go
        self.good_bits = 0
        self._refresh()

    def __getitem__(self, network: int) -> NetworkState:
        return self._states[network]

    @property
    def states(self) -> tuple[NetworkState, ...]:
        return tuple(self._states)

    def is_last(self, network: int) -> bool:
        return self.good == (network,)

    def mark(self, network: int, now: Instant) -> None:
        """Good no more. A network that was taken back a short while ago has more to prove than the last time."""
        assert self._states[network] is NetworkState.GOOD and not self.is_last(network)
        repaired_at = self.repaired_at[network]
        is_flapping = repaired_at is not None and now - repaired_at < self._calm_ns << self.levels[network]
        self.levels[network] = min(self.levels[network] + 1, HOLD_OFF_LEVEL_MAX) if is_flapping else 0
        self._turn(network, NetworkState.FAULTY)

    def give_up(self, network: int) -> None:
        """It was on trial."""
        assert self._states[network] is NetworkState.ON_TRIAL
        self._turn(network, NetworkState.FAULTY)

    def try_again(self, network: int) -> None:
        assert self._states[network] is NetworkState.FAULTY
        self._turn(network, NetworkState.ON_TRIAL)

    def take_back(self, network: int, now: Instant) -> None:
        assert self._states[network] is NetworkState.ON_TRIAL
        self.repaired_at[network] = now
        self._turn(network, NetworkState.GOOD)

    def _turn(self, network: int, state: NetworkState) -> None:
        self._states[network] = state
        self.changes += 1
        self._refresh()

    def _refresh(self) -> None:
        states = list(enumerate(self._states))
        self.good = tuple(network for network, state in states if state is NetworkState.GOOD)
        self.trial = tuple(network for network, state in states if state is NetworkState.ON_TRIAL)
        self.used = tuple(network for network, state in states if state is not NetworkState.FAULTY)
        self.good_bits = sum(1 << network for network in self.good)
