"""When a view is told as a difference, and when in full; what is refused of news."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ordercast.model.errors import WireError
from ordercast.model.events import Left, Reason, Transition, View
from ordercast.session.news import (
    Change,
    NewsEncoder,
    decode_change,
    decode_left,
    decode_transition,
    decode_view,
    encode_news,
)
from ordercast.session.pieces import HEADER, FrameKind, write_names

from .vectors import AT, CHANGED, VIEWED, kind_and_body

A, B, C = "alice@n1", "bob@n2", "carol@n3"
TRANSITION = Transition("chat", (A, B), AT)
FIXED = encode_news(CHANGED)[HEADER.size : HEADER.size + 43]
LEFT_BY_B = View("chat", (A, C), (A, C), Reason.LEAVE, (B,), AT)


def _told(encoded: bytes) -> View | Change:
    kind, body = kind_and_body(encoded)
    return decode_change(body) if kind == FrameKind.CHANGE else decode_view(body)


@pytest.mark.parametrize(
    "view",
    [
        View("chat", (A, B), (A,), Reason.JOIN, (B,), AT),
        View("chat", (A, B, C), (B, C), Reason.JOIN, (A,), AT),
        LEFT_BY_B,
        replace(LEFT_BY_B, reason=Reason.DISCONNECT),
    ],
)
def test_one_who_comes_or_goes_is_told_as_the_difference(view: View) -> None:
    assert _told(encode_news(view)) == Change("chat", AT, view.reason, view.who[0])


@pytest.mark.parametrize(
    "view",
    [
        VIEWED,
        View("chat", (A,), (A,), Reason.JOIN, (A,), AT),
        View("chat", (A, B), (B,), Reason.JOIN, (B,), AT),
        View("chat", (A, B), (A,), Reason.JOIN, (A,), AT),
        View("chat", (A, B, C), (C,), Reason.JOIN, (C,), AT),
        View("chat", (A, B, C), (A,), Reason.JOIN, (C,), AT),
        View("chat", (A, B), (A, B), Reason.NETWORK, (), AT),
        View("chat", (A,), (A,), Reason.LEAVE, (B, C), AT),
        replace(LEFT_BY_B, why="with a reason"),
    ],
    ids=[
        "network",
        "the first joiner's own",
        "the second joiner's own",
        "the second joiner's own, sorted before",
        "the third joiner's own",
        "somebody is partitioned",
        "network, the same members",
        "two at once",
        "with a sentence",
    ],
)
def test_whatever_is_more_than_that_is_told_in_full(view: View) -> None:
    assert _told(encode_news(view)) == view


def test_a_view_can_be_had_in_full() -> None:
    assert _told(encode_news(CHANGED, in_full=True)) == CHANGED


def test_in_a_transition_views_are_told_in_full_until_the_network_has_settled() -> None:
    """Leaves are not told there, so that nobody could follow a difference."""
    encoder = NewsEncoder()
    elsewhere = replace(CHANGED, group="news")
    assert encoder.encode(CHANGED) == encode_news(CHANGED)
    assert encoder.encode(TRANSITION) == encode_news(TRANSITION)
    assert _told(encoder.encode(CHANGED)) == CHANGED
    assert _told(encoder.encode(CHANGED)) == CHANGED
    assert encoder.encode(elsewhere) == encode_news(elsewhere)
    assert encoder.encode(VIEWED) == encode_news(VIEWED)
    assert encoder.encode(CHANGED) == encode_news(CHANGED)


def test_when_the_network_has_settled_it_has_for_all_groups() -> None:
    """Also for those of which nobody here was left to be told."""
    encoder = NewsEncoder()
    encoder.encode(TRANSITION)
    encoder.encode(replace(VIEWED, group="news"))
    assert encoder.encode(CHANGED) == encode_news(CHANGED)


def test_a_leave_is_encoded_by_any_encoder() -> None:
    assert NewsEncoder().encode(Left("chat")) == encode_news(Left("chat"))


@pytest.mark.parametrize("decode", [decode_view, decode_change, decode_transition])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        FIXED[:-1],
        FIXED,
        FIXED + write_names(()),
        FIXED + b"\xff\xff\xff\xff",
        FIXED[:-1] + b"\x04" + write_names(("chat", B)),
    ],
    ids=["empty", "cut off", "no names", "nobody", "too many", "no such reason"],
)
def test_news_that_cannot_be_read_are_refused(decode: Callable[[bytes], object], body: bytes) -> None:
    with pytest.raises(WireError):
        decode(body)


def test_a_difference_is_of_one_member_in_one_group() -> None:
    for names in (("chat",), ("chat", A, B)):
        with pytest.raises(WireError, match="a change that cannot be read"):
            decode_change(FIXED + write_names(names))
    with pytest.raises(WireError, match="too many behind a change"):
        decode_change(FIXED + write_names(("chat", A)) + b"\0")


def test_a_view_is_of_one_group() -> None:
    rest = write_names((A,)) * 3
    assert decode_view(FIXED + write_names(("chat",)) + rest).group == "chat"
    for names in ((), ("chat", "news")):
        with pytest.raises(WireError, match="a view that cannot be read"):
            decode_view(FIXED + write_names(names) + rest)


def test_a_sentence_of_other_bytes_than_text_is_refused() -> None:
    with pytest.raises(WireError, match="a view that cannot be read"):
        decode_view(encode_news(VIEWED)[HEADER.size :] + b"\xff")


def test_the_name_of_a_group_that_was_left_is_ascii() -> None:
    with pytest.raises(WireError, match="a leave that cannot be read"):
        decode_left(b"\xe9")
