"""Segments, links and rates: what is refused, and how people write them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ordercast.model.errors import UsageError
from ordercast.model.ids import MICROSECOND, MILLISECOND, NODE_MAX, SECOND
from ordercast.order.catalogue import ENGINES
from ordercast.sim.fault_text import fault_from
from ordercast.sim.options import SimOptions
from ordercast.sim.run_options import options_json, replay_command
from ordercast.sim.topology import SEGMENTS_MAX, Link, Rate, rate_problems
from ordercast.sim.topology_text import (
    attachment_texts,
    attachments_from,
    link_text,
    links_from_text,
    rate_from_text,
    rate_text,
)

WIDE = "wide"  # an engine without limits


@pytest.fixture
def wide() -> Iterator[SimOptions]:
    """Five hosts, of which host 2 joins two segments."""
    ENGINES[WIDE] = replace(ENGINES["ring"], name=WIDE, nodes_max=NODE_MAX, attachments_max=SEGMENTS_MAX)
    yield SimOptions(engine=WIDE, attachments=((0,), (0,), (0, 1), (1,), (1,)))
    del ENGINES[WIDE]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"attachments": ((0,), (0,))}, "attachments must name a segment for every host"),
        ({"attachments": ((0,), (0,), (), (0,), (0,))}, "attachments must name a segment for every host"),
        ({"attachments": ((0, 0), (0,), (0,), (0,), (0,))}, "host 0 is attached to a segment twice"),
        ({"attachments": ((0,), (0,), (0, 300), (0,), (0,))}, "segments must be within 0..254"),
        ({"attachments": ((0,), (0,), (0, 2), (0,), (0,))}, "no host is attached to segment 1, though"),
        ({"attachments": ((0,), (0,), (0,), (1,), (1,))}, "no host joins segment 1 to segment 0"),
        ({"links": (Link(0, 7),)}, "a link names node 7, there are 0..4"),
        ({"links": (Link(0, 1, loss=1.0),)}, "loss, duplication and straggler are chances"),
        ({"links": (Link(0, 1, delay_max_ns=1),)}, "a link's delays must be positive and rise"),
        ({"links": (Link(0, 1, rate=0),)}, "a link's rate must be positive"),
        ({"links": (Link(0, 1, queue=9000),)}, "a link's queue needs a rate"),
        ({"links": (Link(0, 1, rate=10**6, queue=100),)}, "room for a packet of 600 bytes"),
        ({"links": (Link(0, 3, segment=1),)}, "a link names segment 1, node 0 is not attached to it"),
        ({"rates": (Rate(9, 1),)}, "a rate names node 9"),
        ({"rates": (Rate(1, 1), Rate(1, 2))}, "a node has two rates"),
        ({"rates": (Rate(1, 0),)}, "a rate must be above 0"),
        ({"rates": (Rate(1, 1),), "clients": 1}, "rates are of plain messages"),
        ({"faults": (fault_from("1ms down seg2"),)}, "names segment 2, there are 0..1"),
        ({"faults": (fault_from("1ms detach n0 seg1"),)}, "names segment 1, node 0 is not attached to it"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(wide: SimOptions, change: dict[str, Any], words: str) -> None:
    wide.validate()
    with pytest.raises(UsageError) as caught:
        replace(wide, **change).validate()
    assert words in str(caught.value)


def test_the_engine_says_how_many_hosts_and_attachments_there_may_be(wide: SimOptions) -> None:
    replace(wide, nodes=500, attachments=()).validate()
    with pytest.raises(UsageError, match=r"nodes must be within 1\.\.64"):
        SimOptions(nodes=65).validate()
    with pytest.raises(UsageError, match="host 2 has 2 attachments, engine 'ring' allows 1"):
        replace(wide, engine="ring").validate()


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("n0>n1", (Link(0, 1),)),
        ("n0<>n1 loss 1%", (Link(0, 1, loss=0.01), Link(1, 0, loss=0.01))),
        (
            "n0>n1 delay 50ms..60ms duplication 0.5 straggler 2% rate 1.5mbit queue 64K seg2",
            (Link(0, 1, None, 0.5, 0.02, 50 * MILLISECOND, 60 * MILLISECOND, 1_500_000, 65536, 2),),
        ),
        ("n3>n4 delay 80us", (Link(3, 4, delay_min_ns=80 * MICROSECOND, delay_max_ns=80 * MICROSECOND),)),
        ("n3>n4 delay ..4ms", (Link(3, 4, delay_max_ns=4 * MILLISECOND),)),
    ],
)
def test_links_as_they_are_written(text: str, links: tuple[Link, ...]) -> None:
    assert links_from_text(text) == links
    assert tuple(one for link in links for one in links_from_text(link_text(link))) == links


RATES = [
    *(Rate(0, 20), Rate(3, 0.1), Rate(12, 1 / 3, is_poisson=True), Rate(1, 1e-7)),
    *(Rate(0, 5, end_ns=7), Rate(0, 5, start_ns=SECOND), Rate(0, 5, True, SECOND, 2 * SECOND, 300 * MILLISECOND)),
]


@pytest.mark.parametrize("rate", RATES)
def test_rates_as_they_are_written(rate: Rate) -> None:
    assert rate_from_text(rate_text(rate)) == rate


def test_a_rate_begins_pauses_and_ends() -> None:
    rate = rate_from_text("n0 10/s 1s..4s pulse 500ms")
    times = [SECOND, 1_400_000_000, 1_500_000_000, 1_999_999_999, 2 * SECOND, 4 * SECOND]
    assert [rate.active_ns(at) for at in times] == [SECOND, 1_400_000_000, *[2 * SECOND] * 3, None]
    assert rate.active_for(10 * SECOND) == 1_500_000_000
    problems = list(rate_problems([Rate(0, 1, end_ns=5), Rate(0, 1, start_ns=4)], 2))
    assert problems == ["a node has two rates at a time: give it one"]
    assert not list(rate_problems([Rate(0, 1, end_ns=5), Rate(0, 1, start_ns=5)], 2))


def test_attachments_as_they_are_written() -> None:
    attachments = ((0,), (0,), (1, 0), (1,), (1,))
    assert attachments_from(["n2 seg1 seg0", "n3 n4 seg1"], 5) == attachments
    assert attachments_from(attachment_texts(attachments), 5) == attachments
    assert attachments_from([], 5) == ()


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (links_from_text, "n0-n1", "'n0-n1' is not a link; write it as in: n0<>n1 delay"),
        (links_from_text, "n0>n1 rat 1mbit", "'rat' is none of delay, loss"),
        (links_from_text, "n0>n1 rate fast", "'fast' is not a rate: write bits per second"),
        (links_from_text, "n0>n1 loss", "'' is not a chance"),
        (links_from_text, "", "names no link"),
        (rate_from_text, "n0", "it needs a host and messages per second"),
        (rate_from_text, "n0 20", "'20' is not a number of messages per second; write it as in: n1 20/s poisson"),
        (rate_from_text, "n0 20/s often", "it needs a host and messages per second"),
        (lambda text: attachments_from([text], 3), "n1", "it needs hosts, and segments; write it as in: n2 seg0"),
        (lambda text: attachments_from([text], 3), "n7 seg1", "names node 7, there are 0..2"),
    ],
)
def test_what_cannot_be_read_is_explained(read: Any, text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(text)
    assert words in str(caught.value)
    assert repr(text) in str(caught.value)


def test_the_replay_command_has_all_of_it(wide: SimOptions) -> None:
    options = replace(
        wide,
        links=links_from_text("n0<>n1 delay 50ms..60ms rate 10mbit queue 64K"),
        rates=(Rate(0, 20), Rate(1, 5, is_poisson=True)),
        faults=(fault_from("300ms lossy 20% n0<>n1 seg0"),),
        fault_time_ns=2 * SECOND,
    )
    words = shlex.split(replay_command(options, 7, is_hostile=False))
    said: dict[str, list[str]] = {}
    for flag, value in zip(words[2::2], words[3::2], strict=True):
        said.setdefault(flag, []).append(value)
    assert attachments_from(said["--attach"], 5) == options.attachments
    assert tuple(link for text in said["--link"] for link in links_from_text(text)) == options.links
    assert tuple(map(rate_from_text, said["--rate"])) == options.rates
    assert tuple(map(fault_from, said["--fault"])) == options.faults


def test_options_as_json_have_all_of_it(wide: SimOptions) -> None:
    told = options_json(replace(wide, rates=(Rate(0, 20),), links=(Link(0, 1, rate=1000),)))
    assert told["attachments"] == [[0], [0], [0, 1], [1], [1]]
    never = {"start_ns": 0, "end_ns": None, "pulse_ns": 0}
    assert told["rates"] == [{"node": 0, "per_second": 20, "is_poisson": False, **never}]
    assert told["links"][0]["rate"] == 1000
