"""Sections of a report that one engine alone has, and the numbers at its head, by the names of the engines. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ordercast.pipeline.page.html import Fact, Section
from ordercast.pipeline.page.scales import time_text
from ordercast.pipeline.report.course import flow_section, retransmission_section, rotation_section, token_rows
from ordercast.pipeline.report.source import Sources
from ordercast.pipeline.report.tables import Tables
from ordercast.pipeline.report.token import ROTATION


class EnginePart(NamedTuple):
    sections: Callable[[Tables, Sources], list[Section]]
    facts: Callable[[Tables], list[Fact]]


def _ring_sections(tables: Tables, sources: Sources) -> list[Section]:
    return [rotation_section(tables), retransmission_section(tables), flow_section(tables, sources.infos())]


def _ring_facts(tables: Tables) -> list[Fact]:
    _, total = token_rows(tables)
    facts = []
    if total is not None and total[f"{ROTATION}_count"]:
        half, _, high, _ = total[f"{ROTATION}_percentiles"]
        facts.append(Fact(time_text(half), "token rotation, median", f"99 %: {time_text(high)}"))
    if total is not None and total["sent"]:
        facts.append(Fact(f"{total['retransmitted'] / total['sent']:.2%}", "packets sent again"))
    return facts


NOTHING = EnginePart(lambda tables, sources: [], lambda tables: [])
ENGINE_PARTS: Mapping[str, EnginePart] = {"ring": EnginePart(_ring_sections, _ring_facts)}


def parts_of(tables: Tables) -> list[EnginePart]:
    """Return the parts of the engines that ran; a run that does not say ran the ring. Comparison engines have nothing
    of their own."""
    names = dict.fromkeys(name or "ring" for name in tables.runs["engine"].to_pylist())
    return [ENGINE_PARTS.get(name, NOTHING) for name in names]
