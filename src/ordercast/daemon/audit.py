"""The audit log: who connected, joined, was refused; what was done with keys and certificates.

The logger `ordercast.audit`. Each line has a sentence and fixed fields: `what`, `who`, `from`, `group`, `why`, `count`.
Equal matters within a minute are one line, and a second one at the end of the minute that says how many there were. No
payload, no key and no token is ever in it. Matters that differ are bounded, too: beyond `MATTERS_MAX` of them in a
minute the rest are one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from ordercast.daemon.logs import fields
from ordercast.model.printable import safe

EVERY_S = 60.0
MATTERS_MAX = 1000
TEXT_MAX = 200  # characters of what came from outside

_log = logging.getLogger("ordercast.audit")


class Audited(Enum):
    CONNECTED = "connected"
    REFUSED = "refused"  # no certificate, or a wrong one
    DENIED = "denied"  # no right to it
    JOINED = "joined"
    KEYS = "keys"
    CERTIFICATES = "certificates"
    RIGHTS = "rights"
    INSECURE = "insecure"


_WARNED = (Audited.REFUSED, Audited.DENIED, Audited.INSECURE)


@dataclass(slots=True)
class _Kept:
    at: float
    count: int
    text: str


def _short(text: str) -> str:
    return safe(text)[:TEXT_MAX]


def _again(matter: tuple[Audited, str, str, str, str], kept: _Kept) -> str:
    """Return what is said at the end of a minute. The first line of it may name a client, the others were more."""
    what, who, place, group, _ = matter
    times = "once more" if kept.count == 1 else f"{kept.count:,} times more"
    if not who or what not in (Audited.CONNECTED, Audited.JOINED):
        return f"{kept.text} ({times} in the last minute)"
    where = f", from {place}" if place else ""
    return f"{who} {what.value}{f' {group}' if group else ''} {times} in the last minute{where}"


class Audit:
    def __init__(self, log: logging.Logger = _log, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._kept: dict[tuple[Audited, str, str, str, str], _Kept] = {}

    def tell(self, what: Audited, text: str, *, who: str = "", place: str = "", group: str = "", why: str = "") -> None:
        """`why`: in a few words; what differs in it is another matter."""
        matter = (what, _short(who), _short(place), _short(group), _short(why))
        if matter not in self._kept and len(self._kept) >= MATTERS_MAX:
            matter, text = (what, "", "", "", "others"), f"others were {what.value} too"
        kept = self._kept.get(matter)
        if kept is not None:
            kept.count += 1
            return
        self._kept[matter] = _Kept(self._clock(), 0, safe(text)[: 2 * TEXT_MAX])
        self._say(matter, self._kept[matter].text, 1)

    def look(self) -> None:
        """Say what was kept back for a minute. To be called about once a second."""
        now = self._clock()
        for matter, kept in list(self._kept.items()):
            if now - kept.at >= EVERY_S:
                del self._kept[matter]
                if kept.count:
                    self._say(matter, _again(matter, kept), kept.count)

    def _say(self, matter: tuple[Audited, str, str, str, str], text: str, count: int) -> None:
        what, who, place, group, why = matter
        level = logging.WARNING if what in _WARNED else logging.INFO
        told = {"what": what.value, "who": who, "from": place, "group": group, "why": why, "count": count}
        self._log.log(level, "%s", text, extra=fields(**told))
