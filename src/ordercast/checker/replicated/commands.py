"""The same commands, in the same places, each once, in the order of its caller; confirmed when applied; and what was
refused, nowhere."""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.replicated.base import ReplicaChecker
from ordercast.checker.replicated.history import Call, Place
from ordercast.checker.replicated.matters import ReplicaMatter
from ordercast.checker.verdict import Witness
from ordercast.model.lineage import Lineage
from ordercast.model.promises import ReplicaPromise
from ordercast.trace.replica_records import Applied, GotPicture


class SameCommands(ReplicaChecker):
    promise = ReplicaPromise.SAME_COMMANDS
    rule = "whoever applied a command in some place applied the same one, after the same ones"
    matter = ReplicaMatter.APPLIED

    def violations(self) -> Iterator[Witness]:
        reference = self.history.reference
        at: dict[int, int] = {}  # where each replica is
        for step in self.history.steps:
            if isinstance(step, Applied):
                other = reference[step.lineage, step.position]
                if (step.caller, step.request, step.operation) != (other.caller, other.request, other.operation):
                    what = (
                        f"applied {step.operation!r} in place {step.position}, where {other.operation!r} is by another"
                    )
                    yield self.witness(what, step.life)
                elif (step.chain, step.result) != (other.chain, other.result):
                    what = f"applied {step.operation!r} in place {step.position} to another state than others did"
                    yield self.witness(what, step.life)
                if step.position != at.get(step.life, 0) + 1:
                    what = f"applied place {step.position} after place {at.get(step.life, 0)}"
                    yield self.witness(what, step.life)
                at[step.life] = step.position
            elif isinstance(step, GotPicture):
                at[step.life] = step.position
                known = reference.get((step.lineage, step.position))
                if step.position and (known is None or known.chain != step.chain):
                    yield self.witness(
                        f"got a picture at place {step.position} that is not the others' state", step.life
                    )


class Once(ReplicaChecker):
    promise = ReplicaPromise.ONCE
    rule = "no command was applied in two places"
    matter = ReplicaMatter.APPLIED

    def violations(self) -> Iterator[Witness]:
        places: dict[tuple[Lineage | None, Call], int] = {}
        for step in self.history.steps:
            if isinstance(step, Applied) and step.request:
                first = places.setdefault((step.lineage, (step.caller, step.request)), step.position)
                if first != step.position:
                    what = f"applied request {step.request} of life {step.caller} in places {first} and {step.position}"
                    yield self.witness(what, step.life)


class CallOrder(ReplicaChecker):
    promise = ReplicaPromise.CALL_ORDER
    rule = "the commands of each replica were applied in the order in which it was asked for them"
    matter = ReplicaMatter.APPLIED

    def violations(self) -> Iterator[Witness]:
        last: dict[tuple[Lineage | None, int], int] = {}
        for lineage, position in sorted(self.history.reference, key=lambda place: place[1]):
            applied = self.history.reference[lineage, position]
            if not applied.request:
                continue  # nobody waits for it: what a replica says of its own accord
            earlier = last.get((lineage, applied.caller), 0)
            if applied.request < earlier:
                what = f"request {applied.request} was applied in place {position}, behind its request {earlier}"
                yield self.witness(what, applied.caller)
            last[lineage, applied.caller] = applied.request


class Confirmations(ReplicaChecker):
    promise = ReplicaPromise.CONFIRMATIONS
    rule = "what was confirmed had been applied there, in that place and with that result"
    matter = ReplicaMatter.CONFIRMED

    def violations(self) -> Iterator[Witness]:
        applied: dict[Place, Applied] = {}
        at: dict[int, int] = {}
        for step in self.history.steps:
            if isinstance(step, Applied):
                applied.setdefault((step.lineage, step.position), step)
            if isinstance(step, Applied | GotPicture):
                at[step.life] = step.position
                continue
            if not self.history.calls[step.life, step.request].operation:
                continue
            found = applied.get((step.lineage, step.position))
            if found is None or at.get(step.life, 0) < step.position:
                yield self.witness(f"confirmed request {step.request} before it was applied", step.life)
            elif (found.caller, found.request, found.result) != (step.life, step.request, step.result):
                yield self.witness(f"confirmed request {step.request} with the place or result of another", step.life)


class Refusals(ReplicaChecker):
    promise = ReplicaPromise.REFUSALS
    rule = "what was refused for certain was applied nowhere, and nothing was both confirmed and refused"
    matter = ReplicaMatter.REFUSED

    def violations(self) -> Iterator[Witness]:
        certain = {call for call, refused in self.history.refusals.items() if refused.is_certain}
        for applied in self.history.reference.values():
            if (applied.caller, applied.request) in certain:
                what = f"refused request {applied.request}, which was applied in place {applied.position}"
                yield self.witness(what, applied.caller)
        for life, request in sorted(self.history.refusals.keys() & self.history.returns.keys()):
            yield self.witness(f"both confirmed and refused request {request}", life)
