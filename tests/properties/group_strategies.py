"""Names, heads and payloads of groups as Hypothesis draws them."""

from __future__ import annotations

from hypothesis import strategies as st

from ordercast.groups.envelope import Head, Kind, encode_head
from ordercast.groups.names import CLIENT_SIZE_MAX, GROUP_SIZE_MAX, GROUPS_MAX
from ordercast.groups.snapshot import encode_snapshot
from ordercast.model.ids import ProcessId, RingId

from .strategies import rings

PLAIN = [chr(code) for code in range(ord("$"), 127) if chr(code) != "@"]

groups = st.text(PLAIN, min_size=1, max_size=GROUP_SIZE_MAX)
daemons = groups
clients = st.builds("{}@{}".format, st.text(PLAIN, min_size=1, max_size=CLIENT_SIZE_MAX), daemons)
destinations = st.one_of(groups, clients)
heads = st.builds(
    Head,
    st.sampled_from(Kind),
    st.one_of(clients, daemons),
    st.lists(destinations, max_size=5).map(tuple),
    st.integers(0, 255),
)
long_heads = st.builds(
    Head, st.just(Kind.DATA), clients, st.lists(destinations, max_size=GROUPS_MAX).map(tuple), st.just(0)
)
reports = st.dictionaries(groups, st.lists(clients, min_size=1, max_size=4, unique=True), max_size=5)


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


def any_payloads(ring: RingId) -> st.SearchStrategy[bytes]:
    """Bytes, damaged heads, whole heads with anything behind, and snapshots of this ring that are damaged or not."""
    fixed = encode_head(Head(Kind.GROUPS, "n2", ()))
    pieces = reports.map(lambda told: encode_snapshot(ring, told)[0])
    return st.one_of(
        st.binary(max_size=60),
        damaged_heads,
        st.builds(lambda head, data: encode_head(head) + data, heads, st.binary(max_size=20)),
        st.one_of(st.binary(max_size=40), pieces, pieces.flatmap(damaged)).map(lambda rest: fixed + rest),
    )


processes = st.integers(1, 4).map(ProcessId)
