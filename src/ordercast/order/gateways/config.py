"""What is chosen of a network of rings, validated once. Windows, sizes and membership timers are the ring's keys."""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.errors import UsageError

MIB = 1 << 20
SHARE_MAX = 100.0  # beyond it a gateway's visit is a whole window anyway


@dataclass(frozen=True, slots=True)
class GatewaysConfig:
    filter: bool = True  # gateways do not carry what nobody wants; without, everybody has the whole stream
    gateway_share: float = 2.0  # a gateway sends so many times as much in a visit as others
    carried_size_max: int = 4 * MIB  # bytes that wait to be carried onto a ring, before users are asked to stop
    waiting_size_max: int = 32 * MIB  # bytes that wait for their place in the order, likewise

    def validate(self) -> None:
        """Every key; all that is wrong is said at once."""
        problems = [f"{name} must be at least 1" for name in _SIZES if getattr(self, name) < 1]
        if not 1 <= self.gateway_share <= SHARE_MAX:
            problems.append(f"gateway_share must be within 1..{SHARE_MAX:g}")
        if problems:
            raise UsageError("; ".join(problems))


_SIZES = ("carried_size_max", "waiting_size_max")
