"""Faults in the lineage that the simulated archives must show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ordercast.archive import lineage
from ordercast.archive.branches import Branch, Cause, branch_of
from ordercast.archive.lineage import Lineage
from ordercast.archive.places import NO_VIEW, Place
from ordercast.model.events import Transition


@contextmanager
def _instead(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def fork_without_waiting() -> Any:
    """Who remains is taken from the transition, and not from the view that ends it."""
    real = Lineage._step

    def step(self: Lineage, event: Any) -> None:
        news = getattr(event, "news", None)
        if isinstance(news, Transition):
            assert self.place is not None
            self._go_on(branch_of(self.group, Cause.FORK, news.view, news.remaining, (self.place,)))
            return
        real(self, event)

    return _instead(Lineage, "_step", step)


def no_fork() -> Any:
    """Both sides go on in the same branch."""

    def part(self: Lineage) -> bool:
        self._is_parting = False
        return True

    return _instead(Lineage, "_part", part)


def _renamed(change: Callable[..., Branch]) -> Any:
    return _instead(lineage, "branch_of", change)


def merge_without_parents() -> Any:
    """A merge is named by its view alone."""

    def named(group: str, cause: Cause, view: Any, who: Any, parents: Any) -> Branch:
        branch = branch_of(group, cause, view, who, parents)
        if cause is not Cause.MERGE:
            return branch
        name = branch_of(group, cause, view, who, ()).name
        return Branch(name, cause, branch.parents, branch.view, branch.who)

    return _renamed(named)


def root_without_name() -> Any:
    """Roots of different archivers with the same past have the same name."""
    return _renamed(
        lambda group, cause, view, who, parents: branch_of(
            group, cause, NO_VIEW if cause is Cause.ROOT else view, (), parents
        )
    )


def bid_that_does_not_wait() -> Any:
    """Who has fetched everything goes on at once, without having said so in order."""
    real = Lineage.filled

    def filled(self: Lineage, place: Place) -> None:
        real(self, place)
        if self._joining is not None and self._joining.adopted == place:
            self._settle(self._joining)

    return _instead(Lineage, "filled", filled)


def deaf_to_claims() -> Any:
    """Who is being told that a history has nobody left goes on with it."""
    return _instead(Lineage, "_give_way", lambda self, joining: None)


FAULTS = [
    fork_without_waiting,
    no_fork,
    root_without_name,
    deaf_to_claims,
    merge_without_parents,
    bid_that_does_not_wait,
]
