"""Whatever client and daemon can say survives the connection; whatever else comes is a WireError and nothing worse."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.groups.layer import MessageRun
from ordercast.model.errors import WireError
from ordercast.model.events import Batch, Dropped, Left, Transition, View
from ordercast.model.service import Service
from ordercast.session.batches import (
    Confirm,
    Messages,
    Send,
    decode_confirm,
    decode_dropped,
    decode_messages,
    decode_send,
    encode_confirm,
    encode_dropped,
    encode_messages,
    encode_send,
)
from ordercast.session.client_half import ClientHalf, News
from ordercast.session.daemon_half import DaemonHalf
from ordercast.session.frames import (
    Hello,
    Listing,
    Members,
    Refused,
    SlowPolicy,
    Welcome,
    decode_closing,
    decode_hello,
    decode_list,
    decode_listing,
    decode_members,
    decode_names,
    decode_number,
    decode_refused,
    decode_welcome,
    encode_closing,
    encode_hello,
    encode_list,
    encode_listing,
    encode_members,
    encode_names,
    encode_number,
    encode_refused,
    encode_welcome,
)
from ordercast.session.news import (
    Change,
    decode_change,
    decode_left,
    decode_transition,
    decode_view,
    encode_news,
)
from ordercast.session.pieces import HEADER, FrameKind
from ordercast.session.requests import Request

from .session_strategies import (
    changed_views,
    client_frames,
    daemon_frames,
    data_heads,
    data_lists,
    drops,
    full_names,
    group_tuples,
    hellos,
    lefts,
    listings,
    member_pages,
    refusals,
    runs,
    services,
    transitions,
    u32,
    views,
    welcomes,
)
from .strategies import cut_short, u8, with_one_byte_changed

ME = "a@a"
MESSAGE_SIZE_MAX = 1000
DECODERS: dict[FrameKind, Callable[[bytes], object]] = {
    FrameKind.HELLO: decode_hello,
    FrameKind.WELCOME: decode_welcome,
    FrameKind.CLOSING: decode_closing,
    FrameKind.SEND: decode_send,
    FrameKind.MESSAGES: decode_messages,
    FrameKind.JOIN: decode_names,
    FrameKind.LEAVE: decode_names,
    FrameKind.VIEW: decode_view,
    FrameKind.CHANGE: decode_change,
    FrameKind.TRANSITION: decode_transition,
    FrameKind.LEFT: decode_left,
    FrameKind.CREDIT: decode_number,
    FrameKind.CONFIRM: decode_confirm,
    FrameKind.DROPPED: decode_dropped,
    FrameKind.LIST: decode_list,
    FrameKind.LISTING: decode_listing,
    FrameKind.MEMBERS_OF: decode_names,
    FrameKind.MEMBERS: decode_members,
    FrameKind.WANT: decode_number,
    FrameKind.REFUSED: decode_refused,
}
all_frames = st.one_of(client_frames(ME), daemon_frames)


def _body(encoded: bytes, kind: FrameKind) -> bytes:
    length, got = HEADER.unpack_from(encoded)
    assert (got, length) == (kind, len(encoded) - HEADER.size + 1)
    return encoded[HEADER.size :]


def _daemon_half() -> DaemonHalf:
    half = DaemonHalf(MESSAGE_SIZE_MAX)
    half.welcome(ME, Hello("a", SlowPolicy.WAIT, 0))
    return half


def _client_half() -> ClientHalf:
    half = ClientHalf("a", SlowPolicy.WAIT)
    half.receive(FrameKind.WELCOME, encode_welcome(Welcome(ME, MESSAGE_SIZE_MAX, 1000))[HEADER.size :])
    return half


# Round trips


@given(hellos, welcomes, st.text(), u32)
def test_greetings_farewells_and_credit_survive(hello: Hello, welcome: Welcome, why: str, number: int) -> None:
    assert decode_hello(_body(encode_hello(hello), FrameKind.HELLO)) == hello
    assert decode_welcome(_body(encode_welcome(welcome), FrameKind.WELCOME)) == welcome
    assert decode_closing(_body(encode_closing(why), FrameKind.CLOSING)) == why
    assert decode_number(_body(encode_number(FrameKind.CREDIT, number), FrameKind.CREDIT)) == number


@given(group_tuples, st.sampled_from((FrameKind.JOIN, FrameKind.LEAVE)), refusals)
def test_requests_and_refusals_survive(groups: tuple[str, ...], kind: FrameKind, refused: Refused) -> None:
    assert decode_names(_body(encode_names(kind, groups), kind)) == groups
    assert decode_refused(_body(encode_refused(refused), FrameKind.REFUSED)) == refused


@given(full_names, listings, member_pages)
def test_questions_and_pages_survive(after: str, listing: Listing, members: Members) -> None:
    assert decode_list(_body(encode_list(after), FrameKind.LIST)) == after
    decoded = decode_listing(_body(encode_listing(listing), FrameKind.LISTING))
    assert (list(decoded.groups.items()), decoded.is_last) == (list(listing.groups.items()), listing.is_last)
    assert decode_members(_body(encode_members(members), FrameKind.MEMBERS)) == members


@given(services, data_heads(full_names), data_lists)
def test_what_is_sent_survives(service: Service, head: bytes, data: list[bytes]) -> None:
    send = decode_send(_body(encode_send(service, head, data), FrameKind.SEND))
    assert send == Send(service, head, [head + one for one in data])


@given(runs())
def test_runs_and_confirmations_survive(run: MessageRun) -> None:
    data = [payload[len(run.head) :] for payload in run.payloads]
    expected = Messages(run.places, bytes(run.services), run.head, data)
    assert decode_messages(_body(encode_messages(run), FrameKind.MESSAGES)) == expected
    confirm = decode_confirm(_body(encode_confirm(run), FrameKind.CONFIRM))
    assert confirm == Confirm(run.places, len(run.payloads))
    batch = _client_half().receive(FrameKind.MESSAGES, _body(encode_messages(run), FrameKind.MESSAGES))
    assert isinstance(batch, Batch)
    assert [message.data for message in batch] == data
    assert list(batch)[-1].position == batch.last == confirm.last


@given(views, transitions, lefts, drops)
def test_news_survive(view: View, transition: Transition, left: Left, dropped: Dropped) -> None:
    assert decode_view(_body(encode_news(view, in_full=True), FrameKind.VIEW)) == view
    assert decode_transition(_body(encode_news(transition), FrameKind.TRANSITION)) == transition
    assert decode_left(_body(encode_news(left), FrameKind.LEFT)) == left
    assert decode_dropped(_body(encode_dropped(dropped), FrameKind.DROPPED)) == dropped


@given(changed_views())
def test_a_difference_survives(view: View) -> None:
    change = decode_change(_body(encode_news(view), FrameKind.CHANGE))
    assert change == Change(view.group, view.id, view.reason, view.who[0])


# Noise


@given(u8, st.binary(max_size=200))
def test_any_bytes_give_a_wire_error_at_worst(kind: int, body: bytes) -> None:
    _nothing_worse_than_wire_errors(kind, body)


@given(st.sampled_from(FrameKind), st.one_of(cut_short(all_frames), with_one_byte_changed(all_frames), all_frames))
def test_damaged_frames_and_frames_taken_for_others_give_a_wire_error_at_worst(kind: FrameKind, damaged: bytes) -> None:
    body = damaged[HEADER.size :]
    _nothing_worse_than_wire_errors(kind, body)
    if len(damaged) > HEADER.size:
        _nothing_worse_than_wire_errors(damaged[HEADER.size - 1], body)


def _nothing_worse_than_wire_errors(kind: int, body: bytes) -> None:
    receivers: tuple[Callable[[int, bytes], News | Request | None], ...] = (
        DaemonHalf(MESSAGE_SIZE_MAX).receive,
        _daemon_half().receive,
        ClientHalf("a", SlowPolicy.WAIT).receive,
        _client_half().receive,
    )
    for receive in receivers:
        with suppress(WireError):
            got = receive(kind, body)
            if isinstance(got, Batch):
                assert len(list(got)) == len(got)
    if kind in DECODERS:
        with suppress(WireError):
            DECODERS[FrameKind(kind)](body)


FREE_AT_THE_END = {
    FrameKind.HELLO,
    FrameKind.WELCOME,
    FrameKind.CLOSING,
    FrameKind.LEFT,
    FrameKind.LIST,
}  # a text is the rest
WITHOUT_A_BODY = {FrameKind.PING, FrameKind.PONG, FrameKind.BYE}


@given(all_frames, st.data())
def test_a_frame_cut_short_is_refused(encoded: bytes, data: st.DataObject) -> None:
    """But for text at its end, of which no length is told: the frame itself says how long it is."""
    kind, body = FrameKind(encoded[HEADER.size - 1]), encoded[HEADER.size :]
    if kind in FREE_AT_THE_END | WITHOUT_A_BODY:
        return
    end = len(body) - 1
    if kind is FrameKind.VIEW:
        end -= len(decode_view(body).why.encode())
    if kind is FrameKind.REFUSED:
        end -= len(decode_refused(body).why.encode())
    with pytest.raises(WireError):
        DECODERS[kind](body[: data.draw(st.integers(0, end))])


# Memory


@given(all_frames, st.data())
def test_a_count_costs_nothing_before_it_is_checked(encoded: bytes, data: st.DataObject) -> None:
    """Any four bytes become a large number: what is allocated stays within a multiple of what came."""
    kind, body = FrameKind(encoded[HEADER.size - 1]), bytearray(encoded[HEADER.size :])
    if kind in WITHOUT_A_BODY or len(body) < 4:
        return
    at = data.draw(st.integers(0, len(body) - 4))
    body[at : at + 4] = data.draw(st.sampled_from((0x7FFFFFFF, 0xFFFFFFFF, 0x00FFFFFF))).to_bytes(4, "big")
    tracemalloc.start()
    try:
        with suppress(WireError):
            DECODERS[kind](bytes(body))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50_000 + 100 * len(body)
