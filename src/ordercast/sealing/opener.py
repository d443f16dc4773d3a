"""The opening half: reads of sealed packets become reads of clear ones, or are refused and counted.

Checks go from cheap to dear: magic and key, life, network, counter, and then the cipher. Runs of packets that are alike
are opened by C code; a run in which one packet is refused is taken apart, so that no packet depends on another. Nothing
that was not opened is kept, or moves a window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from operator import lt
from typing import Final

from ordercast.model.errors import WireError
from ordercast.model.ids import NOBODY, Attachment, Instant, ProcessId
from ordercast.model.inputs import Lane, Packet
from ordercast.sealing import runs
from ordercast.sealing.cipher import SALT_SIZE, Cipher
from ordercast.sealing.keys import KeyRing
from ordercast.sealing.lives import HeardLife, Lives, Place
from ordercast.sealing.neighbours import Neighbours
from ordercast.sealing.packet import (
    BEGINNING,
    GROWTH,
    KEY_AT,
    LIFE,
    NETWORKS_AT,
    NONCE,
    NONCE_LAYOUT,
    PRESENCE_BIT,
    PRESENCE_MIN,
    SEALED_AT,
    SMALLEST,
    Presence,
    authenticated,
    decode_presence,
    names_target,
)
from ordercast.wire.head import CLEAR, HEAD, HEAD_SIZE, LENGTH_AT, OPENING

COPIES_KEPT: Final = 32  # reads that were opened, for copies of them that come on other networks
RUN_MAX: Final = 256  # packets that are opened by one call


class SealRefusal(Enum):
    """Why a packet was refused. Append only."""

    CLEAR = "in the clear"
    KEY = "unknown key"
    LIFE = "unknown life"
    ABSENT = "not yet present"
    OLD = "old"
    FORGED = "forged"
    NETWORK = "wrong network"
    STRANGE = "not of Ordercast"
    ENGINE = "another engine"


Clusters = Callable[[Attachment, Lane], bytes]  # the id in the packets of a lane of an attachment
Told = Callable[[HeardLife, Presence, int, Packet], None]  # somebody said who it is


class Opener:
    def __init__(
        self,
        cipher: Cipher,
        keys: KeyRing,
        clusters: Clusters,
        lives: Lives,
        generation_bits: int,
        told: Told,
        broadcasts: Collection[Attachment],  # attachments on which all hear all
        neighbours: Neighbours,
    ) -> None:
        self._forged = cipher.forged
        self._broadcasts = broadcasts
        self.keys = keys
        self._clusters = clusters
        self._lives = lives
        self._bits = generation_bits
        self._told = told
        self._neighbours = neighbours
        self.me: ProcessId = NOBODY
        self.mine = b""  # my life
        self.opened = 0
        self.copies = 0
        self.echoes = 0
        self.refused: Counter[SealRefusal] = Counter()
        self.unknown_key = 0  # the last one
        self._copies: dict[
            tuple[bytes, Lane, Attachment], tuple[HeardLife, bytes, bytes, int]
        ] = {}  # who sealed it (a later life may have its number), read, what was in it, its size

    def opened_reads(self, packets: Sequence[Packet], now: Instant) -> list[Packet]:
        """Return what is for the engine, in order."""
        up: list[Packet] = []
        for packet in packets:
            data, size = packet.data, packet.segment_size
            if type(data) is not bytes:
                data = bytes(data)
            if len(data) <= size:
                self._single(packet, data, up, now)
            elif not self._run(packet, data, up, now):
                for at in range(0, len(data), size):
                    self._single(packet, data[at : at + size], up, now)
        return up

    def _refuse(self, why: SealRefusal, count: int = 1) -> None:
        self.refused[why] += count

    # One packet

    def _single(self, packet: Packet, data: bytes, up: list[Packet], now: Instant) -> None:
        if data[:KEY_AT] != BEGINNING or len(data) < SMALLEST:
            self._refuse(SealRefusal.STRANGE)
            return
        number = data[KEY_AT]
        secret = self.keys.secrets.get(number)
        if secret is None:
            if number == CLEAR and self.keys.accepts_clear:
                up.append(packet if len(data) == len(packet.data) else packet._replace(data=data))
            elif number == CLEAR:
                self._refuse(SealRefusal.CLEAR)
            else:
                self.unknown_key = number
                self._refuse(SealRefusal.KEY)
            return
        length, _, upper, lower = NONCE_LAYOUT.unpack_from(data, 4)
        if length != len(data):
            self._refuse(SealRefusal.STRANGE)
        elif not is_sent_on(data[NETWORKS_AT], packet.network):
            self._refuse(SealRefusal.NETWORK)
        elif upper & PRESENCE_BIT:
            self._presence(packet, data, secret, (upper ^ PRESENCE_BIT) << 32 | lower, now)
        else:
            self._sealed(packet, data, secret, upper << 32 | lower, up, now)

    def _sealed(self, packet: Packet, data: bytes, secret: bytes, counter: int, up: list[Packet], now: Instant) -> None:
        life = self._present(data)
        if life is None:
            return
        window = life.window(_place(packet))
        if not window.is_new(counter):
            self._refuse(SealRefusal.OLD)
            return
        nonce, networks = data[NONCE], data[NETWORKS_AT]
        is_shared = bool(networks & networks - 1)  # sent on several networks, so that copies may come
        copy = self._copies.get((nonce, packet.lane, packet.attachment)) if is_shared else None
        if copy is not None and copy[0] is life and is_copy(copy[1], data):
            self.copies += 1
            _, _, clear, size = copy
        else:
            generation = counter >> self._bits
            cluster = self._clusters(packet.attachment, packet.lane)
            proved = life.proved(secret, cluster, generation)
            tag = proved or life.key(secret, cluster, generation)
            size = len(data) - GROWTH
            head = HEAD.pack(OPENING, size, cluster, life.process)
            try:
                clear = tag.open_run(data, len(data), head, self._authenticated(packet, data))
            except self._forged:
                self._refuse(SealRefusal.FORGED)
                return
            if proved is None:
                life.prove(secret, cluster, generation, tag)
            self.opened += 1
            if is_shared:
                self._keep(packet, life, data, clear, size)
        window.take(counter)
        life.heard_at = now
        up.append(Packet(clear, size, packet.lane, packet.attachment, packet.network))

    def _present(self, data: bytes) -> HeardLife | None:
        """Return who sealed it, if that life counts."""
        name = data[LIFE]
        life = self._lives.get(name)
        if life is not None and life.is_present:
            return life
        if name == self.mine:
            self.echoes += 1
        else:
            self._refuse(SealRefusal.LIFE if life is None else SealRefusal.ABSENT)
        return None

    def _presence(self, packet: Packet, data: bytes, secret: bytes, counter: int, now: Instant) -> None:
        salt = data[SEALED_AT : SEALED_AT + SALT_SIZE]
        if len(data) < PRESENCE_MIN or not salt.startswith(data[LIFE]):
            self._refuse(SealRefusal.STRANGE)
            return
        life = self._lives.candidate(salt)
        window = life.window(_place(packet))
        if not window.is_new(counter):
            self._refuse(SealRefusal.OLD)
            return
        cluster = self._clusters(packet.attachment, packet.lane)
        generation = counter >> self._bits
        tag = life.key(secret, cluster, generation)
        clear = authenticated(data[: KEY_AT + 1], data[NETWORKS_AT], packet.lane)
        try:
            presence = decode_presence(tag.decrypt(data[NONCE], data[SEALED_AT + SALT_SIZE :], clear))
        except (self._forged, WireError):
            is_neighbour = self._neighbours.is_one(data, secret, generation, clear, now)
            self._refuse(SealRefusal.ENGINE if is_neighbour else SealRefusal.FORGED)
            return
        if self._lives.doubles(life, now):
            self._refuse(SealRefusal.LIFE)
            return
        life.prove(secret, cluster, generation, tag)
        window.take(counter)
        self.opened += 1
        self._told(life, presence, counter, packet)

    def _authenticated(self, packet: Packet, data: bytes) -> bytes:
        target = self.me if names_target(packet.lane, packet.attachment, self._broadcasts) else NOBODY
        return authenticated(data[: KEY_AT + 1], data[NETWORKS_AT], packet.lane, target)

    # Many

    def _run(self, packet: Packet, data: bytes, up: list[Packet], now: Instant) -> bool:
        """Open a read of packets that are alike; False when they are not, or one is refused."""
        size = packet.segment_size
        if size <= HEAD_SIZE:  # none has a whole head
            return False
        secret = self.keys.secrets.get(data[KEY_AT])
        if secret is None or size < SMALLEST or data[:KEY_AT] != BEGINNING:
            if data[: KEY_AT + 1] == OPENING and self.keys.accepts_clear and runs.are_alike(data, size):
                up.append(packet)
                return True
            return False
        numbered = _numbers(data, size) if is_sent_on(data[NETWORKS_AT], packet.network) else None
        if numbered is None:
            return False
        upper, lowers = numbered
        count = len(lowers)
        counter, last = upper << 32 | lowers[0], upper << 32 | lowers[-1]
        generation = counter >> self._bits
        life = self._lives.get(data[LIFE])
        if life is None or not life.is_present or last >> self._bits != generation:
            return False
        window = life.window(_place(packet))
        if counter <= window.highest:
            return False
        copy = self._copies.get((data[NONCE], packet.lane, packet.attachment))
        if copy is not None and copy[0] is life and is_copy(copy[1], data):
            self.copies += count
            _, _, clear, clear_size = copy
        else:
            clear_size = size - GROWTH
            opened = self._opened(packet, data, clear_size, life, secret, generation)
            if opened is None:
                return False
            clear = opened
            self.opened += count
            self._keep(packet, life, data, clear, clear_size)
        if last - counter < count:
            window.take(counter, count)
        else:  # with gaps
            for lower in lowers:
                window.take(upper << 32 | lower)
        life.heard_at = now
        up.append(Packet(clear, clear_size, packet.lane, packet.attachment, packet.network))
        return True

    def _opened(
        self,
        packet: Packet,
        data: bytes,
        clear_size: int,
        life: HeardLife,
        secret: bytes,
        generation: int,
    ) -> bytes | None:
        """Return what is in the packets, each behind its head; None if one is forged."""
        cluster = self._clusters(packet.attachment, packet.lane)
        tag = life.key(secret, cluster, generation)
        head = HEAD.pack(OPENING, clear_size, cluster, life.process)
        try:
            opened = tag.open_run(data, packet.segment_size, head, self._authenticated(packet, data))
        except self._forged:
            return None
        life.prove(secret, cluster, generation, tag)
        return opened

    def _keep(self, packet: Packet, life: HeardLife, data: bytes, clear: bytes, size: int) -> None:
        """A copy that comes on another network, on the same lane, need not be opened."""
        if data[NETWORKS_AT] & data[NETWORKS_AT] - 1:  # it was sent on several
            if len(self._copies) >= COPIES_KEPT:
                del self._copies[next(iter(self._copies))]
            self._copies[data[NONCE], packet.lane, packet.attachment] = life, data, clear, size


def is_sent_on(networks: int, network: int) -> bool:
    return bool(networks >> network & 1)


def is_copy(one: bytes, other: bytes) -> bool:
    """Whether two reads are the same: no byte is left out, for the tag of the other is not looked at."""
    return one == other


def _place(packet: Packet) -> Place:
    return packet.attachment, packet.lane, packet.network


def _numbers(data: bytes, size: int) -> tuple[int, Sequence[int]] | None:
    """Return the counters of a read, upper half and lower halves; None when they do not rise, or the packets are not
    alike. Mostly they are in a row."""
    full, rest = divmod(len(data), size)
    length, life, upper, first = NONCE_LAYOUT.unpack_from(data, LENGTH_AT)
    if upper & PRESENCE_BIT or length != size or full > RUN_MAX or 0 < rest < SMALLEST:
        return None
    if runs.in_a_row(data, size):
        return upper, range(first, first + full + bool(rest))
    lengths, lives, uppers, lowers = zip(*runs.nonces_in(data, size), strict=True)
    if rest and lengths[-1] != rest:
        return None
    is_one = lengths.count(size) == full and lives.count(life) == len(lives) == uppers.count(upper)
    is_rising = is_one and all(map(lt, lowers, lowers[1:]))
    return (upper, lowers) if is_rising and runs.are_alike(data, size) else None


def counts_of(refused: Mapping[SealRefusal, int]) -> dict[str, int]:
    """Refusals by reason, all of them, for people and machines."""
    return {why.value: refused.get(why, 0) for why in SealRefusal}
