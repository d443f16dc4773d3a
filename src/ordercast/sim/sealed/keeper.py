"""Keys in a run: the file of every host, how it changes, and how a host seals. Drawn from a generator of its own."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from ordercast.model.effects import Alarm, AlarmKind
from ordercast.model.ids import Attachment, Incarnation, NodeId, process_id_from
from ordercast.networks.assembly import Assembly
from ordercast.sealing.cipher import SALT_SIZE, SECRET_SIZE
from ordercast.sealing.keys import ClusterKey, KeyRing
from ordercast.sealing.layer import Sealing
from ordercast.sealing.opener import SealRefusal
from ordercast.sim.sealed.cipher import PlainCipher
from ordercast.sim.sealed.options import SealedRun
from ordercast.sim.sealed.witness import SealWitness, SeenSealing, Witnessed
from ordercast.wire.head import CLEAR

if TYPE_CHECKING:
    from ordercast.sim.host import Host
    from ordercast.sim.world import World

PREFIX = "sealing: "
ROWS = (
    *(f"refused, {why.value}" for why in SealRefusal),
    *("key changed", "copy recognised", "generation changed", "life drawn again", "presence lost"),
    *("key retired", "key added with one away", "stranger", "key given while gathering"),
)


@dataclass(slots=True)
class Keeper:
    """Everybody's keys."""

    world: World
    plan: SealedRun
    rng: Random
    counts: Counter[str]
    witness: SealWitness = field(default_factory=SealWitness)
    seals: dict[int, Sealing] = field(default_factory=dict)  # of the hosts that live
    files: dict[int, KeyRing] = field(default_factory=dict)
    retired: list[ClusterKey] = field(default_factory=list)
    _engines: dict[int, Assembly] = field(default_factory=dict)
    _salts: list[bytes] = field(default_factory=list)
    _latest: KeyRing = field(init=False)

    def __post_init__(self) -> None:
        self._latest = clear_ring() if self.plan.is_clear_first else ring_of(self._fresh_key())
        self.witness.is_clear = self.plan.is_clear_first or self.plan.is_clear_last
        nodes = self.world.options.nodes
        self.files = dict.fromkeys(range(nodes), self._latest)
        time = self.world.options.fault_time_ns
        for number in range(self.plan.rotations):
            at = time * (2 * number + 1) // (2 * self.plan.rotations + 1)
            self.world.schedule(at + self.rng.randrange(time // 20), self._add, number)
        for _ in range(self.plan.strangers):
            self.world.schedule(self.rng.randrange(time), self._mislead)

    def _fresh_key(self) -> ClusterKey:
        return ClusterKey(self.rng.randbytes(SECRET_SIZE))

    def _salt(self) -> bytes:
        salt = self.rng.randbytes(SALT_SIZE)
        if self._salts and self.rng.random() < self.plan.crowded:
            salt = self.rng.choice(self._salts)[:4] + salt[4:]
        self._salts.append(salt)
        return salt

    # Engines

    def sealed(self, assembly: Assembly, node: NodeId, lives: int) -> Sealing:
        """Return the engine of one life of a host, sealed."""
        world = self.world
        process = process_id_from(node, Incarnation(lives))
        self.witness.born(process, world.now)
        engine = Witnessed(assembly.driven, self.witness, process, lambda: world.now)
        count = world.options.networks.count
        broadcasts = {Attachment(number): count for number in range(len(assembly.clusters))}
        self.witness.broadcasts |= broadcasts.keys()
        cipher = PlainCipher(self.witness.used)
        sealing = SeenSealing(
            engine,
            node,
            self.files[node],
            cipher,
            self._salt,
            assembly.cluster,
            broadcasts,
            self.plan.config,
            assembly.other_engines,
        )
        sealing.witness = self.witness
        self.seals[node], self._engines[node] = sealing, assembly
        return sealing

    def ended(self, node: int) -> None:
        """A life has ended: what its layer met is counted."""
        sealing = self.seals.pop(node, None)
        if sealing is None:
            return
        for why in SealRefusal:
            self.counts[f"{PREFIX}refused, {why.value}"] += sealing.opener.refused[why]
        self.counts[f"{PREFIX}copy recognised"] += sealing.opener.copies
        self.counts[f"{PREFIX}generation changed"] += sealing.own.generation
        self.counts[f"{PREFIX}life drawn again"] += sealing.stats.renewals
        self.counts[f"{PREFIX}presence lost"] += sealing.stats.lost

    def alarmed(self, node: int, alarm: Alarm) -> None:
        if alarm.kind is AlarmKind.KEY_CHANGED:
            self.counts[f"{PREFIX}key changed"] += 1
            self.counts[f"{PREFIX}key changed in {self._engines[node].engine.state_name}"] += 1

    # Changes

    def _add(self, number: int) -> None:
        """Somebody makes a key, and begins to copy it to the hosts."""
        is_last = number == self.plan.rotations - 1
        old = self._latest
        if is_last and self.plan.is_clear_last:
            self._latest = KeyRing(old.keys, old.used, CLEAR, accepts_clear=True)
        else:
            key = self._fresh_key()
            if key.id in old.accepted:
                return
            self._latest = KeyRing((*old.keys, key), old.used, key.id, old.accepts_clear)
        world = self.world
        spread = max(1, world.options.fault_time_ns // (4 * self.plan.rotations))
        for node in self.files:
            world.schedule(world.now + self.rng.randrange(spread), self._give, node, self._latest)
        if len(self.seals) < len(self.files):
            self.counts[f"{PREFIX}key added with one away"] += 1
        world.schedule(world.now + spread, self._retire, self._latest)

    def _give(self, node: int, keys: KeyRing) -> None:
        """The file of a host is replaced, and read if it runs."""
        host = self.world.hosts[node]
        if host.is_paused:
            self.world.schedule(host.paused_until, self._give, node, keys)
            return
        if keys is not self._latest:
            return  # a later one has come
        self.files[node] = keys
        self._reload(host)

    def _reload(self, host: Host) -> None:
        sealing = self.seals.get(host.node)
        if sealing is not None and host.life is not None and not host.has_left:
            state = self._engines[host.node].engine.state_name
            self.counts[f"{PREFIX}key given in {state}"] += 1
            if state == "Gather":
                self.counts[f"{PREFIX}key given while gathering"] += 1
            host.take_keys(sealing, self.files[host.node])

    def _retire(self, keys: KeyRing) -> None:
        """The old key goes when nobody uses it; who comes back later finds the new file."""
        if keys is not self._latest:
            return
        world = self.world
        is_everywhere = all(file is keys for file in self.files.values())
        if not is_everywhere or any(seal.keys.used != keys.wanted for seal in self.seals.values()):
            if not world.is_healed:
                world.schedule(world.now + self.plan.config.presence_ns, self._retire, keys)
            return
        self.counts[f"{PREFIX}key retired"] += 1
        self.retired += [key for key in keys.keys if key.id != keys.wanted]
        kept = tuple(key for key in keys.keys if key.id == keys.wanted)
        self._latest = KeyRing(kept, keys.wanted, keys.wanted, keys.wanted == CLEAR)
        for node in self.files:
            self._give(node, self._latest)

    def _mislead(self) -> None:
        """A host comes back with a wrong file, or an old one."""
        node = self.rng.randrange(self.world.options.nodes)
        keys = ring_of(self.rng.choice(self.retired) if self.retired and self.rng.random() < 0.5 else self._fresh_key())
        self.files[node] = keys
        self.counts[f"{PREFIX}stranger"] += 1
        host = self.world.hosts[node]
        if not host.is_paused:
            self._reload(host)

    def heal(self) -> None:
        """Everybody gets the file of all."""
        for node in self.files:
            self.files[node] = self._latest
            self._reload(self.world.hosts[node])

    def end(self) -> None:
        for node in tuple(self.seals):
            self.ended(node)


def ring_of(key: ClusterKey) -> KeyRing:
    return KeyRing((key,), key.id, key.id)


def clear_ring() -> KeyRing:
    return KeyRing((), CLEAR, CLEAR, accepts_clear=True)
