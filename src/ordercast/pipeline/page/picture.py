"""A plot as a file of its own, with its colours and its ground in it. Pure."""

from __future__ import annotations

from ordercast.pipeline.page.plot import Plot, svg_of
from ordercast.pipeline.page.style import COLOURS, PLOTS


def svg_file_of(plot: Plot) -> str:
    """Return a whole SVG file."""
    head, body = svg_of(plot).split(">", 1)
    head = head.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ')
    ground = '<rect width="100%" height="100%" style="fill:var(--sheet)"/>'
    return f"{head}><style>{COLOURS}{PLOTS}</style>{ground}{body}\n"
