"""What replicas say survives its bytes; other bytes raise WireError and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.errors import WireError
from ordercast.model.events import ViewId
from ordercast.model.ids import ConfigurationId, Position, ProcessId
from ordercast.model.lineage import Lineage, Term
from ordercast.replicated.effects import Point
from ordercast.replicated.quorum import Electorate, Life
from ordercast.replicated.sessions import Outcome, Session, Sessions
from ordercast.replicated.track import DIGEST_SIZE, Held, Rank
from ordercast.replicated.wire import (
    ERA_SAID_MAX,
    Ask,
    Command,
    Exclude,
    Here,
    Kind,
    Loaded,
    Loading,
    Preface,
    State,
    United,
    decode,
    decode_command,
    decode_preface,
    encode_ask,
    encode_command,
    encode_exclude,
    encode_here,
    encode_loaded,
    encode_preface,
    encode_state,
    encode_united,
    is_command,
)

from .group_strategies import destinations

u64 = st.integers(0, 2**64 - 1)
u32 = st.integers(0, 2**32 - 1)
names = destinations
configurations = st.builds(ConfigurationId, u64, u64.map(ProcessId))
views = st.builds(
    ViewId, configurations, st.builds(Position, configurations, st.integers(0, 2**63 - 1), st.integers(0, 0xFFFF))
)
terms = st.builds(Term, u32, views)
points = st.builds(Point, terms, u32)
ranks = st.builds(
    Rank, st.builds(Lineage, terms, u32), terms, u64, st.binary(min_size=DIGEST_SIZE, max_size=DIGEST_SIZE)
)
lives = st.builds(Life, names, u64, u32)
electorates = st.builds(Electorate, points, st.lists(lives, max_size=4).map(tuple))
states = st.builds(
    State,
    views,
    u32,
    st.integers(0, ERA_SAID_MAX),
    st.booleans(),
    u64,
    u32,
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.none() | ranks,
    st.none() | electorates,
    st.lists(electorates, max_size=3).map(tuple),
    st.none() | st.builds(Loading, points, ranks),
    st.lists(points, max_size=3).map(tuple),
    st.binary(max_size=40),
    memory=u64,
    structure=st.sampled_from(["", "Dictionary", "_x1"]),
    quorum=u64,
)


def _command(life: int, request: int, settled: int, noop: bool, data: bytes, draw: st.DataObject) -> Command:
    """With or without one before it that has no answer yet."""
    befores = st.just(0) if settled + 1 >= request else st.just(0) | st.integers(settled + 1, request - 1)
    return Command(life, request, settled, draw.draw(befores), noop, data)


commands = st.integers(1, 2**64 - 1).flatmap(
    lambda request: st.builds(
        _command, u64, st.just(request), st.integers(0, request - 1), st.booleans(), st.binary(max_size=60), st.data()
    )
)
outcomes = st.builds(Outcome, u64, st.binary(max_size=20))
sessions = st.dictionaries(u64, st.builds(Session, u64, st.dictionaries(u64, outcomes, max_size=3)), max_size=3)
prefaces = st.builds(
    Preface,
    u64,
    st.binary(min_size=DIGEST_SIZE, max_size=DIGEST_SIZE),
    sessions.map(Sessions),
    st.lists(st.builds(Held, names, st.binary(max_size=30)), max_size=3).map(tuple),
)


@given(commands)
def test_a_command_survives(command: Command) -> None:
    data = encode_command(command)
    assert is_command(data) and decode_command(data) == command


@given(states)
def test_a_state_survives(state: State) -> None:
    assert decode(encode_state(state)) == state and not is_command(encode_state(state))


@given(st.builds(Loaded, views, u64, u32))
def test_a_loaded_survives(loaded: Loaded) -> None:
    assert decode(encode_loaded(loaded)) == loaded


@given(st.builds(United, views, u64, u32, st.lists(u32, max_size=5).map(tuple)))
def test_a_united_survives(united: United) -> None:
    assert decode(encode_united(united)) == united


@given(st.builds(Exclude, views, u32, st.lists(names, max_size=5).map(tuple)))
def test_an_exclude_survives(exclude: Exclude) -> None:
    assert decode(encode_exclude(exclude)) == exclude


@given(views, u32)
def test_an_ask_and_its_answer_survive(view: ViewId, number: int) -> None:
    assert decode(encode_ask(Ask(view, number))) == Ask(view, number)
    assert decode(encode_here(Here(view, number))) == Here(view, number)


@given(prefaces)
def test_a_preface_survives(preface: Preface) -> None:
    found = decode_preface(encode_preface(preface))
    assert found == preface and list(found.sessions.by_life) == list(preface.sessions.by_life)


@given(prefaces, st.text([*map(chr, range(33)), "\x7f", "\x9b", "\N{RIGHT-TO-LEFT OVERRIDE}", "!"], max_size=5))
def test_a_name_that_no_member_can_have_is_refused(preface: Preface, name: str) -> None:
    with pytest.raises(WireError, match="a name that is none"):
        decode_preface(encode_preface(preface._replace(held=(Held(name, b""),))))


def _read(decoder: Callable[[bytes], object], data: bytes) -> None:
    with suppress(WireError):
        decoder(data)


@given(st.binary(max_size=300))
def test_any_bytes_raise_nothing_else(data: bytes) -> None:
    for decoder in (decode, decode_command, decode_preface):
        _read(decoder, data)
    for kind in range(max(Kind) + 2):
        _read(decode, bytes((kind,)) + data)


@given(st.one_of(states.map(encode_state), prefaces.map(encode_preface)), st.data())
def test_bytes_that_were_damaged_raise_nothing_else(data: bytes, draw: st.DataObject) -> None:
    at = draw.draw(st.integers(0, len(data) - 1))
    damaged = data[:at] + bytes((draw.draw(st.integers(0, 255)),)) + data[at + 1 :]
    for each in (damaged, data[:at], data + b"\0"):
        _read(decode, each)
        _read(decode_preface, each)
