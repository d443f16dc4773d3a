"""How a configuration is finished at a process, once all who come along hold the same: what is left is passed up, in
order, with the signal in its place."""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.effects import Effect, Install, Parted, Record, noted
from ordercast.model.ids import POSITION_NUMBER_MAX, SLOT_MAX, ConfigurationId, Position, ProcessId
from ordercast.model.notes import Occurred, Occurrence
from ordercast.order.tree.exchange import TreeExchange
from ordercast.order.tree.reports import HeldMark


def transitional_of(old: Configuration, along: tuple[ProcessId, ...], following: Configuration) -> Configuration:
    """Return the configuration of those who come along from the old one to the following one of the control stream."""
    id = ConfigurationId(following.id.seq - 2, along[0])
    place = Position(old.id, POSITION_NUMBER_MAX, SLOT_MAX)
    return Configuration(ConfigurationKind.TRANSITIONAL, id, along, old.id, along, following.reason, place)


def regular_after(transitional: Configuration, following: Configuration) -> Configuration:
    along, regular = transitional.members, ConfigurationKind.REGULAR
    return Configuration(
        regular, following.id, following.members, transitional.id, along, following.reason, following.position
    )


def finished(exchange: TreeExchange, transitional: Configuration | None) -> Iterator[Effect]:
    """Pass up what is left of a configuration, all of it in the transitional one: those who are cut off may lack it, or
    have something before it that nobody here has. Openings take effect between births. Companions have delivered
    different parts of it before: so each group is signalled where the first message comes that no companion in it
    has delivered. Without a transitional configuration, pass up what is left of trees that end."""
    course = exchange.course
    delivering = course.delivering
    is_apart = False
    parted: set[str] = set()
    if transitional is not None:
        delivering.current = transitional.id
        yield Install(transitional, parts=True)

    def part_all() -> Iterator[Effect]:
        nonlocal is_apart
        if transitional is not None and not is_apart:
            is_apart = True
            yield Parted(None)

    def part(mark: HeldMark) -> Iterator[Effect]:
        """Signal the groups of a message that is beyond their cuts."""
        names = [name for name in exchange.names(mark) if name not in parted]
        if transitional is not None and names and not is_apart:
            parted.update(names)
            yield Parted(tuple(names))

    def openings(below: int | None) -> Iterator[Effect]:
        while course.boundaries and (below is None or course.boundaries[0].opening.number <= below):
            if course.boundaries[0].is_late:
                yield from part_all()
            yield from course.open()

    for _, mark, birth, cargo in exchange.owed():
        yield from openings(birth)
        if mark is not None and not exchange.is_before_signal(mark):
            yield from part(mark)
        elif parted:
            yield note(Occurrence.TREE_SIGNALLED_APART)
        effect = delivering.cargo(cargo)
        if effect is not None:
            yield effect
    yield from openings(None)
    yield from part_all()
    if transitional is not None:
        yield from course.leftover()


def recovery_notes(exchange: TreeExchange) -> Iterator[Effect]:
    plan = exchange.plan
    assert plan is not None
    return noted(
        {
            Occurrence.TREE_RECOVERED_FROM_FORWARDER: plan.forwarded,
            Occurrence.TREE_RECOVERED_FROM_SOURCE: plan.by_source,
            Occurrence.TREE_IMPLIED: plan.implied,
        }
    )


def note(what: Occurrence, count: int = 1) -> Effect:
    return Record(Occurred(what, count))
