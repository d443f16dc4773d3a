"""Timers and bounds of the sites engine, validated once. Windows, sizes and membership timers of the rings are the
ring's keys; those of the links are `links`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND, SECOND
from ordercast.order.links.config import FAR, LinkConfig
from ordercast.order.links.rate import rate_from

FRAGMENTS_MAX = 64  # of a view
CONTROL_MAX = 4 << 20  # bytes of a STATE, which lists what a daemon holds
BETWEEN = replace(FAR, payload_max=CONTROL_MAX)


@dataclass(frozen=True, slots=True)
class SitesConfig:
    delta_ns: int = 100 * MILLISECOND  # a site sends UPDATEs at least this far apart
    lazy_ns: int = 1 * SECOND  # reliable and FIFO messages are acknowledged by then
    lazy_bytes: int = 256 << 10  # or when so many bytes of them are not

    hello_ns: int = 1 * SECOND  # who is silent is greeted, and records are told again
    gather_ns: int = 100 * MILLISECOND  # who is in reach must not have changed for so long before a view is proposed
    attempt_ns: int = 1 * SECOND  # a proposed view must be installed by then, and eight times the widest round trip
    hold_down_ns: int = 1 * SECOND  # a fragment that was given up waits, twice as long each time
    better_ns: int = 10 * SECOND  # links that would cost less must have done so for so long before they are used
    record_ns: int = 5 * SECOND  # a record that nobody renews is forgotten
    stuck_ns: int = 10 * SECOND  # a site whose promise stands still while others wait is left out

    prune: bool = True  # what nobody at a site wants is not brought there
    unlearn_ns: int = 10 * SECOND  # that a group is not wanted any more is told so much later

    window: int = 16 << 20  # bytes of all daemons that not everybody is known to have
    rate: str = "fair"  # at which packets leave on a link: as its part beside others, or fixed, as in "30mbit"
    links: LinkConfig = BETWEEN

    def validate(self) -> None:
        """Every key and every relation; all that is wrong is said at once."""
        positive = (
            *("lazy_ns", "lazy_bytes", "hello_ns", "gather_ns", "attempt_ns"),
            *("hold_down_ns", "better_ns", "record_ns", "stuck_ns", "unlearn_ns", "window"),
        )
        problems = [f"{name} must be at least 1" for name in positive if getattr(self, name) < 1]
        rules = [
            (self.delta_ns >= 0, "delta_ns must not be negative"),
            (self.record_ns > 2 * self.hello_ns, "record_ns must be more than twice hello_ns"),
            (self.stuck_ns > self.attempt_ns, "stuck_ns must be more than attempt_ns"),
        ]
        problems += [text for holds, text in rules if not holds]
        try:
            rate_from(self.rate)
        except UsageError as error:
            problems.append(str(error))
        if problems:
            raise UsageError("; ".join(problems))
        self.links.validate()
