"""What is said of stability waits, unless somebody waits for it."""

from __future__ import annotations

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.model.service import Service
from ordercast.order.tree.blocks import BlockKind, Cargo, Count, decode_block
from ordercast.order.tree.branch import Branch
from ordercast.order.tree.config import TreeConfig
from ordercast.order.tree.delivering import Delivering
from ordercast.order.tree.forest import Tree
from ordercast.order.tree.graph import Graph
from ordercast.order.tree.source import TreeSource

A, B = ProcessId(1), ProcessId(2)
TREE = Tree(1, Graph({A: None, B: A}, {"low": frozenset({B})}))


def counts(sending: list[tuple[ProcessId, bytes]]) -> list[tuple[ProcessId, BlockKind]]:
    blocks = [(process, decode_block(data)) for process, data in sending]
    return [(process, block.kind) for process, block in blocks if isinstance(block, Count)]


def test_the_last_word_of_a_birth_that_ends_with_it_is_waited_for() -> None:
    """All that was open becomes stable with the end itself: nothing of the birth is left here, but below there is."""
    branch = Branch(A, TreeConfig(), TreeSource(A, 1_000, 10_000), Delivering(ConfigurationId(8, A)))
    branch.open(TREE)
    stream = branch.stream
    assert stream is not None
    stream.enter(Cargo(A, 1, 1, 0, Service.AGREED, 0, TREE.places(["low"]), (b"x",)))
    branch.flush(1)
    assert branch.hurried() == frozenset()
    branch.close()
    branch.flush(1)
    branch.leave()
    stream.done(B, 2)
    sending, _ = branch.flush(1)
    assert counts(sending) == [(B, BlockKind.SAFE)] and not branch.closing
    assert branch.hurried() is None
    branch.flush(1)
    assert branch.hurried() == frozenset()
