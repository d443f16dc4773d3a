"""Damaged packets for every decoder of the adaptive engine: nothing but WireError may come out of any of them.

`python -m tests.simulation.adaptive.fuzz 100_000_000` gives each that many bytes; `tests/unit/order/adaptive` a few.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

from ordercast.model.errors import WireError
from ordercast.order.adaptive.codec import decode_ask, decode_mark, distribution_fields, parse_direct
from ordercast.wire.header import Heading
from tests.unit.order.adaptive.vectors import DIRECTS, VECTORS

Decoder = Callable[[bytes, Heading], object]
BYTES = {vector.name: vector.data for vector in VECTORS}
DECODERS: dict[str, tuple[str, Decoder]] = {  # and which packet is damaged for it
    "direct": ("direct", lambda data, heading: parse_direct(data, 0, len(data), heading)),
    "run": ("direct", lambda data, heading: parse_direct(data * 3, 0, len(data), heading)),
    "control": ("distribution", lambda data, heading: parse_direct(data, 0, len(data), heading)),
    "distribution": ("distribution", lambda data, heading: distribution_fields(data)),
    "mark": ("mark", decode_mark),
    "ask": ("ask", decode_ask),
}


def fuzz(name: str, size: int, seed: int = 1) -> tuple[int, int]:
    """Return how many packets were read, and how many refused, when so many bytes were given to a decoder."""
    packet, decode = DECODERS[name]
    rng, pattern = random.Random(f"{name} {seed}"), BYTES[packet]
    given = read = refused = 0
    while given < size:
        data = bytearray(pattern)
        for _ in range(rng.randrange(1, 5)):
            data[rng.randrange(22, len(data))] = rng.randrange(256)
        if rng.random() < 0.2:
            del data[rng.randrange(len(data) + 1) :]
        elif rng.random() < 0.1:
            data += rng.randbytes(rng.randrange(40))
        if rng.random() < 0.5 and len(data) > 6:
            data[4:6] = len(data).to_bytes(2, "big")  # the length is right: what lies behind it is read
        given += max(1, len(data))
        try:
            decode(bytes(data), DIRECTS)
            read += 1
        except WireError as error:
            assert str(error)
            refused += 1
    return read, refused


if __name__ == "__main__":
    size = int(sys.argv[1])
    for decoder in sys.argv[2:] or DECODERS:
        accepted, dropped = fuzz(decoder, size)
        sys.stdout.write(f"{decoder}: {size:,} bytes, {accepted:,} packets read, {dropped:,} refused\n")
        sys.stdout.flush()
