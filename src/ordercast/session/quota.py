"""How many groups the clients of a daemon may be in: each of them, and all together.

One quota is shared by all sessions of a daemon. A group costs memory at every daemon of the cluster, and time whenever
daemons come together: who joins without end is refused, and keeps what it has.
"""

from __future__ import annotations

from ordercast.groups.names import MEMBERSHIPS_MAX

# Of all clients of a daemon. When daemons come together each works through the groups of all in one go, some ten
# microseconds for each: with a few daemons that are full this must stay well below the time after which a daemon
# is missed.
ALL_MEMBERSHIPS_MAX = 20_000


class Quota:
    def __init__(self, each_max: int = MEMBERSHIPS_MAX, all_max: int = ALL_MEMBERSHIPS_MAX) -> None:
        self._each_max = each_max
        self._all_max = all_max
        self.used = 0  # by all clients

    def refusal(self, joined: int, more: int) -> str | None:
        """Why a client that is in so many groups may not join so many more, if it may not."""
        if joined + more > self._each_max:
            return (
                f"a client may be in {self._each_max:,} groups, and this one would be in {joined + more:,}: use "
                "several clients, or raise groups_max in [clients]"
            )
        if self.used + more > self._all_max:
            return (
                f"the clients of this daemon are in {self.used:,} groups together, and may be in {self._all_max:,}: "
                "connect to another daemon, or raise memberships_max in [clients]"
            )
        return None

    def use(self, more: int) -> None:
        self.used += more
