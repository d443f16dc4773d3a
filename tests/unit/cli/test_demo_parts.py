"""The parts of the demo that need no cluster: waits with a bound, the log, the audit of dictionaries, the panels."""

from __future__ import annotations

import asyncio
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from ordercast.checker.verdict import Outcome
from ordercast.demo.dictionaries import audit_of
from ordercast.demo.display import Display, Teller
from ordercast.demo.log import Entry, Kind, Log
from ordercast.demo.stage import Stage
from ordercast.demo.waiting import News, NotSettled
from ordercast.replicated.structures.fields import Value

# Waiting


def test_who_waits_is_woken_by_what_happens() -> None:
    async def wait() -> list[int]:
        news, seen = News(), list[int]()

        async def happen() -> None:
            for number in range(3):
                seen.append(number)
                news.wake()
                await asyncio.sleep(0)

        happening = asyncio.create_task(happen())
        await news.until(lambda: len(seen) == 3, "three things happened")
        await happening
        return seen

    assert asyncio.run(wait()) == [0, 1, 2]


def test_what_does_not_come_about_ends_the_wait_with_a_sentence() -> None:
    with pytest.raises(NotSettled, match="after 0 s it has not come about that pigs fly: is this machine very busy"):
        asyncio.run(News(patience_s=0.01).until(lambda: False, "pigs fly"))


def test_what_has_failed_ends_every_wait_with_the_first_reason() -> None:
    async def fail() -> None:
        news = News()
        waiting = asyncio.create_task(news.until(lambda: False, "pigs fly"))
        await asyncio.sleep(0)
        news.fail("the daemon n1 has ended by itself")
        news.fail("and so has n2")
        await waiting

    with pytest.raises(NotSettled, match=r"^the daemon n1 has ended by itself$"):
        asyncio.run(fail())


# The log


def told_by(*tellings: tuple[Kind, str, str, float]) -> list[Entry]:
    """Kind, text, who, and the time by the wall clock, before now."""

    async def tell() -> list[Entry]:
        entries: list[Entry] = []
        log = Log(entries.append)
        for kind, text, who, wall in tellings:
            log.tell(kind, text, who, wall=wall)
        log.flush()
        assert log.entries == entries
        return entries

    return asyncio.run(tell())


def test_those_who_see_the_same_share_a_line() -> None:
    first, second = told_by(
        (Kind.VIEW, "view 8.n1 of n1 n2", "n2", 100.0),
        (Kind.GROUP, "chat: bob@n2 came", "n1", 100.2),
        (Kind.VIEW, "view 8.n1 of n1 n2", "n1", 100.1),
    )
    assert (first.kind, first.who, first.text) == (Kind.VIEW, ("n1", "n2"), "view 8.n1 of n1 n2")
    assert second.who == ("n1",)


def test_lines_are_in_the_order_of_time_whichever_comes_first() -> None:
    entries = told_by((Kind.GROUP, "what a client read", "n1", 100.2), (Kind.VIEW, "a daemon's view", "n1", 100.1))
    assert [entry.text for entry in entries] == ["a daemon's view", "what a client read"]


def test_a_line_appears_by_itself_after_a_moment() -> None:
    async def tell() -> Entry:
        came: asyncio.Future[Entry] = asyncio.get_running_loop().create_future()
        Log(came.set_result).tell(Kind.LIFE, "starts", "n1")
        return await asyncio.wait_for(came, 60)

    assert asyncio.run(tell()).text == "starts"


def test_off_a_terminal_an_event_is_one_line_however_long() -> None:
    file = StringIO()
    teller = Teller(Console(file=file, width=60))
    teller.tell(Entry(0.0, Kind.CHAPTER, (), "It begins."))
    teller.tell(Entry(1.25, Kind.FAULT, ("n1", "n2"), "very " * 40 + "long"))
    blank, chapter, line = file.getvalue().splitlines()
    assert (blank, chapter) == ("", "1. It begins.")
    assert line.startswith("  1.250 s  n1 n2        ✗ very very")
    assert line.endswith("long")


# Dictionaries


def audit(**dictionaries: dict[Value, Value]) -> list[Outcome]:
    commands = dict.fromkeys(dictionaries, 2)
    found = audit_of(dictionaries, commands, {"a": "1", "b": "2"})
    return [verdict.outcome for verdict in found.verdicts()]


def test_equal_dictionaries_with_all_that_was_confirmed_are_valid() -> None:
    assert audit(one={"a": "1", "b": "2"}, two={"a": "1", "b": "2"}) == [Outcome.VALID, Outcome.VALID]


def test_a_difference_is_invalid_and_so_is_what_is_missing() -> None:
    assert audit(one={"a": "1", "b": "2"}, two={"a": "1", "b": "3"}) == [Outcome.INVALID, Outcome.INVALID]
    assert audit(one={"a": "1"}, two={"a": "1"}) == [Outcome.VALID, Outcome.INVALID]
    assert audit(one={"a": "1", "b": "2", "c": "3"}, two={"a": "1", "b": "2"}) == [Outcome.INVALID, Outcome.VALID]
    assert audit(one={"a": "1", "b": "2"}, two={"b": "2", "a": "1"})[0] is Outcome.INVALID  # another order of keys


# The panels


@pytest.mark.parametrize("width", [80, 100, 140])
def test_the_panels_fit_and_have_a_row_for_each_daemon(width: int, tmp_path: Path) -> None:
    async def draw() -> list[str]:
        stage = Stage(tmp_path, tmp_path, Log(lambda entry: None), News())
        console = Console(file=StringIO(), width=width, force_terminal=False)
        with console.capture() as capture:
            console.print(Display(console, stage).draw())
        return capture.get().splitlines()

    lines = asyncio.run(draw())
    assert all(len(line) <= width for line in lines)
    assert [name for name in ("n1", "n2", "n3", "n4") if any(name in line for line in lines)] == [
        "n1",
        "n2",
        "n3",
        "n4",
    ]
    assert len({len(line) for line in lines}) == 1
