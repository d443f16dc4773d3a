"""Ordercast: group communication in which everybody delivers the same messages in the same order."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ordercast.daemon.config import NodeConfig
    from ordercast.daemon.inbox import Message
    from ordercast.daemon.node import Node, NodeFailed
    from ordercast.daemon.thread import ThreadedNode
    from ordercast.model.errors import UsageError
    from ordercast.model.service import Service
    from ordercast.model.view import View

__all__ = ["Message", "Node", "NodeConfig", "NodeFailed", "Service", "ThreadedNode", "UsageError", "View"]

_HOMES = {
    "Message": "daemon.inbox",
    "Node": "daemon.node",
    "NodeConfig": "daemon.config",
    "NodeFailed": "daemon.node",
    "Service": "model.service",
    "ThreadedNode": "daemon.thread",
    "UsageError": "model.errors",
    "View": "model.view",
}


def __getattr__(name: str) -> Any:
    """Loaded when first used: a simulation needs no sockets."""
    if name not in _HOMES:
        raise AttributeError(f"module 'ordercast' has no attribute {name!r}")
    return getattr(import_module(f"ordercast.{_HOMES[name]}"), name)
