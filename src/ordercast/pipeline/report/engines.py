"""Sections of a report that one engine alone has, and the numbers at its head, by the names of the engines. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ordercast.pipeline.page.html import Fact, Section
from ordercast.pipeline.report.ring import ring_facts, ring_sections
from ordercast.pipeline.report.source import Sources
from ordercast.pipeline.report.tables import Tables


class EnginePart(NamedTuple):
    sections: Callable[[Tables, Sources], list[Section]]
    facts: Callable[[Tables], list[Fact]]


NOTHING = EnginePart(lambda tables, sources: [], lambda tables: [])
ENGINE_PARTS: Mapping[str, EnginePart] = {
    "ring": EnginePart(ring_sections, ring_facts),
    "gateways": NOTHING,
    "adaptive": NOTHING,
    "sites": NOTHING,
    "tree": NOTHING,
}


def parts_of(tables: Tables) -> list[EnginePart]:
    """Return the parts of the engines that ran; a run that does not say ran the ring. Comparison engines have nothing
    of their own."""
    names = dict.fromkeys(name or "ring" for name in tables.runs["engine"].to_pylist())
    return [ENGINE_PARTS.get(name, NOTHING) for name in names]
