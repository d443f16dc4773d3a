"""What is counted of the clients of a daemon, as plain numbers that rise."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum


class ClientRefusal(Enum):
    """Why a connection was sent away, or a request of a client refused."""

    WRONG = "something wrong"
    NAME = "bad or taken names"
    FULL = "too many clients"
    STRANGERS = "too many strangers"
    GREETING = "no greeting"
    GROUPS = "too many groups"
    TLS = "no secure connection"
    RIGHTS = "no right to it"


@dataclass(slots=True)
class CallbackCounters:
    """What is known of a function that an application has given as `on_message`."""

    calls: int = 0
    slow: int = 0  # calls that took more than a millisecond
    longest_ns: int = 0
    raised: int = 0  # calls that ended with an exception


@dataclass(slots=True)
class ClientCounters:
    connected: int = 0  # sessions so far
    refusals: Counter[ClientRefusal] = field(default_factory=Counter)
    too_slow: int = 0  # clients that were disconnected for it
    over_memory: int = 0  # clients that were disconnected, as all took too much memory and they the most
    held_too_long: int = 0  # clients that were disconnected, as everybody waited for them too long
    messages_dropped: int = 0  # for slow clients that had chosen that
    insecure: Counter[str] = field(default_factory=Counter)  # connections that TLS refused, by reason
    denials: Counter[str] = field(default_factory=Counter)  # by right

    @property
    def refused(self) -> int:
        return self.refusals.total()
