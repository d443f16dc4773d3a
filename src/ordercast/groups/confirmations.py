"""Confirmations in the order of sending, where an engine delivers some services early.

A client takes confirmations in the order in which it sent. Reliable messages of a session come back in that order, and
so do all others, but the former pass the latter: their confirmations wait here for those of what was sent before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ordercast.groups.envelope import CONFIRM, FLAGS_AT, KIND_AT, Kind
from ordercast.groups.layer import Confirmed, MessageRun
from ordercast.model.service import Service


class ConfirmationOrder:
    def __init__(self) -> None:
        self._awaited: dict[int, deque[bool]] = {}  # by session, in the order of sending: whether each is reliable
        self._came: dict[tuple[int, bool], deque[Confirmed]] = {}  # not yet passed on, by session and likewise

    def sent(self, session: int, payloads: Sequence[bytes], service: Service) -> None:
        """Know what was submitted for a session."""
        for payload in payloads:
            if payload[KIND_AT] == Kind.DATA and payload[FLAGS_AT] & CONFIRM:
                self._awaited.setdefault(session, deque()).append(service == Service.RELIABLE)

    def forget(self, session: int) -> None:
        """Know that a session has ended."""
        self._awaited.pop(session, None)
        for is_reliable in (False, True):
            self._came.pop((session, is_reliable), None)

    def take(self, confirmed: Confirmed) -> list[Confirmed]:
        """Return the confirmations that have come, in the order of sending."""
        session, run = confirmed
        awaited = self._awaited.get(session, deque())
        for index, service in enumerate(run.services):
            came = self._came.setdefault((session, service == Service.RELIABLE), deque())
            came.append(Confirmed(session, _one_of(run, index)))
        told = []
        while awaited and (came := self._came.get((session, awaited[0]), deque())):
            awaited.popleft()
            told.append(came.popleft())
        return told


def _one_of(run: MessageRun, index: int) -> MessageRun:
    end = index + 1
    return run._replace(
        places=run.places.after(index), services=run.services[index:end], payloads=run.payloads[index:end]
    )
