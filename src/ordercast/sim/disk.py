"""SimFolder: the disk under a simulated journal. What was not made safe may be gone after a crash, or torn, or there.

Every call that changes something burns a fuse: where it ends the power fails, before the call, in the middle of it or
behind it, and `PowerFailed` says so to whoever called.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random


class PowerFailed(Exception):
    """The host of this disk is gone."""


@dataclass(slots=True)
class SimFile:
    data: bytes = b""
    safe: int = 0  # bytes


@dataclass(slots=True)
class SimFolder:
    rng: Random
    files: dict[str, SimFile] = field(default_factory=dict)  # as the system shows them
    safe_names: dict[str, SimFile] = field(default_factory=dict)  # as they are after a power failure
    fuse: int | None = None  # calls until the power fails
    is_dead: bool = False
    torn: int = 0  # writes of which a crash left a part

    def names(self) -> list[str]:
        return sorted(self.files)

    def read(self, name: str) -> bytes:
        return self.files[name].data

    def create(self, name: str) -> None:
        self._burn()
        self.files[name] = SimFile()

    def append(self, name: str, data: bytes) -> None:
        file = self.files[name]
        try:
            self._burn()
        except PowerFailed:
            file.data += data[: self.rng.randrange(len(data) + 1)]
            raise
        file.data += data

    def truncate(self, name: str, size: int) -> None:
        self._burn()
        file = self.files[name]
        file.data, file.safe = file.data[:size], min(file.safe, size)

    def sync(self, name: str) -> None:
        is_done = self.rng.random() < 0.5
        if self.fuse == 0 and is_done:
            self.files[name].safe = len(self.files[name].data)
        self._burn()
        self.files[name].safe = len(self.files[name].data)

    def rename(self, old: str, new: str) -> None:
        self._burn()
        self.files[new] = self.files.pop(old)

    def remove(self, name: str) -> None:
        self._burn()
        self.files.pop(name, None)

    def sync_names(self) -> None:
        self._burn()
        self.safe_names = dict(self.files)

    def _burn(self) -> None:
        if self.is_dead:
            raise PowerFailed
        if self.fuse is not None:
            if self.fuse == 0:
                self.is_dead = True
                raise PowerFailed
            self.fuse -= 1

    def crash(self, *, is_power: bool) -> SimFolder:
        """Return the folder as it is found afterwards. When only the process died, the system still writes what it
        has: the same files are there, under the names that they have, and under those that are safe."""
        if not is_power:
            return SimFolder(self.rng, dict(self.files), dict(self.safe_names))
        found = SimFolder(self.rng)
        for name, file in (self.files if self.rng.random() < 0.5 else self.safe_names).items():
            data = self._left(file)
            found.files[name] = SimFile(data, len(data))
        found.safe_names = dict(found.files)
        return found

    def _left(self, file: SimFile) -> bytes:
        """What was safe, and of the rest nothing, all of it, or a part, perhaps with a hole."""
        rest = file.data[file.safe :]
        if not rest:
            return file.data
        kept = rest[: self.rng.choice((0, len(rest), self.rng.randrange(len(rest) + 1)))]
        if kept and self.rng.random() < 0.3:
            at = self.rng.randrange(len(kept))
            kept = kept[:at] + bytes(min(64, len(kept) - at)) + kept[at + 64 :]
        if len(kept) not in (0, len(rest)) or kept != rest[: len(kept)]:
            self.torn += 1
        return file.data[: file.safe] + kept
