"""How packets are spread over several networks, and when a network is given up. Validated once, with the ring's timers.

Times are nanoseconds. Relations between the timers are what keeps a fault of a network from becoming a change of view.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from math import ceil

from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND, SECOND
from ordercast.order.ring.config import ONE_NETWORK, RingConfig

NETWORKS_MAX = 8
HOLD_OFF_LEVEL_MAX = 6  # each level doubles what a network has to prove


class Replication(Enum):
    ACTIVE = "active"  # every packet on every network
    PASSIVE = "passive"  # every packet on one network, in turn
    ACTIVE_PASSIVE = "active-passive"  # every packet on `copies` networks, in turn


@dataclass(frozen=True, slots=True)
class NetworksConfig:
    count: int = 1  # how many networks (N)
    replication: Replication = Replication.ACTIVE
    copies: int = 2  # of every packet, in active-passive replication (K)
    names: tuple[str, ...] = field(default=())  # for people; those without are numbered from 0

    token_hold_ns: int = 10 * MILLISECOND  # how long a token may wait for its copies, or for messages
    is_strict: bool = True  # active-passive: the token waits for messages too, not for its copies alone

    problem_threshold: int = 10  # tokens that a network failed to bring in time before it is marked (active)
    decay_ns: int = SECOND  # one of them is forgotten after so long …
    decay_tokens: int = 50  # … and after so many tokens that the network did bring in time
    token_lag_max: int = 10  # tokens, or announcements of one member, that a network may be behind another
    message_lag_max: int = 0  # packets of one member that a network may be behind; 0: twice the ring's visit_max
    catch_up: int = 50  # a network that is behind is forgiven one for so many that came

    probe_ns: int = 100 * MILLISECOND  # how often a network that is not good is probed
    proof: int = 10  # probes in a row of every member that bring a marked network back on trial
    calm_ns: int = 60 * SECOND  # a network that is marked again within this time has twice as much to prove

    def name(self, network: int) -> str:
        return self.names[network] if network < len(self.names) else f"network {network}"

    @property
    def in_words(self) -> str:
        """What all members have to agree on. Engines compare it, and do not know what it means."""
        if self.count == 1:
            return ONE_NETWORK
        copies = f", {self.copies} copies" if self.replication is Replication.ACTIVE_PASSIVE else ""
        return f"{self.count} networks, {self.replication.value}{copies}"

    @property
    def unheard_ns(self) -> int:
        """Who was not heard for so long on a network that is probed is not heard there."""
        return 3 * self.probe_ns

    def message_lag(self, ring: RingConfig) -> int:
        return self.message_lag_max or 2 * ring.visit_max

    def validate(self, ring: RingConfig, nodes: int) -> None:
        """Every key and every relation, for a cluster of so many nodes; all that is wrong is said at once."""
        problems = self.problems(ring, nodes)
        if problems:
            raise UsageError("; ".join(problems))

    def problems(self, ring: RingConfig, nodes: int) -> list[str]:
        if self.count == 1:
            return []
        return [text for holds, text in (*self._ranges(), *self._relations(ring, nodes)) if not holds]

    def _ranges(self) -> list[tuple[bool, str]]:
        at_least_one = ("token_hold_ns", "problem_threshold", "decay_ns", "decay_tokens", "token_lag_max", "probe_ns")
        return [
            (1 <= self.count <= NETWORKS_MAX, f"there may be 1 to {NETWORKS_MAX} networks, not {self.count}"),
            *((getattr(self, name) >= 1, f"{name} must be at least 1") for name in (*at_least_one, "proof", "calm_ns")),
            (self.message_lag_max >= 0, "message_lag_max must be at least 0"),
            (
                self.replication is not Replication.ACTIVE_PASSIVE or 1 < self.copies < self.count,
                f"active-passive replication needs more than one copy and fewer than networks: copies = {self.copies} "
                f"with {self.count} networks",
            ),
        ]

    def _relations(self, ring: RingConfig, nodes: int) -> list[tuple[bool, str]]:
        hold, again, loss = self.token_hold_ns, ring.token_retransmit_ns, ring.token_loss_ns
        visit = ring.visit_max
        return [
            (2 * hold <= again, "token_hold_ns must be at most half of token_retransmit_ns"),
            (
                4 * nodes * hold <= 3 * loss,
                f"token_hold_ns must be at most three quarters of token_loss_ns divided by the {nodes} nodes, since "
                "every node may hold the token so long in one rotation",
            ),
            (
                self.replication is Replication.ACTIVE or 10 * nodes * (hold + again) <= 9 * loss,
                "token_hold_ns and token_retransmit_ns together must be at most nine tenths of token_loss_ns divided "
                f"by the {nodes} nodes, since every node may hold the token and lose it once in one rotation where it "
                f"travels on few networks: raise token_loss_ns to {_milliseconds(10 * nodes * (hold + again) / 9)} ms",
            ),
            (self.catch_up > self.count, "catch_up must be more than the number of networks, or no fault is found"),
            (
                not self.message_lag_max or self.message_lag_max >= visit,
                f"message_lag_max must be at least visit_max = {visit}, which one network may bring before another",
            ),
        ]


def _milliseconds(duration: float) -> int:
    return ceil(duration / MILLISECOND)
