"""Lives of other processes: their salts, their windows, whether they are present, and what they say of keys.

A life is present once one of its own presences names mine: nobody can have recorded that before I was born. What was
present and is forgotten leaves its highest counter behind, so that nothing recorded of it ever counts again.

Two lives that do not hear each other, on different segments, may have one number. Whoever hears both opens the packets
of one alone, and names both in its presences: then both draw another number. The name is longer than the number, so
that no recording names a later life by chance.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from ordercast.model.ids import NOBODY, Attachment, Instant, ProcessId, node_of
from ordercast.model.inputs import Lane
from ordercast.sealing.cipher import Cipher, Tag, life_secret
from ordercast.sealing.packet import LIFE_SIZE, NAME_SIZE, Presence
from ordercast.sealing.window import Window

KEYS_KEPT_OF_ONE: Final = 16
ABSENT_MAX: Final = 256  # lives that never named mine, and may be recordings
GONE_MAX: Final = 65536  # lives that were present and are forgotten

Place = tuple[Attachment, Lane, int]  # attachment, lane, network


class HeardLife:
    __slots__ = (
        "_cipher",
        "_floor",
        "_keys",
        "accepted",
        "began_at",
        "heard_at",
        "is_present",
        "names_me",
        "process",
        "salt",
        "used",
        "windows",
    )

    def __init__(self, cipher: Cipher, salt: bytes, floor: int = 0) -> None:
        """`floor`: nothing up to this counter counts."""
        self._cipher = cipher
        self._keys: dict[tuple[bytes, bytes, int], Tag] = {}  # by secret: a later key may have an earlier one's number
        self._floor = floor
        self.salt = salt
        self.process: ProcessId = NOBODY
        self.windows: dict[Place, Window] = {}
        self.is_present = False
        self.names_me = False  # its last presence did
        self.heard_at = Instant(0)
        self.began_at = Instant(0)  # when it was first heard
        self.accepted: tuple[int, ...] = ()
        self.used = 0

    @property
    def id(self) -> bytes:
        return self.salt[:LIFE_SIZE]

    @property
    def name(self) -> bytes:
        return self.salt[:NAME_SIZE]

    @property
    def was_present(self) -> bool:
        """It was so before it was forgotten once."""
        return self._floor > 0

    @property
    def highest(self) -> int:
        return max((window.highest for window in self.windows.values()), default=self._floor)

    def window(self, place: Place) -> Window:
        found = self.windows.get(place)
        if found is None:
            found = self.windows[place] = Window(self._floor)
        return found

    def proved(self, secret: bytes, cluster: bytes, generation: int) -> Tag | None:
        """Return what has opened a packet of it already."""
        return self._keys.get((secret, cluster, generation))

    def key(self, secret: bytes, cluster: bytes, generation: int) -> Tag:
        """Return what opens its packets, made once for each generation that was proved."""
        found = self._keys.get((secret, cluster, generation))
        return found or self._cipher.keyed(life_secret(secret, self.salt, cluster, generation))

    def prove(self, secret: bytes, cluster: bytes, generation: int, key: Tag) -> None:
        """Something was opened with this key: it is kept. What was not proved takes nobody's place."""
        name = secret, cluster, generation
        if name not in self._keys:
            if len(self._keys) >= KEYS_KEPT_OF_ONE:
                self._keys.clear()
            self._keys[name] = key

    def begin(self, counter: int) -> None:
        """It has just named me: what it sealed before that was not for me."""
        self._floor = max(self._floor, counter)
        self.windows = {place: Window(max(window.highest, counter)) for place, window in self.windows.items()}

    def keep_keys(self, secrets: Collection[bytes]) -> None:
        """Forget what was made of other secrets."""
        self._keys = {name: key for name, key in self._keys.items() if name[0] in secrets}


class Lives:
    """All that were heard."""

    def __init__(self, cipher: Cipher, forget_ns: int) -> None:
        self._cipher = cipher
        self._forget_ns = forget_ns
        self._lives: dict[bytes, HeardLife] = {}
        self._gone: dict[bytes, int] = {}  # highest counters, by salt
        self._doubled: dict[
            bytes, Instant
        ] = {}  # names of those whose number another has, and when they were last heard

    def get(self, life: bytes) -> HeardLife | None:
        return self._lives.get(life)

    def __iter__(self) -> Iterator[HeardLife]:
        return iter(self._lives.values())

    def __len__(self) -> int:
        return len(self._lives)

    @property
    def is_full(self) -> bool:
        """More is gone than can be remembered: a new life of one's own makes all of it worthless."""
        return len(self._gone) >= GONE_MAX

    def candidate(self, salt: bytes) -> HeardLife:
        """Return the life that a presence may be of, perhaps a new one that is not yet kept."""
        known = self._lives.get(salt[:LIFE_SIZE])
        if known is not None and known.salt == salt:
            return known
        return HeardLife(self._cipher, salt, self._gone.get(salt, 0))

    def doubles(self, life: HeardLife, now: Instant) -> bool:
        """Tell whether another is known with the number of a life, whose presence was opened now."""
        is_double = life.id in self._lives and self._lives[life.id] is not life
        if is_double:
            self._doubled[life.name] = now
        return is_double

    def named(self, now: Instant) -> tuple[bytes, ...]:
        """Return the names that a presence says: first those of lives with one number, then those heard last."""
        self._doubled = {name: at for name, at in self._doubled.items() if now - at <= self._forget_ns}
        doubled = {name[:LIFE_SIZE] for name in self._doubled}
        recent = sorted(self._lives.values(), key=lambda life: (life.id not in doubled, -life.heard_at, life.id))
        return tuple(dict.fromkeys((*sorted(self._doubled), *(life.name for life in recent))))

    def hear(self, life: HeardLife, presence: Presence, counter: int, mine: bytes, now: Instant) -> bool:
        """Note what was said under its seal. True for a life that was not known."""
        is_new = life.id not in self._lives
        life.process, life.used, life.accepted, life.heard_at = presence.process, presence.used, presence.accepted, now
        life.names_me = mine in presence.heard
        if life.names_me and not life.is_present:
            life.is_present = True
            life.begin(counter)
        if is_new:
            self._make_room()
            self._gone.pop(life.salt, None)
            self._lives[life.id] = life
            life.began_at = now
        return is_new

    def _make_room(self) -> None:
        absent = [life for life in self._lives.values() if not life.is_present]
        if len(absent) >= ABSENT_MAX:
            self._drop(min(absent, key=lambda life: life.heard_at))

    def _drop(self, life: HeardLife) -> None:
        """Forget a life, but not how far one that was ever present had come."""
        del self._lives[life.id]
        if life.is_present or life.was_present:
            self._gone[life.salt] = life.highest

    def forget(self, now: Instant) -> list[HeardLife]:
        """Return those present that were not heard for too long, and are not present any more."""
        old = [life for life in self._lives.values() if now - life.heard_at > self._forget_ns]
        for life in old:
            self._drop(life)
        return [life for life in old if life.is_present]

    def clear(self) -> None:
        """Forget everybody: what they said named a life of mine that has ended."""
        self._lives.clear()
        self._doubled.clear()
        self._gone.clear()

    def newest(self) -> dict[int, HeardLife]:
        """Return the present life of each node that was heard last."""
        found: dict[int, HeardLife] = {}
        for life in self._lives.values():
            node = node_of(life.process)
            if life.is_present and (node not in found or found[node].heard_at <= life.heard_at):
                found[node] = life
        return found

    def deaf(self, now: Instant, patience_ns: int) -> list[HeardLife]:
        """Return those that were heard for so long, are still heard, and have never named my life."""
        return [
            life
            for life in self._lives.values()
            if not life.is_present and now - life.began_at >= patience_ns > now - life.heard_at
        ]

    def of(self, process: ProcessId) -> HeardLife | None:
        return next((life for life in self._lives.values() if life.is_present and life.process == process), None)
