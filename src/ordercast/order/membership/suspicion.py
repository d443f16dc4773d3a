"""Suspicion: what a process tells a person about packets that should not be, or that do not fit its own configuration.

Anybody on the network can cause these alarms, so each kind is raised once in a while, and what is remembered is
bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ordercast.model.effects import Alarm, AlarmKind
from ordercast.model.ids import SECOND, Instant, NodeId, ProcessId, node_of, process_text
from ordercast.model.notes import Occurrence, PacketDropped
from ordercast.order.membership.bounds import JOIN_NUMBER_LEAP
from ordercast.order.membership.hearing import KNOWN_FACTOR, lifetime_of
from ordercast.order.membership.step import Step
from ordercast.order.neighbours import other_engine_alarm
from ordercast.order.ring.config import COMPARED
from ordercast.wire.head import CLUSTER, HEAD_SIZE, VERSION, OtherVersion, transmitter_of
from ordercast.wire.header import digest_of
from ordercast.wire.messages import Announcement, Join, Leave, WireMessage

WARN_AGAIN_NS = 60 * SECOND
ENGINE = "engine"  # the key on which all nodes of a cluster must agree
DOMAIN = "domain"  # and what tells rings of a network apart


@dataclass(slots=True)
class Suspicion:
    _neighbours: Mapping[bytes, str] = field(default_factory=dict)  # engines, by the id of this cluster on them
    _domains: Mapping[bytes, str] = field(
        default_factory=dict
    )  # of a network of rings, by the id of this cluster there
    _told: dict[AlarmKind, Instant] = field(default_factory=dict)  # when an alarm of each kind was last raised
    _mismatches: dict[NodeId, tuple[str, ...]] = field(default_factory=dict)  # which keys differ, as was told of each
    _doubted: dict[bytes, Instant] = field(default_factory=dict)  # rings that cannot be, and when each was last told of

    def heard_my_name(self, message: WireMessage, step: Step, *, is_gone: bool) -> None:
        """Our own broadcast came back, or somebody sends in our name. A Join of ours must stay the newest."""
        facts = step.facts
        leap = message.number - facts.join_number if isinstance(message, Join) else 0
        if leap > 0 or (isinstance(message, Leave) and not is_gone):
            if leap <= JOIN_NUMBER_LEAP:
                facts.join_number += leap
            step.occurred(Occurrence.IMPOSTOR)
            what = f"a {type(message).__name__} that {process_text(facts.me)} did not send came in its name"
            self.warn(AlarmKind.FORGED, f"{what}: somebody else on the network sends for it", step)

    def disbelieve(self, message: WireMessage, step: Step) -> None:
        """Drop a packet that speaks of a ring seq which cannot be true."""
        step.occurred(Occurrence.IMPLAUSIBLE)
        step.note(PacketDropped("a ring seq that cannot be true"))
        if not isinstance(message, Join):
            self._doubt(digest_of(message.ring), step)
        who, mine = process_text(message.sender), step.facts.ring_seq
        text = f"{who} speaks of a ring seq far above {mine}, which is not taken over: a forged packet, or"
        self.warn(AlarmKind.IMPLAUSIBLE, f"{text} {who} was misled by one", step, message.sender)

    def _doubt(self, ring: bytes, step: Step) -> None:
        self._doubted.pop(ring, None)
        if len(self._doubted) >= KNOWN_FACTOR * step.facts.config.members_max:
            del self._doubted[next(iter(self._doubted))]  # of which was told longest ago
        self._doubted[ring] = step.now

    def is_doubted(self, ring: bytes, step: Step) -> bool:
        """Whether somebody has lately told of the ring with this digest, and it cannot be."""
        last = self._doubted.get(ring)
        return last is not None and step.now - last < lifetime_of(step.facts.config)

    def heard_version(self, other: OtherVersion, step: Step) -> None:
        """Tell of a process of this cluster whose packets cannot be read."""
        who = "a node" if other.transmitter is None else process_text(other.transmitter)
        text = f"{who} of this cluster speaks wire version {other.version}, and this node {VERSION}: they cannot hear"
        self.warn(AlarmKind.WIRE_VERSION, f"{text} each other until both run one release", step, other.transmitter)

    def warn(self, kind: AlarmKind, text: str, step: Step, process: ProcessId | None = None) -> None:
        """Raise an alarm, unless one of this kind was raised a while ago."""
        last = self._told.get(kind)
        if last is None or step.now - last >= WARN_AGAIN_NS:
            self._told[kind] = step.now
            step.alarm(Alarm(kind, text, process or step.facts.me))

    def heard_engine(self, data: bytes, step: Step) -> bool:
        """Name a node of this cluster whose engine or domain is another: it can never be a member. Tell whether it is
        another engine."""
        if len(data) > HEAD_SIZE and data[CLUSTER] in self._domains:
            self._heard_domain(self._domains[data[CLUSTER]], transmitter_of(data), step)
            return False
        engine = self._neighbours.get(data[CLUSTER])
        if engine is None or len(data) <= HEAD_SIZE:
            return False
        process = transmitter_of(data)
        if self._is_news(node_of(process), (ENGINE,), step):
            step.alarm(other_engine_alarm(process, engine))
        return True

    def _heard_domain(self, domain: str, process: ProcessId, step: Step) -> None:
        attached = step.facts.parts.attached
        if attached is not None and self._is_news(node_of(process), (DOMAIN,), step):
            text = (
                f"domains are crossed: {process_text(process)} is heard on the ring {attached.name!r} with packets of"
            )
            text += f" {domain!r}: give each ring a network or a multicast group of its own"
            step.alarm(Alarm(AlarmKind.CONFIGURATION_MISMATCH, text, process))

    def _is_news(self, node: NodeId, keys: tuple[str, ...], step: Step) -> bool:
        """Whether something was not told of this node yet; from now on it was."""
        known = self._mismatches.get(node, ())
        is_full = not known and len(self._mismatches) >= KNOWN_FACTOR * step.facts.config.members_max
        if not set(keys) - set(known) or is_full:
            return False
        self._mismatches[node] = tuple(dict.fromkeys((*known, *keys)))
        return True

    def is_unlike(self, message: Join | Announcement, step: Step) -> bool:
        """Whether the sender's engine has other settings than this one, with which no configuration could work; a
        person is told of the node and the keys."""
        settings = step.facts.parts.settings
        if message.settings == tuple(settings.values()):
            return False
        theirs = (*message.settings, *[None] * len(settings))  # an earlier version may have fewer
        pairs = zip(settings.items(), theirs, strict=False)
        keys = tuple(key for (key, mine), its in pairs if mine != its) or tuple(settings)
        if self._is_news(node_of(message.sender), keys, step):
            text = f"{process_text(message.sender)} has {_others(keys)} than this process: they never come together"
            step.alarm(Alarm(AlarmKind.CONFIGURATION_MISMATCH, f"{text} until they are equal", message.sender))
        return True

    def compare_configuration(self, join: Join, step: Step) -> None:
        """Name the keys on which members should agree and the sender of a Join does not."""
        if join.digests == step.facts.digests:
            return
        pairs = zip(COMPARED, step.facts.digests, join.digests, strict=False)
        keys, node = tuple(key for key, mine, theirs in pairs if mine != theirs), node_of(join.sender)
        if not self._is_news(node, keys, step):
            return
        text = f"{process_text(join.sender)} has {_others(keys)} than this process: make them equal"
        step.alarm(Alarm(AlarmKind.CONFIGURATION_MISMATCH, text, join.sender))


def _others(keys: tuple[str, ...]) -> str:
    if len(keys) == 1:
        return f"another value of {keys[0]}"
    return f"other values of {', '.join(keys[:-1])} and {keys[-1]}"
