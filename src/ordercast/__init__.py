"""Ordercast: group communication in which everybody delivers the same messages in the same order."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ordercast.api.client import Client
    from ordercast.api.connect import connect
    from ordercast.api.group_reader import GroupReader
    from ordercast.api.node import Node
    from ordercast.api.thread import ThreadedNode
    from ordercast.daemon.config.node import NodeConfig
    from ordercast.daemon.participant import NodeFailed
    from ordercast.model.errors import ConnectionLost, Error, Unreachable, UsageError
    from ordercast.model.events import Batch, Dropped, Left, Message, Reason, Reconnected, Transition, View
    from ordercast.model.service import Service
    from ordercast.session.frames import SlowPolicy

    RELIABLE, FIFO, CAUSAL = Service.RELIABLE, Service.FIFO, Service.CAUSAL
    AGREED, SAFE = Service.AGREED, Service.SAFE

__all__ = [
    "AGREED",
    "CAUSAL",
    "FIFO",
    "RELIABLE",
    "SAFE",
    "Batch",
    "Client",
    "ConnectionLost",
    "Dropped",
    "Error",
    "GroupReader",
    "Left",
    "Message",
    "Node",
    "NodeConfig",
    "NodeFailed",
    "Reason",
    "Reconnected",
    "Service",
    "SlowPolicy",
    "ThreadedNode",
    "Transition",
    "Unreachable",
    "UsageError",
    "View",
    "connect",
]

_HOMES = {
    "Batch": "model.events",
    "Client": "api.client",
    "ConnectionLost": "model.errors",
    "Dropped": "model.events",
    "Error": "model.errors",
    "GroupReader": "api.group_reader",
    "Left": "model.events",
    "Message": "model.events",
    "Node": "api.node",
    "NodeConfig": "daemon.config.node",
    "NodeFailed": "daemon.participant",
    "Reason": "model.events",
    "Reconnected": "model.events",
    "Service": "model.service",
    "SlowPolicy": "session.frames",
    "ThreadedNode": "api.thread",
    "Transition": "model.events",
    "Unreachable": "model.errors",
    "UsageError": "model.errors",
    "View": "model.events",
    "connect": "api.connect",
}
_SERVICES = ("RELIABLE", "FIFO", "CAUSAL", "AGREED", "SAFE")  # ordercast.SAFE for ordercast.Service.SAFE


def __getattr__(name: str) -> Any:
    """Loaded when first used: a simulation needs no sockets."""
    if name in _SERVICES:
        return import_module("ordercast.model.service").Service[name]
    if name not in _HOMES:
        raise AttributeError(f"module 'ordercast' has no attribute {name!r}")
    return getattr(import_module(f"ordercast.{_HOMES[name]}"), name)
