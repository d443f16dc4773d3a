"""Names, heads and payloads of groups as Hypothesis draws them."""

from __future__ import annotations

from hypothesis import strategies as st

from ordercast.groups.envelope import Head, Kind, encode_head
from ordercast.groups.names import CLIENT_SIZE_MAX, GROUP_SIZE_MAX, GROUPS_MAX
from ordercast.groups.snapshot import encode_snapshot
from ordercast.model.ids import ConfigurationId, ProcessId

from .strategies import rings

PLAIN = [chr(code) for code in range(ord("$"), 127) if chr(code) != "@"]

Names = st.SearchStrategy[str]

groups = st.text(PLAIN, min_size=1, max_size=GROUP_SIZE_MAX)
daemons = st.text([character for character in PLAIN if character != "/"], min_size=1, max_size=GROUP_SIZE_MAX)
clients = st.builds("{}@{}".format, st.text(PLAIN, min_size=1, max_size=CLIENT_SIZE_MAX), daemons)
destinations = st.one_of(groups, clients)


def _heads(kinds: list[Kind], senders: Names, named: st.SearchStrategy[tuple[str, ...]]) -> st.SearchStrategy[Head]:
    return st.builds(Head, st.sampled_from(kinds), senders, named, st.integers(0, 255))


heads = st.one_of(
    _heads([Kind.DATA], clients, st.lists(destinations, min_size=1, max_size=5).map(tuple)),
    _heads([Kind.JOIN, Kind.LEAVE], clients, st.lists(groups, min_size=1, max_size=5).map(tuple)),
    _heads([Kind.DISCONNECT], clients, st.just(())),
    _heads([Kind.GROUPS], daemons, st.just(())),
)
long_heads = _heads([Kind.DATA], clients, st.lists(destinations, min_size=1, max_size=GROUPS_MAX).map(tuple))

# What no honest daemon writes: any names anywhere, control characters and wrong sizes among them.
forged_names = st.one_of(destinations, st.text([*map(chr, range(128))], min_size=1, max_size=100))
forged_heads = _heads(list(Kind), forged_names, st.lists(forged_names, max_size=5).map(tuple))
forged_reports = st.dictionaries(forged_names, st.lists(forged_names, min_size=1, max_size=4), max_size=5)
HERE = "n2"  # whose clients are in snapshots
own_clients = st.builds("{}@{}".format, st.text(PLAIN, min_size=1, max_size=CLIENT_SIZE_MAX), st.just(HERE))
reports = st.dictionaries(groups, st.lists(own_clients, min_size=1, max_size=4, unique=True), max_size=5)


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """A byte changed, something cut off, or something added."""
    match draw(st.integers(0, 2)):
        case 0 if whole:
            place = draw(st.integers(0, len(whole) - 1))
            return whole[:place] + bytes([draw(st.integers(0, 255))]) + whole[place + 1 :]
        case 1 if whole:
            return whole[: draw(st.integers(0, len(whole) - 1))]
        case _:
            return whole + draw(st.binary(min_size=1, max_size=5))


damaged_heads = heads.map(encode_head).flatmap(damaged)
snapshots = st.builds(encode_snapshot, rings, reports).map(lambda pieces: pieces[0])
damaged_snapshots = snapshots.flatmap(damaged)


def any_payloads(ring: ConfigurationId) -> st.SearchStrategy[bytes]:
    """Bytes, damaged heads, whole and forged heads with anything behind, and snapshots of this ring that are damaged,
    forged, or neither."""
    fixed = encode_head(Head(Kind.GROUPS, HERE, ()))
    pieces = st.one_of(reports, forged_reports).map(lambda told: encode_snapshot(ring, told)[0])
    return st.one_of(
        st.binary(max_size=60),
        damaged_heads,
        st.builds(lambda head, data: encode_head(head) + data, st.one_of(heads, forged_heads), st.binary(max_size=20)),
        st.one_of(st.binary(max_size=40), pieces, pieces.flatmap(damaged)).map(lambda rest: fixed + rest),
    )


processes = st.integers(1, 4).map(ProcessId)
