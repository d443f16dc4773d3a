"""Confirmations in the order of sending, where an engine tells places of messages in another order.

A client takes confirmations in the order in which it sent. Messages of one service to the same receivers come back in
that order; but those that an engine delivers early pass others, and so do those that are delivered here pass those that
are for others alone. Their confirmations wait here for those of what was sent before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from operator import eq

from ordercast.groups.envelope import CONFIRM, FLAGS_AT, KIND_AT, Kind
from ordercast.groups.runs import Confirmed, MessageRun
from ordercast.model.service import Service

_Key = tuple[int, bytes]  # service and payload: messages that have both in common come back in the order of sending


class ConfirmationOrder:
    def __init__(self) -> None:
        self._awaited: dict[int, deque[_Key]] = {}  # by session, in the order of sending
        self._came: dict[int, dict[_Key, deque[Confirmed]]] = {}  # not yet passed on, by session

    def sent(self, session: int, payloads: Sequence[bytes], service: Service) -> None:
        """Know what was submitted for a session."""
        for payload in payloads:
            if payload[KIND_AT] == Kind.DATA and payload[FLAGS_AT] & CONFIRM:
                self._awaited.setdefault(session, deque()).append((int(service), payload))

    def forget(self, session: int) -> None:
        """Know that a session has ended."""
        self._awaited.pop(session, None)
        self._came.pop(session, None)

    def take(self, confirmed: Confirmed) -> list[Confirmed]:
        """Return the confirmations that have come, in the order of sending."""
        session, run = confirmed
        awaited = self._awaited.get(session)
        if not awaited:
            return []  # it has ended
        came = self._came.setdefault(session, {})
        if not came and self._is_in_turn(awaited, run):
            for _ in run.payloads:
                awaited.popleft()
            return [confirmed]
        for index, key in enumerate(zip(run.services, run.payloads, strict=False)):
            came.setdefault(key, deque()).append(Confirmed(session, _one_of(run, index)))
        told = []
        while awaited and (first := came.get(awaited[0])):
            told.append(first.popleft())
            if not first:
                del came[awaited[0]]
            awaited.popleft()
        return told

    @staticmethod
    def _is_in_turn(awaited: deque[_Key], run: MessageRun) -> bool:
        """Whether the messages of a run are just those that are to be confirmed next: they stay together."""
        if len(run.payloads) > len(awaited):
            return False
        return all(map(eq, zip(run.services, run.payloads, strict=False), awaited))


def _one_of(run: MessageRun, index: int) -> MessageRun:
    end = index + 1
    return run._replace(
        places=run.places.after(index), services=run.services[index:end], payloads=run.payloads[index:end]
    )
