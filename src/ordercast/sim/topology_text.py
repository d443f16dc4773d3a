"""Attachments, links and rates as a person writes them, and back. Pure.

n2 seg0 seg1                                          host 2 is attached to these segments, in this order
n3 n4 seg1                                            two hosts alike
n0<>n1 delay 50ms..60ms loss 1% rate 10mbit queue 64K seg2
n0 20/s                                               20 messages per second, at equal intervals
n1 0.5/s poisson                                      at random times
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeVar

from ordercast.model.errors import UsageError
from ordercast.model.quantities import (
    bit_rate_from,
    bit_rate_text,
    chance_from,
    duration_from,
    duration_text,
    size_from,
)
from ordercast.sim.fault_text import links_from, node_from
from ordercast.sim.topology import Attachments, Link, Rate

T = TypeVar("T")

_ATTACHMENT = "n2 seg0 seg1"
_LINK = "n0<>n1 delay 50ms..60ms loss 1% rate 10mbit queue 64K seg2"
_RATE = "n1 20/s poisson"
_RATE_WORDS = r"(\d+(?:\.\d+)?)/s( poisson)?(?: (?:(\d\w*)?\.\.(\d\w*)?))?(?: pulse (\d\w*))?"


def attachments_from(texts: Sequence[str], nodes: int) -> Attachments:
    """The segments of every host; a host that no text names is on segment 0. No texts: all are, and it is not said."""
    segments: dict[int, tuple[int, ...]] = dict.fromkeys(range(nodes), (0,)) if texts else {}
    for text in texts:
        hosts, own = _understood(text, "an attachment", _ATTACHMENT, _hosts_and_segments)
        for node in hosts:
            if node not in segments:
                raise UsageError(f"{text!r} names node {node}, there are 0..{nodes - 1}")
            segments[node] = own
    return tuple(segments.values())


def attachment_texts(attachments: Attachments) -> list[str]:
    """What `attachments_from` reads as the same."""
    return [
        " ".join([f"n{node}", *(f"seg{segment}" for segment in segments)])
        for node, segments in enumerate(attachments)
        if segments != (0,)
    ]


def links_from_text(text: str) -> tuple[Link, ...]:
    """One link, or one each way."""
    return _understood(text, "a link", _LINK, _links)


def link_text(link: Link) -> str:
    """What `links_from_text` reads as the same."""
    words = [f"n{link.source}>n{link.target}"]
    if link.delay_min_ns is not None or link.delay_max_ns is not None:
        ends = ("" if end is None else duration_text(end) for end in (link.delay_min_ns, link.delay_max_ns))
        words += ["delay", "..".join(ends)]
    for name in ("loss", "duplication", "straggler"):
        if (chance := getattr(link, name)) is not None:
            words += [name, _digits(chance)]
    words += ["rate", bit_rate_text(link.rate)] if link.rate is not None else []
    words += ["queue", str(link.queue)] if link.queue is not None else []
    words += [f"seg{link.segment}"] if link.segment is not None else []
    return " ".join(words)


def rate_from_text(text: str) -> Rate:
    return _understood(text, "a rate", _RATE, _rate)


def rate_text(rate: Rate) -> str:
    """What `rate_from_text` reads as the same."""
    words = [f"n{rate.node} {_digits(rate.per_second)}/s", *(["poisson"] if rate.is_poisson else [])]
    if rate.start_ns or rate.end_ns is not None:
        words.append(f"{rate.start_ns}ns..{'' if rate.end_ns is None else f'{rate.end_ns}ns'}")
    return " ".join([*words, *(["pulse", f"{rate.pulse_ns}ns"] if rate.pulse_ns else [])])


def _digits(number: float) -> str:
    """Exact, and without an exponent."""
    return f"{Decimal(repr(number)).normalize():f}"


def _understood(text: str, what: str, example: str, read: Callable[[list[str]], T]) -> T:
    try:
        return read(text.split())
    except UsageError as error:
        raise UsageError(f"{text!r}: {error}") from None
    except ValueError as error:
        raise UsageError(f"{text!r} is not {what}: {error}; write it as in: {example}") from None


def _hosts_and_segments(words: list[str]) -> tuple[list[int], tuple[int, ...]]:
    segments = tuple(number for word in words if (number := _segment(word)) is not None)
    hosts = [node_from(word) for word in words if _segment(word) is None]
    if not hosts or not segments:
        raise ValueError("it needs hosts, and segments")
    return hosts, segments


def _segment(word: str) -> int | None:
    found = re.fullmatch(r"seg(\d+)", word)
    return int(found[1]) if found else None


def _links(words: list[str]) -> tuple[Link, ...]:
    values: dict[str, Any] = {}
    rest = iter(words[1:])
    for word in rest:
        if (segment := _segment(word)) is not None:
            values["segment"] = segment
        elif word == "delay":
            values |= _delays(next(rest, ""))
        elif word in _READ:
            values[word] = _READ[word](next(rest, ""))
        else:
            raise ValueError(f"{word!r} is none of delay, {', '.join(_READ)} or a segment")
    return tuple(Link(source, target, **values) for source, target in links_from(words[:1]))


def _delays(text: str) -> dict[str, int]:
    """`50ms..60ms`, one value for both, or one end alone: `..60ms`."""
    low, dots, high = text.partition("..")
    ends = {"delay_min_ns": low, "delay_max_ns": high if dots else low}
    return {name: duration_from(end) for name, end in ends.items() if end or not dots}


def _rate(words: list[str]) -> Rate:
    found = re.fullmatch(_RATE_WORDS, " ".join(words[1:]))
    if len(words) < 2 or not (found or re.fullmatch(r"\S+", " ".join(words[1:]))):
        raise ValueError("it needs a host and messages per second")
    if not found:
        raise ValueError(f"{words[1]!r} is not a number of messages per second")
    number, poisson, start, end, pulse = found.groups()
    node, is_poisson = node_from(words[0]), bool(poisson)
    first, pulse_ns = duration_from(start or "0s"), duration_from(pulse or "0s")
    return Rate(node, float(number), is_poisson, first, duration_from(end) if end else None, pulse_ns)


_READ: dict[str, Callable[[str], Any]] = {
    "loss": chance_from,
    "duplication": chance_from,
    "straggler": chance_from,
    "rate": bit_rate_from,
    "queue": size_from,
}
