"""Ordercast: group communication in which everybody delivers the same messages in the same order."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ordercast.api.blocking import BlockingClient, BlockingGroup
    from ordercast.api.client import Client
    from ordercast.api.codecs import BYTES, JSON, MSGPACK, TEXT, Codec, WrongContent
    from ordercast.api.connect import Connecting, SlowName, connect
    from ordercast.api.group_reader import GroupReader
    from ordercast.api.member import Member
    from ordercast.api.node import Node
    from ordercast.api.thread import ThreadedNode
    from ordercast.daemon.config.file import load_config
    from ordercast.daemon.config.node import NodeConfig
    from ordercast.daemon.participant import NodeFailed
    from ordercast.model.configuration import Configuration
    from ordercast.model.content import Content
    from ordercast.model.effects import Alarm
    from ordercast.model.errors import ConnectionLost, Error, Unreachable, UsageError
    from ordercast.model.events import (
        Batch,
        Dropped,
        Event,
        Left,
        Message,
        Piece,
        Reason,
        Reconnected,
        Transition,
        View,
        ViewId,
    )
    from ordercast.model.headers import Headers
    from ordercast.model.ids import Position
    from ordercast.model.service import Service
    from ordercast.session.frames import SlowPolicy

    RELIABLE, FIFO, CAUSAL = Service.RELIABLE, Service.FIFO, Service.CAUSAL
    AGREED, SAFE = Service.AGREED, Service.SAFE

__all__ = [
    "AGREED",
    "BYTES",
    "CAUSAL",
    "FIFO",
    "JSON",
    "MSGPACK",
    "RELIABLE",
    "SAFE",
    "TEXT",
    "Alarm",
    "Batch",
    "BlockingClient",
    "BlockingGroup",
    "Client",
    "Codec",
    "Configuration",
    "Connecting",
    "ConnectionLost",
    "Content",
    "Dropped",
    "Error",
    "Event",
    "GroupReader",
    "Headers",
    "Left",
    "Member",
    "Message",
    "Node",
    "NodeConfig",
    "NodeFailed",
    "Piece",
    "Position",
    "Reason",
    "Reconnected",
    "Service",
    "SlowName",
    "SlowPolicy",
    "ThreadedNode",
    "Transition",
    "Unreachable",
    "UsageError",
    "View",
    "ViewId",
    "WrongContent",
    "connect",
    "load_config",
]

_HOMES = {
    "Alarm": "model.effects",
    "BYTES": "api.codecs",
    "Batch": "model.events",
    "BlockingClient": "api.blocking",
    "BlockingGroup": "api.blocking",
    "Client": "api.client",
    "Codec": "api.codecs",
    "Configuration": "model.configuration",
    "Connecting": "api.connect",
    "ConnectionLost": "model.errors",
    "Content": "model.content",
    "Dropped": "model.events",
    "Error": "model.errors",
    "Event": "model.events",
    "GroupReader": "api.group_reader",
    "Headers": "model.headers",
    "JSON": "api.codecs",
    "Left": "model.events",
    "Member": "api.member",
    "MSGPACK": "api.codecs",
    "Message": "model.events",
    "Node": "api.node",
    "NodeConfig": "daemon.config.node",
    "NodeFailed": "daemon.participant",
    "Piece": "model.events",
    "Position": "model.ids",
    "Reason": "model.events",
    "Reconnected": "model.events",
    "Service": "model.service",
    "SlowName": "api.connect",
    "SlowPolicy": "session.frames",
    "TEXT": "api.codecs",
    "ThreadedNode": "api.thread",
    "Transition": "model.events",
    "Unreachable": "model.errors",
    "UsageError": "model.errors",
    "View": "model.events",
    "ViewId": "model.events",
    "WrongContent": "api.codecs",
    "connect": "api.connect",
    "load_config": "daemon.config.file",
}
_SERVICES = ("RELIABLE", "FIFO", "CAUSAL", "AGREED", "SAFE")  # ordercast.SAFE for ordercast.Service.SAFE


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


if not TYPE_CHECKING:  # a type checker has the imports above, and finds what is not among them

    def __getattr__(name: str) -> Any:
        """Loaded when first used: a simulation needs no sockets."""
        if name in _SERVICES:
            return import_module("ordercast.model.service").Service[name]
        if name not in _HOMES:
            raise AttributeError(f"module 'ordercast' has no attribute {name!r}")
        return getattr(import_module(f"ordercast.{_HOMES[name]}"), name)
