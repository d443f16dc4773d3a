"""Items of a network of rings as Hypothesis draws them: everything that their formats can say."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.codec import Item
from ordercast.order.gateways.items import (
    CAP,
    Base,
    BegunMessage,
    Column,
    EndItem,
    Half,
    HelloItem,
    HoldItem,
    InterestItem,
    LogicalRing,
    MarkItem,
    NoticeItem,
    OwnWord,
    Processes,
    Statement,
    Stretch,
    TopologyItem,
    TopologyPart,
)
from ordercast.order.stamped.lanes import NO_STAMP, Stamp
from ordercast.wire.codec import NUMBER_MAX

FEW = 2

numbers = st.one_of(st.integers(0, 64), st.integers(0, NUMBER_MAX))
u64 = st.integers(0, (1 << 64) - 1)
processes = st.integers(1, (1 << 64) - 1).map(ProcessId)
rings = st.builds(ConfigurationId, numbers, processes)
sets = st.frozensets(processes, max_size=FEW)
some = st.frozensets(processes, min_size=1, max_size=FEW)
firsts: st.SearchStrategy[Stamp] = st.tuples(numbers, u64, numbers)
stamps: st.SearchStrategy[Stamp] = st.tuples(numbers, u64, st.one_of(st.just(CAP), numbers))
sinces = st.one_of(st.just(NO_STAMP), stamps)
domains = st.integers(0, 255)
holds = st.builds(HoldItem, processes, numbers, st.text(max_size=60))


def _within(members: Processes, least: int = 0) -> st.SearchStrategy[Processes]:
    return st.lists(st.sampled_from(sorted(members)), min_size=least, max_size=FEW).map(frozenset)


@st.composite
def bare_rings(draw: st.DrawFn) -> LogicalRing:
    members = draw(some)
    halves = draw(st.lists(st.builds(Half, rings, _within(members)), max_size=FEW))
    return LogicalRing(draw(rings), members, draw(_within(members)), draw(numbers), tuple(halves))


@st.composite
def bare_ends(draw: st.DrawFn) -> EndItem:
    successor = draw(bare_rings())
    half = draw(_within(successor.members, 1))
    return EndItem(draw(rings), half, successor, draw(_within(successor.members)), draw(st.sampled_from(ChangeReason)))


@st.composite
def parts(draw: st.DrawFn) -> TopologyPart:
    ring = draw(bare_rings())
    return TopologyPart(ring, draw(_within(ring.members)), draw(_within(ring.members)))


def _tuples(one: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(one, max_size=FEW).map(tuple)


topologies = st.builds(
    TopologyItem,
    rings,
    rings,
    processes,
    st.builds(ConfigurationId, u64, processes),
    sets,
    _tuples(parts()),
    _tuples(st.builds(Base, processes, domains, rings)),
    _tuples(bare_ends()),
    _tuples(st.builds(OwnWord, processes, rings, rings)),
    _tuples(st.tuples(processes, u64)),
    _tuples(holds),
    _tuples(st.builds(BegunMessage, processes, st.integers(0, 0xFFFFFFFF), firsts, st.binary(max_size=9))),
)


@st.composite
def ends(draw: st.DrawFn) -> EndItem:
    end, said = draw(bare_ends()), draw(st.lists(topologies, max_size=2))
    ring = end.successor
    whole = LogicalRing(ring.id, ring.members, ring.gateways, ring.tick, ring.halves, tuple(said))
    return replace(end, successor=whole)


@st.composite
def stretches(draw: st.DrawFn) -> Stretch:
    seqs = sorted(draw(st.sets(numbers, min_size=1, max_size=FEW)))
    bodies = [draw(st.binary(max_size=20)) for _ in seqs]
    ring, tick, who = draw(rings), draw(numbers), draw(processes)
    whole = Stretch(ring, tick, who, tuple(seqs), tuple(bodies), draw(st.booleans()), draw(u64))
    told = replace(whole.between(0, 1), interest=InterestItem(who, draw(u64), draw(st.booleans())))
    return draw(st.sampled_from([whole, whole.hollow(), told]))


statements = st.builds(Statement, st.builds(Column, rings, st.none() | sets), stamps)
items: st.SearchStrategy[Item] = st.one_of(
    st.builds(HelloItem, rings),
    ends(),
    st.builds(NoticeItem, rings, processes, stamps, _tuples(statements), st.none() | sets, stamps),
    st.builds(
        MarkItem, rings, rings, processes, numbers, st.sets(domains, min_size=1, max_size=FEW).map(sorted).map(tuple)
    ),
    topologies,
    holds,
    st.builds(InterestItem, processes, u64, st.booleans()),
    stretches(),
)
