"""What `ordercast certs` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ordercast.cli.commands.options import Json
from ordercast.cli.declare import Argument, Group, Option

Folder = Annotated[Path, Argument("FOLDER", "Where the authority is, and where certificates are written.")]
Called = Annotated[str, Argument("NAME", "Who it is for.")]
Days = Annotated[int, Option("--days", min=1, metavar="DAYS", help="How long it is valid.")]
Hosts = Annotated[
    list[str] | None,
    Option("--host", metavar="HOST", help="A name or address under which clients reach the daemon; repeat."),
]
Authority = Annotated[Path, Option("--authority", metavar="FOLDER", help="The folder of the authority that signs.")]

certs = Group(
    "certs",
    "Make, renew and show certificates and tokens, by which clients over TCP and daemons know each other.",
    example="ordercast certs new certs",
)


@certs.command(example="ordercast certs new certs")
def new(
    folder: Folder,
    name: Annotated[str, Option("--name", metavar="NAME", help="Of the authority.")] = "Ordercast",
) -> int:
    """Make an authority, in a folder that nobody else can read. One that is there is never written over."""
    from ordercast.cli import certs as work

    return work.new(folder, name)


@certs.command(example="ordercast certs server certs alpha --host 10.0.0.1 --host alpha.example")
def server(folder: Folder, name: Called, host: Hosts = None, days: Days = 365) -> int:
    """Make a certificate for a daemon, called as in the cluster's file."""
    from ordercast.cli import certs as work

    return work.server(folder, name, host, days)


@certs.command(example="ordercast certs client certs alice")
def client(folder: Folder, name: Called, days: Days = 365) -> int:
    """Make credentials for a client: a certificate, its key, and the authority, in one file."""
    from ordercast.cli import certs as work

    return work.client(folder, name, days)


@certs.command(example="ordercast certs token certs billing")
def token(folder: Folder, name: Called) -> int:
    """Make credentials with a token instead of a certificate; daemons have a hash of it."""
    from ordercast.cli import certs as work

    return work.token(folder, name)


@certs.command(example="ordercast certs renew alice.pem --authority certs")
def renew(
    file: Annotated[Path, Argument("FILE", "What is renewed: the same name, another key.")],
    authority: Authority,
    host: Hosts = None,
    days: Days = 365,
) -> int:
    """Put another certificate in the place of one. Daemons take it within a minute, or at a reload."""
    from ordercast.cli import certs as work

    return work.renew(file, authority, host, days)


@certs.command(example="ordercast certs show certs/alpha.pem")
def show(
    files: Annotated[list[Path], Argument("FILE", "Files with certificates.")],
    as_json: Json = False,
) -> int:
    """Show whose certificates these are, for which hosts, by which authority, and until when."""
    from ordercast.cli import certs as work

    return work.show(files, as_json=as_json)


@certs.command(example="ordercast certs bearer /etc/ordercast/status-token")
def bearer(
    file: Annotated[Path, Argument("FILE", "Where the token is written.")],
) -> int:
    """Make a token for those who read the status of daemons on other hosts."""
    from ordercast.cli import certs as work

    return work.bearer(file)
