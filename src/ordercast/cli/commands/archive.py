"""What `ordercast archive` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ordercast.cli.commands.options import At, Json, Name
from ordercast.cli.declare import Argument, Group, Option

ARCHIVE = Path("archive")

Folder = Annotated[Path, Option("--dir", metavar="FOLDER", help="Where the archive lies.")]
OneGroup = Annotated[str, Argument("GROUP")]
Raw = Annotated[bool, Option("--raw", help="A sink's messages as they were sent, not the rows that they commit.")]

archive = Group(
    "archive",
    """Keep what is delivered to groups, and read it.

    `ordercast archive GROUP…` keeps groups, until Ctrl-C; it is short for `ordercast archive run GROUP…`.
    """,
    example="ordercast archive orders prices --dir /var/lib/ordercast/archive --keep-size 10GiB",
    short="run",
)


@archive.command(example="ordercast archive orders prices --dir /var/lib/ordercast/archive --keep-size 10GiB")
def run(
    groups: Annotated[list[str], Argument("GROUP", "One or several.")],
    folder: Folder = ARCHIVE,
    at: At = None,
    name: Name = "",
    wait: Annotated[
        float | None,
        Option(min=0, metavar="SECONDS", help="How long the daemon may take to come up; by default for ever."),
    ] = None,
    serve: Annotated[
        str, Option(metavar="HOST:PORT", help="Where other archivers fetch what they missed; port 0: any.")
    ] = "127.0.0.1:0",
    keep_size: Annotated[str, Option(metavar="SIZE", help="Of each group, such as 10GiB; by default all.")] = "",
    keep_time: Annotated[str, Option(metavar="TIME", help="Such as 168h or 7d; by default for ever.")] = "",
    segment_size: Annotated[str, Option(metavar="SIZE", help="Of one file.")] = "64MiB",
    sync_every: Annotated[str, Option(metavar="TIME", help="Gather for so long before each sync.")] = "10ms",
    as_json: Annotated[bool, Option("--json", help="Print what happens as JSON, one line each.")] = False,
) -> int:
    """Join groups and write what is delivered to a folder, until Ctrl-C.

    Messages and views are written in the order of delivery, with checksums, and synced. After a restart it goes on
    where it was, and takes what it missed from another archiver of the group, if there is one.
    """
    from ordercast.cli import archiving as work

    return work.run(
        groups=groups,
        folder=folder,
        at=at,
        name=name,
        wait=wait,
        serve=serve,
        keep_size=keep_size,
        keep_time=keep_time,
        segment_size=segment_size,
        sync_every=sync_every,
        as_json=as_json,
    )


@archive.command(example="ordercast archive read orders --from 2026-11-15T12:00:00 --json | jq .text")
def read(
    group: OneGroup,
    folder: Folder = ARCHIVE,
    start: Annotated[
        str, Option("--from", metavar="PLACE", help="earliest, a number, BRANCH:NUMBER, a position, or a time.")
    ] = "earliest",
    end: Annotated[str, Option("--to", metavar="BRANCH:NUMBER", help="By default all that is there.")] = "",
    count: Annotated[int | None, Option(min=1, metavar="N", help="At most so many.")] = None,
    as_json: Json = False,
    raw: Raw = False,
) -> int:
    """Show what an archive holds, in order."""
    from ordercast.cli import archive as work

    return work.read(
        group=group,
        folder=folder,
        start=start,
        end=end,
        count=count,
        as_json=as_json,
        raw=raw,
    )


@archive.command(example="ordercast archive follow orders")
def follow(
    group: OneGroup,
    folder: Folder = ARCHIVE,
    start: Annotated[str, Option("--from", metavar="PLACE", help="As in read.")] = "latest",
    count: Annotated[int | None, Option(min=1, metavar="N", help="End after so many.")] = None,
    as_json: Json = False,
    raw: Raw = False,
) -> int:
    """Show what comes into an archive, as it is safe on disk, until Ctrl-C."""
    from ordercast.cli import archive as work

    return work.follow(
        group=group,
        folder=folder,
        start=start,
        count=count,
        as_json=as_json,
        raw=raw,
    )


@archive.command("list", example="ordercast archive list --dir /var/lib/ordercast/archive")
def list_command(folder: Folder = ARCHIVE, as_json: Json = False) -> int:
    """Show the groups of an archive, their branches, and how far they reach."""
    from ordercast.cli import archive as work

    return work.list_command(folder, as_json)


@archive.command(example="ordercast archive verify --dir /var/lib/ordercast/archive")
def verify(folder: Folder = ARCHIVE, as_json: Json = False) -> int:
    """Read everything and check it: checksums, numbers without gaps, and branches that fit together.

    The digest of a group is the same in every archive that holds the same entries. Exit status 1 when something is
    wrong.
    """
    from ordercast.cli import archive as work

    return work.verify(folder, as_json)
