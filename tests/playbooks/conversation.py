"""A conversation with one node, as a text: `>` what it is given, `<` what it does.

`play` reads the `>` lines, gives them to a real node and writes down its effects; the result must be the text itself.
Processes are n1, n2, ...; the node is n2 unless `start` says otherwise. The inputs:

    start [nK] [stored=SEQ]           written                      leave
    wait MILLISECONDS                 submit [safe] WORD...
    announce nK ring=S.nK members=nA,nB heard=nA,nB
    join nK {n1 n2} failed {n3} ring_seq=S number=N [forwards=F]
    commit S.nK #HOP n1:RING/ARU/HIGH n2:? ...     (`?` not filled in; `+` behind HIGH: promised; reason=R)
    token S.nK #HOP seq=S aru=A [by=nK] [requests=1,2] [exchanging]
    data S.nK SEQ nK WORD [safe]      wrapped S.nK SEQ (S.nK SEQ nK WORD)
    wake-up S.nK nK                   farewell S.nK nK
"""

from __future__ import annotations

import difflib
from collections import Counter
from textwrap import dedent

from ordercast.model.configuration import ChangeReason, ConfigurationKind
from ordercast.model.effects import (
    Alarm,
    Broadcast,
    Deliver,
    Effect,
    Endpoint,
    Enlisted,
    Install,
    LeaveDone,
    Parted,
    Persist,
    Placed,
    Record,
    Room,
    SendTo,
    Subscribed,
    Then,
    Unicast,
)
from ordercast.model.ids import (
    MILLISECOND,
    NOBODY,
    ConfigurationId,
    Incarnation,
    Instant,
    NodeId,
    ProcessId,
    Seq,
    TokenSeq,
    process_id_from,
    process_text,
)
from ordercast.model.inputs import Packet, Submission
from ordercast.model.notes import Ignored, Moved, Occurred, PacketDropped
from ordercast.model.service import Service
from ordercast.order.engine import CONFIGURATION_SEQ_KEY
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.node import RingNode
from ordercast.wire.codec import decode, encode
from ordercast.wire.head import KIND_AT, cluster_id_from, transmitter_of
from ordercast.wire.header import (
    HEADER_SIZE,
    ORIGIN,
    RECOVERED,
    RETRANSMITTED,
    SAFE,
    Heading,
    MessageKind,
    digest_of,
    recovered,
)
from ordercast.wire.messages import (
    Announcement,
    CommitEntry,
    CommitToken,
    Join,
    Leave,
    RosterCopy,
    Token,
    Wake,
    WireMessage,
)
from ordercast.wire.run import build_data
from tests.packets import header_of

CLUSTER = cluster_id_from("ordercast")
RINGS: dict[bytes, tuple[ConfigurationId, tuple[ProcessId, ...]]] = {}  # that were spoken of, by digest


def play(text: str, *, after: str = "") -> None:
    """Fails with a diff when the node says anything else than the text. What it says to `after` is not looked at."""
    expected = [line.strip() for line in dedent(text).splitlines() if line.strip()]
    conversation = Conversation()
    for line in after.splitlines():
        if line.strip().startswith(">"):
            conversation.give(line.strip()[1:].strip())
    actual: list[str] = []
    for line in expected:
        if line.startswith(">"):
            actual.append(line)
            actual += [f"< {told}" for told in answer(conversation.give(line[1:].strip()))]
        elif not line.startswith("<"):
            actual.append(line)  # a heading
    if actual != expected:
        diff = difflib.unified_diff(expected, actual, "the playbook", "the node", lineterm="", n=3)
        raise AssertionError("\n".join(["the conversation went another way:", *diff]))


def answer(effects: list[Effect]) -> list[str]:
    """What is said several times in one answer is written once, with the number."""
    counts = Counter(line for effect in effects for line in lines_of(effect))
    return [line if count == 1 else f"{line} ×{count}" for line, count in counts.items()]


class Conversation:
    def __init__(self) -> None:
        self.now = Instant(0)
        self.node = RingNode(NodeId(2))

    def give(self, line: str) -> list[Effect]:
        effects = self._give(line)
        know(self.node.ring.id, self.node.ring.members)
        return effects

    def _give(self, line: str) -> list[Effect]:
        verb, *words = line.split()
        node = self.node
        match verb:
            case "start":
                named = [word for word in words if word.startswith("n")]
                stored = [int(word.removeprefix("stored=")) for word in words if word.startswith("stored=")]
                self.node = RingNode(NodeId(int(named[0][1:]) if named else 2), RingConfig())
                disk = {CONFIGURATION_SEQ_KEY: stored[0].to_bytes(8, "big")} if stored else {}
                return self.node.start(disk, Incarnation(1), self.now)
            case "written":
                return node.persisted(CONFIGURATION_SEQ_KEY, self.now)
            case "leave":
                return node.leave(self.now)
            case "wait":
                return self._wait(int(words[0]) * MILLISECOND)
            case "submit":
                service = Service.SAFE if words[0] == "safe" else Service.AGREED
                texts = words[1:] if words[0] == "safe" else words
                return node.submit([Submission(text.encode(), service) for text in texts], self.now)
            case "data" | "wrapped":
                packet = data_from(words) if verb == "data" else wrapped_from(words)
            case _:
                packet = encode(CLUSTER, message_from(verb, words))
        return node.receive([Packet(packet, len(packet))], self.now)

    def _wait(self, duration: int) -> list[Effect]:
        end = self.now + duration
        effects: list[Effect] = []
        while (deadline := self.node.next_deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            effects += self.node.wake(self.now)
        self.now = Instant(end)
        return effects


def know(ring: ConfigurationId, members: tuple[ProcessId, ...]) -> None:
    RINGS[digest_of(ring)] = ring, members


def heading_of(ring: ConfigurationId, sender: ProcessId) -> Heading:
    _, members = RINGS.get(digest_of(ring), (ring, (sender,)))
    return Heading(CLUSTER, ring, members)


# Reading inputs


def process_from(text: str) -> ProcessId:
    return process_id_from(NodeId(int(text[1:])), Incarnation(1))


def ring_from(text: str) -> ConfigurationId:
    seq, _, representative = text.partition(".")
    return ConfigurationId(int(seq), process_from(representative))


def options_from(words: list[str]) -> dict[str, str]:
    return dict(word.split("=") for word in words if "=" in word)


def processes_from(text: str, separator: str | None = None) -> tuple[ProcessId, ...]:
    return tuple(process_from(word) for word in text.split(separator))


def message_from(verb: str, words: list[str]) -> WireMessage:
    options = options_from(words)
    reason = ChangeReason[options.get("reason", "MERGE")]
    match verb:
        case "announce":
            members, heard = (processes_from(options[key], ",") for key in ("members", "heard"))
            return Announcement(ring_from(options["ring"]), process_from(words[0]), members, heard)
        case "join":
            line = " ".join(words)
            candidates, failed = (processes_from(part.partition("}")[0]) for part in line.split("{")[1:])
            number, ring_seq = int(options["number"]), int(options["ring_seq"])
            forwards = int(options.get("forwards", "0"))
            sender = process_from(words[0])
            ring, lost = ConfigurationId(ring_seq, sender), ChangeReason.TOKEN_LOST
            return Join(ring, sender, number, ring_seq, candidates, failed, forwards, lost, NOBODY, ())
        case "commit":
            entries = tuple(member_from(word) for word in words[2:] if ":" in word)
            hop = TokenSeq(int(words[1][1:]))
            sender = entries[(hop - 1) % len(entries)].process
            know(ring_from(words[0]), tuple(entry.process for entry in entries))
            return CommitToken(ring_from(words[0]), sender, hop, reason, entries, 0)
        case "token":
            by = process_from(options["by"]) if "by" in options else NOBODY
            requests = tuple(Seq(int(seq)) for seq in options.get("requests", "").split(",") if seq)
            seq, aru = Seq(int(options["seq"])), Seq(int(options["aru"]))
            hop = TokenSeq(int(words[1][1:]))
            ring, flag = ring_from(words[0]), "exchanging" in words
            return Token(ring, ring.representative, hop, 1, seq, aru, by, requests, 0, 1000, 0, 0, flag, 0)
        case "wake-up":
            return Wake(ring_from(words[0]), process_from(words[1]))
        case "farewell":
            return Leave(ring_from(words[0]), process_from(words[1]))
    raise AssertionError(f"no such input: {verb}")


def member_from(word: str) -> CommitEntry:
    name, _, rest = word.partition(":")
    process = process_from(name)
    if rest == "?":
        return CommitEntry(process)
    ring, aru, high = rest.split("/")
    return CommitEntry(process, True, ring_from(ring), Seq(int(aru)), Seq(int(high.rstrip("+"))), high.endswith("+"))


def data_from(words: list[str]) -> bytes:
    ring, number, sender, text = words[:4]
    seq = Seq(int(number))
    service = Service.SAFE if "safe" in words[4:] else Service.AGREED
    heading = heading_of(ring_from(ring), process_from(sender))
    entry = (0, len(text), int(service), text.encode())
    flags = SAFE if service is Service.SAFE else 0
    return build_data(heading, flags, [entry], process_from(sender), seq, 1, seq).packet(seq)


def wrapped_from(words: list[str]) -> bytes:
    old = data_from([word.strip("()") for word in words[2:]])
    transmitter = transmitter_of(old)
    return recovered(old, transmitter, heading_of(ring_from(words[0]), transmitter), transmitter, Seq(int(words[1])), 1)


# Telling effects


def listed(processes: tuple[ProcessId, ...]) -> str:
    return "{" + " ".join(map(process_text, processes)) + "}"


def lines_of(effect: Effect) -> list[str]:
    match effect:
        case Broadcast():
            return [f"broadcast {packet_text(packet)}" for packet in effect.packets]
        case SendTo(process, packet):
            return [f"to {process_text(process)}: {packet_text(packet)}"]
        case Unicast(process, _):
            to = process.host if isinstance(process, Endpoint) else process_text(process)
            return [f"link to {to}: {packet_text(packet)}" for packet in effect.packets]
        case Subscribed(groups):
            return [f"subscribed to {' '.join(groups)}"]
        case Parted(groups):
            return [f"parted {'all' if groups is None else ' '.join(groups)}"]
        case Placed():
            return [f"placed {number}" for number, *_ in effect.parcels]
        case Deliver():
            return [
                f"deliver {message[0]} {message[5].decode()} in {effect.configuration}" for message in effect.messages()
            ]
        case Install(view):
            members = " ".join(map(process_text, view.members))
            shown = f"[{members}]" if view.kind is ConfigurationKind.REGULAR else f"({members})"
            return [f"view {view.id} {shown}, {view.reason.name}"]
        case Persist(key, value):
            return [f"persist {key} {int.from_bytes(value, 'big')}"]
        case Alarm(kind, text):
            return [f"alarm {kind.value}: {text}"]
        case Room(size):
            return [f"room {size}"]
        case Enlisted(roster):
            return [f"enlisted version {roster.version}"]
        case Then(work):
            return [line for after in work() for line in lines_of(after)]
        case LeaveDone():
            return ["left"]
        case Record(note):
            return note_lines(note)


def note_lines(note: object) -> list[str]:
    match note:
        case Moved(origin, target, reason, text):
            because = f" for {reason.name}" if reason is not None else ""
            return [f"* {origin} → {target}{because}: {text}"]
        case Ignored(what, why):
            return [f"* ignored {what}: {why}"]
        case PacketDropped(why):
            return [f"* dropped: {why}"]
        case Occurred(what):
            return [f"* {what.value}"]
    return []


def packet_text(packet: bytes) -> str:
    if packet[KIND_AT] == MessageKind.DATA:
        return data_text(packet)
    message = decode(packet, CLUSTER)
    match message:
        case Token():
            by = f" by={process_text(message.aru_id)}" if message.aru_id != NOBODY else ""
            requests = f" requests={','.join(map(str, message.requests))}" if message.requests else ""
            flag = " exchanging" if message.exchanging else ""
            return f"token {message.ring} #{message.token_seq} seq={message.seq} aru={message.aru}{by}{requests}{flag}"
        case CommitToken():
            know(message.ring, tuple(member.process for member in message.members))
            return f"commit {message.ring} #{message.token_seq} " + " ".join(map(member_text, message.members))
        case Join():
            sets = f"{listed(message.candidates)} failed {listed(message.failed)}"
            return f"join {sets} ring_seq={message.ring_seq} number={message.number} forwards={message.forwards}"
        case Announcement():
            return f"announcement {message.ring} {listed(message.members)} hears {listed(message.heard)}"
        case Wake() | Leave():
            return f"{type(message).__name__.lower()} {message.ring}"
        case RosterCopy():
            return f"roster version {message.roster.version}"


def member_text(member: CommitEntry) -> str:
    if not member.filled:
        return f"{process_text(member.process)}:?"
    promised = "+" if member.received else ""
    return f"{process_text(member.process)}:{member.old_ring}/{member.old_aru}/{member.high_delivered}{promised}"


def data_text(packet: bytes) -> str:
    header = header_of(packet)
    flags, seq = header.flags, header.seq
    ring, members = RINGS[header.digest]
    marks = "".join(text for bit, text in ((SAFE, " safe"), (RETRANSMITTED, " again")) if flags & bit)
    if flags & RECOVERED:
        digest, old_seq, place = ORIGIN.unpack_from(packet, HEADER_SIZE)
        old_ring, old_members = RINGS[digest]
        return f"wrapped {ring} {seq} ({old_ring} {old_seq} {process_text(old_members[place])}){marks}"
    several = f" with {header.messages}" if header.messages > 1 else ""
    return f"data {ring} {seq} {process_text(members[header.place])}{several}{marks}"
