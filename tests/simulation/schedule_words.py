"""The state that replicas of random schedules have: every command that was applied, in its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ordercast.replicated.machine import Origin, SideState


class Words:
    """A state that is the list of all commands; sides are united by having the words of all."""

    def __init__(self) -> None:
        self.words: list[bytes] = []
        self.places: list[int] = []  # of each
        self.unions = 0

    def apply(self, command: bytes, origin: Origin) -> bytes:
        self.words.append(command)
        self.places.append(origin.position)
        return b""

    def freeze(self) -> WordsPicture:
        return WordsPicture([b"%d %s" % each for each in zip(self.places, self.words, strict=True)])

    def load(self, pieces: Iterable[bytes]) -> None:
        items = [piece.split(b" ") for piece in pieces]
        self.places, self.words = [int(place) for place, _ in items], [word for _, word in items]

    def unite(self, sides: Sequence[SideState]) -> None:
        self.unions += 1
        united: dict[bytes, bytes] = {}  # by word
        for side in sides:
            pieces = self.freeze().pieces() if side.pieces is None else side.pieces
            united = {piece.split(b" ")[1]: piece for piece in pieces} | united
        self.load(united.values())


class WordsPicture:
    def __init__(self, items: list[bytes]) -> None:
        self._items = items

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        return iter(self._items[start:])
