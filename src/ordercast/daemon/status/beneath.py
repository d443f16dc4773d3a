"""What the status says of what lies beneath the engine: the storage, and the seal."""

from __future__ import annotations

from ordercast.daemon.config.node import NodeConfig
from ordercast.daemon.status.parts import SealingStatus, StorageStatus
from ordercast.daemon.storage import Storage
from ordercast.model.errors import UsageError
from ordercast.model.ids import NodeId
from ordercast.sealing.layer import Sealing
from ordercast.sealing.opener import counts_of


def storage_status_of(storage: Storage, *, is_without: bool) -> StorageStatus:
    """Return how the storage fares. `is_without`: the node went on without it."""
    return StorageStatus(
        None if storage.folder is None else str(storage.folder),
        not is_without,
        None if storage.error is None else storage.error.strerror or str(storage.error),
        storage.free,
    )


def sealing_status_of(sealing: Sealing | None, config: NodeConfig) -> SealingStatus:
    """Return whether and with what packets are sealed; None: they are not."""
    if sealing is None:
        return SealingStatus(is_insecure=config.security.insecure)
    changes = sealing.keys.wanted != sealing.keys.used
    return SealingStatus(
        is_sealed=True,
        used=sealing.keys.used,
        next=sealing.keys.wanted,
        accepted=sealing.keys.accepted,
        awaited=tuple(_name_of(NodeId(node), config) for node in sealing.awaited()) if changes else (),
        cipher=sealing.cipher_name,
        packets_sealed=sealing.stats.sealed,
        packets_opened=sealing.opener.opened + sealing.opener.copies,
        refused=counts_of(sealing.opener.refused),
    )


def _name_of(node: NodeId, config: NodeConfig) -> str:
    try:
        return config.peer(node).name
    except UsageError:
        return f"node {node}"
