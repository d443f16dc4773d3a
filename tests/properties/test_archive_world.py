"""Whatever happens to daemons and archivers: no place has two contents, who is together writes the same, and what an
archiver has heard in one life stands in one history without a gap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.archive.branches import Branch, Cause
from ordercast.archive.entries import News, record_bytes
from ordercast.archive.places import Place
from ordercast.model.events import Left, Message
from tests.properties.archive_world import GROUP, Archiver, ArchiveWorld
from tests.property_sizes import scaled

EVERYTHING = ("root", "fork", "merge", "gap", "three sides", "settled", "complete", "claim", "tip", "fetch", "give up")
Steps = list[tuple[int, int, int, int]]
STEPS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 15), st.integers(0, 15)), min_size=5, max_size=80
)


Records = dict[Place, bytes]
Tree = dict[str, Branch]


def all_records(world: ArchiveWorld) -> Records:
    """Of all archives: what one of them lacks it will fetch."""
    content: Records = {}
    for archiver in world.archivers:
        for place, record in archiver.records.items():
            assert content.setdefault(place, record) == record, f"{place} has two contents"
    return content


def ways_back(tree: Tree, place: Place) -> Iterator[list[Place]]:
    """Every history that ends here, the last place first."""
    branch = tree[place.branch]
    own = [Place(place.branch, number) for number in range(place.number, branch.base, -1)]
    parents = [parent for parent in branch.parents if parent.branch in tree]
    if not parents:
        yield own
    for parent in parents:
        for rest in ways_back(tree, parent):
            yield own + rest


def heard_of_group(archiver: Archiver) -> list[Message | News]:
    assert archiver.session is not None
    return [
        heard
        for heard in archiver.session.heard[: archiver.read]
        if not isinstance(heard, Left)
        and (GROUP in heard.groups if isinstance(heard, Message) else heard.group == GROUP)
    ]


def check_history(archiver: Archiver, tree: Tree, records: Records) -> None:
    assert archiver.lineage is not None
    place = archiver.lineage.place
    assert place is not None and place == archiver.tip
    heard = heard_of_group(archiver)
    assert any(
        len(way) >= len(heard)
        and all(records.get(at) == record_bytes(at, entry) for at, entry in zip(way, reversed(heard), strict=False))
        for way in ways_back(tree, place)
    ), f"{archiver.session} has heard something else than it wrote"


def check(world: ArchiveWorld) -> None:
    records = all_records(world)
    tree = {name: branch for archiver in world.archivers for name, branch in archiver.tree.items()}
    for archiver in world.archivers:
        if archiver.lineage is not None and archiver.lineage.is_settled:
            check_history(archiver, tree, records)


def check_end(world: ArchiveWorld) -> None:
    world.settle_all()
    check(world)
    places = {archiver.lineage.place for archiver in world.archivers if archiver.lineage is not None}
    assert len(places) == 1 and None not in places, [archiver.lineage for archiver in world.archivers]
    assert all(archiver.lineage is not None and archiver.lineage.is_settled for archiver in world.archivers)


@settings(max_examples=scaled(100), deadline=None)
@given(STEPS, st.integers(2, 4))
def test_no_place_has_two_contents_and_all_come_together(steps: Steps, size: int) -> None:
    world = ArchiveWorld(size)
    for step in steps:
        world.take(step)
        check(world)
    check_end(world)


def play(seed: int) -> ArchiveWorld:
    """More orderly than what Hypothesis draws, so that more is reached: most of the time things flow."""
    draw = Random(seed)
    world = ArchiveWorld(2 + seed % 3)
    for _ in range(draw.randrange(20, 150)):
        kind, who, what, more = (draw.randrange(limit) for limit in (16, 4, 16, 16))
        if kind < 10:
            world.take((kind, who, what, more))
        elif kind < 13:
            world.flow(who)
        elif kind < 14:
            world.fetch(world.archivers[who % len(world.archivers)])
        check(world)
    check_end(world)
    return world


@pytest.mark.parametrize("seed", [110, 122, 362, 368, 391, 572, 632, 1138])
def test_histories_that_once_failed(seed: int) -> None:
    play(seed)


def test_random_histories_meet_everything() -> None:
    met: Counter[str] = Counter()
    for seed in range(150):
        world = play(seed)
        branches = {name: branch for archiver in world.archivers for name, branch in archiver.tree.items()}
        for branch in branches.values():
            met[branch.cause.value] += 1
            met["gap"] += branch.has_gap
            met["three sides"] += branch.cause is Cause.MERGE and len(branch.parents) > 2
        met += world.met
    assert all(met[what] > 0 for what in EVERYTHING), met
