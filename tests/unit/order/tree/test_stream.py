"""One birth of a tree at its processes: ranks, ways, who has what, and when it is stable."""

from __future__ import annotations

import pytest

from ordercast.model.ids import ProcessId
from ordercast.model.service import Service
from ordercast.order.tree.blocks import Cargo, Close, Count, Ordered, decode_block
from ordercast.order.tree.forest import Tree
from ordercast.order.tree.graph import Graph
from ordercast.order.tree.stream import BadBlock, TreeStream

A, B, C, D = (ProcessId(number) for number in (1, 2, 3, 4))
GROUPS = {"all": frozenset({A, B, C}), "low": frozenset({B, C}), "side": frozenset({A, D})}
TREE = Tree(1, Graph({A: None, B: A, C: B, D: A}, GROUPS))


def cargo(source: int, *names: str, service: Service = Service.AGREED, originator: ProcessId = A) -> Cargo:
    return Cargo(originator, source, 1, 0, service, 0, TREE.places(names), (b"x",))


class Wood:
    """All processes of the tree, and links between them that lose nothing."""

    def __init__(self) -> None:
        self.streams = {process: TreeStream(process, TREE) for process in (A, B, C, D)}
        self.got: dict[ProcessId, list[int]] = {process: [] for process in self.streams}
        self.copies: list[tuple[ProcessId, ProcessId, int]] = []

    def run(self) -> None:
        sending = [(one, *each) for one, stream in self.streams.items() for each in stream.flush()]
        while sending:
            for source, target, data in sending:
                block, stream = decode_block(data), self.streams[target]
                if isinstance(block, Ordered):
                    self.copies.append((source, target, block.cargo.source))
                    stream.take(block, data)
                elif isinstance(block, Close):
                    stream.close()
                    stream.passed()
                elif isinstance(block, Count):
                    (stream.done if source != stream.parent else stream.safe)(source, block.through)
            sending = [(one, *each) for one, stream in self.streams.items() for each in stream.flush()]
        for process, stream in self.streams.items():
            self.got[process] += [ordered.cargo.source for ordered in stream.deliverable()]
            stream.check_invariants()


def test_a_message_goes_to_its_receivers_and_those_between_alone() -> None:
    wood = Wood()
    wood.streams[A].enter(cargo(1, "all"))
    wood.streams[B].enter(cargo(2, "low", originator=B))
    wood.streams[A].enter(cargo(3, "side"))
    wood.run()
    assert sorted(wood.copies) == [(A, B, 1), (A, D, 3), (B, C, 1), (B, C, 2)]
    assert wood.got[A] == [1, 3] and wood.got[D] == [3]
    assert wood.got[B] == wood.got[C] == [2, 1]  # whoever shares both has them in one order
    assert not any(stream.held for stream in wood.streams.values())  # all is stable, and forgotten


def test_what_enters_below_has_a_rank_between_those_from_above() -> None:
    wood = Wood()
    first = wood.streams[A].enter(cargo(1, "all"))
    wood.run()
    between = wood.streams[B].enter(cargo(2, "low", originator=B))
    second = wood.streams[A].enter(cargo(3, "all"))
    assert first.rank < between.rank < second.rank
    wood.run()
    assert wood.got[C] == [1, 2, 3]


def test_a_safe_message_waits_until_its_source_knows_its_place() -> None:
    wood = Wood()
    wood.streams[A].enter(cargo(1, "all", service=Service.SAFE, originator=D))
    wood.streams[A].enter(cargo(2, "all"))
    wood.run()
    assert wood.got[A] == wood.got[C] == []
    wood.streams[A].known(D, 1)
    wood.run()
    assert wood.got[A] == wood.got[B] == wood.got[C] == [1, 2]


def test_a_message_that_comes_down_to_its_source_tells_it_the_place() -> None:
    wood = Wood()
    message = cargo(1, "all", service=Service.SAFE, originator=C)
    assert wood.streams[A].tells(message) and not wood.streams[A].tells(cargo(1, "all", originator=D))
    wood.streams[A].enter(message)
    assert wood.streams[A].unknown(C) == 1
    wood.run()
    assert wood.streams[A].unknown(C) == 0, "all below have it, and its source is one of them"
    assert wood.got[A] == wood.got[B] == wood.got[C] == [1]
    assert not wood.streams[A].stable and [one.cargo for one in wood.streams[C].stable] == [message]


def test_a_birth_ends_when_all_below_have_passed() -> None:
    wood = Wood()
    wood.streams[A].enter(cargo(1, "all"))
    wood.streams[A].close()
    wood.run()
    assert not wood.streams[A].is_closed_below
    wood.streams[A].passed()
    assert wood.streams[A].is_closed_below and wood.streams[A].is_finished


def test_blocks_that_nobody_can_have_sent_are_refused() -> None:
    wood = Wood()
    ordered = wood.streams[A].enter(cargo(1, "all"))
    (_, data), *_ = wood.streams[A].flush()
    with pytest.raises(BadBlock):
        wood.streams[D].take(ordered, data)  # it is not on the way
    with pytest.raises(BadBlock):
        wood.streams[B].take(ordered._replace(number=2), data)
    wood.streams[B].take(ordered, data)
    with pytest.raises(BadBlock):
        wood.streams[B].take(ordered, data)
    with pytest.raises(BadBlock):
        wood.streams[A].done(B, 2)
