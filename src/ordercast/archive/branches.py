"""Branches: the tree of histories that an archive of one group has.

A branch has a name that says all that determines its content: where it begins, and what happened there. So two
archivers that never spoke to each other give the same name to the same history, and different names to different ones.

    root    an archiver begins, and nobody can tell it what was before
    fork    some archivers are out of reach: whoever remains together goes on here
    merge   archivers with different histories come together, and go on here

Between two such events a branch holds what every archiver on it has delivered, in order, nothing left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import NamedTuple

from ordercast.archive.places import Place, checked_branch, view_id_of_text, view_text
from ordercast.model.events import ViewId


class Cause(Enum):
    ROOT = "root"
    FORK = "fork"
    MERGE = "merge"


@dataclass(frozen=True, slots=True)
class Branch:
    """`parents` are the places behind which it begins; the first entry has the number after the highest of them."""

    name: str
    cause: Cause
    parents: tuple[Place, ...]
    view: str  # of the archivers, at which it begins
    who: tuple[str, ...]  # who begins, who remains, who comes together

    @property
    def base(self) -> int:
        """The number before its first."""
        return max((place.number for place in self.parents), default=0)

    @property
    def has_gap(self) -> bool:
        return self.cause is Cause.ROOT and bool(self.parents)


def branch_of(group: str, cause: Cause, view: ViewId, who: Sequence[str], parents: Sequence[Place]) -> Branch:
    """The places are sorted: their order means nothing."""
    places, names = tuple(sorted(set(parents))), tuple(sorted(who))
    told = json.dumps([group, cause.value, view_text(view), names, [str(place) for place in places]])
    name = hashlib.sha256(told.encode()).hexdigest()[:16]
    return Branch(name, cause, places, view_text(view), names)


def branch_bytes(branch: Branch) -> bytes:
    document = asdict(branch) | {"cause": branch.cause.value, "parents": [list(place) for place in branch.parents]}
    return json.dumps(document, indent=1).encode() + b"\n"


def branch_from(data: bytes, group: str) -> Branch:
    """A branch of this group. One of UNREADABLE when it is none: the name has to be the one that its content has, so
    nobody can give it another, and it is fit to be that of a folder."""
    found = json.loads(data)
    parents = [Place(checked_branch(branch), int(number)) for branch, number in found["parents"]]
    view = view_id_of_text(found["view"])
    branch = branch_of(group, Cause(found["cause"]), view, [str(name) for name in found["who"]], parents)
    if checked_branch(found["name"]) != branch.name:
        raise ValueError(f"a branch is called {found['name']}, and its content is that of {branch.name}")
    return branch


class Stretch(NamedTuple):
    """Numbers `first` to `last` of a branch, both included."""

    branch: str
    first: int
    last: int


Tree = Mapping[str, Branch]


def history(tree: Tree, end: Place, prefer: Sequence[str] = (), through: str | None = None) -> list[Stretch]:
    """Everything on the way to this place, from the beginning. Behind a merge there are several ways back: one that
    goes through this branch, if there is any; of these one through a branch that is preferred, else the first that is
    known. KeyError when the branch of the place is not."""
    stretches: list[Stretch] = []
    branch, last = tree[end.branch], end.number
    while True:
        stretches.append(Stretch(branch.name, branch.base + 1, last))
        known = [place for place in branch.parents if place.branch in tree]
        if not known:
            return stretches[::-1]
        ways = [place for place in known if through is not None and leads_to(tree, through, place)] or known
        chosen = next((place for name in prefer for place in ways if leads_to(tree, name, place)), ways[0])
        branch, last = tree[chosen.branch], chosen.number


def ancestors(tree: Tree, name: str) -> set[str]:
    """The branches of all ways back from this one, itself included, as far as they are known."""
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        branch = waiting.pop()
        if branch not in seen and branch in tree:
            seen.add(branch)
            waiting += [parent.branch for parent in tree[branch].parents]
    return seen


def leads_to(tree: Tree, name: str, place: Place) -> bool:
    """Whether the branch of this name is on the way to the place."""
    return name in ancestors(tree, place.branch)


def between(tree: Tree, start: Place, end: Place, prefer: Sequence[str] = ()) -> list[Stretch] | None:
    """What comes behind `start`, up to `end`. None when the one is not on the way to the other."""
    if start.branch not in tree or end.branch not in tree:
        return None
    way = history(tree, end, prefer, start.branch)
    for index, stretch in enumerate(way):
        if stretch.branch == start.branch:
            if not stretch.first - 1 <= start.number <= stretch.last:
                return None
            rest = [Stretch(stretch.branch, start.number + 1, stretch.last), *way[index + 1 :]]
            return [one for one in rest if one.first <= one.last]
    return None
