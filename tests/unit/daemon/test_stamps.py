"""Stamps of a recording are taken off whatever is handed up, and nothing else of it is lost."""

from __future__ import annotations

from ordercast.daemon.stamps import placed_without_stamps, without_stamps
from ordercast.model.effects import Deliver, Parcel, Placed
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.trace.live_stamp import live_stamped
from ordercast.trace.records import STAMPED

ME = ProcessId(1)
OLD, NOW = ConfigurationId(4, ME), ConfigurationId(6, ME)
(DATA,) = live_stamped(ME, 2, 1, [b"hello"])
PARCEL: Parcel = (7, ME, (2 | STAMPED,), (4,), (DATA,), 1, 0)


def test_a_delivery_keeps_whose_views_it_makes() -> None:
    plain = without_stamps(Deliver(NOW, OLD, [PARCEL], views_of=OLD))
    assert [tuple(one[4]) for one in plain.parcels] == [(b"hello",)] and tuple(plain.parcels[0][2]) == (2,)
    assert (plain.configuration, plain.origin, plain.views_of) == (NOW, OLD, OLD)


def test_places_are_told_of_messages_as_they_were_submitted() -> None:
    plain = placed_without_stamps(Placed(OLD, [PARCEL, (8, ME, (3,), (4,), (b"plain",), 1, 0)]))
    assert [tuple(one[4]) for one in plain.parcels] == [(b"hello",), (b"plain",)]
    assert [tuple(one[2]) for one in plain.parcels] == [(2,), (3,)]
