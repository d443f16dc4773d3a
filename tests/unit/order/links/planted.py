"""Faults that are put into links, one at a time, and what a hostile run says of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ordercast.model.ids import Instant
from ordercast.order.links.link import Link
from ordercast.order.links.packing import PartStore
from ordercast.order.links.receiver import NEVER, LinkReceiver, _Gap
from ordercast.order.links.sender import LinkSender

Plant = Callable[[pytest.MonkeyPatch], None]

TWICE = "a payload arrived twice"
FOREIGN = "a payload arrived that was never sent in this epoch"
LATE = "a payload came and was not passed up at once"
NEVER_CAME = "a payload never arrived"
OUT_OF_ORDER = "payloads arrived out of order"
CHATTER = "an idle link is not silent"
UNRIDDEN = "the last rider never arrived"
FAILED = "a link failed on a path that works"
LIVES_ON = "a link lives on without the other side"


def gap_as_printed(patch: pytest.MonkeyPatch) -> None:
    """Figure 4.2, line 10: from the number after the one expected, to the one that came."""
    true_lack = LinkReceiver._lack

    def lack(self: LinkReceiver, end: int, now: Instant) -> None:
        true_lack(self, end, now)
        if self.next < end:
            self._missing.pop(self.next, None)
            self._missing[end] = _Gap(now, Instant(now + self.first_wait))

    patch.setattr(LinkReceiver, "_lack", lack)


def announcement_as_printed(patch: pytest.MonkeyPatch) -> None:
    """Figure 4.2, line 31: an announcement counts when it lies beyond the number expected."""
    true_announce = LinkReceiver.announce

    def announce(self: LinkReceiver, high: int, now: Instant) -> None:
        if high > self.next:
            true_announce(self, high, now)

    patch.setattr(LinkReceiver, "announce", announce)


def aru_over_a_hole(patch: pytest.MonkeyPatch) -> None:
    true_arrive = LinkReceiver._arrive

    def arrive(self: LinkReceiver, number: int, now: Instant) -> None:
        true_arrive(self, number, now)
        self._missing.clear()
        self.aru = self.next - 1

    patch.setattr(LinkReceiver, "_arrive", arrive)


def asked_once(patch: pytest.MonkeyPatch) -> None:
    true_ask = LinkReceiver._ask

    def ask(self: LinkReceiver, gap: _Gap, now: Instant) -> None:
        true_ask(self, gap, now)
        gap.due = NEVER

    patch.setattr(LinkReceiver, "_ask", ask)


def old_epoch_taken(patch: pytest.MonkeyPatch) -> None:
    true_take = Link._take

    def take(self: Link, packet: bytes, now: Instant) -> Any:
        tag = self.tags.theirs.to_bytes(8, "big")
        return true_take(self, packet[:24] + tag + packet[32:], now)

    patch.setattr(Link, "_take", take)


def passed_in_order(patch: pytest.MonkeyPatch) -> None:
    """Head-of-line blocking, as TCP has it."""
    true_take = LinkReceiver.take

    def take(
        self: LinkReceiver, number: int, payloads: list[bytes], part: bytes | None, now: Instant, **given: bool
    ) -> list[bytes]:
        is_new = self._is_new(number)
        ready = true_take(self, number, payloads, part, now, **given)
        return self._in_order(number, ready) if is_new and not self._config.is_ordered else ready

    patch.setattr(LinkReceiver, "take", take)


def passed_as_it_comes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LinkReceiver, "_in_order", lambda self, number, payloads: payloads)


def silence_borne(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Link, "_silent_at", NEVER)


def stall_borne(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Link, "_stalled_at", NEVER)


def copies_passed_up(patch: pytest.MonkeyPatch) -> None:
    true_take = LinkReceiver.take

    def take(
        self: LinkReceiver, number: int, payloads: list[bytes], part: bytes | None, now: Instant, **given: bool
    ) -> list[bytes]:
        is_copy = not self._is_new(number)
        ready = true_take(self, number, payloads, part, now, **given)
        return payloads if is_copy else ready

    patch.setattr(LinkReceiver, "take", take)


def resending_waits_for_the_window(patch: pytest.MonkeyPatch) -> None:
    true_packets = LinkSender.packets

    def packets(self: LinkSender, now: Instant) -> Any:
        is_full = len(self._store) >= self._config.window
        waiting, self._resend = self._resend, {} if is_full else self._resend
        leaving = true_packets(self, now)
        self._resend = waiting
        return leaving

    patch.setattr(LinkSender, "packets", packets)


def tail_never_announced(patch: pytest.MonkeyPatch) -> None:
    true_numbered = LinkSender._numbered

    def numbered(self: LinkSender, bodies: Any, now: Instant) -> Any:
        given = true_numbered(self, bodies, now)
        self.tail_due = NEVER
        return given

    patch.setattr(LinkSender, "_numbered", numbered)


def forgets_what_came_beyond(patch: pytest.MonkeyPatch) -> None:
    true_acknowledge = LinkSender.acknowledge

    def acknowledge(self: LinkSender, aru: int, beyond: int, round_trip: int, now: Instant) -> None:
        true_acknowledge(self, aru + beyond, 0, round_trip, now)

    def ask(self: LinkSender, ranges: Any, now: Instant) -> None:
        for first, last in ranges:
            for number in range(first, last + 1):
                if number in self._store:
                    self._ask_one(number, now)

    patch.setattr(LinkSender, "acknowledge", acknowledge)
    patch.setattr(LinkSender, "ask", ask)


def parts_mixed(patch: pytest.MonkeyPatch) -> None:
    """Parts of payloads that follow each other are taken for parts of one."""
    true_add = PartStore.add
    patch.setattr(PartStore, "check", lambda self, number, body: None)

    def add(self: PartStore, number: int, body: bytes) -> bytes | None:
        return true_add(self, int.from_bytes(body[:2], "big") + 1, body)

    patch.setattr(PartStore, "add", add)


def rider_left_behind(patch: pytest.MonkeyPatch) -> None:
    """A rider waits until there is something to send."""
    patch.setattr(LinkSender, "carry", lambda self, by: None)


def every_status_is_answered(patch: pytest.MonkeyPatch) -> None:
    true_take = Link._take_status

    def take(self: Link, head: Any, ranges: Any, now: Instant) -> None:
        self.receiver.owe_now(now)
        true_take(self, head, ranges, now)

    patch.setattr(Link, "_take_status", take)


# By plant: the seed of a run that sees it, and what the run says.
CAUGHT_BY_HOSTILE_RUNS: dict[Plant, tuple[int, str]] = {
    gap_as_printed: (6, NEVER_CAME),
    announcement_as_printed: (10, NEVER_CAME),
    aru_over_a_hole: (0, NEVER_CAME),
    asked_once: (29, NEVER_CAME),
    old_epoch_taken: (15, FOREIGN),
    passed_in_order: (0, LATE),
    passed_as_it_comes: (1, OUT_OF_ORDER),
    silence_borne: (6, LIVES_ON),
    stall_borne: (1, LIVES_ON),
    copies_passed_up: (0, TWICE),
    resending_waits_for_the_window: (25, FAILED),
    tail_never_announced: (6, NEVER_CAME),
    forgets_what_came_beyond: (11, FAILED),
    parts_mixed: (0, FOREIGN),
    rider_left_behind: (61, UNRIDDEN),
    every_status_is_answered: (6, CHATTER),
}
