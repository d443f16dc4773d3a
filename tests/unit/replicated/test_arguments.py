"""A wrong argument of a call on replicated state gets a sentence, and nothing is submitted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from ordercast.model.errors import UsageError
from ordercast.replicated import Barrier, Counter, Dictionary, Leader, Lock, Majority, Queue, Replica

from .hub import Hub, HubMember
from .test_failures import bounded

LEASE = "is no lease: give what lease\\(\\) returned"
JOB = "5 is no job: give what take\\(\\) returned"
CLAIM = "5 is no claim: give what acquire\\(\\) or campaign\\(\\) returned"
NUMBER = "'a' is no number of a job: give one of `dead`"
TIME = "is no time: give seconds above 0"
TIMEOUT = "'x' is no timeout: give seconds, such as 5 or 0.5"
WRONG: list[tuple[Callable[[], Any], Callable[[Any], Awaitable[Any]], str]] = [
    (Dictionary, lambda front: front.set("k", "v", lease=5), LEASE),
    (Dictionary, lambda front: front.keep(5), LEASE),
    (Dictionary, lambda front: front.revoke(None), LEASE),
    (Dictionary, lambda front: front.compare_and_set_many({}, {"k": "v"}, lease="x"), LEASE),
    (Dictionary, lambda front: front.lease(0), TIME),
    (Dictionary, lambda front: front.lease("5"), TIME),
    (Dictionary, lambda front: front.set("k", "v", timeout="x"), TIMEOUT),
    (Dictionary, lambda front: front.latest("k", timeout="x"), TIMEOUT),
    (Dictionary, lambda front: front.ready(timeout="x"), TIMEOUT),
    (Dictionary, lambda front: front.compare_and_set_many([("a", "1")], {}), "are no keys with values: give a dict"),
    (Counter, lambda front: front.add(1, timeout="x"), TIMEOUT),
    (Counter, lambda front: front.add("2"), "'2' is no number: give a whole number"),
    (Queue, lambda front: front.acknowledge(5), JOB),
    (Queue, lambda front: front.extend(5), JOB),
    (Queue, lambda front: front.give_back(5), JOB),
    (Queue, lambda front: front.revive("a"), NUMBER),
    (Queue, lambda front: front.discard("a"), NUMBER),
    (Queue, lambda front: front.put("v", delay="x"), TIME),
    (Queue, lambda front: front.put("v", attempts="x"), "'x' is no number of attempts: give 1 or more"),
    (Queue, lambda front: front.take(visibility=0), TIME),
    (Queue, lambda front: front.take(timeout="x"), TIMEOUT),
    (Lock, lambda front: front.acquire(ttl=0), TIME),
    (Lock, lambda front: front.acquire(timeout="x"), TIMEOUT),
    (Lock, lambda front: front.release(5), CLAIM),
    (Lock, lambda front: front.renew(5), CLAIM),
    (Lock, lambda front: front.lost(5), CLAIM),
    (Leader, lambda front: front.resign(5), CLAIM),
    (lambda: Barrier(1), lambda front: front.wait(timeout="x"), TIMEOUT),
]


@bounded
@pytest.mark.parametrize(("structure", "call", "sentence"), WRONG)
async def test_a_wrong_argument_gets_a_sentence(
    structure: Callable[[], Any], call: Callable[[Any], Awaitable[Any]], sentence: str
) -> None:
    async with Replica(HubMember(Hub(), "a"), "g", structure(), quorum=Majority({"a": 1})) as front:
        await front.synced()
        before = front.age
        with pytest.raises(UsageError, match=sentence):
            await call(front)
        await front.synced()
        assert front.age == before


@bounded
async def test_keys_that_cannot_be_are_refused_by_reads() -> None:
    async with Replica(HubMember(Hub(), "a"), "g", Dictionary(), quorum=Majority({"a": 1})) as front:
        wrong: Any = 3
        for read in (front.prefix, front.range):
            with pytest.raises(UsageError, match="a key or value is bytes or str, not int: encode it first"):
                read(wrong)


@bounded
async def test_numbers_that_no_job_has_are_no_jobs() -> None:
    async with Replica(HubMember(Hub(), "a"), "g", Queue(), quorum=Majority({"a": 1})) as jobs:
        await jobs.ready()
        for number in (-1, 0, 7, 1 << 70):
            assert not await jobs.revive(number) and not await jobs.discard(number)


def test_other_wrong_arguments_get_sentences() -> None:
    wrong: Any = "1"
    with pytest.raises(UsageError, match="'1' is no weight of kv@n1: give a whole number"):
        Majority({"kv@n1": wrong})
    with pytest.raises(UsageError, match="'1' is no position"):
        Dictionary().front(cast(Any, None)).changes(after=wrong)
    assert repr(Dictionary()) == "<Dictionary>"
    assert "<Replica of g, Counter" in repr(Replica(HubMember(Hub(), "a"), "g", Counter(), quorum=Majority({"a": 1})))
