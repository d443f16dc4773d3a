"""DaemonTarget: which daemons a client may have, and as whom it comes; the same for all forms of clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path

from ordercast.api.callback import OnMessage
from ordercast.api.credentials import read_credentials
from ordercast.model.errors import Unreachable
from ordercast.session.addresses import Address, UnixAddress, passed_over
from ordercast.session.client_half import ClientHalf
from ordercast.session.frames import SlowPolicy
from ordercast.session.tls import TlsHalf
from ordercast.session.tls_channel import RefusalWords
from ordercast.session.tls_words import refused_by_daemon

GREETING_S = 10.0  # in which the daemon must have answered
QUICK_GREETING_S = 1.0  # at first, where there are others to try
RETRY_MIN_S = 0.1
RETRY_MAX_S = 2.0
SOUND_S = 5.0  # a session that lasted so long was a sound one


class Hangs(OSError):
    """A daemon took the connection and did not greet."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it did not greet within {seconds:.0f} s: it hangs, or is no daemon")


@dataclass(frozen=True)
class DaemonTarget:
    addresses: Callable[[], Sequence[Address]]  # where to try now, in order
    name: str  # that is asked for
    slow: SlowPolicy
    reconnect: bool
    on_lost: Callable[[str], None] | None = None
    wait_s: float = 0.0  # how long the first daemon may take to come up
    on_message: OnMessage | None = None  # called with each event, instead of the stream
    sinks: bool = False  # what sinks of Spark send is shown too
    credentials: Path | None = None  # over TCP, who this is; read whenever a connection begins

    def halves(self, address: Address) -> tuple[ClientHalf, TlsHalf | None, RefusalWords]:
        """The pure parts of a new session with the daemon at this address: its frames, and TLS if it has any.
        UsageError when the credentials are none."""
        words = partial(refused_by_daemon, where=str(address))
        if self.credentials is None or isinstance(address, UnixAddress):
            return ClientHalf(self.name, self.slow), None, words
        shown = read_credentials(self.credentials)
        return ClientHalf(self.name, self.slow, token=shown.token), TlsHalf(shown.context, address.host), words

    def tries(self, hung: Sequence[Address]) -> Iterator[tuple[Address, float]]:
        """Return each address in turn, with the seconds in which the daemon there must greet. Where there are several,
        one that hangs keeps nobody from the next: those who are `hung` by then, which the caller fills, are tried once
        more at the end."""
        addresses = self.addresses()
        for address in addresses:
            yield address, GREETING_S if len(addresses) == 1 else QUICK_GREETING_S
        if len(addresses) > 1:
            for address in tuple(hung):
                yield address, GREETING_S

    def unreachable(self, problems: Sequence[str], *, again: bool) -> Unreachable:
        where = "; ".join(problems) or "; ".join(passed_over()) or "no daemon runs on this machine"
        waited = f" within {self.wait_s:g} s" if 0 < self.wait_s < inf and not again else ""
        return Unreachable(
            f"no daemon can be reached{waited} ({where}): start one with `ordercast up` or `ordercast daemon`"
        )


def next_pause(pause: float) -> float:
    """How long to wait before the next try, in seconds."""
    return min(RETRY_MAX_S, max(RETRY_MIN_S, 2 * pause))
