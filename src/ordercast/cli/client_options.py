"""What the commands that are clients of a daemon have in common: where it is, and under which name."""

from __future__ import annotations

from typing import Annotated

import typer

from ordercast.model.errors import UsageError
from ordercast.model.service import Service

ADDRESS_VARIABLE = "ORDERCAST_ADDRESS"

At = Annotated[
    str | None,
    typer.Option(
        "--at",
        "--to",
        metavar="ADDRESS",
        envvar=ADDRESS_VARIABLE,
        show_envvar=False,
        help="The daemon: n1, tcp://HOST:PORT or unix:///PATH; by default any daemon of this machine.",
    ),
]
Name = Annotated[
    str, typer.Option(metavar="NAME", help="As which client; by default the daemon finds a name.", show_default=False)
]


def service_from(text: str) -> Service:
    """UsageError when there is none, or none that daemons serve."""
    served = [service for service in Service if service is not Service.UNRELIABLE]
    for service in served:
        if service.name == text.upper():
            return service
    names = ", ".join(service.name.lower() for service in reversed(served))
    raise UsageError(f"there is no service {text!r}: choose one of {names}")
