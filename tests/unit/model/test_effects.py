from __future__ import annotations

from ordercast.model.effects import Deliver
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.model.service import Service

RING, VIEW = ConfigurationId(4, ProcessId(1)), ConfigurationId(6, ProcessId(1))
AGREED = int(Service.AGREED)
DELIVER = Deliver(
    VIEW,
    RING,
    [
        (8, ProcessId(2), (0,), bytes([AGREED]), (b"one",), 1, 0),
        (9, ProcessId(1), (5, 0), bytes([AGREED, AGREED]), [b"two", b""], 2, 256),
    ],
)


def test_messages_come_one_by_one_in_the_order_of_their_packets_and_slots() -> None:
    assert list(DELIVER.messages()) == [
        (8, 0, ProcessId(2), 0, AGREED, b"one"),
        (9, 256, ProcessId(1), 5, AGREED, b"two"),
        (9, 257, ProcessId(1), 0, AGREED, b""),
    ]
    assert len(DELIVER) == 3


def test_a_position_is_of_its_origin_not_of_the_configuration() -> None:
    *_, last = DELIVER.messages()
    assert last[:2] == (9, 257)
