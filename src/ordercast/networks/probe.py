"""Probes: what a process thinks of the one of several networks that brings them. Engines never see one."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.model.notes import NetworkState
from ordercast.wire.head import HEAD_SIZE, LAYER_KIND, kind_of, transmitter_of, with_head
from ordercast.wire.reader import ByteReader

PROBE = struct.Struct(">BQQQBBB")  # kind, configuration: seq, representative; number, network, state, flags
WHOLE, IN_NEED = 1, 2  # flags
NUMBER_MAX = (1 << 62) - 1
_STATES = (NetworkState.GOOD, NetworkState.ON_TRIAL, NetworkState.FAULTY)  # by number, append only


@dataclass(frozen=True, slots=True)
class Probe:
    ring: ConfigurationId  # the configuration that the sender has installed
    sender: ProcessId
    number: int  # rises by one with every probe of this sender on this network: losses are seen
    network: int  # which network it was sent on: crossed cables are seen
    state: NetworkState
    is_whole: bool  # the sender hears every other member there
    is_in_need: bool = False  # the sender has no network on which it hears everybody: others should use all they have


def encode_probe(cluster: bytes, probe: Probe) -> bytes:
    flags = WHOLE * probe.is_whole | IN_NEED * probe.is_in_need
    body = PROBE.pack(LAYER_KIND, *probe.ring, probe.number, probe.network, _STATES.index(probe.state), flags)
    return with_head(cluster, probe.sender, body)


def decode_probe(data: bytes, cluster: bytes) -> Probe:
    """Raises WireError and nothing else."""
    if kind_of(data, cluster) != LAYER_KIND:
        raise WireError("another packet where a probe was expected")
    body = ByteReader(data, HEAD_SIZE)
    _, seq, representative, number, network, state, flags = body.unpack(PROBE)
    body.end()
    if max(seq, number) > NUMBER_MAX:
        raise WireError("a number beyond all bounds")
    if state >= len(_STATES) or flags > WHOLE | IN_NEED:
        raise WireError("the probe says something that does not exist")
    ring = ConfigurationId(seq, ProcessId(representative))
    sender, is_whole, is_in_need = transmitter_of(data), bool(flags & WHOLE), bool(flags & IN_NEED)
    return Probe(ring, sender, number, network, _STATES[state], is_whole, is_in_need)
