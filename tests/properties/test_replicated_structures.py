"""The ready structures under random commands: equal where the same is applied, whole after a load, one lock holder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.errors import WireError
from ordercast.replicated.machine import Origin
from ordercast.replicated.structures import claims, queue
from ordercast.replicated.structures.barrier import ARRIVE, WITHDRAW, Barrier
from ordercast.replicated.structures.base import BACK_COMMAND, REFUSED, Claim, Owner, Structure, gone_command
from ordercast.replicated.structures.counter import ADD, Counter
from ordercast.replicated.structures.dictionary import COMPARE, DELETE, SET, Dictionary
from ordercast.replicated.structures.fields import I64, U32, U64, Reader, Value, optional_bytes, value_bytes
from ordercast.replicated.structures.leader import Leader
from ordercast.replicated.structures.lock import Lock
from ordercast.replicated.structures.queue import Queue

Step = tuple[Owner, bytes]
NAMES = ("alice@n1", "bob@n2", "carol@n3")
OWNERS = st.builds(Owner, st.sampled_from(NAMES), st.integers(1, 2))
KEYS: st.SearchStrategy[Value] = st.sampled_from(["a", "b", b"a", b"", "ü"])
VALUES = st.one_of(st.binary(max_size=6), st.text(max_size=6), st.just(b"x" * 70_000))
TICKETS = st.integers(1, 4).map(U64.pack)


def commands(*kinds: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.one_of(*kinds, st.binary(max_size=12))


def kind(number: int, fields: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return fields.map(lambda data: bytes([number]) + data)


def pair(first: st.SearchStrategy[bytes], second: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.tuples(first, second).map(b"".join)


OPTIONAL = st.one_of(st.none(), VALUES).map(optional_bytes)
DEPARTURES = st.one_of(st.lists(OWNERS, max_size=3).map(gone_command), st.just(BACK_COMMAND))
DICTIONARY = commands(
    kind(SET, pair(KEYS.map(value_bytes), VALUES.map(value_bytes))),
    kind(DELETE, KEYS.map(value_bytes)),
    kind(COMPARE, pair(KEYS.map(value_bytes), pair(OPTIONAL, OPTIONAL))),
)
COUNTER = commands(kind(ADD, st.one_of(st.integers(-5, 5), st.just(2**63 - 1)).map(I64.pack)))
CLAIMS = commands(kind(claims.ACQUIRE, TICKETS), kind(claims.RELEASE, TICKETS), DEPARTURES)
QUEUE = commands(
    kind(queue.PUT, VALUES.map(value_bytes)),
    *(kind(number, TICKETS) for number in (queue.TAKE, queue.TAKE, queue.ACKNOWLEDGE, queue.GIVE_BACK)),
    DEPARTURES,
)
THREE = st.sampled_from([3, 3, 3, 2]).map(U32.pack)
BARRIER = commands(kind(ARRIVE, pair(TICKETS, THREE)), kind(WITHDRAW, pair(TICKETS, THREE)), DEPARTURES)

MAKERS: dict[str, tuple[Callable[[], Structure[Any]], st.SearchStrategy[bytes]]] = {
    "dictionary": (Dictionary, DICTIONARY),
    "counter": (Counter, COUNTER),
    "queue": (Queue, QUEUE),
    "lock": (Lock, CLAIMS),
    "leader": (Leader, CLAIMS),
    "barrier": (lambda: Barrier(3), BARRIER),
}
every_structure = pytest.mark.parametrize(("make", "command"), MAKERS.values(), ids=MAKERS)


def steps_of(command: st.SearchStrategy[bytes]) -> st.SearchStrategy[list[Step]]:
    return st.lists(st.tuples(OWNERS, command), max_size=20)


@every_structure
@given(data=st.data())
def test_all_at_once_is_one_by_one(
    make: Callable[[], Structure[Any]], command: st.SearchStrategy[bytes], data: st.DataObject
) -> None:
    """Of one sender, in a row."""
    batch = data.draw(st.lists(command, max_size=20))
    single, whole = make(), make()
    origin = Origin("alice@n1", 1, 1, 7)
    results = [single.apply(each, origin._replace(position=at)) for at, each in enumerate(batch, 7)]
    assert whole.apply_all(batch, origin) == results
    assert list(whole.freeze().pieces()) == list(single.freeze().pieces())


def applied(structure: Structure[Any], steps: list[Step], before: int = 0) -> list[bytes]:
    return [
        structure.apply(command, Origin(owner.name, owner.life, position, position))
        for position, (owner, command) in enumerate(steps, before + 1)
    ]


def state_of(structure: Structure[Any]) -> list[bytes]:
    return list(structure.freeze().pieces())


@every_structure
@given(data=st.data())
def test_replicas_that_apply_the_same_are_equal(
    make: Callable[[], Structure[Any]], command: st.SearchStrategy[bytes], data: st.DataObject
) -> None:
    steps = data.draw(steps_of(command))
    one, two = make(), make()
    assert applied(one, steps) == applied(two, steps)
    assert state_of(one) == state_of(two)


@every_structure
@given(data=st.data())
def test_a_replica_that_was_loaded_goes_on_like_the_others(
    make: Callable[[], Structure[Any]], command: st.SearchStrategy[bytes], data: st.DataObject
) -> None:
    before, after = data.draw(steps_of(command)), data.draw(steps_of(command))
    one, two = make(), make()
    applied(one, before)
    applied(two, after)  # what it had is replaced
    pieces = state_of(one)
    two.load(pieces)
    assert state_of(two) == pieces
    assert applied(one, after, len(before)) == applied(two, after, len(before))
    assert state_of(one) == state_of(two)


@every_structure
@given(data=st.data())
def test_a_picture_stays_as_it_was(
    make: Callable[[], Structure[Any]], command: st.SearchStrategy[bytes], data: st.DataObject
) -> None:
    before, after = data.draw(steps_of(command)), data.draw(steps_of(command))
    machine = make()
    applied(machine, before)
    frozen = machine.freeze()
    pieces = list(frozen.pieces())
    applied(machine, after, len(before))
    assert list(frozen.pieces()) == pieces
    for start in range(len(pieces) + 1):
        assert list(frozen.pieces(start)) == pieces[start:]


@every_structure
@given(data=st.data())
def test_a_command_that_is_refused_changes_nothing(
    make: Callable[[], Structure[Any]], command: st.SearchStrategy[bytes], data: st.DataObject
) -> None:
    machine = make()
    for position, step in enumerate(data.draw(steps_of(command)), 1):
        before = state_of(machine)
        owner, sent = step
        result = machine.apply(sent, Origin(owner.name, owner.life, position, position))
        if result[:1] == REFUSED:
            assert state_of(machine) == before


@every_structure
@given(noise=st.lists(st.binary(max_size=40), min_size=1, max_size=3))
def test_noise_is_loaded_or_refused_and_never_half(
    make: Callable[[], Structure[Any]], command: st.SearchStrategy[bytes], noise: list[bytes]
) -> None:
    machine = make()
    before = state_of(machine)
    try:
        machine.load(noise)
    except WireError:
        assert state_of(machine) == before


# Locks


@given(steps=steps_of(CLAIMS))
def test_a_lock_has_one_holder_whose_token_rises_and_waiters_have_their_turns_in_order(steps: list[Step]) -> None:
    lock = Lock()
    last_token = 0
    waiting: list[Claim] = []
    for position, (owner, command) in enumerate(steps, 1):
        held = lock.grant
        lock.apply(command, Origin(owner.name, owner.life, position, position))
        grant = lock.grant
        assert grant is not None or not lock.waiters
        assert grant is None or grant.claim not in lock.waiters
        assert len(set(lock.waiters)) == len(lock.waiters)
        if grant is not None and (held is None or held != grant):
            assert grant.token == position > last_token
            last_token = grant.token
            if held is not None:  # somebody before it has released it, or is gone: nobody was passed over
                passed = waiting[: waiting.index(grant.claim)]
                assert not any(lock.has(claim) for claim in passed)
        waiting = list(lock.waiters)


@given(steps=steps_of(CLAIMS), gone=OWNERS)
def test_who_is_gone_holds_nothing_and_waits_for_nothing(steps: list[Step], gone: Owner) -> None:
    lock = Lock()
    applied(lock, steps)
    applied(lock, [(Owner("dave@n4", 1), gone_command([gone]))], len(steps))
    assert gone not in lock.owners()


@given(steps=steps_of(CLAIMS), back=OWNERS)
def test_who_is_back_has_nothing_of_an_earlier_life(steps: list[Step], back: Owner) -> None:
    lock = Lock()
    applied(lock, steps)
    applied(lock, [(back, BACK_COMMAND)], len(steps))
    assert all(owner.name != back.name for owner in lock.owners())


# Queues


@given(steps=steps_of(QUEUE))
def test_every_job_is_in_one_place_until_it_is_acknowledged(steps: list[Step]) -> None:
    jobs, machine = set[int](), Queue()
    for position, (owner, command) in enumerate(steps, 1):
        mine = {take.ticket: job for take, job in machine.taken.items() if take.owner == owner}
        result = machine.apply(command, Origin(owner.name, owner.life, position, position))
        if result == b"\1" and command[0] == queue.PUT:
            jobs.add(position)
        if result == b"\1" and command[0] == queue.ACKNOWLEDGE:
            jobs.remove(mine[Reader(command, 1).number(U64)][0])
        numbers = [number for number, _ in (*machine.waiting, *machine.taken.values())]
        assert sorted(numbers) == sorted(jobs)
        assert [number for number, _ in machine.waiting] == sorted(number for number, _ in machine.waiting)
        assert not (machine.waiting and machine.takers)


# Barriers


@given(steps=steps_of(BARRIER))
def test_a_barrier_opens_when_all_have_arrived(steps: list[Step]) -> None:
    machine = Barrier(3)
    for position, (owner, command) in enumerate(steps, 1):
        arrived, opened = len(machine.arrived), machine.opened
        machine.apply(command, Origin(owner.name, owner.life, position, position))
        assert len(machine.arrived) < 3
        if machine.opened != opened:
            assert (machine.opened, arrived, len(machine.arrived)) == (opened + 1, 2, 0)


def test_a_dictionary_that_is_loaded_again_keeps_what_has_not_changed_once() -> None:
    """And takes what has: a value that is the same text and no bytes is another value."""
    here, there = Dictionary(), Dictionary()
    for dictionary in (here, there):
        applied(
            dictionary, [(Owner("a", 1), bytes([SET]) + value_bytes(key) + value_bytes(b"x" * 99)) for key in "abc"]
        )
    applied(there, [(Owner("a", 1), bytes([SET]) + value_bytes("b") + value_bytes("x" * 99))], before=3)
    before = dict(here.entries)
    here.load(there.freeze().pieces())
    assert here.entries == there.entries
    assert here.entries["a"] is before["a"] and here.entries["c"] is before["c"]
    assert here.entries["b"] == "x" * 99
