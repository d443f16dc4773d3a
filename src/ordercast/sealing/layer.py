"""Sealing: an engine whose packets are sealed, which looks like an engine.

Above it is whoever drives an engine; beneath it networks on which anybody may read, send, keep back and repeat. What
the engine sends is sealed, a burst at a time; what comes is opened, or refused and counted. It speaks with its like by
one packet of its own, the presence: who I am, which keys I use and accept, whose lives I hear. As long as the presences
of a life do not name mine, nothing else of it counts. The engine is told nothing: what is refused is a packet that got
lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ordercast.model.configuration import ConfigurationKind
from ordercast.model.effects import (
    Alarm,
    AlarmKind,
    Broadcast,
    Effect,
    Endpoint,
    Install,
    LeaveDone,
    SendTo,
    Then,
    Unicast,
)
from ordercast.model.ids import (
    NOBODY,
    Attachment,
    Incarnation,
    Instant,
    NodeId,
    ProcessId,
    node_of,
    process_id_from,
)
from ordercast.model.inputs import Lane, Packet, Stored
from ordercast.order.engine import Engine
from ordercast.order.neighbours import NO_NEIGHBOURS
from ordercast.order.passing import PassingLayer
from ordercast.sealing.cipher import Cipher
from ordercast.sealing.config import SealingConfig
from ordercast.sealing.keys import KeyRing
from ordercast.sealing.lives import HeardLife, Lives
from ordercast.sealing.neighbours import Neighbours
from ordercast.sealing.opener import Clusters, Opener, SealRefusal
from ordercast.sealing.own import OwnLife
from ordercast.sealing.packet import NAMED_MAX, Presence, encode_presence, names_target
from ordercast.sealing.rotation import awaited, understands
from ordercast.sealing.words import change_text, deaf_text, refusal_text
from ordercast.wire.head import CLEAR

TOLD = (SealRefusal.CLEAR, SealRefusal.KEY, SealRefusal.FORGED, SealRefusal.NETWORK)  # what people are told of


@dataclass(slots=True)
class SealingStats:
    """What the layer did so far, beside what its opener counts."""

    sealed: int = 0  # packets
    presences: int = 0  # that were sent
    renewals: int = 0  # lives of one's own that were given up
    changes: int = 0  # of the key that is used
    lost: int = 0  # lives that were present, and are not any more


class Sealing(PassingLayer):
    """One process with keys."""

    def __init__(
        self,
        engine: Engine,
        node: NodeId,
        keys: KeyRing,
        cipher: Cipher,
        draw_salt: Callable[[], bytes],
        clusters: Clusters,
        broadcasts: Mapping[Attachment, int],  # how many networks each attachment has on which all hear all
        config: SealingConfig | None = None,
        other_engines: Mapping[bytes, str] = NO_NEIGHBOURS,  # by the id of this cluster on them
    ) -> None:
        super().__init__(engine)
        self.cipher_name = cipher.name
        self._node = node
        self._config = config or SealingConfig()
        self._draw_salt = draw_salt
        self._clusters = clusters
        self._broadcasts = {attachment: tuple(range(count)) for attachment, count in broadcasts.items()}
        self.keys = keys
        self.own = OwnLife(cipher, draw_salt(), self._config.generation_bits)
        self.lives = Lives(cipher, self._config.forget_ns)
        self._neighbours = Neighbours(cipher, other_engines)
        bits = self._config.generation_bits
        self.opener = Opener(cipher, keys, clusters, self.lives, bits, self._hear, self._broadcasts, self._neighbours)
        self.stats = SealingStats()
        self.me: ProcessId = NOBODY
        self._members: Sequence[ProcessId] = ()
        self._away: dict[int, Instant] = {}  # nodes that were present, or members, and when they were last so
        self._presence_at = Instant(0)
        self._spoke_at: Instant | None = None
        self._greeted: dict[
            ProcessId | Endpoint, Instant
        ] = {}  # where no broadcast leads: when a presence last went there
        self._answers: dict[Attachment, list[ProcessId]] = {}  # likewise: who waits for one
        self._warned: dict[SealRefusal, tuple[Instant, int]] = {}
        self._deaf_at: Instant | None = None  # when it was told who does not hear this process
        self._must_renew = self._is_over = False
        self._now = Instant(0)

    # What a driver asks

    def next_deadline(self) -> Instant | None:
        deadline = self._engine.next_deadline()
        return self._presence_at if deadline is None else min(deadline, self._presence_at)

    @property
    def broadcast_attachments(self) -> tuple[Attachment, ...]:
        """Return the attachments on which all hear all."""
        return tuple(self._broadcasts)

    def cluster(self, attachment: Attachment, lane: Lane) -> bytes:
        """Return the id in the packets of a lane."""
        return self._clusters(attachment, lane)

    # What a driver does

    def start(self, stored: Stored, incarnation: Incarnation, now: Instant) -> list[Effect]:
        self.me = self.opener.me = process_id_from(self._node, incarnation)
        self.opener.mine = self.own.id
        effects: list[Effect] = []
        self._speak(now, effects)
        return effects + self.outward(self._engine.start(stored, incarnation, now), now)

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        self._now = now
        effects: list[Effect] = []
        up = self.opener.opened_reads(packets, now)
        if up:
            effects = self.outward(self._engine.receive(up, now), now)
        # What is left for later is sealed later: perhaps in another life, of which the others must have heard.
        later = effects.pop() if effects and isinstance(effects[-1], Then) else None
        if self._must_renew:
            self._renew(now, effects)
        if self._answers:
            self._answer(now, effects)
        if self._presence_at <= now and not self._is_over:
            self._speak(now, effects)
        if later is not None:
            effects.append(later)
        return effects

    def wake(self, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        if self._presence_at <= now and not self._is_over:
            self._look_around(now, effects)
            self._speak(now, effects)
        due = self._engine.next_deadline()
        if due is not None and due <= now:
            effects += self.outward(self._engine.wake(now), now)
        return effects

    def rekey(self, keys: KeyRing, now: Instant) -> list[Effect]:
        """Take other keys. What is used stays in use until all accept what is wanted, if it is still there."""
        effects: list[Effect] = []
        used = self.keys.used if self.keys.used in keys.accepted else keys.used
        self._take(keys.using(used))
        for life in self.lives:
            life.keep_keys(keys.secrets.values())
        if keys.at_once:
            self._use(keys.wanted, effects)
        self._consider(now, effects)
        self._speak(now, effects)
        return effects

    def end(self) -> None:
        """Seal nothing more: this is a fork of the process that may."""
        self.own.end()

    # What goes out

    def outward(self, effects: list[Effect], now: Instant) -> list[Effect]:
        outward: list[Effect] = []
        is_sealing = self.keys.used != CLEAR
        for effect in effects:
            match effect:
                case Broadcast() if is_sealing:
                    outward.append(effect.piece(self._sealed(effect, Lane.DATA), effect.networks))
                case SendTo() if is_sealing:
                    burst = effect.packet, len(effect.packet)
                    packet, _ = self._seal(effect, burst, Lane.TOKEN, effect.process)
                    vital = effect.is_vital
                    outward.append(SendTo(effect.process, packet, effect.attachment, effect.networks, vital))
                case Unicast():
                    self._greet(effect, now, outward)
                    bursts = self._sealed(effect, Lane.LINK, self._target(effect)) if is_sealing else effect.bursts
                    outward.append(effect.piece(bursts, effect.networks))
                case Install() if effect.configuration.kind is ConfigurationKind.REGULAR:
                    self._join(effect.configuration.members, now)
                    outward.append(effect)
                case LeaveDone():
                    self._is_over = True
                    outward.append(effect)
                case Then():
                    outward.append(Then(partial(self._then, effect, now)))
                case _:
                    outward.append(effect)
        return outward

    def _then(self, effect: Then, now: Instant) -> list[Effect]:
        return self.outward(effect.work(), now)

    def _target(self, effect: Unicast) -> ProcessId:
        """Return whom the tags of these packets name."""
        if isinstance(effect.target, Endpoint) or not names_target(Lane.LINK, effect.attachment, self._broadcasts):
            return NOBODY
        return effect.target

    def _sealed(self, effect: Broadcast | Unicast, lane: Lane, target: ProcessId = NOBODY) -> list[tuple[bytes, int]]:
        return [self._seal(effect, burst, lane, target) for burst in effect.bursts]

    def _seal(
        self, effect: Broadcast | SendTo | Unicast, burst: tuple[bytes, int], lane: Lane, target: ProcessId = NOBODY
    ) -> tuple[bytes, int]:
        used = self.keys.used
        cluster = self._clusters(effect.attachment, lane)
        before = self.own.counter
        sealed = self.own.sealed((used, self.keys.secrets[used]), cluster, burst, effect.networks, lane, target)
        self.stats.sealed += self.own.counter - before
        return sealed

    # Presences

    def _presences(
        self, attachment: Attachment, networks: tuple[int, ...], lane: Lane, now: Instant
    ) -> list[tuple[bytes, int]]:
        """Return one under each key that is spoken."""
        said = Presence(self.me, self.keys.used, self.keys.accepted, self.lives.named(now)[:NAMED_MAX])
        body, cluster, secrets = encode_presence(said), self._clusters(attachment, lane), self.keys.secrets
        packets = [
            self.own.presence((number, secrets[number]), cluster, body, networks, lane) for number in self.keys.spoken
        ]
        self.stats.presences += len(packets)
        return [(packet, len(packet)) for packet in packets]

    def _speak(self, now: Instant, effects: list[Effect]) -> None:
        for attachment, networks in self._broadcasts.items():
            effects.append(Broadcast(self._presences(attachment, networks, Lane.DATA, now), attachment, networks))
        self._spoke_at = now
        recent = now - 3 * self._config.presence_ns
        is_eager = any(life.heard_at > recent and not life.names_me for life in self.lives)
        wait = self._config.eager_ns if is_eager else self._config.presence_ns
        self._presence_at = Instant(now + wait)

    def _hurry(self, now: Instant) -> None:
        """Somebody waits to be named."""
        if self._spoke_at is not None:
            soon = max(now, self._spoke_at + self._config.answer_ns)
            self._presence_at = Instant(min(self._presence_at, soon))

    def _greet(self, effect: Unicast, now: Instant, outward: list[Effect]) -> None:
        """Where no broadcast leads a presence goes ahead of what is sent, now and then."""
        if effect.attachment in self._broadcasts:
            return
        last = self._greeted.get(effect.target)
        if last is None or now - last >= self._config.eager_ns:
            self._greeted[effect.target] = now
            bursts = self._presences(effect.attachment, effect.networks, Lane.LINK, now)
            outward.append(Unicast(effect.target, bursts, effect.attachment, effect.networks))

    def _answer(self, now: Instant, effects: list[Effect]) -> None:
        answers, self._answers = self._answers, {}
        for attachment, processes in answers.items():
            for process in dict.fromkeys(processes):
                last = self._greeted.get(process)
                if last is None or now - last >= self._config.answer_ns:
                    self._greeted[process] = now
                    effects.append(Unicast(process, self._presences(attachment, (0,), Lane.LINK, now), attachment))

    def _hear(self, life: HeardLife, presence: Presence, counter: int, packet: Packet) -> None:
        """Somebody's presence was opened."""
        if life.id == self.own.id:
            self._must_renew |= life.salt != self.own.salt
            return
        mine = self.own.id
        self._must_renew |= sum(name.startswith(mine) for name in presence.heard) > 1  # another has my number, too
        now, was_present = self._now, life.is_present
        is_new = self.lives.hear(life, presence, counter, self.own.name, now)
        if is_new or not life.names_me or not was_present:
            if packet.attachment in self._broadcasts:
                self._hurry(now)
            else:
                self._answers.setdefault(packet.attachment, []).append(life.process)
        if life.is_present:
            self._away.pop(node_of(life.process), None)

    def _renew(self, now: Instant, effects: list[Effect]) -> None:
        self._must_renew = False
        self.stats.renewals += 1
        self.own.renew(self._draw_salt())
        self.opener.mine = self.own.id
        self.lives.clear()
        self._speak(now, effects)

    # Now and then

    def _look_around(self, now: Instant, effects: list[Effect]) -> None:
        for life in self.lives.forget(now):
            self.stats.lost += 1
            self._away[node_of(life.process)] = life.heard_at
        self._away = {node: at for node, at in self._away.items() if now - at < self._config.away_ns}
        if len(self._greeted) > NAMED_MAX:
            self._greeted.clear()
        self._must_renew |= self.lives.is_full
        if self._must_renew:
            self._renew(now, effects)
        self._consider(now, effects)
        self._warn(now, effects)

    def _take(self, keys: KeyRing) -> None:
        self.keys = self.opener.keys = keys

    def _join(self, members: Sequence[ProcessId], now: Instant) -> None:
        """Be one of these. Who is so no longer was heard lately, though it may never have said which keys it has."""
        gone = {node_of(member) for member in self._members} - {node_of(member) for member in members}
        self._away.update(dict.fromkeys(gone, now))
        self._members = members

    def _consider(self, now: Instant, effects: list[Effect]) -> None:
        """Whoever is not with others yet waits: it may have heard some of them alone, and the rest may not have the
        key. It uses what is in use, for all had that key when the first of them changed."""
        wanted = self.keys.wanted
        is_early = len(self._members) < 2 and all(life.used != wanted for life in self.lives.newest().values())
        if wanted != self.keys.used and not is_early and not self.awaited():
            self._use(wanted, effects)

    def _use(self, number: int, effects: list[Effect]) -> None:
        if number != self.keys.used:
            before = self.keys.used
            self._take(self.keys.using(number))
            self.stats.changes += 1
            effects.append(Alarm(AlarmKind.KEY_CHANGED, change_text(before, number), self.me))

    def parts_with(self, keys: KeyRing) -> bool:
        """Tell whether whoever takes these keys is understood by none of those with whom this process is."""
        used = {life.used for life in self.lives.newest().values()}
        return not self._is_alone() and not understands(keys, self.keys, {self.keys.used, *used})

    def _is_alone(self) -> bool:
        return not self.lives.newest() and len(self._members) < 2

    def awaited(self) -> list[int]:
        """The nodes whose word is missing before the wanted key is used."""
        return awaited(self.keys, self.lives, self._away, self._members, self.me)

    def _warn(self, now: Instant, effects: list[Effect]) -> None:
        """Say what was refused, at most once a minute for each reason, and who runs another engine."""
        effects += self._neighbours.news()
        deaf = sorted({node_of(life.process) for life in self.lives.deaf(now, self._config.deaf_ns)})
        if deaf and (self._deaf_at is None or now - self._deaf_at >= self._config.warn_ns):
            self._deaf_at = now
            effects.append(Alarm(AlarmKind.PACKETS_REFUSED, deaf_text(deaf)))
        for why in TOLD:
            count = self.opener.refused[why]
            said_at, said = self._warned.get(why, (Instant(-self._config.warn_ns), 0))
            if count > said and now - said_at >= self._config.warn_ns:
                self._warned[why] = now, count
                text = refusal_text(why, count - said, self.opener.unknown_key, self.keys)
                effects.append(Alarm(AlarmKind.PACKETS_REFUSED, text))
