"""What one life of a simulated replica has asked for and has no answer to: as a live replica keeps it, without a loop.

Commands of one turn travel in one batch. Some are waited for by nobody (`post`): when they are refused they are to be
submitted again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ordercast.replicated.batching import decode_results, encode_batch

NOBODY = 0  # the number of a call that nobody waits for


class Asked(NamedTuple):
    number: int  # of the call
    command: bytes
    cut: int  # how often its replica had been cut off


class Answered(NamedTuple):
    asked: Asked
    position: int
    result: bytes


@dataclass(slots=True)
class Calls:
    last: int = 0
    batches: dict[int, list[Asked]] = field(default_factory=dict)  # by the core's request
    reads: dict[int, tuple[Asked, bytes]] = field(default_factory=dict)  # each with its question
    again: list[bytes] = field(default_factory=list)  # posted and refused

    def ask(self, command: bytes, cut: int) -> Asked:
        self.last += 1
        return Asked(self.last, command, cut)

    def has_posted(self, command: bytes) -> bool:
        return any(
            asked.number == NOBODY and asked.command == command for batch in self.batches.values() for asked in batch
        )

    def confirmed(self, request: int, results: bytes) -> list[Answered]:
        batch = self.batches.pop(request)
        if not results:  # what a core gives that takes a request for one that was done long ago: for the judges to see
            return [Answered(asked, 0, b"") for asked in batch]
        first, answers = decode_results(results)
        return [
            Answered(asked, position, result)
            for position, (asked, result) in enumerate(zip(batch, answers, strict=True), first)
        ]

    def refused(self, request: int) -> list[Asked]:
        """Those whom somebody waits for."""
        if request in self.reads:
            return [self.reads.pop(request)[0]]
        batch = self.batches.pop(request)
        self.again += [asked.command for asked in batch if asked.number == NOBODY]
        return [asked for asked in batch if asked.number != NOBODY]


def batch_of(batch: list[Asked]) -> bytes:
    return encode_batch([asked.command for asked in batch])
