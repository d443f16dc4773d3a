"""Frames between client and daemon as Hypothesis draws them: everything that the protocol can say."""

from __future__ import annotations

from hypothesis import strategies as st

from ordercast.groups.envelope import CONFIRM, SELF_DISCARD, Head, Kind, encode_head
from ordercast.groups.layer import MessageRun
from ordercast.model.events import Dropped, Left, Reason, Transition, View, ViewId
from ordercast.model.ids import POSITION_NUMBER_MAX, ConfigurationId, Places, Position, ProcessId
from ordercast.model.service import Service
from ordercast.session.batches import encode_confirm, encode_dropped, encode_messages, encode_send
from ordercast.session.client_half import BYE, PING, PONG
from ordercast.session.frames import (
    VERSION,
    Hello,
    Listing,
    Members,
    Refused,
    SlowPolicy,
    Welcome,
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
from ordercast.session.news import encode_news
from ordercast.session.pieces import FrameKind

u16 = st.integers(0, 0xFFFF)
u32 = st.one_of(st.integers(0, 9), st.integers(0, 0xFFFFFFFF))
u64 = st.one_of(st.integers(0, 9), st.integers(0, (1 << 64) - 1))
rings = st.builds(ConfigurationId, u64, u64.map(ProcessId))
numbers = st.one_of(st.integers(0, 9), st.integers(0, POSITION_NUMBER_MAX))
positive = st.one_of(st.integers(1, 9), st.integers(1, 0xFFFFFFFF))
services = st.sampled_from(Service)

LETTERS = "abc-$~"
group_names = st.text(LETTERS, min_size=1, max_size=8)
full_names = st.builds(lambda client, daemon: f"{client}@{daemon}", group_names, group_names)
group_tuples = st.lists(group_names, min_size=1, max_size=4, unique=True).map(tuple)
member_tuples = st.lists(full_names, max_size=5, unique=True).map(lambda drawn: tuple(sorted(drawn)))
destinations = st.lists(st.one_of(group_names, full_names), min_size=1, max_size=4, unique=True).map(tuple)
flags = st.sampled_from((0, SELF_DISCARD, CONFIRM, SELF_DISCARD | CONFIRM))


def data_heads(senders: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    return st.builds(Head, st.just(Kind.DATA), senders, destinations, flags).map(encode_head)


hellos = st.builds(Hello, st.one_of(st.just(""), group_names), st.sampled_from(SlowPolicy), u32, st.just(VERSION))
welcomes = st.builds(Welcome, full_names, u32, u32, st.just(VERSION))
data_lists = st.lists(st.binary(max_size=30), min_size=1, max_size=6)


@st.composite
def runs(draw: st.DrawFn) -> MessageRun:
    head = draw(data_heads(full_names))
    data = draw(data_lists)
    its_services = draw(st.lists(services, min_size=len(data), max_size=len(data)))
    return MessageRun(
        (1,),
        head,
        Places(draw(rings), draw(numbers), draw(u16), draw(positive), draw(u32)),
        bytes(its_services),
        [head + one for one in data],
    )


view_ids = st.builds(ViewId, rings, st.builds(Position, rings, numbers, u16))
views = st.builds(
    View,
    group_names,
    member_tuples,
    member_tuples,
    st.sampled_from(Reason),
    member_tuples,
    view_ids,
    st.text(max_size=20),
)
transitions = st.builds(Transition, group_names, member_tuples, view_ids)
lefts = group_names.map(Left)
drops = st.builds(Dropped, u64, u64)
listings = st.builds(Listing, st.dictionaries(group_names, u32, min_size=1, max_size=5), st.booleans())
member_pages = st.builds(Members, member_tuples.filter(bool), st.booleans())
refusals = st.builds(Refused, group_tuples, st.booleans(), st.text(max_size=20))


@st.composite
def changed_views(draw: st.DrawFn) -> View:
    """By one member, and known to be so by all who stay."""
    who = draw(full_names)
    others = tuple(name for name in draw(member_tuples) if name != who)
    reason = draw(st.sampled_from((Reason.JOIN, Reason.LEAVE, Reason.DISCONNECT)))
    members = tuple(sorted((*others, who))) if reason is Reason.JOIN else others
    return View(draw(group_names), members, others, reason, (who,), draw(view_ids))


# Whole frames, of each side


def sends(senders: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    return st.builds(encode_send, services, data_heads(senders), data_lists)


def client_frames(me: str) -> st.SearchStrategy[bytes]:
    return st.one_of(
        hellos.map(encode_hello),
        sends(st.just(me)),
        sends(full_names),
        st.builds(encode_names, st.sampled_from((FrameKind.JOIN, FrameKind.LEAVE, FrameKind.MEMBERS_OF)), group_tuples),
        st.builds(encode_number, st.sampled_from((FrameKind.CREDIT, FrameKind.WANT)), u32),
        st.one_of(st.just(""), group_names).map(encode_list),
        st.sampled_from((PING, PONG, BYE)),
    )


daemon_frames = st.one_of(
    welcomes.map(encode_welcome),
    st.text(max_size=20).map(encode_closing),
    runs().map(encode_messages),
    views.map(encode_news),
    changed_views().map(encode_news),
    transitions.map(encode_news),
    lefts.map(encode_news),
    u32.map(lambda number: encode_number(FrameKind.CREDIT, number)),
    st.sampled_from((PING, PONG)),
    runs().map(encode_confirm),
    drops.map(encode_dropped),
    listings.map(encode_listing),
    member_pages.map(encode_members),
    refusals.map(encode_refused),
)
