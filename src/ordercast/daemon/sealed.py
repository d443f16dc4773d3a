"""Sealing on a live node: the cipher of a library, salts of the system, and an end to it in forks."""

from __future__ import annotations

import os
import secrets
import weakref
from collections.abc import Callable
from types import ModuleType

from ordercast.daemon.config.node import NodeConfig
from ordercast.daemon.key_file import CIPHER
from ordercast.model.ids import Attachment, NodeId
from ordercast.model.kernel import FOUND
from ordercast.networks.assembly import Assembly
from ordercast.sealing.cipher import SALT_SIZE, Cipher, Tag
from ordercast.sealing.keys import KeyRing
from ordercast.sealing.layer import Sealing
from ordercast.sealing.runs import Looped

_SEALS: weakref.WeakSet[Sealing] = weakref.WeakSet()  # of this process


class AesGcm:
    """AES-256-GCM of `cryptography`, which only nodes that seal import."""

    name = CIPHER

    def __init__(self) -> None:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self.forged: type[Exception] = InvalidTag
        self._make = AESGCM

    def keyed(self, secret: bytes) -> Tag:
        return Looped(self._make(secret))


class CompiledAesGcm:
    """The same of the system's OpenSSL, by the compiled kernel: a run of packets by one call."""

    name = CIPHER

    def __init__(self, kernel: ModuleType) -> None:
        self.forged: type[Exception] = kernel.Forged
        self.keyed: Callable[[bytes], Tag] = kernel.Gcm


def best_cipher() -> Cipher:
    """Return the compiled kernel's, where that runs and the system has the library that it needs."""
    return AesGcm() if FOUND is None or not hasattr(FOUND, "Gcm") else CompiledAesGcm(FOUND)


def sealed(assembly: Assembly, config: NodeConfig, node: NodeId, keys: KeyRing) -> Sealing:
    """Return the engine with a seal beneath it."""
    broadcasts = {Attachment(number): len(ring.networks) for number, ring in enumerate(config.attachments)}
    others = assembly.other_engines
    layer = Sealing(
        assembly.driven, node, keys, best_cipher(), _salt, assembly.cluster, broadcasts, other_engines=others
    )
    _SEALS.add(layer)
    return layer


def _salt() -> bytes:
    return secrets.token_bytes(SALT_SIZE)


def _end_in_child() -> None:
    """Two processes with one salt and one counter would use nonces twice."""
    for layer in _SEALS:
        layer.end()


os.register_at_fork(after_in_child=_end_in_child)
