"""Messages and packets as Hypothesis draws them: everything that the wire format can say."""

from __future__ import annotations

from hypothesis import strategies as st

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import NODE_MAX, ConfigurationId, NodeId, ProcessId, Seq, TokenSeq
from ordercast.model.notes import NetworkState
from ordercast.model.roster import VERSION_MAX, Claim, Entry, Place, Roster
from ordercast.model.service import Service
from ordercast.networks.probe import Probe, encode_probe
from ordercast.wire.codec import DIGESTS_MAX, NUMBER_MAX, encode
from ordercast.wire.head import cluster_id_from
from ordercast.wire.header import (
    PART_SHIFT,
    RETRANSMITTED,
    SAFE,
    Heading,
    Part,
    recovered,
)
from ordercast.wire.messages import (
    EXTENSION_SIZE_MAX,
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

CLUSTER = cluster_id_from("properties")
MEMBERS = (ProcessId(1), ProcessId(1 << 48 | 1), ProcessId(2 << 48 | 1))  # of every ring whose data packets are drawn

u8 = st.integers(0, 0xFF)
u32 = st.integers(0, 0xFFFFFFFF)
u64 = st.one_of(st.integers(0, 64), st.integers(0, NUMBER_MAX))
processes = st.integers(1, (1 << 64) - 1).map(ProcessId)
rings = st.builds(ConfigurationId, u64, processes)
process_lists = st.lists(processes, max_size=8, unique=True).map(lambda drawn: tuple(sorted(drawn)))
extensions = st.one_of(st.just(b""), st.binary(max_size=EXTENSION_SIZE_MAX))
reasons = st.sampled_from(ChangeReason)
claims = st.builds(Claim, st.integers(0, VERSION_MAX), st.integers(0, (1 << 64) - 1))
ports = st.integers(1, 0xFFFF)
addresses = st.ip_addresses().map(str)
places = st.builds(Place, addresses, ports, ports)


@st.composite
def request_lists(draw: st.DrawFn) -> tuple[Seq, ...]:
    """Ascending, in runs of various lengths, some of them adjacent."""
    requests: list[Seq] = []
    at = 0
    for gap, length in draw(st.lists(st.tuples(st.integers(1, 1 << 40), st.integers(1, 40)), max_size=6)):
        requests.extend(Seq(seq) for seq in range(at + gap, at + gap + length))
        at = requests[-1]
    return tuple(requests)


@st.composite
def tokens(draw: st.DrawFn) -> Token:
    requests = draw(request_lists())
    seq = draw(st.integers(requests[-1] if requests else 0, NUMBER_MAX))
    aru = draw(st.integers(0, seq))
    return Token(
        draw(rings),
        draw(processes),
        TokenSeq(draw(u64)),
        draw(u64),
        Seq(seq),
        Seq(aru),
        ProcessId(draw(u64)),
        requests,
        draw(u32),
        draw(u32),
        draw(u32),
        draw(st.integers(0, 0xFFFF)),
        draw(st.booleans()),
        draw(u64),
        draw(extensions),
        (draw(u32), draw(u32), draw(st.integers(0, 0xFFFF))),
    )


members = st.builds(CommitEntry, processes, st.booleans(), rings, u64.map(Seq), u64.map(Seq), st.booleans())


@st.composite
def commit_tokens(draw: st.DrawFn) -> CommitToken:
    listed = draw(st.lists(members, min_size=1, max_size=8, unique_by=lambda member: member.process))
    ring = ConfigurationId(draw(u64), listed[0].process)
    return CommitToken(
        ring,
        draw(processes),
        TokenSeq(draw(u64)),
        draw(reasons),
        tuple(listed),
        draw(u64),
        draw(extensions),
    )


@st.composite
def joins(draw: st.DrawFn) -> Join:
    sender = draw(processes)
    candidates = tuple(sorted({sender, *draw(process_lists)}))
    failed = tuple(process for process in candidates if process != sender and draw(st.booleans()))
    return Join(
        draw(rings),
        sender,
        draw(u64),
        draw(u64),
        candidates,
        failed,
        draw(u32),
        draw(reasons),
        ProcessId(draw(u64)),
        tuple(draw(st.lists(u32, max_size=DIGESTS_MAX))),
        draw(claims),
    )


@st.composite
def announcements(draw: st.DrawFn) -> Announcement:
    sender = draw(processes)
    ring_members = tuple(sorted({sender, *draw(process_lists)}))
    return Announcement(draw(rings), sender, ring_members, draw(process_lists), draw(claims))


@st.composite
def rosters(draw: st.DrawFn) -> Roster:
    nodes = sorted(draw(st.sets(st.integers(0, NODE_MAX), max_size=6)))
    names = st.text("abcdefgh-09", min_size=1, max_size=12)
    some = st.lists(places, min_size=1, max_size=3).map(tuple)
    entries = tuple(Entry(NodeId(node), draw(names), draw(some)) for node in nodes)
    return Roster(draw(st.integers(0, VERSION_MAX)), entries, draw(st.booleans()))


@st.composite
def copies(draw: st.DrawFn) -> RosterCopy:
    return RosterCopy(draw(rings), draw(processes), draw(rosters()))


messages: st.SearchStrategy[WireMessage] = st.one_of(
    tokens(),
    commit_tokens(),
    joins(),
    announcements(),
    st.builds(Wake, rings, processes),
    st.builds(Leave, rings, processes),
    copies(),
)
control_packets = messages.map(lambda message: encode(CLUSTER, message))
originators = st.sampled_from(MEMBERS)


def heading_of(ring: ConfigurationId) -> Heading:
    return Heading(CLUSTER, ring, MEMBERS)


@st.composite
def data_packets(draw: st.DrawFn, ring: ConfigurationId | None = None) -> bytes:
    its_ring = ring or draw(rings)
    payload = draw(st.sampled_from((st.binary(max_size=40), st.binary(min_size=9, max_size=9))))
    entries = draw(st.lists(st.tuples(u32, st.sampled_from(Service), payload), min_size=1, max_size=8))
    flags = draw(st.sampled_from((0, SAFE)))
    if len(entries) == 1:
        flags |= draw(st.sampled_from(Part)) << PART_SHIFT
    flags |= draw(st.sampled_from((0, RETRANSMITTED)))
    listed = [(sender, len(data), int(service), data) for sender, service, data in entries]
    seq = Seq(draw(u64))
    return build_data(heading_of(its_ring), flags, listed, draw(originators), seq, 3, 4).packet(seq)


@st.composite
def recovered_packets(draw: st.DrawFn) -> bytes:
    heading = heading_of(draw(rings))
    return recovered(draw(data_packets()), draw(originators), heading, draw(processes), Seq(draw(u64)), draw(u64))


probes = st.builds(Probe, rings, processes, u64, u8, st.sampled_from(NetworkState), st.booleans(), st.booleans())
probe_packets = probes.map(lambda probe: encode_probe(CLUSTER, probe))
packets = st.one_of(control_packets, data_packets(), recovered_packets(), probe_packets)


@st.composite
def with_one_byte_changed(draw: st.DrawFn, source: st.SearchStrategy[bytes]) -> bytes:
    packet = bytearray(draw(source))
    packet[draw(st.integers(0, len(packet) - 1))] = draw(u8)
    return bytes(packet)


@st.composite
def cut_short(draw: st.DrawFn, source: st.SearchStrategy[bytes]) -> bytes:
    packet = draw(source)
    return packet[: draw(st.integers(0, len(packet) - 1))]
