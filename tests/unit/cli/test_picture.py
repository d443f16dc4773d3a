"""The picture of the demo: boxes are views, strips in a box are the same, and nothing jumps."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from ordercast.cli import demo
from ordercast.cli.picture import Picture
from ordercast.cli.recording import Recording, record


@pytest.fixture(scope="module")
def recording() -> Recording:
    return record(demo.DEMO, 1, keep_events=True)


def drawn(picture: Picture, width: int, height: int) -> list[str]:
    console = Console(file=StringIO(), width=width, height=height, force_terminal=False)
    with console.capture() as capture:
        console.print(picture.draw(width, height))
    return capture.get().splitlines()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 32), (200, 60)])
def test_the_picture_fits_and_is_as_high_at_every_moment(recording: Recording, width: int, height: int) -> None:
    film = demo.Film(recording, Picture(5, demo.OPENING))
    heights = set()
    for now in range(50_000_000, recording.virtual_ns, 97_000_000):
        film.play_until(now)
        lines = drawn(film.picture, width, height)
        heights.add(len(lines))
        assert all(len(line) <= width for line in lines)
    assert len(heights) == 1
    assert heights.pop() < height


def test_members_of_a_view_share_a_box_and_a_strip(recording: Recording) -> None:
    film = demo.Film(recording, Picture(5, demo.OPENING))
    film.play_until(600_000_000)
    text = drawn(film.picture, 100, 30)
    assert sum("view" in line and "─" in line for line in text) == 1
    film.play_until(2_000_000_000)
    text = drawn(film.picture, 100, 30)
    assert sum("╭─ view" in line for line in text) == 2
    assert sum("╭─ gone" in line for line in text) == 1
    film.play_until(recording.virtual_ns)
    assert film.is_over
    assert film.picture.is_calm
    rows = [line.split("delivered")[1][-30:] for line in drawn(film.picture, 100, 30) if line.startswith("│ ●")]
    assert len(rows) == 5
    assert len(set(rows)) == 1


def test_the_film_lasts_about_as_long_as_asked(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("ordercast.cli.demo.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("ordercast.cli.demo.time.sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    film = demo.Film(recording, Picture(5, demo.OPENING))
    for now in film.moments(13.0):
        film.play_until(now)
    assert film.is_over
    assert 11 < clock[0] < 16


def test_on_a_terminal_the_show_ends_with_the_picture(recording: Recording) -> None:
    console = Console(file=StringIO(), width=100, height=30, force_terminal=True)
    demo.show(console, recording, seconds=0)
    assert isinstance(console.file, StringIO)
    assert "All are together again" in console.file.getvalue()
