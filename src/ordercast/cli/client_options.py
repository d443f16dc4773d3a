"""What the commands that are clients of a daemon have in common: where it is, and under which name."""

from __future__ import annotations

import socket

from ordercast.cli.event_text import listed, verb
from ordercast.model.errors import UsageError
from ordercast.model.service import Service
from ordercast.session.addresses import ANY, UnixAddress, addresses_from


def checked_at(at: str | None, wait: float | None = None) -> str | None:
    """UsageError when a daemon of this machine is meant that does not run, and is not waited for."""
    if not wait and at is not None and _is_daemon(at) and not _is_here(at):
        there = [
            address.path.stem
            for address in addresses_from(ANY)
            if isinstance(address, UnixAddress) and _answers(address)
        ]
        hint = f"{listed(there)} {verb(there, 'does', 'do')}" if there else "start one with `ordercast up`"
        raise UsageError(f"no daemon {at!r} runs on this machine: {hint}")
    return at


def first_and_others(at: str | None, wait: float | None = None) -> str | None:
    """For those who reconnect: the daemon of this machine that was named, and when it is gone, any other."""
    return f"{at} {ANY}" if checked_at(at, wait) is not None and _is_daemon(str(at)) else at


def _is_daemon(at: str) -> bool:
    """Tell whether the words name one daemon: not an address, nor several."""
    return bool(at) and at != ANY and not any(mark in at for mark in "/: ")


def _is_here(name: str) -> bool:
    return any(isinstance(address, UnixAddress) and address.path.exists() for address in addresses_from(name))


def service_from(text: str) -> Service:
    """UsageError when there is none, or none that daemons serve."""
    served = [service for service in Service if service is not Service.UNRELIABLE]
    for service in served:
        if service.name == text.upper():
            return service
    names = ", ".join(service.name.lower() for service in reversed(served))
    raise UsageError(f"there is no service {text!r}: choose one of {names}")


def _answers(address: UnixAddress) -> bool:
    """A daemon that was killed leaves its socket behind."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(address.path))
        except OSError:
            return False
    return True
