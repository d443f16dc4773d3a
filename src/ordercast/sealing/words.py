"""What people are told of keys and refused packets: what, why, what to do."""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.sealing.keys import KeyRing, listed
from ordercast.sealing.opener import SealRefusal
from ordercast.wire.head import CLEAR


def change_text(before: int, after: int) -> str:
    if after == CLEAR:
        return (
            f"packets are not sealed any more: everybody accepts clear packets, and key {before} is not used here now"
        )
    was = "packets were clear" if before == CLEAR else f"key {before} is not used here now"
    return f"packets are sealed with key {after}: everybody accepts it, and {was}"


def deaf_text(nodes: Sequence[int]) -> str:
    which = ", ".join(map(str, nodes))
    return (
        f"node {which} has this cluster's key, and does not hear this node, so that its packets do not count: "
        f"`ordercast cluster add NAME {nodes[0]} ADDRESS` puts it on the node list, if it is not; or mend the way to it"
    )


def refusal_text(why: SealRefusal, count: int, unknown_key: int, keys: KeyRing) -> str:
    packets = "a packet was" if count == 1 else f"{count:,} packets were"
    match why:
        case SealRefusal.CLEAR:
            return (
                f"{packets} refused: somebody sends in the clear, and has no key or is a stranger; "
                f"if it is a node of yours, copy the key file to it"
            )
        case SealRefusal.KEY:
            return (
                f"{packets} refused: somebody seals with key {unknown_key}, and this node has {listed(keys.accepted)}; "
                f"if it is a node of yours, copy the key file so that both have the same, and run `ordercast key "
                f"reload`; if it is of another cluster, give one of the two another port"
            )
        case SealRefusal.NETWORK:
            return f"{packets} refused: sealed for another network than the one that brought them; are cables crossed?"
        case _:
            return (
                f"{packets} refused, with this cluster's key number and not sealed with its key: somebody forges or "
                f"changes packets, or has another key with this number"
            )
