"""The core of one replica (being written: these signatures are final).

Inputs: the events of one group in order, what the application submits, and pictures that have been fetched. Every
method gives effects, to be carried out in order.
"""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.model.events import Transition, View
from ordercast.replicated.effects import Effect, Point
from ordercast.replicated.machine import StateMachine
from ordercast.replicated.quorum import Rule


class Core:
    def __init__(
        self,
        name: str,  # in full
        life: int,  # 64 bits, never the same again
        machine: StateMachine,
        rule: Rule,
        *,
        address: bytes = b"",  # for fetchers, goes into STATE; at most 1000 bytes
        founding: bool = False,  # the first life of this replica ever: only such ones begin under LastMajority
        outstanding_max: int = 1024,
    ) -> None:
        raise NotImplementedError

    def on_view(self, view: View) -> list[Effect]:
        raise NotImplementedError

    def on_transition(self, transition: Transition) -> list[Effect]:
        raise NotImplementedError

    def on_messages(self, sender: str, payloads: Iterable[bytes]) -> list[Effect]:
        """Messages in a row from one sender to the group. Bytes that cannot be read are counted and ignored."""
        raise NotImplementedError

    def cut_off(self, name: str) -> list[Effect]:
        """The stream has a gap (Left, Reconnected, Dropped): what comes next is a View of a new membership, under this
        name. The state stays, but no longer votes before it is loaded again; what waits is sent again by and by."""
        raise NotImplementedError

    def submit(self, command: bytes) -> tuple[int, list[Effect]]:
        """The number of the request, which a Confirm or a Refuse will name (at once, among these effects, it may be).
        Requests of which neither has come are sent again when a primary component is known that may lack them."""
        raise NotImplementedError

    def synchronise(self) -> tuple[int, list[Effect]]:
        """A command that does nothing: when it is confirmed, everything that was confirmed anywhere before the call is
        applied here. For linearised reads: read in the same breath as the Confirm."""
        raise NotImplementedError

    def loaded(self, point: Point, preface: bytes, pieces: Iterable[bytes]) -> list[Effect]:
        """The picture of `point` is here: `preface` and `pieces` as its Freeze had them. Calls `machine.load`.
        WireError when the preface cannot be read: then nothing has changed, fetch again."""
        raise NotImplementedError
