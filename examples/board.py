"""A board on which several write, with the whole history for those who come late. A structure of one's own.

    python examples/board.py --name alice --daemon n1 --founders alice@n1,bob@n2 --founding

It begins when both founders have come; who comes again leaves out `--founding`.
Lines from the keyboard go onto the board; everybody sees all lines in the same order. `LastMajority` lets the board go
on with whoever is left, as long as more than half of the last ones stayed together.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple, Self

import ordercast
from ordercast.replicated import (
    Applied,
    Caller,
    Cut,
    Front,
    LastMajority,
    NotPrimary,
    Origin,
    Reader,
    Replica,
    Structure,
    value_bytes,
)

WRITE = 1
YES = b"\1"


class Line(NamedTuple):
    number: int
    author: str
    text: str


class Board(Structure["BoardFront"]):
    NAME = "Board"

    """The state: all lines. It changes by commands alone, and is cut into pieces for late joiners."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def front(self, caller: Caller) -> BoardFront:
        return BoardFront(self, caller)

    def carry_out(self, kind: int, fields: Reader, origin: Origin) -> bytes:
        text = fields.text()
        fields.end()
        self.lines.append(Line(len(self.lines) + 1, origin.name, text))
        return YES

    def freeze(self) -> Cut:
        lines = self.lines[:]
        return Cut(lambda: (value_bytes(line.author) + value_bytes(line.text) for line in lines))

    def blank(self) -> Self:
        return type(self)()

    def fill(self, fields: Reader) -> None:
        while not fields.is_at_end:
            self.lines.append(Line(len(self.lines) + 1, fields.text(), fields.text()))

    def adopt(self, other: Self) -> None:
        self.lines = other.lines


class BoardFront(Front[Board]):
    async def write(self, text: str) -> int:
        """Its position, when everybody will see it."""
        return (await self._ask(WRITE, value_bytes(text))).position

    async def lines(self) -> AsyncIterator[Line]:
        """The history, and then what comes, each line once: also when the copy here was fetched anew meanwhile."""
        watch = self.watch()
        shown = 0
        while True:
            for line in self.machine.lines[shown:]:
                yield line
                shown = line.number
            while shown >= len(self.machine.lines):
                event = await anext(watch, None)
                if event is None:
                    return
                if not isinstance(event, Applied):
                    await self.ready()


async def take_part(
    daemon: str | None,
    name: str,
    founders: list[str],
    founding: bool,
    keyboard: AsyncIterator[str],
    show: Callable[[str], None],
) -> None:
    """Until the keyboard ends."""
    async with (
        ordercast.connect(daemon, name=name, reconnect=True) as me,
        Replica(me, "board", Board(), quorum=LastMajority(frozenset(founders)), founding=founding) as board,
    ):
        await board.ready()

        async def read() -> None:
            async for line in board.lines():
                show(f"{line.number:4} {line.author}: {line.text}")

        reading = asyncio.create_task(read())
        try:
            async for text in keyboard:
                try:
                    await board.write(text)
                except NotPrimary as error:
                    show(f"     not written: {error}")
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def typed() -> AsyncIterator[str]:
    while line := await asyncio.to_thread(sys.stdin.readline):
        yield line.rstrip("\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="A board on which several write, with history.")
    parser.add_argument("--daemon", help="where it is: a name, unix:///PATH or tcp://HOST:PORT")
    parser.add_argument("--name", required=True)
    parser.add_argument("--founders", required=True, help="full names of those who begin it: alice@n1,bob@n2")
    parser.add_argument("--founding", action="store_true", help="this founder takes part for the first time ever")
    options = parser.parse_args()

    def show(text: str) -> None:
        print(text, flush=True)

    founders = options.founders.split(",")
    try:
        asyncio.run(take_part(options.daemon, options.name, founders, options.founding, typed(), show))
    except ordercast.Error as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
