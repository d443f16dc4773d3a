"""What the paper's model predicts for a run's options. (Paper, section 4.4) Pure.

    T = N b / (1 - λ p)      agreed delivery after about T / 2, safe delivery after about 2 T
    throughput at saturation = M / (N b + M p)

N members; λ messages offered per second; M packets that a rotation may order; b the time that one member adds to a
rotation without messages: propagation, transmission and processing of the token; p the time that a message occupies the
ring: the larger of its transmission and its processing by a receiver, which is r a in the paper; λ p is its r ρ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ordercast.model.ids import SECOND
from ordercast.pipeline.campaign.settings import LATE_SHARE
from ordercast.sim.options import SimOptions
from ordercast.wire.header import DESCRIPTOR_SIZE, HEADER_SIZE

TOKEN_SIZE = HEADER_SIZE + 33


@dataclass(frozen=True, slots=True)
class Model:
    """b and p. A campaign gives them when it knows them better than the options of the simulated hosts tell."""

    member_ns: float
    packet_ns: float
    byte_ns: float  # of p, for each byte of a message

    def message_ns(self, size: int) -> float:
        return self.packet_ns + self.byte_ns * size


def model_of(options: SimOptions) -> Model:
    """What the options say: a message occupies its receiver or the network, whichever takes longer."""
    delay = (options.delay_min_ns + options.delay_max_ns) / 2
    member = delay + options.token_ns + _transmission_ns(options, TOKEN_SIZE)
    size = HEADER_SIZE + DESCRIPTOR_SIZE
    processed = options.packet_ns + options.byte_ns * (size + options.size_max)
    sent = _transmission_ns(options, size + options.size_max)
    if processed >= sent:
        return Model(member, options.packet_ns + options.byte_ns * size, options.byte_ns)
    return Model(member, _transmission_ns(options, size), _transmission_ns(options, 1))


def _transmission_ns(options: SimOptions, size: int) -> float:
    return size * 8 * SECOND / options.bandwidth if options.bandwidth else 0.0


def offered_per_s(options: SimOptions) -> float:
    """λ"""
    return options.messages * (1 - LATE_SHARE) * SECOND / options.fault_time_ns


def rotation_us(options: SimOptions, model: Model) -> float | None:
    """T; None where the model has none: more is offered than the ring can carry."""
    free = 1 - offered_per_s(options) * model.message_ns(options.size_max) / SECOND
    return options.nodes * model.member_ns / free / 1e3 if free > 0 else None


def agreed_us(options: SimOptions, model: Model) -> float | None:
    rotation = rotation_us(options, model)
    return None if rotation is None else rotation / 2


def safe_us(options: SimOptions, model: Model) -> float | None:
    rotation = rotation_us(options, model)
    return None if rotation is None else 2 * rotation


def messages_per_s(options: SimOptions, model: Model) -> float:
    """With one message in a packet."""
    packets = min(options.ring.window, options.nodes * options.ring.visit_max)
    return packets * SECOND / (options.nodes * model.member_ns + packets * model.message_ns(options.size_max))


PREDICTIONS: Mapping[str, Callable[[SimOptions, Model], float | None]] = {
    "rotation_us": rotation_us,
    "agreed_us": agreed_us,
    "safe_us": safe_us,
    "messages_per_s": messages_per_s,
}
