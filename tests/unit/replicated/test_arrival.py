"""A state that is fetched, step by step without a network: from whom, how far, and what is done about trouble."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest

from ordercast.model.errors import WireError
from ordercast.model.ids import SECOND, Instant
from ordercast.replicated.arrival import Arrival, Patience
from ordercast.replicated.effects import DeskEffect, Dial, Donor, HangUp, Progress
from ordercast.replicated.frames import (
    END,
    REQUEST,
    Place,
    TransferFrame,
    address_of,
    body_size,
    decode_request,
    frame_from,
    frame_head,
    frames_of,
    place_from,
    refusal,
)

PIECES = [b"first", b"second", b"third"]
A, B = Donor("a", 1, b"host 1"), Donor("b", 2, b"host 2")
PATIENCE = Patience(connect_s=1.0, stall_s=4.0, rounds_max=3, retry_s=0.5)


class Pieces:
    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    def pieces(self) -> Iterator[bytes]:
        yield from self._pieces


class Taken(list[bytes]):
    def take(self, piece: bytes) -> None:
        if piece == b"nonsense":
            raise WireError("no such thing")
        self.append(piece)


def seconds(count: float) -> Instant:
    return Instant(int(count * SECOND))


def frames(first: int = 0, pieces: list[bytes] = PIECES) -> list[TransferFrame]:
    return [frame for frame in frames_of(Pieces(*pieces), first) if frame is not None]


def begun(*donors: Donor) -> Arrival[Taken]:
    arrival = Arrival(b"g", b"point", Taken, PATIENCE)
    assert dialled(arrival.ask(seconds(0), donors or (A, B))) == ("a", 0)
    arrival.on_connected(seconds(0))
    return arrival


def dialled(effects: list[DeskEffect]) -> tuple[str, int]:
    """Who is asked, and from which piece on."""
    (dial,) = (effect for effect in effects if isinstance(effect, Dial))
    return dial.donor.name, decode_request(dial.request[: REQUEST.size]).first


def trouble(effects: list[DeskEffect]) -> str:
    (progress,) = (effect for effect in effects if isinstance(effect, Progress))
    return progress.trouble


def feed(arrival: Arrival[Taken], *some: TransferFrame) -> list[DeskEffect]:
    """What comes of the last one."""
    effects: list[DeskEffect] = []
    for frame in some:
        effects = arrival.on_frame(seconds(0), frame)
    return effects


def test_all_pieces_in_order_make_a_picture() -> None:
    arrival = begun()
    effects = feed(arrival, *frames())
    assert arrival.is_done and arrival.taken == PIECES and arrival.deadline is None
    assert effects == [Progress("a", 3, 16, is_done=True), HangUp()]


def test_the_next_donor_goes_on_where_the_last_one_broke_off() -> None:
    arrival = begun()
    feed(arrival, *frames()[:2])
    assert dialled(arrival.on_broken(seconds(0), "")) == ("b", 2)
    assert trouble(arrival.on_connected(seconds(0))) == "a at host:1 closed the connection after 2 pieces"
    feed(arrival, *frames(first=2))
    assert arrival.is_done and arrival.taken == PIECES


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (frames()[1]._replace(body=b"sEcond"), "a at host:1: the checksum of piece 1 is wrong"),
        (frames()[2], "a at host:1: piece 2 came where piece 1 was wanted"),
        (frames()[0], "a at host:1: piece 0 came where piece 1 was wanted"),
        (refusal("not now"), "a at host:1: not now"),
    ],
    ids=["damaged", "missing", "twice", "refused"],
)
def test_a_donor_that_gives_something_else_is_given_up(frame: TransferFrame, why: str) -> None:
    arrival = begun()
    assert dialled(feed(arrival, frames()[0], frame)) == ("b", 1)
    assert trouble(arrival.on_connected(seconds(0))) == why
    assert arrival.taken == PIECES[:1]


def test_pieces_of_two_pictures_are_dropped_and_the_next_donor_begins() -> None:
    arrival = begun()
    feed(arrival, frames(pieces=[b"other"])[0])
    effects = feed(arrival, *frames(first=1))
    assert "not of one picture" in trouble(effects) and HangUp() in effects
    assert not arrival.is_done and arrival.taken == [] and arrival.deadline == seconds(0.5)
    assert dialled(arrival.wake(seconds(0.5))) == ("b", 0)


def test_a_piece_that_makes_no_sense_begins_the_transfer_again() -> None:
    arrival = begun()
    effects = feed(arrival, *frames(pieces=[b"fine", b"nonsense"])[:2])
    assert trouble(effects) == "piece 1 makes no sense: no such thing" and arrival.taken == []


def test_who_sends_nothing_is_given_up_in_time_and_not_before() -> None:
    arrival = begun()
    arrival.on_frame(seconds(3), frames()[0])
    assert arrival.wake(seconds(4)) == [] and arrival.deadline == seconds(7)
    assert dialled(arrival.wake(seconds(7))) == ("b", 1)
    assert arrival.deadline == seconds(8), "to connect may take less"
    assert trouble(arrival.on_connected(seconds(7))) == "a at host:1 sent nothing for too long"


def test_after_all_donors_there_is_a_pause_that_gets_longer_and_then_it_begins_again() -> None:
    arrival = begun(A)
    feed(arrival, frames()[0])
    assert arrival.on_broken(seconds(0), "no") == [HangUp()] and arrival.deadline == seconds(0.5)
    assert dialled(arrival.wake(seconds(0.5))) == ("a", 1)
    assert arrival.on_broken(seconds(1), "no") == [HangUp()] and arrival.deadline == seconds(2)
    assert dialled(arrival.wake(seconds(2))) == ("a", 1)
    assert trouble(arrival.on_broken(seconds(2), "no")).endswith("from anybody: a at host:1: no")
    assert dialled(arrival.wake(seconds(2.5))) == ("a", 0)


def test_other_donors_are_asked_for_what_is_missing() -> None:
    arrival = begun(A)
    feed(arrival, *frames()[:2])
    assert dialled(arrival.ask(seconds(1), (B,))) == ("b", 2)


def test_without_donors_it_waits() -> None:
    arrival = Arrival(b"g", b"point", Taken, PATIENCE)
    assert arrival.ask(seconds(0), ()) == [HangUp()] and arrival.deadline == seconds(0.5)


def test_frames_survive_their_bytes() -> None:
    for frame in [*frames(), refusal("no")]:
        head = frame_head(frame)
        assert body_size(head) == len(frame.body) and frame_from(head, frame.body) == frame
    assert frames(first=2)[-1] == TransferFrame(END, 3, zlib.crc32(b"".join(PIECES)), b"")
    assert place_from(address_of(Place("::1", 7, b"secret"))) == ("::1", 7, b"secret")
    assert place_from(b"nowhere") == ("nowhere", 0, b"")
    with pytest.raises(WireError, match="no state"):
        body_size(b"HTTP/1.1 400 Bad ")
