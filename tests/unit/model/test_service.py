from __future__ import annotations

from ordercast.model.service import SERVICE_MAX, Service


def test_the_numbers_of_services_travel_and_never_change() -> None:
    assert [service.name for service in Service] == ["UNRELIABLE", "RELIABLE", "FIFO", "CAUSAL", "AGREED", "SAFE"]
    assert [int(service) for service in Service] == [0, 1, 2, 3, 4, 5]


def test_services_are_ordered_from_weakest_to_strongest() -> None:
    assert Service.FIFO < Service.CAUSAL < Service.AGREED < Service.SAFE == SERVICE_MAX
