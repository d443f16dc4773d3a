"""Virtual synchrony and transitional signals: P2.7 and P2.8.

Two are virtually synchronous in a view when both install the same next one and each is in the other's transitional set.
Then what one delivered in the view the other delivered too; both have had a signal in it or neither, and what came
before the signal, and what came after it, is the same at both. Nobody has two signals in one view. And a signal says
the truth: whoever goes on without some of the old view had one before, and none comes along whom it had given up.
What an engine delivers early is judged apart (`early.py`): it heeds neither views nor signals.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.groups.base import GroupChecker
from ordercast.checker.groups.early import uneven
from ordercast.checker.groups.history import GroupHistory, JudgedClient, Stay
from ordercast.checker.groups.matters import GroupMatter
from ordercast.checker.groups.views import id_text
from ordercast.checker.verdict import Witness
from ordercast.model.events import Reason, View, ViewId
from ordercast.model.promises import GroupPromise

Pair = tuple[str, JudgedClient, Stay, JudgedClient, Stay]


def synchronous(history: GroupHistory) -> Iterator[Pair]:
    """Everybody who went on from a view, beside one who did the same: equality is transitive."""
    first: dict[tuple[str, ViewId, ViewId], tuple[JudgedClient, Stay]] = {}
    for client, group, stay in history.stays():
        if stay.next is None:
            continue
        other, reference = first.setdefault((group, stay.view.id, stay.next.view.id), (client, stay))
        if other is not client and other.name in stay.next.view.transitional:
            yield group, client, stay, other, reference


class VirtualSynchrony(GroupChecker):
    promise = GroupPromise.VIRTUAL_SYNCHRONY
    rule = "those who went together from one view to the next had got the same messages in the first"
    matter = GroupMatter.COMPANY

    def violations(self) -> Iterator[Witness]:
        for group, client, stay, other, reference in synchronous(self.history):
            where = f"in {id_text(stay.view.id)} of {group}"
            for have, lack in (
                ((client, stay), (other, reference)),
                ((other, reference), (client, stay)),
            ):
                for number in sorted(set(have[1].delivered()) - set(lack[1].delivered())):
                    if _is_bound(self.history, number, lack[0]) and not self.history.is_early(number):
                        yield self.witness(f"did not get it {where}, but {have[0]} did", lack[0], number)
        for group, having, lacking, number in uneven(self.history) if self.history.early else ():
            if self.history.is_owed(number, lacking):
                yield self.witness(f"never got it, but {having} did, who was in {group} with it", lacking, number)


class Signals(GroupChecker):
    promise = GroupPromise.SIGNALS
    rule = "at most one signal came in a view, and at the same place for those who went on together"
    matter = GroupMatter.SIGNAL

    def violations(self) -> Iterator[Witness]:
        for client, group, stay in self.history.stays():
            if stay.signals > 1:
                yield self.witness(f"got {stay.signals} signals in {id_text(stay.view.id)} of {group}", client)
            if stay.next is not None:
                for text in _untold(stay, stay.next.view):
                    yield self.witness(f"{text} in {id_text(stay.view.id)} of {group}", client)
        for oddity in self.history.oddities:
            if oddity.kind == "signal":
                yield Witness(f"{oddity.client}: {oddity.what}", oddity.client.id.process)
        for pair in synchronous(self.history):
            yield from self._compared(*pair)

    def _compared(
        self, group: str, client: JudgedClient, stay: Stay, other: JudgedClient, reference: Stay
    ) -> Iterator[Witness]:
        where = f"in {id_text(stay.view.id)} of {group}"
        if bool(stay.signals) != bool(reference.signals):
            who = "got no signal" if not stay.signals else "got a signal"
            yield self.witness(f"{who} {where}, unlike {other}", client)
            return
        for when, mine, theirs in (
            ("before", stay.numbers, reference.numbers),
            ("after", stay.late, reference.late),
        ):
            for number in sorted(set(mine) ^ set(theirs)):
                if self.history.is_early(number):
                    continue
                if all(_is_bound(self.history, number, one) for one in (client, other)):
                    yield self.witness(
                        f"{client} or {other} got it {when} the signal {where}, not both", client, number
                    )


def _is_bound(history: GroupHistory, number: int, client: JudgedClient) -> bool:
    """Whether a client has to get a message where its companions do: not one that it was told it lost, nor one that is
    ordered again and that it has from an earlier configuration."""
    return history.is_owed(number, client) and not (history.is_again(number) and number in client.has)


def _untold(stay: Stay, view: View) -> Iterator[str]:
    """What the signal should have said before this view came."""
    along = set(view.transitional)
    if stay.signals:
        given_up = sorted(along.difference(stay.remaining))
        if given_up:
            yield f"goes on with {given_up}, whom the signal had given up"
        return
    lost = sorted(set(stay.view.members) - along)
    gone = () if view.reason in (Reason.JOIN, Reason.NETWORK) else view.who
    if lost and lost != sorted(gone):
        yield f"goes on without {lost}, and got no signal"
