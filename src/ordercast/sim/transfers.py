"""Pictures on their way between simulated replicas: piece by piece, over links that are cut, from donors that die."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ordercast.model.errors import WireError
from ordercast.model.ids import MICROSECOND, MILLISECOND
from ordercast.replicated.effects import Donor, Point
from ordercast.sim.replica_tally import Moment, ReplicaOccurrence

if TYPE_CHECKING:
    from ordercast.sim.replica import Replica

PIECE_MIN_NS = 100 * MICROSECOND
PIECE_MAX_NS = 4 * MILLISECOND
RETRY_NS = 5 * MILLISECOND


@dataclass(slots=True, eq=False)
class Transfer:
    fetcher: Replica
    point: Point
    donors: tuple[Donor, ...]
    donor: int = 0  # which of them
    pieces: list[bytes] = field(default_factory=list)  # the preface first
    last: str = ""  # whom the last piece came from
    made: list[bytes] = field(default_factory=list)  # by that one, what it skipped included: its checksum is of these
    is_over: bool = False

    def go_on(self, donors: tuple[Donor, ...]) -> None:
        self.donors, self.donor = donors, 0

    def step(self) -> None:
        """One piece, or another donor."""
        if self.is_over:
            return
        replicas = self.fetcher.replicas
        if self.fetcher.is_hung:
            replicas.schedule(RETRY_NS, self.step)
            return
        donor = replicas.find(self.donors[self.donor]) if self.donors else None
        picture = None if donor is None else donor.pictures.get(self.point)
        if donor is None or donor.is_hung or picture is None or not replicas.can_talk(self.fetcher.node, donor.node):
            self.donor = (self.donor + 1) % max(1, len(self.donors))
            replicas.schedule(RETRY_NS, self.step)
            return
        if self.last != donor.name:
            self.made = [picture.preface, *picture.frozen.pieces()][: len(self.pieces)]
            if self.pieces:
                replicas.count(ReplicaOccurrence.RESUMED)
        self.last = donor.name
        piece = picture.preface if not self.pieces else next(picture.frozen.pieces(len(self.pieces) - 1), None)
        if piece is not None:
            self.pieces.append(piece)
            self.made.append(piece)
            replicas.moment(self.fetcher, Moment.JOINING)
            replicas.moment(donor, Moment.DONATING)
            replicas.schedule(replicas.rng.randrange(PIECE_MIN_NS, PIECE_MAX_NS), self.step)
            return
        if self.pieces == self.made:
            self._finish()
        else:
            self._again(ReplicaOccurrence.MIXED_PICTURE)

    def _finish(self) -> None:
        preface, *pieces = self.pieces
        try:
            self.fetcher.got_picture(self, preface, pieces)
            self.is_over = True
        except WireError:
            self._again(ReplicaOccurrence.WRONG_PICTURE)

    def _again(self, why: ReplicaOccurrence) -> None:
        self.is_over = True
        self.fetcher.replicas.count(why)
        again = self.fetcher.transfer = Transfer(self.fetcher, self.point, self.donors)
        self.fetcher.replicas.schedule(RETRY_NS, again.step)
