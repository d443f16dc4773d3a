"""The bytes of sealed packets are pinned in `tests/vectors/sealed`, and opened here by the library alone.

`ORDERCAST_REWRITE=1 pytest tests/unit/sealing/test_vectors.py` renews them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ordercast.daemon.sealed import AesGcm
from ordercast.model.inputs import Lane
from ordercast.sealing.own import OwnLife
from ordercast.sealing.packet import Presence, encode_presence
from ordercast.wire.head import with_head
from tests.unit.sealing.stage import CLUSTER, KEY, RECEIVER, SENDER
from tests.unit.wire.vectors import bytes_in, page_of

FOLDER = Path(__file__).parents[2] / "vectors" / "sealed"
REWRITE = os.environ.get("ORDERCAST_REWRITE") == "1"
SALT = bytes(range(0x40, 0x50))
BODY = b"what an engine says, from its kind on"
HEARD = Presence(SENDER, KEY.id, (KEY.id,), (b"\x01\x02\x03\x04\x05\x06\x07\x08",))
BITS = 5  # networks 0 and 2
GENERATION = 1  # of the fourth packet, when four are sealed with one key


class SealedVector(NamedTuple):
    name: str
    title: str
    seal: Callable[[OwnLife], bytes]
    body: bytes
    lane: int
    target: int
    generation: int = 0
    salt_size: int = 0


def _key() -> tuple[int, bytes]:
    return KEY.id, KEY.secret


def _one(life: OwnLife, lane: Lane, target: int = 0) -> bytes:
    burst = with_head(CLUSTER, SENDER, BODY)
    return life.sealed(_key(), CLUSTER, (burst, len(burst)), (0, 2), lane, target)[0]  # type: ignore[arg-type]


def _later(life: OwnLife) -> bytes:
    for _ in range(3):
        _one(life, Lane.DATA)
    return _one(life, Lane.DATA)


VECTORS = (
    SealedVector("data", "A packet for everybody", lambda life: _one(life, Lane.DATA), BODY, Lane.DATA, 0),
    SealedVector(
        "token", "One for one process", lambda life: _one(life, Lane.TOKEN, RECEIVER), BODY, Lane.TOKEN, RECEIVER
    ),
    SealedVector("generation", "The first of the second generation of keys", _later, BODY, Lane.DATA, 0, GENERATION),
    SealedVector(
        "presence",
        "What a process says of itself beneath its engine",
        lambda life: life.presence(_key(), CLUSTER, encode_presence(HEARD), (0, 2), Lane.DATA),
        encode_presence(HEARD),
        Lane.DATA,
        0,
        salt_size=16,
    ),
)
each_vector = pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)


def _made(vector: SealedVector) -> bytes:
    return vector.seal(OwnLife(AesGcm(), SALT, generation_bits=2))


def _page(vector: SealedVector, data: bytes) -> str:
    groups = [(2, "magic"), (1, "version"), (1, "key"), (2, "length"), (4, "life"), (6, "counter"), (1, "networks")]
    groups += [(vector.salt_size, "salt")] if vector.salt_size else []
    groups += [(len(vector.body), "sealed"), (16, "tag")]
    described = [f"secret = {KEY.secret.hex()}", f"salt = {SALT.hex()}", f"cluster = {CLUSTER.decode()}"]
    described += [f"generation = {vector.generation}", f"lane = {vector.lane}", f"target = {vector.target}"]
    described += [f"body = {vector.body.hex()}"]
    return page_of(vector.title, "tests/unit/sealing/test_vectors.py", data, groups, described)


def _pinned(vector: SealedVector) -> str:
    path = FOLDER / f"{vector.name}.txt"
    if REWRITE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(_page(vector, _made(vector)), encoding="utf-8")
    return path.read_text(encoding="utf-8")


@each_vector
def test_what_is_sealed_has_exactly_the_pinned_bytes(vector: SealedVector) -> None:
    assert _page(vector, _made(vector)) == _pinned(vector)
    assert _made(vector) == bytes_in(_pinned(vector))


@each_vector
def test_the_pinned_bytes_are_opened_by_whoever_follows_the_page(vector: SealedVector) -> None:
    """Nothing of the package is used but the secret: HKDF and AES-GCM are the library's."""
    data = bytes_in(_pinned(vector))
    info = b"ordercast life 1" + CLUSTER + vector.generation.to_bytes(6, "big")
    secret = HKDF(SHA256(), 32, SALT, info).derive(KEY.secret)
    clear = data[:4] + bytes((BITS, vector.lane)) + vector.target.to_bytes(8, "big")
    nonce, sealed = data[4:16], data[17 + vector.salt_size :]
    assert int.from_bytes(nonce[:2], "big") == len(data) and nonce[2:6] == SALT[:4] and data[16] == BITS
    assert data[17 : 17 + vector.salt_size] == SALT[: vector.salt_size]
    assert AESGCM(secret).decrypt(nonce, sealed, clear) == vector.body
    for wrong in (
        data[:4] + bytes((BITS, vector.lane ^ 1)) + clear[6:],
        clear[:5] + b"\x09" + clear[6:],
        clear[:-1] + b"\x01",
    ):
        with pytest.raises(InvalidTag):
            AESGCM(secret).decrypt(nonce, sealed, wrong)
