"""A page: a head with the numbers that matter most, then sections of text, plots and tables, in one file. Pure.

The file needs nothing beside it, and a browser is told to fetch nothing. Everything that comes from outside is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from ordercast.pipeline.page.plot import Plot, svg_of
from ordercast.pipeline.page.strips import Strips, svg_of_strips
from ordercast.pipeline.page.style import STYLE


@dataclass(frozen=True, slots=True)
class Fact:
    """One number of the head."""

    value: str
    name: str
    note: str = ""  # small, below
    mood: str = ""  # good, bad or nothing


@dataclass(frozen=True, slots=True)
class Text:
    sentence: str
    is_missing: bool = False  # it stands where a plot would


@dataclass(frozen=True, slots=True)
class Code:
    """Commands to copy."""

    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Figure:
    drawing: Plot | Strips
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Side:
    """Two figures or so beside each other, below each other where there is no room."""

    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class PageTable:
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Sequence[str] = ()  # columns of words; the others hold numbers
    wide: Sequence[str] = ()  # columns of long texts, which may be broken
    caption: str = ""


Block = Text | Code | Figure | Side | PageTable


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    blocks: Sequence[Block]
    lead: str = ""  # what one sees here


@dataclass(frozen=True, slots=True)
class Page:
    title: str
    subtitle: str
    facts: Sequence[Fact]
    sections: Sequence[Section]
    foot: str = field(default="")


def html_of(page: Page) -> str:
    names = [_anchor(section.title) for section in page.sections]
    links = " ".join(
        f'<a href="#{name}">{escape(section.title)}</a>' for name, section in zip(names, page.sections, strict=True)
    )
    facts = "".join(_fact(fact) for fact in page.facts)
    sections = "".join(_section(section, name) for name, section in zip(names, page.sections, strict=True))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(page.title)}</title>\n<style>{STYLE}</style></head>\n<body><main>\n"
        f"<header><h1>{escape(page.title)}</h1><p>{escape(page.subtitle)}</p></header>\n"
        f'<div class="facts">{facts}</div>\n<nav>{links}</nav>\n{sections}'
        f"<footer>{escape(page.foot)}</footer>\n</main></body></html>\n"
    )


def _anchor(title: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in title.lower())


def _fact(fact: Fact) -> str:
    note = f"<small>{escape(fact.note)}</small>" if fact.note else ""
    return f'<div class="fact {fact.mood}"><b>{escape(fact.value)}</b><span>{escape(fact.name)}</span>{note}</div>'


def _section(section: Section, name: str) -> str:
    lead = f"<p>{escape(section.lead)}</p>" if section.lead else ""
    body = "".join(_block(block) for block in section.blocks)
    return f'<section id="{name}"><h2>{escape(section.title)}</h2>{lead}{body}</section>\n'


def _block(block: Block) -> str:
    match block:
        case Text():
            kind = ' class="missing"' if block.is_missing else ""
            return f"<p{kind}>{escape(block.sentence)}</p>"
        case Code():
            return f"<pre>{escape(chr(10).join(block.lines))}</pre>"
        case Side():
            return f'<div class="side">{"".join(_block(inner) for inner in block.blocks)}</div>'
        case Figure(drawing=drawing):
            svg = svg_of(drawing) if isinstance(drawing, Plot) else svg_of_strips(drawing)
            caption = f"<figcaption>{escape(block.caption)}</figcaption>" if block.caption else ""
            return f'<figure><h3>{escape(drawing.title)}</h3><div class="plot">{svg}</div>{caption}</figure>'
        case PageTable():
            return _table(block)


def _kind(table: PageTable, column: str) -> str:
    return "words" if column in table.left else "wide" if column in table.wide else "number"


def _table(table: PageTable) -> str:
    kinds = [_kind(table, column) for column in table.columns]
    head = "".join(f'<th class="{kind}">{escape(name)}</th>' for kind, name in zip(kinds, table.columns, strict=True))
    rows = "".join(
        "<tr>"
        + "".join(f'<td class="{kind}">{escape(cell)}</td>' for kind, cell in zip(kinds, row, strict=True))
        + "</tr>"
        for row in table.rows
    )
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    return f'<div class="table"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
