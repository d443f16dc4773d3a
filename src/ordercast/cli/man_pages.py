"""`ordercast man`: prints or writes manual pages."""

from __future__ import annotations

from pathlib import Path

from ordercast import __version__
from ordercast.cli.commands import CHAPTERS, NAMES, declared
from ordercast.cli.man_page import man_of_all, man_page
from ordercast.model.errors import UsageError


def page_of(name: str) -> str:
    """Return the page of a command; of all of them when none is named."""
    if not name:
        chapters = {title: [declared(one) for one in names] for title, names in CHAPTERS.items()}
        return man_of_all(chapters, __version__)
    if name not in NAMES:
        raise UsageError(f"there is no command {name!r}: `ordercast --help` lists them")
    return man_page(declared(name), __version__)


def write_pages(folder: Path) -> int:
    """Write all pages into a folder; return how many."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("", *NAMES):
            (folder / f"ordercast{'-' if name else ''}{name}.1").write_text(page_of(name), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror}; give --out a folder of yours") from error
    return 1 + len(NAMES)
