"""Faults as a person writes them, and back. Pure.

    0.3s crash n1
    0.4s restart n1
    0.5s partition n0 n1 | n2 n3 n4
    0.6s cut n0>n1 n2<>n3
    0.2s pause n2 80ms
    0.7s lose-token 30ms
    0.9s heal

First when, counted from the start; then what; then to whom, and for how long where that makes sense.
"""

from __future__ import annotations

import re

from ordercast.model.errors import UsageError
from ordercast.model.quantities import duration_from, duration_text
from ordercast.sim.faults import Fault, FaultKind

KINDS = {kind.value.replace(" ", "-"): kind for kind in FaultKind}
_TIMED = (FaultKind.PAUSE, FaultKind.FLOOD)
_EXAMPLES = {
    FaultKind.PARTITION: "0.5s partition n0 n1 | n2 n3 n4",
    FaultKind.CUT: "0.6s cut n0>n1 (one way) or 0.6s cut n0<>n1 (both ways)",
    FaultKind.HEAL: "0.9s heal",
    FaultKind.LOSE_TOKEN: "0.7s lose-token 30ms",
    FaultKind.PAUSE: "0.2s pause n2 80ms",
    FaultKind.FLOOD: "0.2s flood n2 80ms",
}


def fault_from(text: str) -> Fault:
    """UsageError when the text is not a fault; it says what is wrong with it and shows how to write it."""
    words = text.split()
    if len(words) < 2:
        raise UsageError(f"fault {text!r} says too little: write when, what and to whom, such as '0.3s crash n1'")
    if words[0].lower() in KINDS:
        raise UsageError(f"fault {text!r} does not say when: write '0.3s {text}' for 0.3 seconds after the start")
    at_text, name, arguments = words[0], words[1].lower(), [word for word in words[2:] if word != "for"]
    kind = KINDS.get(name)
    if kind is None:
        raise UsageError(f"fault {text!r}: there is no fault {name!r}; there are {', '.join(KINDS)}")
    try:
        return _fault_of(kind, duration_from(at_text), arguments)
    except UsageError as error:
        raise UsageError(f"fault {text!r}: {error}") from None
    except ValueError as error:
        raise UsageError(f"fault {text!r}: {error}; write it as in: {example_of(kind)}") from None


def example_of(kind: FaultKind) -> str:
    return _EXAMPLES.get(kind, f"0.3s {_name_of(kind)} n1")


def fault_text(fault: Fault) -> str:
    """What `fault_from` reads as the same fault."""
    words = [duration_text(fault.at), _name_of(fault.kind)]
    match fault.kind:
        case FaultKind.PARTITION:
            words.append(" | ".join(" ".join(f"n{node}" for node in group) for group in fault.groups))
        case FaultKind.CUT:
            words.extend(f"n{one}>n{other}" for one, other in fault.links)
        case FaultKind.LOSE_TOKEN:
            words.append(duration_text(fault.duration_ns))
        case FaultKind.PAUSE | FaultKind.FLOOD:
            words.extend((f"n{fault.node}", duration_text(fault.duration_ns)))
        case FaultKind.HEAL:
            pass
        case _:
            words.append(f"n{fault.node}")
    return " ".join(words)


def _name_of(kind: FaultKind) -> str:
    return kind.value.replace(" ", "-")


def _fault_of(kind: FaultKind, at: int, arguments: list[str]) -> Fault:
    match kind:
        case FaultKind.PARTITION:
            return Fault(at, kind, groups=_groups_from(arguments))
        case FaultKind.CUT:
            return Fault(at, kind, links=_links_from(arguments))
        case FaultKind.HEAL:
            _expect(arguments, 0, "takes nothing more")
            return Fault(at, kind)
        case FaultKind.LOSE_TOKEN:
            _expect(arguments, 1, "needs one duration")
            return Fault(at, kind, duration_ns=_positive(arguments[0]))
        case FaultKind.PAUSE | FaultKind.FLOOD:
            _expect(arguments, 2, "needs one node and one duration")
            return Fault(at, kind, node=_node_from(arguments[0]), duration_ns=_positive(arguments[1]))
        case _:
            _expect(arguments, 1, "needs one node")
            return Fault(at, kind, node=_node_from(arguments[0]))


def _expect(arguments: list[str], count: int, words: str) -> None:
    if len(arguments) != count:
        raise ValueError(words)


def _positive(text: str) -> int:
    duration = duration_from(text)
    if duration == 0:
        raise ValueError("lasts no time at all")
    return duration


def _node_from(text: str) -> int:
    match = re.fullmatch(r"n?(\d+)", text)
    if not match:
        raise ValueError(f"{text!r} is not a node")
    return int(match[1])


def _groups_from(arguments: list[str]) -> tuple[tuple[int, ...], ...]:
    sides = " ".join(arguments).replace(",", " ").split("|")
    groups = tuple(tuple(_node_from(name) for name in side.split()) for side in sides)
    named = [node for group in groups for node in group]
    if not all(groups):
        raise ValueError("a side of the partition is empty")
    if len(named) != len(set(named)):
        raise ValueError("a node is named twice")
    return groups


def _links_from(arguments: list[str]) -> tuple[tuple[int, int], ...]:
    links: dict[tuple[int, int], None] = {}
    for word in " ".join(arguments).replace(",", " ").replace("→", ">").split():
        ends = re.fullmatch(r"(\w+)(<?>)(\w+)", word)
        if not ends:
            raise ValueError(f"{word!r} is not a link")
        one, other = _node_from(ends[1]), _node_from(ends[3])
        if one == other:
            raise ValueError(f"{word!r} leads from a node to itself")
        links[one, other] = None
        if ends[2] == "<>":
            links[other, one] = None
    if not links:
        raise ValueError("names no link")
    return tuple(links)
