"""Faults as a person writes them, and back. Pure.

    0.3s crash n1
    0.4s restart n1
    0.5s partition n0 n1 | n2 n3 n4
    0.6s cut n0>n1 n2<>n3
    0.2s pause n2 80ms
    0.7s lose-token 30ms
    0.9s heal
    0.3s down net1
    0.4s cut n0>n1 net1
    0.5s lossy 20% net1
    0.6s slow 3ms net1
    0.7s mend net1
    0.5s lossy 20% n0<>n1
    0.6s slow 30ms n0>n1 seg2
    0.3s detach n2 seg1
    0.3s reload n1 2 n0 n1 n2 ordered

First when, counted from the start; then what; then to whom, and for how long where that makes sense. Where there are
several networks, `net1` names the second of them; where there are several segments, `seg1` names the second.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ordercast.model.errors import UsageError
from ordercast.model.quantities import chance_from, duration_from, duration_text
from ordercast.sim.faults import OF_NETWORKS, VARIANTS, Fault, FaultKind

KINDS = {kind.value.replace(" ", "-"): kind for kind in FaultKind}
_EXAMPLES = {
    FaultKind.PARTITION: "0.5s partition n0 n1 | n2 n3 n4",
    FaultKind.CUT: "0.6s cut n0>n1 (one way) or 0.6s cut n0<>n1 (both ways)",
    FaultKind.BLOCK: "0.6s block n0>n1 (one way) or 0.6s block n0<>n1 (both ways)",
    FaultKind.HEAL: "0.9s heal",
    FaultKind.LOSE_TOKEN: "0.7s lose-token 30ms",
    FaultKind.PAUSE: "0.2s pause n2 80ms",
    FaultKind.FLOOD: "0.2s flood n2 80ms",
    FaultKind.DOWN: "0.3s down net1",
    FaultKind.LOSSY: "0.5s lossy 20% net1",
    FaultKind.SLOW: "0.6s slow 3ms net1",
    FaultKind.MEND: "0.7s mend net1",
    FaultKind.DETACH: "0.3s detach n2 seg1",
    FaultKind.ATTACH: "0.4s attach n2 seg1",
    FaultKind.RELOAD: "0.3s reload n1 2 n0 n1 n2 (version 2 of the node list; may end with ordered, or other)",
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
        network, segment = _numbered(arguments, "net", "network"), _numbered(arguments, "seg", "segment")
        fault = replace(_fault_of(kind, duration_from(at_text), arguments), network=network, segment=segment)
        if kind in OF_NETWORKS and network is None and segment is None and not fault.links:
            raise ValueError("names no network, segment or link")
        return fault
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
        case FaultKind.LOSE_TOKEN:
            words.append(duration_text(fault.duration_ns))
        case FaultKind.PAUSE | FaultKind.FLOOD:
            words.extend((f"n{fault.node}", duration_text(fault.duration_ns)))
        case FaultKind.LOSSY:
            words.append(f"{fault.chance * 100:g}%")
        case FaultKind.SLOW:
            words.append(duration_text(fault.duration_ns))
        case FaultKind.HEAL | FaultKind.DOWN | FaultKind.MEND | FaultKind.CUT | FaultKind.BLOCK:
            pass
        case FaultKind.RELOAD:
            words += [f"n{fault.node}", f"{fault.version}", *(f"n{node}" for node in fault.listed)]
            words += [fault.variant] if fault.variant else []
        case _:
            words.append(f"n{fault.node}")
    words += [f"n{one}>n{other}" for one, other in fault.links]
    words += [f"net{fault.network}"] if fault.network is not None else []
    words += [f"seg{fault.segment}"] if fault.segment is not None else []
    return " ".join(words)


def _name_of(kind: FaultKind) -> str:
    return kind.value.replace(" ", "-")


def _fault_of(kind: FaultKind, at: int, arguments: list[str]) -> Fault:
    match kind:
        case FaultKind.PARTITION:
            return Fault(at, kind, groups=_groups_from(arguments))
        case FaultKind.CUT | FaultKind.BLOCK:
            return Fault(at, kind, links=links_from(arguments))
        case FaultKind.HEAL | FaultKind.DOWN:
            _expect(arguments, 0, "takes nothing more")
            return Fault(at, kind)
        case FaultKind.MEND:
            return Fault(at, kind, links=links_from(arguments) if arguments else ())
        case FaultKind.LOSSY:
            amount, links = _amount_and_links(arguments, "needs one chance")
            return Fault(at, kind, chance=chance_from(amount), links=links)
        case FaultKind.SLOW:
            amount, links = _amount_and_links(arguments, "needs one duration")
            return Fault(at, kind, duration_ns=_positive(amount), links=links)
        case FaultKind.LOSE_TOKEN:
            _expect(arguments, 1, "needs one duration")
            return Fault(at, kind, duration_ns=_positive(arguments[0]))
        case FaultKind.PAUSE | FaultKind.FLOOD:
            _expect(arguments, 2, "needs one node and one duration")
            return Fault(at, kind, node=node_from(arguments[0]), duration_ns=_positive(arguments[1]))
        case FaultKind.RELOAD:
            return _reload_from(at, arguments)
        case _:
            _expect(arguments, 1, "needs one node")
            return Fault(at, kind, node=node_from(arguments[0]))


def _reload_from(at: int, arguments: list[str]) -> Fault:
    variant = arguments.pop() if arguments[-1:] and arguments[-1] in VARIANTS else ""
    if len(arguments) < 3 or not arguments[1].isdigit():
        raise ValueError("needs one node, a version and the nodes of the list")
    node, version = node_from(arguments[0]), int(arguments[1])
    listed = tuple(node_from(name) for name in arguments[2:])
    return Fault(at, FaultKind.RELOAD, node=node, version=version, listed=listed, variant=variant)


def _expect(arguments: list[str], count: int, words: str) -> None:
    if len(arguments) != count:
        raise ValueError(words)


def _positive(text: str) -> int:
    duration = duration_from(text)
    if duration == 0:
        raise ValueError("lasts no time at all")
    return duration


def _amount_and_links(arguments: list[str], words: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """A chance or a duration, and the links that a fault is confined to."""
    amounts = [word for word in arguments if ">" not in word and "→" not in word]
    _expect(amounts, 1, words)
    links = [word for word in arguments if word is not amounts[0]]
    return amounts[0], links_from(links) if links else ()


def _numbered(arguments: list[str], prefix: str, what: str) -> int | None:
    """Takes the network or the segment that a fault is confined to out of its arguments."""
    named = [word for word in arguments if re.fullmatch(rf"{prefix}\d+", word)]
    if len(named) > 1:
        raise ValueError(f"names more than one {what}")
    if not named:
        return None
    arguments.remove(named[0])
    return int(named[0].removeprefix(prefix))


def node_from(text: str) -> int:
    """`n3` or `3` as 3."""
    match = re.fullmatch(r"n?(\d+)", text)
    if not match:
        raise ValueError(f"{text!r} is not a node")
    return int(match[1])


def _groups_from(arguments: list[str]) -> tuple[tuple[int, ...], ...]:
    sides = " ".join(arguments).replace(",", " ").split("|")
    groups = tuple(tuple(node_from(name) for name in side.split()) for side in sides)
    named = [node for group in groups for node in group]
    if not all(groups):
        raise ValueError("a side of the partition is empty")
    if len(named) != len(set(named)):
        raise ValueError("a node is named twice")
    return groups


def links_from(arguments: list[str]) -> tuple[tuple[int, int], ...]:
    """`n0>n1` or `n0<>n1` as ordered pairs of hosts."""
    links: dict[tuple[int, int], None] = {}
    for word in " ".join(arguments).replace(",", " ").replace("→", ">").split():
        ends = re.fullmatch(r"(\w+)(<?>)(\w+)", word)
        if not ends:
            raise ValueError(f"{word!r} is not a link")
        one, other = node_from(ends[1]), node_from(ends[3])
        if one == other:
            raise ValueError(f"{word!r} leads from a node to itself")
        links[one, other] = None
        if ends[2] == "<>":
            links[other, one] = None
    if not links:
        raise ValueError("names no link")
    return tuple(links)
