"""Somebody on the network without the key: reads, keeps, changes, splices, repeats, holds back, forges, sends in the
clear, and seals with keys that are wrong or were retired. It acts when a packet arrives somewhere, until healing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import TYPE_CHECKING

from ordercast.model.ids import MILLISECOND, Incarnation, NodeId, process_id_from
from ordercast.model.inputs import Lane
from ordercast.sealing.cipher import SALT_SIZE, SECRET_SIZE, TAG_SIZE, life_secret
from ordercast.sealing.own import OwnLife
from ordercast.sealing.packet import (
    COUNTER_MAX,
    KEY_AT,
    LIFE,
    NETWORKS_AT,
    SEALED_AT,
    Presence,
    authenticated,
    encode_presence,
)
from ordercast.sim.sealed.cipher import PlainCipher
from ordercast.sim.sealed.keeper import PREFIX, Keeper
from ordercast.wire.head import CLEAR, with_head

if TYPE_CHECKING:
    from ordercast.sim.world import World

KEPT = 400  # packets, and as many presences
RECORDED = 6  # of which so many are played again behind a presence
HELD_NS = 300 * MILLISECOND
PRESENCE_AT, PRESENCE = 10, 0x80  # the byte and the bit that say so


class Attack(Enum):
    """What is done with a packet."""

    FLIP = "a bit changed"
    SPLICE = "two spliced"
    CUT = "cut short"
    REPLAY = "repeated"
    REPLAY_PRESENCE = "a presence repeated"
    CROSS = "repeated on another lane or network"
    REDIRECT = "sent to somebody else"
    HOLD = "held back"
    CLEAR = "sent in the clear"
    TAG = "another tag"
    TAIL = "another end behind the same head"
    WRONG_KEY = "sealed with a wrong key"
    OLD_KEY = "sealed with a retired key"
    NOISE = "noise"


@dataclass(slots=True)
class Kept:
    packet: bytes
    lane: Lane
    network: int
    segment: int
    target: int
    at: int = 0  # when

    @property
    def counter(self) -> int:
        return int.from_bytes(self.packet[PRESENCE_AT:NETWORKS_AT], "big") & COUNTER_MAX


@dataclass(slots=True)
class Adversary:
    world: World
    keeper: Keeper
    chance: float
    rng: Random
    counts: Counter[str]
    attacks: tuple[Attack, ...] = tuple(Attack)
    _kept: list[Kept] = field(default_factory=list)
    _presences: list[Kept] = field(default_factory=list)
    _thief: OwnLife | None = None

    def arriving(self, target: int, lane: Lane, packets: list[bytes], network: int, segment: int) -> list[bytes]:
        """Return what arrives of them; anything else is sent by itself."""
        left: list[bytes] = []
        for packet in packets:
            kept = Kept(packet, lane, network, segment, target, self.world.now)
            self._keep(kept)
            if self.rng.random() < self.chance and self._attack(kept):
                continue
            left.append(packet)
        return left

    def _keep(self, kept: Kept) -> None:
        is_presence = kept.packet[KEY_AT] != CLEAR and kept.packet[PRESENCE_AT] & PRESENCE
        store = self._presences if is_presence else self._kept
        if len(store) < KEPT:
            store.append(kept)
        elif self.rng.random() < 0.1:
            store[self.rng.randrange(KEPT)] = kept

    def _attack(self, kept: Kept) -> bool:
        """Do something; True when the packet itself is kept back."""
        rng, attack = self.rng, self.rng.choice(self.attacks)
        self.counts[f"{PREFIX}{attack.value}"] += 1
        other = rng.choice(self._kept or [kept])
        forged = bytearray(kept.packet)
        match attack:
            case Attack.FLIP:
                forged[rng.randrange(len(forged))] ^= 1 << rng.randrange(8)
                self._send(kept, bytes(forged))
            case Attack.SPLICE:
                at = rng.randrange(SEALED_AT + 1)
                self._send(kept, kept.packet[:at] + other.packet[at:])
            case Attack.CUT:
                self._send(kept, kept.packet[: rng.randrange(len(kept.packet))])
            case Attack.REPLAY:
                self._send(other, other.packet, times=rng.randrange(1, 4))
            case Attack.REPLAY_PRESENCE:
                later = [host.node for host in self.world.hosts if host.lives > 1]  # born after some recordings
                self._replay(rng.choice(later or range(len(self.world.hosts))))
            case Attack.CROSS:
                lane, networks = rng.choice(tuple(Lane)), self.world.options.networks.count
                crossed = Kept(other.packet, lane, rng.randrange(networks), other.segment, other.target)
                self._send(crossed, other.packet)
            case Attack.REDIRECT:
                self._send(kept, kept.packet, target=rng.randrange(len(self.world.hosts)))
            case Attack.HOLD:
                self._send(kept, kept.packet, delay=rng.randrange(HELD_NS))
                return True
            case Attack.CLEAR:
                self._send(kept, self._stripped(kept))
            case Attack.TAG:
                self._send(kept, kept.packet[:-TAG_SIZE] + rng.randbytes(TAG_SIZE))
            case Attack.TAIL:
                forged[rng.randrange(SEALED_AT, len(forged))] ^= 0xFF
                for network in range(self.world.options.networks.count):
                    self._send(Kept(kept.packet, kept.lane, network, kept.segment, kept.target), bytes(forged))
            case Attack.WRONG_KEY:
                self._send(kept, self._sealed_again(kept.packet, rng.randbytes(SECRET_SIZE)))
            case Attack.OLD_KEY:
                self._use_old_key(kept)
            case Attack.NOISE:
                self._send(kept, rng.randbytes(rng.randrange(1, 80)))
        return False

    def _replay(self, target: int) -> None:
        """Play recordings to a host, if there are such those that are older than its life."""
        seal = self.keeper.seals.get(target)
        birth = 0 if seal is None else self.keeper.witness.birth(seal.me)
        older = [kept for kept in self._presences if kept.at < birth]
        recorded = older or self._presences
        for presence in self.rng.sample(recorded, min(2, len(recorded))):
            self._play(presence, target, birth if older else self.world.now)

    def _play(self, presence: Kept, target: int, until: int) -> None:
        """A recording: a presence, and what the same life sent after it, up to some time."""
        self._send(presence, presence.packet, target=target)
        life, counter = presence.packet[LIFE], presence.counter
        same = (kept for kept in self._kept if kept.packet[LIFE] == life and kept.at < until)
        for kept in sorted((kept for kept in same if kept.counter > counter), key=lambda kept: kept.counter)[:RECORDED]:
            self._send(kept, kept.packet, target=target)

    def _send(self, kept: Kept, packet: bytes, target: int | None = None, delay: int = 0, times: int = 1) -> None:
        """Let it arrive, if there is such a host on the segment."""
        world, node = self.world, kept.target if target is None else target
        attachment = world.segments[kept.segment].attachments.get(node)
        if attachment is None or not packet:
            return
        for _ in range(times):
            at = world.now + delay
            world.schedule(at, world.hosts[node].arrive, kept.lane, [packet], kept.network, attachment)

    def _stripped(self, kept: Kept) -> bytes:
        """The same in the clear: all that is hidden by a real cipher is known from somewhere else."""
        packet = kept.packet
        if packet[KEY_AT] == CLEAR:
            return packet
        seal = next(iter(self.keeper.seals.values()), None)
        attachment = self.world.segments[kept.segment].attachments[kept.target]
        if seal is None or (kept.lane is not Lane.LINK and attachment >= len(seal.broadcast_attachments)):
            return packet
        cluster = self.keeper.seals.get(kept.target, seal).cluster(attachment, kept.lane)
        sender = process_id_from(NodeId(self.rng.randrange(len(self.world.hosts))), Incarnation(1))
        return with_head(cluster, sender, packet[SEALED_AT:-TAG_SIZE])

    def _sealed_again(self, packet: bytes, secret: bytes) -> bytes:
        tag = PlainCipher().keyed(life_secret(secret, self.rng.randbytes(SALT_SIZE), b"\0" * 8, 0))
        clear = authenticated(packet[: KEY_AT + 1], packet[NETWORKS_AT] if len(packet) > SEALED_AT else 0, Lane.DATA)
        return packet[:SEALED_AT] + tag.encrypt(packet[4:NETWORKS_AT], packet[SEALED_AT:-TAG_SIZE], clear)

    def _use_old_key(self, kept: Kept) -> None:
        """Whoever stole a key that is retired has all it takes, but the key."""
        seal = self.keeper.seals.get(kept.target)
        if seal is None or not self.keeper.retired or kept.packet[KEY_AT] == CLEAR:
            return
        if self.world.hosts[kept.target].has_left:
            return  # it reads no file any more
        attachment = self.world.segments[kept.segment].attachments[kept.target]
        key = self.rng.choice(self.keeper.retired)
        if key.id in self.keeper.files[kept.target].accepted or (
            kept.lane is not Lane.LINK and attachment not in seal.broadcast_attachments
        ):
            return
        self._thief = self._thief or OwnLife(PlainCipher(), self.rng.randbytes(SALT_SIZE))
        cluster, networks = seal.cluster(attachment, kept.lane), (kept.network,)
        process = process_id_from(NodeId(self.rng.randrange(len(self.world.hosts))), Incarnation(99))
        said = encode_presence(Presence(process, key.id, (key.id,), (seal.own.name,)))
        named = key.id, key.secret
        self._send(kept, self._thief.presence(named, cluster, said, networks, kept.lane))
        clear = with_head(cluster, process, kept.packet[SEALED_AT:-TAG_SIZE])
        packet, _ = self._thief.sealed(named, cluster, (clear, len(clear)), networks, kept.lane, seal.me)
        self._send(kept, packet)
