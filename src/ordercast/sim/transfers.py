"""The connection of a simulated fetcher to the donor that it has dialled last: what `replicated/transfer.py` is live.

Frames come one by one, over links that are cut, from donors that die, hang, have moved on or have not made the picture
yet; some are lost or damaged on their way, and some connections break.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from ordercast.model.ids import MICROSECOND, MILLISECOND
from ordercast.replicated.effects import Dial, Freeze
from ordercast.replicated.frames import PIECE, REQUEST, TransferFrame, decode_request, frames_of, refusal
from ordercast.sim.replica_tally import Moment
from ordercast.sim.replica_tally import ReplicaOccurrence as Row

if TYPE_CHECKING:
    from ordercast.sim.replica import Replica

PIECE_MIN_NS = 100 * MICROSECOND
PIECE_MAX_NS = 4 * MILLISECOND
LOOK_NS = 5 * MILLISECOND  # how often it is looked whether what is in the way is gone
LOOKS_MAX = 4  # for a picture that is not there


@dataclass(slots=True, eq=False)
class Line:
    fetcher: Replica
    call: int = 0  # a number for every time it dials or hangs up: what was before is over
    donor: Replica | None = None
    last: str = ""  # whom the last piece came from
    key: bytes = b""  # of the picture
    picture: Freeze | None = None
    frames: Iterator[TransferFrame | None] = field(default_factory=lambda: iter(()))

    def dial(self, dial: Dial) -> None:
        self.hang_up()
        self._soon(partial(self._connect, self.call, dial))

    def hang_up(self) -> None:
        self.call += 1
        self.donor = self.picture = None

    def _soon(self, action: partial[None]) -> None:
        replicas = self.fetcher.replicas
        replicas.schedule(replicas.rng.randrange(PIECE_MIN_NS, PIECE_MAX_NS), action)

    def _connect(self, call: int, dial: Dial) -> None:
        """To where nobody can be reached it takes until the fetcher gives up."""
        fetcher, replicas = self.fetcher, self.fetcher.replicas
        if call != self.call or fetcher.is_dead:
            return
        donor = replicas.find(dial.donor)
        if fetcher.is_hung:
            fetcher.when_awake(partial(self._connect, call, dial))
        elif donor is None:
            fetcher.broken("nobody listens there")
        elif replicas.can_talk(fetcher.node, donor.node):
            size, _, first = decode_request(dial.request[: REQUEST.size])
            self.donor, self.key = donor, dial.request[REQUEST.size + size :]
            if fetcher.desk.pieces and donor.name != self.last:
                fetcher.witness.count(Row.RESUMED)
            fetcher.connected()
            self._soon(partial(self._serve, call, first, LOOKS_MAX))

    def _is_stuck(self, donor: Replica) -> bool:
        fetcher = self.fetcher
        return fetcher.is_hung or donor.is_hung or not fetcher.replicas.can_talk(fetcher.node, donor.node)

    def _serve(self, call: int, first: int, looks: int) -> None:
        """The donor has the picture, or will have it soon."""
        donor = self.donor
        if call != self.call or donor is None or self.fetcher.is_dead:
            return
        self.picture = donor.pictures.get(self.key)
        if donor.is_dead:
            self.fetcher.broken("")
        elif self._is_stuck(donor):
            self.fetcher.replicas.schedule(LOOK_NS, partial(self._serve, call, first, looks))
        elif self.picture is not None:
            self.frames = frames_of(self.picture, first)
            self._step(call)
        elif looks:
            self.fetcher.replicas.schedule(LOOK_NS, partial(self._serve, call, first, looks - 1))
        else:
            self.fetcher.framed(refusal("this donor has no such picture"))

    def _step(self, call: int) -> None:
        """One frame."""
        donor = self.donor
        if call != self.call or donor is None or self.fetcher.is_dead:
            return
        if donor.is_dead:
            self.fetcher.broken("")
        elif self._is_stuck(donor):
            self.fetcher.replicas.schedule(LOOK_NS, partial(self._step, call))
        elif donor.pictures.get(self.key) is not self.picture:
            self.fetcher.framed(refusal("the picture was withdrawn: the group has moved on"))
        else:
            frame = next(frame for frame in self.frames if frame is not None)
            self._bring(donor, frame)
            self._soon(partial(self._step, call))

    def _bring(self, donor: Replica, frame: TransferFrame) -> None:
        fetcher, replicas = self.fetcher, self.fetcher.replicas
        if frame.kind == PIECE and replicas.troubles_transfer():
            fetcher.witness.count(Row.TROUBLED)
            match replicas.rng.randrange(3):
                case 0:
                    fetcher.broken("")
                case 1:
                    fetcher.framed(frame._replace(body=bytes([frame.body[0] ^ 1]) + frame.body[1:]))
                case _:
                    pass  # it never comes
            return
        self.last = donor.name
        fetcher.framed(frame)
        replicas.moment(fetcher, Moment.JOINING)
        replicas.moment(donor, Moment.DONATING)
