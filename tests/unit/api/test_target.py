"""Where a client looks for a daemon, and how long it waits there."""

from __future__ import annotations

from pathlib import Path

from ordercast.api.target import GREETING_S, QUICK_GREETING_S, DaemonTarget
from ordercast.session.addresses import Address, UnixAddress
from ordercast.session.frames import SlowPolicy

ONE, OTHER = UnixAddress(Path("/one")), UnixAddress(Path("/other"))


def tries(*addresses: Address, hung: list[Address]) -> list[tuple[Address, float]]:
    return list(DaemonTarget(lambda: addresses, "", SlowPolicy.WAIT, False).tries(hung))


def test_the_only_daemon_has_all_the_time() -> None:
    assert tries(ONE, hung=[ONE]) == [(ONE, GREETING_S)]


def test_one_of_several_that_hangs_is_tried_again_when_all_were() -> None:
    expected = [(ONE, QUICK_GREETING_S), (OTHER, QUICK_GREETING_S), (ONE, GREETING_S)]
    assert tries(ONE, OTHER, hung=[ONE]) == expected
    assert tries(ONE, OTHER, hung=[]) == expected[:2]
