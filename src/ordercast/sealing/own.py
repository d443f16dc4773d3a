"""The sealing half: one life of one process, its salt and its counter.

The counter begins at 1, rises with every packet that is sealed, on any lane and under any key, and is never set back.
So no nonce comes twice, whatever clocks, incarnations and disks do. After a fork the child seals nothing.
"""

from __future__ import annotations

from typing import Final

from ordercast.model.effects import Burst
from ordercast.model.errors import Error
from ordercast.model.ids import NOBODY, ProcessId
from ordercast.model.inputs import Lane
from ordercast.sealing.cipher import SALT_SIZE, Cipher, Tag, life_secret
from ordercast.sealing.packet import (
    COUNTER_MAX,
    GROWTH,
    LIFE_SIZE,
    NAME_SIZE,
    NONCE_LAYOUT,
    PRESENCE_BIT,
    PRESENCE_MIN,
    authenticated,
    bits_of,
    opening_of,
)

GENERATION_BITS: Final = 24  # a new key for so many packets: 2 to the power of it
KEYS_KEPT: Final = 64


class SealingEnded(Error):
    """This process may not seal: it is a fork of the one that may, or its numbers are used up."""


class OwnLife:
    def __init__(self, cipher: Cipher, salt: bytes, generation_bits: int = GENERATION_BITS) -> None:
        if len(salt) != SALT_SIZE:
            raise ValueError(f"a salt has {SALT_SIZE} bytes, not {len(salt)}")
        self._cipher = cipher
        self._bits = generation_bits
        self._keys: dict[tuple[bytes, bytes, int], Tag] = {}  # by secret: a later key may have an earlier one's number
        self._is_ended = False
        self.counter = 0  # of the last packet
        self._settle(salt)

    def _settle(self, salt: bytes) -> None:
        self.salt, self.id, self.name = salt, salt[:LIFE_SIZE], salt[:NAME_SIZE]
        self._number = int.from_bytes(self.id, "big")
        self._keys.clear()

    def renew(self, salt: bytes) -> None:
        """Begin another life: somebody else is heard with this one's number. The counter goes on."""
        self._settle(salt)

    def end(self) -> None:
        """Nothing is sealed any more."""
        self._is_ended = True

    @property
    def generation(self) -> int:
        return self.counter >> self._bits

    def sealed(
        self,
        key: tuple[int, bytes],
        cluster: bytes,
        burst: Burst,
        networks: tuple[int, ...],
        lane: Lane,
        target: ProcessId = NOBODY,
    ) -> Burst:
        """Return packets of an engine as they go out. `key`: number and secret."""
        data, size = burst
        bits = bits_of(networks)
        opening = opening_of(key[0])
        clear = authenticated(opening, bits, lane, target)
        if len(data) <= size:
            return self._seal_one(key[1], cluster, data, opening, bits, clear)
        runs: list[bytes] = []
        at, end = 0, len(data)
        while at < end:
            room = (1 << self._bits) - ((self.counter + 1) & ((1 << self._bits) - 1))  # in this generation
            stop = min(end, at + room * size)
            first = self._take(-((at - stop) // size))
            tag = self._key(key[1], cluster, first)
            runs.append(tag.seal_run(data, at, stop, size, opening, self._number, first, bits, clear))
            at = stop
        return runs[0] if len(runs) == 1 else b"".join(runs), size + GROWTH

    def _seal_one(self, secret: bytes, cluster: bytes, data: bytes, opening: bytes, bits: int, clear: bytes) -> Burst:
        """A packet that is alone, as tokens are: less is done around the cipher."""
        size, counter = len(data), self._take(1)
        tag = self._key(secret, cluster, counter)
        return tag.seal_run(data, 0, size, size, opening, self._number, counter, bits, clear), size + GROWTH

    def presence(
        self, key: tuple[int, bytes], cluster: bytes, body: bytes, networks: tuple[int, ...], lane: Lane
    ) -> bytes:
        """Return a packet that whoever has the key can open, without having heard of this life before."""
        counter = self._take(1)
        opening, bits = opening_of(key[0]), bits_of(networks)
        nonce = NONCE_LAYOUT.pack(
            PRESENCE_MIN + len(body), self._number, counter >> 32 | PRESENCE_BIT, counter & 0xFFFFFFFF
        )
        sealed = self._key(key[1], cluster, counter).encrypt(nonce, body, authenticated(opening, bits, lane))
        return b"".join((opening, nonce, bytes((bits,)), self.salt, sealed))

    def _take(self, count: int) -> int:
        """Return the first of so many numbers that nobody has had."""
        first = self.counter + 1
        if self._is_ended or first + count > COUNTER_MAX:
            raise SealingEnded("this process does not seal: it is a fork, or has used up its numbers")
        self.counter += count
        return first

    def _key(self, secret: bytes, cluster: bytes, counter: int) -> Tag:
        generation = counter >> self._bits
        found = self._keys.get((secret, cluster, generation))
        if found is None:
            if len(self._keys) >= KEYS_KEPT:
                self._keys.clear()
            found = self._cipher.keyed(life_secret(secret, self.salt, cluster, generation))
            self._keys[secret, cluster, generation] = found
        return found
