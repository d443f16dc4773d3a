"""What the clients of daemons that part and meet at random are told has the properties of the paper's chapter 2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from random import Random

import pytest

from ordercast.model.events import Left, Message, Reason, Transition, View, ViewId

from .group_world import GROUPS, Session, World

HONEST = 400
SEEDS = HONEST + 100  # in the last of them daemons forge
AT_ONCE = 50


@dataclass
class Stay:
    """What one session heard of one group, from one view to the next."""

    session: Session
    view: View
    previous: ViewId | None
    heard: list[Message | Transition] = field(default_factory=list)
    following: View | None = None  # the view that ends it; None at the end, or after having left


def stays_of(session: Session, group: str) -> Iterator[Stay]:
    stay: Stay | None = None
    for heard in session.heard:
        match heard:
            case View() if heard.group == group:
                if stay is not None:
                    stay.following = heard
                    yield stay
                stay = Stay(session, heard, None if stay is None else stay.view.id)
            case Transition() if heard.group == group:
                assert stay is not None, "P2.1: a signal in no view"
                stay.heard.append(heard)
            case Message() if group in heard.groups:
                assert stay is not None, "P2.1: a message in no view"
                stay.heard.append(heard)
            case Left() if heard.group == group:
                assert stay is not None, "left without having been in"
                yield stay
                stay = None
            case _:
                pass
    if stay is not None:
        yield stay


@cache
def played(seed: int) -> World:
    """From a seed, not drawn: what is hard to get right needs long stories, each with its own mix of steps."""
    rng = Random(seed)
    world = World(rng.randint(2, 4))
    kinds = 10 if seed < HONEST else 11
    weights = [rng.random() + 0.05 for _ in range(kinds)]
    for _ in range(rng.randint(10, 150)):
        kind = rng.choices(range(kinds), weights)[0]
        world.take((kind, rng.randint(0, 3), rng.randint(0, 15), rng.randint(0, 15)))
    world.settle()
    return world


def of_every_story(law: Callable[[int], None]) -> Callable[[int], None]:
    """Ask for a law in many stories at a time: a test for each would take longer to begin than to run."""

    @pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
    def test(first: int) -> None:
        for seed in range(first, first + AT_ONCE):
            try:
                law(seed)
            except AssertionError as error:
                error.add_note(f"in the story of seed {seed}")
                raise

    test.__name__, test.__doc__ = law.__name__, law.__doc__
    return test


@of_every_story
def test_each_client_alone_is_told_a_sound_story(seed: int) -> None:
    for session in played(seed).sessions:
        positions = [heard.position for heard in session.heard if isinstance(heard, Message)]
        assert positions == sorted(set(positions)), "P2.5: nothing twice, and in order"
        for group in GROUPS:
            last: ViewId | None = None
            for stay in stays_of(session, group):
                view = stay.view
                assert session.name in view.members, "P2.2: self inclusion"
                assert last is None or view.id > last, "P2.3: local monotonicity"
                last = view.id
                assert session.name in view.transitional
                assert set(view.transitional) <= set(view.members), "P2.4(2)"
                if stay.previous is None:
                    assert (view.transitional, view.reason) == ((session.name,), Reason.JOIN), "P2.4(1), G3"
                if stay.following is not None:
                    assert set(stay.following.transitional) <= set(view.members), "P2.4(2)"
                signals = [heard for heard in stay.heard if isinstance(heard, Transition)]
                assert len(signals) <= 1, "P2.8(1): one signal in a view"
                for signal in signals:
                    assert signal.view == view.id
                    assert session.name in signal.remaining and set(signal.remaining) <= set(view.members)


@of_every_story
def test_those_who_come_along_have_heard_the_same(seed: int) -> None:
    world = played(seed)
    for group in GROUPS:
        stays = [stay for session in world.sessions for stay in stays_of(session, group)]
        names: dict[ViewId, tuple[str, ...]] = {}
        for stay in stays:
            assert names.setdefault(stay.view.id, stay.view.members) == stay.view.members, "equal ids, equal members"
        ended = {(stay.session.name, stay.following.id): stay for stay in stays if stay.following is not None}
        first = {(stay.session.name, stay.view.id) for stay in stays if stay.previous is None}
        for (_, following), stay in ended.items():
            assert stay.following is not None
            for name in stay.following.transitional:
                other = ended.get((name, following))
                if other is None or other.following is None:
                    assert (name, following) not in first, "P2.4(3): a new member has nobody's history"
                    continue
                assert other.view.id == stay.view.id, "P2.4(3): from the same view"
                assert other.following.transitional == stay.following.transitional, "P2.4(4)"
                assert other.heard == stay.heard, "P2.7 and P2.8(2): the same messages before and behind the signal"


@of_every_story
def test_all_agree_in_the_end(seed: int) -> None:
    world = played(seed)
    first = world.hosts[0].groups
    for host in world.hosts:
        assert host.groups.is_steady
        assert seed >= HONEST or host.groups.malformed == 0
        assert host.groups.table.groups() == first.table.groups()
        for group in GROUPS:
            assert host.groups.table.members_of(group) == first.table.members_of(group)
    for group in GROUPS:
        members = first.table.members_of(group)
        ids = set()
        for session in (session for host in world.hosts for session in host.clients.values()):
            *_, last = [None, *stays_of(session, group)]
            is_member = last is not None and last.following is None and Left(group) not in _after(session, last.view)
            assert is_member == (session.name in members)
            if is_member and last is not None:
                assert last.view.members == members, "P2.16: the last view is of all who are there"
                assert not any(isinstance(heard, Transition) for heard in last.heard)
                ids.add(last.view.id)
        assert len(ids) <= 1


def test_what_is_forged_is_met_in_every_kind_of_story() -> None:
    refused = [sum(host.groups.malformed for host in played(seed).hosts) for seed in range(HONEST, SEEDS)]
    assert sum(count > 0 for count in refused) > 80


def _after(session: Session, view: View) -> list[object]:
    return list(session.heard[session.heard.index(view) :])


@of_every_story
def test_a_member_hears_its_own_messages(seed: int) -> None:
    """P2.15: whatever it sent while it was a member, if it never leaves or ends afterwards."""
    for sent in played(seed).sent:
        before, after = sent.session.heard[: sent.heard], sent.session.heard[sent.heard :]
        news = [heard for heard in before if isinstance(heard, View | Left) and heard.group == sent.group]
        if news and isinstance(news[-1], View) and Left(sent.group) not in after and not sent.session.has_ended:
            assert sent.data in [heard.data for heard in after if isinstance(heard, Message)]
