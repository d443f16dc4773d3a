"""What `ordercast key` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ordercast.cli.commands.options import At, Json
from ordercast.cli.declare import Argument, Group, Option

File = Annotated[Path, Argument("FILE", "The key file, the same on every host.")]
Number = Annotated[int | None, Argument("KEY", "Its number; 0 is clear.", min=0)]

key = Group(
    "key",
    "Make, change and show the keys that seal packets.",
    example="ordercast key new /etc/ordercast/key",
)


@key.command(example="ordercast key new /etc/ordercast/key")
def new(
    file: File,
    beside_clear: Annotated[
        bool, Option("--beside-clear", help="For a cluster that runs in the clear: both count until all have it.")
    ] = False,
) -> int:
    """Make a key file with one key, which nobody else can read. A file that is there is never written over."""
    from ordercast.cli import key as work

    return work.new(file, beside_clear=beside_clear)


@key.command(example="ordercast key add /etc/ordercast/key")
def add(
    file: File,
    clear: Annotated[bool, Option("--clear", help="Accept clear packets instead, to go back to them.")] = False,
) -> int:
    """Add a key, which is used as soon as all nodes accept it."""
    from ordercast.cli import key as work

    return work.add(file, clear=clear)


@key.command(example="ordercast key use /etc/ordercast/key")
def use(file: File, number: Number = None) -> int:
    """Write down that the key which is next, or this one, is used: for daemons that start from now on."""
    from ordercast.cli import key as work

    return work.use(file, number)


@key.command(example="ordercast key retire /etc/ordercast/key")
def retire(file: File, number: Number = None) -> int:
    """Take out this key, or all that are not used. Whoever has nothing else stays outside from then on."""
    from ordercast.cli import key as work

    return work.retire(file, number)


@key.command(example="ordercast key reload --at alpha")
def reload(
    at: At = None,
    now: Annotated[
        bool,
        Option(
            "--now",
            help="Use what is next at once: do not wait for who is away, nor stay with those whose key the file lacks.",
        ),
    ] = False,
    as_json: Json = False,
) -> int:
    """Have a daemon read its key file again, as SIGHUP does. A wrong file changes nothing, nor does one that lacks the
    key in use."""
    from ordercast.cli import key as work

    return work.reload(at, now=now, as_json=as_json)


@key.command(example="ordercast key status")
def status(at: At = None, as_json: Json = False) -> int:
    """Show which keys every node accepts and uses, as one daemon knows it."""
    from ordercast.cli import key as work

    return work.status(at, as_json=as_json)
