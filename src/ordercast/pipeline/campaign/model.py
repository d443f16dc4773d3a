"""What the paper's model predicts for a run's options. (Paper, section 4.4) Pure.

    T = N b / (1 - λ p)      agreed delivery after about T / 2, safe delivery after about 2 T
    throughput at saturation = M / (N b + M p)

N members; λ messages offered per second; M packets that a rotation may order; b the time that one member adds to a
rotation without messages: propagation, transmission and processing of the token; p the time that a packet occupies the
ring: the larger of its transmission and its processing by a receiver, which is r a in the paper; λ p is its r ρ.

In a network of rings a message takes 2 T on each ring of its way to the farthest ring, and what that ring's front is
takes 2 T on each ring of the way back (`order/gateways/drawing.py`).

Two things are ours. Where K copies of everything go over N networks, a network has K / N of the transmission, and hosts
have K calls for every packet. At saturation a packet holds as many messages as fit, or one part of a large one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ordercast.model.ids import SECOND
from ordercast.networks.config import Replication
from ordercast.order.gateways.drawing import Drawing
from ordercast.pipeline.campaign.settings import LATE_SHARE
from ordercast.sim.options import SimOptions
from ordercast.wire.codec import TOKEN_SIZE
from ordercast.wire.header import COUNT_MAX, DESCRIPTOR_SIZE, HEADER_SIZE


@dataclass(frozen=True, slots=True)
class Limit:
    """Something that a packet occupies: for how long, and how much longer for each byte of its messages."""

    packet_ns: float
    byte_ns: float


@dataclass(frozen=True, slots=True)
class Model:
    """b and p. A campaign gives them when it knows them better than the options of the simulated hosts tell."""

    member_ns: float
    limits: Sequence[Limit]

    def packet_ns(self, size: float) -> float:
        """p of a packet with so many bytes of messages: whatever takes longest."""
        return max(limit.packet_ns + limit.byte_ns * size for limit in self.limits)


def model_of(options: SimOptions) -> Model:
    """What the options say: a packet occupies the networks, its sender and its receivers."""
    copies = _copies(options)
    frame = HEADER_SIZE + DESCRIPTOR_SIZE
    bit_ns = SECOND / options.bandwidth if options.bandwidth else 0.0
    wire_ns = 8 * bit_ns * copies / options.networks.count  # of a byte
    received = options.packet_ns + copies * options.receive_ns
    delay = (options.delay_min_ns + options.delay_max_ns) / 2
    calls = copies * (options.send_ns + options.receive_ns)
    return Model(
        delay + options.token_ns + calls + 8 * bit_ns * TOKEN_SIZE,
        (
            Limit(wire_ns * frame, wire_ns),
            Limit(copies * options.send_ns, 0),
            Limit(received + options.byte_ns * frame, options.byte_ns),
        ),
    )


def _copies(options: SimOptions) -> int:
    """Return how many copies of every packet are sent (K)."""
    networks = options.networks
    known = {Replication.ACTIVE: networks.count, Replication.PASSIVE: 1, Replication.ACTIVE_PASSIVE: networks.copies}
    return known[networks.replication] if networks.count > 1 else 1


def filling(options: SimOptions) -> tuple[float, float]:
    """How many of the largest messages a packet has at saturation, and how many bytes they take; parts on average."""
    size, ring = options.size_max, options.ring
    count = min(ring.body_size_max // (size + DESCRIPTOR_SIZE), COUNT_MAX)
    if count:
        return count, count * (size + DESCRIPTOR_SIZE) - DESCRIPTOR_SIZE
    parts = -(-size // ring.whole_size_max)
    return 1 / parts, size / parts


def offered_per_s(options: SimOptions) -> float:
    """λ"""
    spread = options.messages * (1 - LATE_SHARE) * SECOND / options.fault_time_ns
    return spread + sum(rate.per_second for rate in options.rates)


def rotation_us(options: SimOptions, model: Model) -> float | None:
    """T; None where the model has none: more is offered than the ring can carry."""
    free = 1 - offered_per_s(options) * model.packet_ns(options.size_max) / SECOND
    return options.nodes * model.member_ns / free / 1e3 if free > 0 else None


def agreed_us(options: SimOptions, model: Model) -> float | None:
    rotation = rotation_us(options, model)
    return None if rotation is None else rotation / 2


def safe_us(options: SimOptions, model: Model) -> float | None:
    rotation = rotation_us(options, model)
    return None if rotation is None else 2 * rotation


def network_us(options: SimOptions, model: Model) -> float | None:
    """Mean over those who send and all members, in a network whose rings are alike and idle."""
    attachments = options.attachments or ((0,),) * options.nodes
    drawing = Drawing(options.segments, tuple(of for of in attachments if len(of) > 1))
    members = fmean(sum(ring in of for of in attachments) for ring in range(options.segments))
    rotation = rotation_us(options, model)
    senders = [attachments[rate.node][0] for rate in options.rates] or [of[0] for of in attachments]
    if rotation is None:
        return None
    rotations = fmean(drawing.latency_rotations(sender, *of) for sender in senders for of in attachments)
    return rotations * rotation * members / options.nodes


def messages_per_s(options: SimOptions, model: Model) -> float:
    """At saturation."""
    messages, size = filling(options)
    packets = min(options.ring.window_of(options.nodes), options.nodes * options.ring.visit_max)
    return messages * packets * SECOND / (options.nodes * model.member_ns + packets * model.packet_ns(size))


def bytes_per_s(options: SimOptions, model: Model) -> float:
    return messages_per_s(options, model) * options.size_max


PREDICTIONS: Mapping[str, Callable[[SimOptions, Model], float | None]] = {
    "rotation_us": rotation_us,
    "agreed_us": agreed_us,
    "safe_us": safe_us,
    "network_us": network_us,
    "messages_per_s": messages_per_s,
    "bytes_per_s": bytes_per_s,
}
