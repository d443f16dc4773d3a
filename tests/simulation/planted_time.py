"""Faults planted in what ends with time: leases, locks and jobs that are held for a while, jobs for later."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ordercast.replicated.machine import Origin
from ordercast.replicated.structures.base import YES
from ordercast.replicated.structures.claims import Exclusive, Grant
from ordercast.replicated.structures.dictionary import Dictionary
from ordercast.replicated.structures.fields import U64, Reader, Value
from ordercast.replicated.structures.queue import Queue
from ordercast.replicated.structures.ticking import Timed
from ordercast.sim.options import SimOptions
from ordercast.sim.swarm import hostile_replica_options


def leases(seed: int) -> SimOptions:
    return replace(hostile_replica_options(seed), structure="leases")


def timed_locks(seed: int) -> SimOptions:
    return replace(hostile_replica_options(seed), structure="timed-lock")


def timed_queues(seed: int) -> SimOptions:
    return replace(hostile_replica_options(seed), structure="timed-queue")


def every_tick_counts(patch: pytest.MonkeyPatch) -> None:
    """Time runs faster the more replicas there are."""

    def tick(self: Timed, fields: Reader, origin: Origin) -> bytes:
        fields.number(U64)
        fields.end()
        self.ticks += 1
        return YES + self.expire(origin.position)

    patch.setattr(Timed, "tick", tick)


def lease_clings(patch: pytest.MonkeyPatch) -> None:
    """A key that was set anew without the lease goes with it all the same."""

    def put(self: Dictionary, key: Value, value: Value | None, lease: int) -> None:
        if value is None:
            self._delete(key)
            return
        self.entries[key] = value
        if lease:
            self.leases.attach(key, lease)

    patch.setattr(Dictionary, "_put", put)


def old_token_after_time(patch: pytest.MonkeyPatch) -> None:
    """The next holder gets the token of the one whose time was over."""
    right = Exclusive.expire

    def expire(self: Exclusive[Any], position: int) -> bytes:
        before = self.grant
        result = right(self, position)
        if before is not None and self.grant is not None and self.grant.claim != before.claim:
            self.grant = Grant(self.grant.claim, before.token)
        return result

    patch.setattr(Exclusive, "expire", expire)


def time_is_not_transferred(patch: pytest.MonkeyPatch) -> None:
    """Who fetches the state does not learn until when jobs are lent."""
    right = Queue.adopt

    def adopt(self: Queue, other: Queue) -> None:
        right(self, other)
        self.ends = {}

    patch.setattr(Queue, "adopt", adopt)


def dead_are_handed_out(patch: pytest.MonkeyPatch) -> None:
    """A job is tried without end."""
    right = Queue._put_back

    def put_back(self: Queue, jobs: list[tuple[int, Value]]) -> None:
        for number, _ in jobs:
            if number in self.tries:
                self.tries[number] = self.tries[number]._replace(made=0)
        right(self, jobs)

    patch.setattr(Queue, "_put_back", put_back)
