"""What is opened, what is refused and why; one packet at a time and in runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import pytest

from ordercast.daemon.sealed import AesGcm
from ordercast.model.ids import Instant
from ordercast.model.inputs import Lane
from ordercast.sealing.cipher import Cipher
from ordercast.sealing.keys import ClusterKey
from ordercast.sealing.opener import SealRefusal
from ordercast.sealing.own import OwnLife, SealingEnded
from ordercast.sealing.packet import GROWTH, KEY_AT, NETWORKS_AT, Presence, encode_presence
from ordercast.sim.sealed.cipher import PlainCipher
from ordercast.wire.head import HEAD_SIZE, OPENING, SEAL_ROOM, with_head
from tests.kernels import compiled_cipher
from tests.unit.sealing.stage import CLUSTER, KEY, MINE, NOW, OTHER_KEY, RECEIVER, SENDER, Ends, ring_of

BODIES = tuple(bytes((number,)) * 50 for number in range(5))
CIPHERS: dict[str, Callable[[], Cipher]] = {"plain": PlainCipher, "aes": AesGcm, "compiled": compiled_cipher}
each_cipher = pytest.mark.parametrize("cipher", CIPHERS, indirect=True)


@pytest.fixture
def cipher(request: pytest.FixtureRequest) -> Cipher:
    return CIPHERS[request.param]()


def _clear(*bodies: bytes) -> list[bytes]:
    return [with_head(CLUSTER, SENDER, body) for body in bodies]


@each_cipher
def test_what_was_sealed_is_opened_with_its_head(cipher: Cipher) -> None:
    ends = Ends(cipher).greeted()
    for bodies in (BODIES[:1], BODIES, (*BODIES, b"a shorter end")):
        sealed, size = ends.sealed(*bodies)
        assert size == len(_clear(bodies[0])[0]) + GROWTH and GROWTH == SEAL_ROOM
        assert ends.open(sealed, size) == _clear(*bodies)
    assert not ends.opener.refused


@each_cipher
def test_every_changed_bit_is_refused_and_hurts_no_other_packet(cipher: Cipher) -> None:
    ends = Ends(cipher).greeted()
    sealed, size = ends.sealed(*BODIES[:3])
    for at in range(size, 2 * size):  # the second packet
        forged = bytearray(sealed)
        forged[at] ^= 1 << at % 8
        fresh = Ends(cipher)
        fresh.sealer = ends.sealer
        fresh.greeted()
        again, _ = fresh.sealed(*BODIES[:3])
        forged = bytearray(again)
        forged[at] ^= 1 << at % 8
        assert fresh.open(bytes(forged), size) == _clear(BODIES[0], BODIES[2]), at
        assert sum(fresh.opener.refused.values()) == 1


def test_what_came_once_does_not_count_again_alone_or_in_a_run() -> None:
    ends = Ends().greeted()
    sealed, size = ends.sealed(*BODIES)
    assert ends.open(sealed[size : 2 * size]) == _clear(BODIES[1])
    assert ends.open(sealed, size) == _clear(BODIES[0], *BODIES[2:])
    assert ends.open(sealed, size) == []
    assert ends.opener.refused == {SealRefusal.OLD: 6}


def test_a_run_with_gaps_is_opened_and_the_gaps_are_still_new() -> None:
    ends = Ends().greeted()
    sealed, size = ends.sealed(*BODIES)
    assert ends.open(sealed[:size] + sealed[2 * size : 4 * size], size) == _clear(BODIES[0], *BODIES[2:4])
    assert ends.open(sealed[size : 2 * size]) == _clear(BODIES[1])


def test_a_life_that_does_not_name_mine_is_heard_and_nothing_of_it_counts() -> None:
    ends = Ends()
    early, _ = ends.sealed(BODIES[0])
    assert ends.open(early) == []
    ends.open(ends.presence(b"somebody"))
    waiting, _ = ends.sealed(BODIES[1])
    assert ends.open(waiting) == []
    assert ends.opener.refused == {SealRefusal.LIFE: 1, SealRefusal.ABSENT: 1} and len(ends.heard) == 1
    ends.open(ends.presence(MINE))
    assert ends.open(early) == ends.open(waiting) == []  # sealed before it knew of me
    assert ends.open(ends.sealed(BODIES[2])[0]) == _clear(BODIES[2])


def test_a_forgotten_life_comes_back_and_its_recordings_do_not() -> None:
    ends = Ends()
    naming = ends.presence(MINE)
    ends.open(naming)
    sealed, _ = ends.sealed(BODIES[0])
    ends.open(sealed)
    assert len(ends.lives.forget(2000)) == 1  # type: ignore[arg-type]
    assert ends.open(naming) == ends.open(sealed) == [] and not len(ends.lives)
    assert ends.opener.refused == {SealRefusal.OLD: 1, SealRefusal.LIFE: 1}
    ends.greeted()
    assert ends.open(ends.sealed(BODIES[1])[0]) == _clear(BODIES[1])


def test_each_reason_to_refuse() -> None:
    ends = Ends().greeted()
    sealed, _ = ends.sealed(BODIES[0])
    assert ends.open(b"anything") == ends.open(sealed[:10]) == ends.open(sealed + b"more") == []
    assert ends.open(_clear(BODIES[0])[0]) == []
    assert ends.open(ends.sealed(BODIES[0], key=OTHER_KEY)[0]) == []
    assert ends.open(sealed, network=1) == []
    assert ends.open(sealed, lane=Lane.TOKEN) == []
    refused = SealRefusal.STRANGE, SealRefusal.CLEAR, SealRefusal.KEY, SealRefusal.NETWORK, SealRefusal.FORGED
    assert [ends.opener.refused[why] for why in refused] == [3, 1, 1, 1, 1]
    assert ends.opener.unknown_key == OTHER_KEY.id
    assert ends.open(sealed) == _clear(BODIES[0])


@pytest.mark.parametrize("accepts_clear", [False, True])
def test_reads_of_packets_that_are_too_short_are_refused(accepts_clear: bool) -> None:
    """The kernel joins equal packets in one read, however short: anybody may send them."""
    ends = Ends().greeted()
    ends.opener.keys = replace(ends.opener.keys, accepts_clear=True) if accepts_clear else ends.opener.keys
    for size in (1, 2, 3, 10, HEAD_SIZE):
        for count in (2, 3):
            assert ends.open(OPENING * 12 * count, size) == []
            assert ends.open(b"x" * size * count, size) == []
    assert set(ends.opener.refused) <= {SealRefusal.STRANGE, SealRefusal.CLEAR}


def test_a_token_is_for_one_process() -> None:
    ends = Ends().greeted()
    theirs, _ = ends.sealed(BODIES[0], lane=Lane.TOKEN, target=SENDER)
    mine, _ = ends.sealed(BODIES[0], lane=Lane.TOKEN, target=RECEIVER)
    assert ends.open(theirs, lane=Lane.TOKEN) == []
    assert ends.open(mine, lane=Lane.TOKEN) == _clear(BODIES[0])


def test_a_copy_on_another_network_is_compared_as_a_whole_and_not_opened() -> None:
    ends = Ends().greeted()
    sealed, size = ends.sealed(*BODIES, networks=(0, 1))
    assert ends.open(sealed, size) == ends.open(sealed, size, network=1) == _clear(*BODIES)
    assert ends.opener.copies == len(BODIES)
    again, _ = ends.sealed(*BODIES, networks=(0, 1))
    assert ends.open(again, size) == _clear(*BODIES)
    assert ends.open(again[:-1] + b"?", size, network=1) == _clear(*BODIES[:-1])
    assert ends.open(again, size, lane=Lane.TOKEN, network=1) == []


@pytest.mark.parametrize("bodies", [BODIES[:1], BODIES])
def test_a_copy_kept_of_an_earlier_life_is_nobodys_when_a_life_has_its_number_again(bodies: tuple[bytes, ...]) -> None:
    ends = Ends().greeted()
    recorded, size = ends.sealed(*bodies, networks=(0, 1))
    assert ends.open(recorded, size) == _clear(*bodies)
    ends.lives.forget(Instant(NOW + 1001))
    ends.sealer = OwnLife(ends.cipher, ends.sealer.id + b"another salt", ends.bits)
    ends.greeted()
    assert ends.open(recorded, size, network=1) == []
    assert ends.opener.refused == {SealRefusal.FORGED: len(bodies)}


@pytest.mark.parametrize("bodies", [BODIES[:1], BODIES])
def test_a_key_that_has_the_number_of_an_earlier_one_opens_what_is_sealed_with_it(bodies: tuple[bytes, ...]) -> None:
    """Numbers are one byte: in a life with many keys one comes again."""
    ends = Ends().greeted()
    assert ends.open(*ends.sealed(*bodies)) == _clear(*bodies)
    again = next(key for i in range(10_000) if (key := ClusterKey(i.to_bytes(32, "big"))).id == KEY.id)
    ends.opener.keys = ring_of(again)
    for life in ends.lives:
        life.keep_keys((again.secret,))
    assert ends.open(*ends.sealed(*bodies, key=again)) == _clear(*bodies)
    assert not ends.opener.refused


def test_clear_packets_pass_while_they_are_accepted() -> None:
    ends = Ends(keys=ring_of(KEY, accepts_clear=True)).greeted()
    clear = _clear(*BODIES)
    assert ends.open(b"".join(clear), len(clear[0])) == clear
    assert ends.open(clear[0]) == clear[:1]


@pytest.mark.parametrize("bits", [2, 3, 24])
def test_generations_change_within_a_burst(bits: int) -> None:
    used: set[bytes] = set()
    secrets: set[bytes] = set()

    def note(secret: bytes, nonce: bytes, sealed: bytes) -> None:
        assert nonce not in used
        used.add(nonce)
        secrets.add(secret)

    ends = Ends(PlainCipher(note), bits).greeted()
    for _ in range(4):
        sealed, size = ends.sealed(*BODIES)
        assert ends.open(sealed, size) == _clear(*BODIES)
    assert len(secrets) == ends.sealer.generation + 1 and len(used) == 21


def test_a_life_that_is_renewed_goes_on_counting_and_one_that_ended_does_not_seal() -> None:
    ends = Ends()
    ends.sealed(*BODIES)
    ends.sealer.renew(os.urandom(16))
    ends.sealed(*BODIES)
    assert ends.sealer.counter == 10
    ends.sealer.end()
    with pytest.raises(SealingEnded):
        ends.sealed(*BODIES)


@each_cipher
def test_no_bytes_do_anything_but_be_refused(cipher: Cipher) -> None:
    """Noise, and sealed packets with noise in them, single and in runs."""
    ends = Ends(cipher).greeted()
    genuine, _ = ends.sealed(*BODIES)
    genuine += ends.presence(MINE)
    noise = bytearray(os.urandom(1 << 14))
    for at in range(0, len(noise) - 400, 7):
        forged = bytearray(genuine[at % 300 :] + noise[at : at + at % 90])
        for place in noise[at : at + 3]:
            forged[place % len(forged)] ^= place
        forged[KEY_AT] = KEY.id
        forged[NETWORKS_AT] |= 1
        assert all(packet in _clear(*BODIES) for packet in ends.open(bytes(forged), 1 + at % 120))


def test_two_lives_that_have_one_number_are_both_named_until_one_is_gone() -> None:
    ends = Ends().greeted()
    first = ends.sealer.name
    assert ends.lives.named(NOW) == (first,)
    other = OwnLife(ends.cipher, ends.sealer.id + b"another salt", ends.bits)
    said = encode_presence(Presence(RECEIVER, KEY.id, (KEY.id,), (MINE,)))
    packet = other.presence((KEY.id, KEY.secret), CLUSTER, said, (0,), Lane.DATA)
    forged = packet[:-1] + bytes((packet[-1] ^ 1,))
    assert ends.open(forged) == [] and ends.lives.named(NOW) == (first,)
    assert ends.open(packet) == [] and ends.opener.refused[SealRefusal.LIFE] == 1
    assert ends.lives.named(NOW) == (other.name, first)
    assert ends.open(*ends.sealed(b"\x01genuine"))  # the one that came first is opened still
    assert ends.lives.named(Instant(NOW + 1001)) == (first,)
