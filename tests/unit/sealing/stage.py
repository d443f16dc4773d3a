"""Two ends of a seal, without engines: one that seals, one that opens."""

from __future__ import annotations

from dataclasses import dataclass, field

from ordercast.model.ids import MAIN, NOBODY, Attachment, Incarnation, Instant, NodeId, ProcessId, process_id_from
from ordercast.model.inputs import Lane, Packet
from ordercast.sealing.cipher import Cipher
from ordercast.sealing.keys import ClusterKey, KeyRing
from ordercast.sealing.lives import Lives
from ordercast.sealing.neighbours import Neighbours
from ordercast.sealing.opener import Opener
from ordercast.sealing.own import GENERATION_BITS, OwnLife
from ordercast.sealing.packet import Presence, encode_presence
from ordercast.sim.sealed.cipher import PlainCipher
from ordercast.wire.head import with_head

KEY = ClusterKey(bytes(range(32)))
OTHER_KEY = ClusterKey(bytes(range(1, 33)))
CLUSTER = b"cluster1"
CLUSTER_ON_A_TREE = b"cluster2"
SENDER = process_id_from(NodeId(1), Incarnation(5))
RECEIVER = process_id_from(NodeId(2), Incarnation(6))
NOW = Instant(1)
MINE = b"\x00\x00\x00\x02mine"


def ring_of(*keys: ClusterKey, accepts_clear: bool = False) -> KeyRing:
    return KeyRing(keys, keys[0].id, keys[0].id, accepts_clear)


@dataclass
class Ends:
    cipher: Cipher = field(default_factory=PlainCipher)
    bits: int = GENERATION_BITS
    keys: KeyRing = field(default_factory=lambda: ring_of(KEY))
    heard: list[Presence] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sealer = OwnLife(self.cipher, b"\x00\x00\x00\x01" + bytes(12), self.bits)
        self.lives = Lives(self.cipher, 1000)
        self.opener = Opener(
            self.cipher,
            self.keys,
            lambda attachment, lane: CLUSTER,
            self.lives,
            self.bits,
            self._hear,
            (MAIN,),
            Neighbours(self.cipher, {CLUSTER_ON_A_TREE: "tree"}),
        )
        self.opener.me, self.opener.mine = RECEIVER, MINE[:4]

    def _hear(self, life: object, presence: Presence, counter: int, packet: Packet) -> None:
        from ordercast.sealing.lives import HeardLife

        assert isinstance(life, HeardLife)
        self.heard.append(presence)
        self.lives.hear(life, presence, counter, MINE, NOW)

    def presence(
        self,
        *heard: bytes,
        key: ClusterKey = KEY,
        networks: tuple[int, ...] = (0,),
        cluster: bytes = CLUSTER,
        uses: int | None = None,
        by: ProcessId = SENDER,
    ) -> bytes:
        said = encode_presence(Presence(by, key.id if uses is None else uses, (key.id,), heard))
        return self.sealer.presence((key.id, key.secret), cluster, said, networks, Lane.DATA)

    def greeted(self) -> Ends:
        """The sealer is present."""
        assert self.open(self.presence(MINE)) == []
        return self

    def sealed(
        self,
        *bodies: bytes,
        lane: Lane = Lane.DATA,
        target: ProcessId = NOBODY,
        networks: tuple[int, ...] = (0,),
        key: ClusterKey = KEY,
    ) -> tuple[bytes, int]:
        packets = [with_head(CLUSTER, SENDER, body) for body in bodies]
        burst = b"".join(packets), len(packets[0])
        return self.sealer.sealed((key.id, key.secret), CLUSTER, burst, networks, lane, target)

    def open(
        self,
        data: bytes,
        size: int | None = None,
        lane: Lane = Lane.DATA,
        network: int = 0,
        attachment: Attachment = MAIN,
    ) -> list[bytes]:
        """Return what comes out, packet by packet."""
        read = Packet(data, size or len(data) or 1, lane, attachment, network)
        opened = self.opener.opened_reads([read], NOW)
        return [
            bytes(packet.data[at : at + packet.segment_size])
            for packet in opened
            for at in range(0, len(packet.data), packet.segment_size)
        ]
