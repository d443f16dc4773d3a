"""Faults planted in the shipped engine of a network of rings, for the shipped simulator, swarm and checkers.

Those of the order (`planted.py`) are planted as they are; beside them stand the rules that rings keep for the network,
which ideal rings do not have. `test_planted_engine.py` demands that each is caught; where, is in `catches.txt`. To
hunt: `python -m tests.simulation.gateways.planted_engine NAME|all 20000 21000`.
"""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from ordercast.model.ids import Seq
from ordercast.order.attached import SEQ_STEP, TRANSITIONAL
from ordercast.order.clock import StoredClock
from ordercast.order.gateways.forwarding import Forwarding
from ordercast.order.gateways.items import Carried, HelloItem, MarkItem
from ordercast.order.gateways.network import RingNetwork
from ordercast.order.gateways.timeline import Timeline
from ordercast.order.gateways.view_number import ViewNumber
from ordercast.order.gateways.views import Views
from ordercast.order.membership import consensus, frame
from ordercast.order.membership.states.changing import Changing
from ordercast.order.membership.states.commit import Commit
from ordercast.order.ring.handing import HandingUp
from ordercast.order.ring.two_queues import TwoQueues
from ordercast.sim.swarm import SwarmKind, outline
from tests.simulation.gateways import planted
from tests.simulation.gateways.ideal import World

RUNS = 1000
RUN_SECONDS = 30  # of processor time: a run that takes longer does not end
Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class EngineFault:
    name: str
    plant: Plant
    kind: SwarmKind = SwarmKind.PLAIN


def _agreed_rings(patch: pytest.MonkeyPatch) -> None:
    """The paper (C1): a ring hands up what it has in order, before all members have it."""
    right = HandingUp.deliver

    def wrong(self: HandingUp, safe: Seq, effects: list[Any]) -> None:
        right(self, self.ring.store.aru, effects)

    patch.setattr(HandingUp, "deliver", wrong)


def _birth_at_the_clock(patch: pytest.MonkeyPatch) -> None:
    """The paper (C8): a ring is born at the highest clock of its members, not above it."""
    right = Commit.on_commit

    def wrong(self: Commit, token: Any, step: Any) -> Any:
        was_complete = self.complete is not None
        state = right(self, token, step)
        if self.complete is not None and not was_complete:
            self.ring.birth -= 1
        return state

    patch.setattr(Commit, "on_commit", wrong)


def _no_stamp_at_commit(patch: pytest.MonkeyPatch) -> None:
    """A new ring's tick does not look at the packets of the old ring, which are taken until the new one is formed."""
    patch.setattr(HandingUp, "tick", property(lambda self: 0))
    patch.setattr(Commit, "accepting", Changing.accepting)


def _restart_below_the_stored_tick(patch: pytest.MonkeyPatch) -> None:
    """A life begins to count at zero, whatever is stored."""
    right = StoredClock.start

    def wrong(self: StoredClock, stored: Any) -> bool:
        is_sound = right(self, stored)
        self.tick = 0
        return is_sound

    patch.setattr(StoredClock, "start", wrong)
    patch.setattr(ViewNumber, "start", lambda self, stored: 0)  # which is a little above the last view


def _stale_marks(patch: pytest.MonkeyPatch) -> None:
    """What was meant for a ring is sent on the next one, and taken there."""
    right = RingNetwork._take_mark

    def wrong(self: RingNetwork, domain: int, mark: MarkItem, is_regular: bool) -> None:
        flush = self.merging.flushes.get(domain)
        right(self, domain, replace(mark, ring=flush.physical.id) if flush is not None else mark, is_regular)

    def start_ring(self: Forwarding, domain: int, ring: Any, half: Any) -> None:
        links = self.links[domain]
        self.links[domain] = {process: begin for process, begin in links.items() if process in half}
        self.queues[domain].appendleft(Carried(HelloItem(ring)))

    patch.setattr(RingNetwork, "_take_mark", wrong)
    patch.setattr(Forwarding, "start_ring", start_ring)
    patch.setattr(TwoQueues, "start_over", lambda self: super(TwoQueues, self).start_over())


def _ids_without_the_domain(patch: pytest.MonkeyPatch) -> None:
    """The seq of a ring says nothing of its domain: a representative of two rings makes one id twice."""

    def wrong(highest: int, domain: int | None) -> int:
        return ((highest + TRANSITIONAL) // SEQ_STEP + 1) * SEQ_STEP

    patch.setattr(consensus, "next_ring_seq", wrong)
    patch.setattr(frame, "next_ring_seq", wrong)


def _holds_stop_carriers(patch: pytest.MonkeyPatch) -> None:
    """What gateways carry, and control, stop with the users: holds of several rings wait for each other (C9)."""
    right = TwoQueues.packets, TwoQueues.runs

    def packets(self: TwoQueues) -> int:
        return 0 if self.is_held else right[0](self)

    def runs(self: TwoQueues, *arguments: Any) -> list[Any]:
        return [] if self.is_held else right[1](self, *arguments)

    patch.setattr(TwoQueues, "packets", packets)
    patch.setattr(TwoQueues, "runs", runs)


def _lost_on_one_ring_alone(patch: pytest.MonkeyPatch) -> None:
    """Whoever is in no half known of an ended ring still counts on its other rings, and comes along."""
    patch.setattr(Timeline, "_silent", lambda self, ring, missing: ())


def _first_birth_ends_it(patch: pytest.MonkeyPatch) -> None:
    """A view that members have left ends for users where the next ring is born, whichever it is."""

    def wrong(self: Views, change: Any) -> bool:
        return not change.is_birth and (change.returning is None or self.current.is_provisional)

    patch.setattr(Views, "_is_provisional", wrong)


def _overtaken_while_kept(patch: pytest.MonkeyPatch) -> None:
    """Packets that are kept for a link stay there when others come that their ring numbered above them."""
    patch.setattr(Forwarding, "_take_in_order", Forwarding.take)


OVERTAKEN_WHILE_KEPT = EngineFault("overtaken while kept for a link", _overtaken_while_kept, SwarmKind.GROUPS)
FIRST_BIRTH_ENDS_IT = EngineFault("the first birth ends it", _first_birth_ends_it, SwarmKind.REPLICATED)
LOST_ON_ONE_RING = EngineFault("lost on one ring alone", _lost_on_one_ring_alone, SwarmKind.REPLICATED)
OWN = (
    EngineFault("holds stop carriers", _holds_stop_carriers),
    EngineFault("agreed rings", _agreed_rings),
    EngineFault("birth at the clock", _birth_at_the_clock),
    EngineFault("no stamp at commit", _no_stamp_at_commit),
    EngineFault("restart below the stored tick", _restart_below_the_stored_tick),
    EngineFault("stale marks", _stale_marks),
    EngineFault("ids without the domain", _ids_without_the_domain),
)
_OWN_NAMES = {fault.name for fault in OWN}
_ORDERED = (fault for fault in planted.PLANTED if fault.world is World and fault.name not in _OWN_NAMES)
PLANTED = (*OWN, *(EngineFault(fault.name, fault.plant) for fault in _ORDERED))

# What the design asks to plant: the paper's own rules, and what is easily forgotten.
RULES_OF_THE_PAPER = {"agreed rings", "old ring raised", "residual by stamp"}  # C1, C2, C3
NAMED = {
    *RULES_OF_THE_PAPER,
    *("natives in a flush", "front beyond cap", "anybody's word", "since forgotten", "last words speak for rings"),
    *("residual by highest", "restart below the stored tick", "out of order", "stale marks", "ids without the domain"),
    "no stamp at commit",
}


def complaint(fault: EngineFault, seed: int) -> str:
    """Return what the checkers, or the engine's own assertions, say of a run; empty: nothing. The fault is planted."""
    signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, RUN_SECONDS)
    try:
        ran = outline(seed, fault.kind, "gateways")
    except TimeoutError as error:
        return str(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "" if ran.is_valid else ran.sentence.strip() or "invalid"


def _give_up(*_: object) -> None:
    raise TimeoutError("it does not end")


def main(name: str, first: int, last: int) -> None:
    """Say which run shows a fault first."""
    for fault in PLANTED:
        if name not in ("all", fault.name):
            continue
        said = ""
        with pytest.MonkeyPatch.context() as patch:
            fault.plant(patch)
            for seed in range(first, last):
                try:
                    said = complaint(fault, seed)
                except Exception:
                    said = traceback.format_exc(limit=-1)
                if said:
                    break
        text = said.splitlines()[-1][:200] if said else ""
        sys.stdout.write(f"{fault.name}: {seed if said else None} {text}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
