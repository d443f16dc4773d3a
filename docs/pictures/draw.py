"""Draws the pictures of the documentation: python docs/pictures/draw.py

Each is a small SVG on a ground of its own, so that it can be read on a light page and on a dark one. The terminal is
drawn from a transcript beside this file, as it was printed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

HERE = Path(__file__).parent

# Class: (property, on a light page, on a dark page)
COLOURS = {
    "ground": ("fill", "#ffffff", "#0d1117"),
    "frame": ("stroke", "#d0d7de", "#3d444d"),
    "text": ("fill", "#1f2328", "#f0f6fc"),
    "dim": ("fill", "#59636e", "#9198a1"),
    "line": ("stroke", "#818b98", "#656c76"),
    "blue": ("fill", "#0969da", "#1f6feb"),
    "orange": ("fill", "#b35900", "#9e4c00"),
    "purple": ("fill", "#8250df", "#8957e5"),
    "green": ("fill", "#1a7f37", "#238636"),
    "grey": ("fill", "#59636e", "#545d68"),
    "alarm": ("stroke", "#d1242f", "#f85149"),
    "warning": ("fill", "#d1242f", "#f85149"),
    "tint": ("fill", "#f1f4f7", "#161b22"),
}
SANS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, 'SFMono-Regular', Menlo, Consolas, 'DejaVu Sans Mono', monospace"


class Picture:
    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self._parts: list[str] = []

    def text(self, x: float, y: float, words: str, look: str = "text", at: str = "start", size: int = 13) -> None:
        self._parts.append(
            f'<text x="{x}" y="{y}" class="{look}" text-anchor="{at}" font-size="{size}">{escape(words)}</text>'
        )

    def box(self, x: float, y: float, width: float, words: str, look: str, height: float = 24) -> None:
        """White words on a colour."""
        self._parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" class="{look}"/>')
        self._parts.append(
            f'<text x="{x + width / 2}" y="{y + height / 2 + 4.5}" text-anchor="middle" font-size="13" fill="#ffffff">'
            f"{escape(words)}</text>"
        )

    def area(self, x: float, y: float, width: float, height: float) -> None:
        self._parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" class="tint"/>')

    def line(self, x: float, y: float, to_x: float, to_y: float, look: str = "line", extra: str = "") -> None:
        self._parts.append(
            f'<line x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}" class="{look}" stroke-width="1.5" {extra}/>'
        )

    def arrow(self, x: float, y: float, to_x: float) -> None:
        """To the right: time."""
        self.line(x, y, to_x - 2, y)
        self._parts.append(f'<path d="M{to_x - 8} {y - 4} L{to_x} {y} L{to_x - 8} {y + 4}" class="line" fill="none"/>')

    def svg(self) -> str:
        light = " ".join(f".{name} {{ {kind}: {light} }}" for name, (kind, light, _) in COLOURS.items())
        dark = " ".join(f".{name} {{ {kind}: {dark} }}" for name, (kind, _, dark) in COLOURS.items())
        return "\n".join(
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
                f'viewBox="0 0 {self.width} {self.height}" role="img" font-family="{SANS}">',
                f"<title>{escape(self.title)}</title>",
                f"<style>{light} @media (prefers-color-scheme: dark) {{ {dark} }}</style>",
                f'<rect x="0.5" y="0.5" width="{self.width - 1}" height="{self.height - 1}" rx="8" '
                'class="ground frame"/>',
                *self._parts,
                "</svg>\n",
            )
        )


def groups() -> str:
    """One order, of which each client gets its part."""
    picture = Picture(720, 216, "One order for all groups. Each client gets the messages to its groups, in that order.")
    orders, billing, both = ("blue", "orders"), ("orange", "billing"), ("purple", "orders + billing")
    order = [orders, billing, both, orders, billing, orders]
    widths = {"orders": 66, "billing": 66, "orders + billing": 122}
    picture.text(20, 38, "the order", "dim")
    places, x = [], 150.0
    for look, words in order:
        picture.box(x, 22, widths[words], words, look)
        places.append((x, widths[words]))
        x += widths[words] + 14
    picture.arrow(150, 62, 700)
    for row, (name, joined) in enumerate(
        (("alice", {"orders"}), ("bob", {"orders", "billing"}), ("carol", {"billing"}))
    ):
        y = 82 + 42 * row
        picture.area(10, y, 700, 36)
        picture.text(20, y + 16, name)
        picture.text(20, y + 30, "in " + ", ".join(sorted(joined, reverse=True)), "dim", size=11)
        for (look, words), (place, width) in zip(order, places, strict=True):
            if joined & set(words.split(" + ")):
                picture.box(place, y + 6, width, words, look)
    return picture.svg()


def transition() -> str:
    """A daemon is lost, as a member of a group reads it."""
    picture = Picture(
        720, 196, "Between the transition and the next view: messages that those who are lost may have or not."
    )
    picture.text(20, 30, "What alice and bob read when carol's daemon is lost", "dim")
    picture.box(20, 48, 172, "View  alice bob carol", "green")
    picture.box(202, 48, 34, "m1", "blue")
    picture.box(242, 48, 34, "m2", "blue")
    picture.box(290, 48, 176, "Transition  alice bob", "grey")
    picture.box(480, 48, 34, "m3", "orange")
    picture.box(528, 48, 136, "View  alice bob", "green")
    picture.box(674, 48, 34, "m4", "blue")
    picture.arrow(20, 88, 706)
    for x, to_x, words, more in (
        (20, 276, "in the view of three:", "what is safe here, all three have"),
        (290, 514, "perhaps not at carol:", "alice and bob have it, both"),
        (528, 708, "in the view of two:", "carol gets nothing of it"),
    ):
        picture.line(x, 104, to_x, 104)
        picture.line(x, 100, x, 108)
        picture.line(to_x, 100, to_x, 108)
        picture.text((x + to_x) / 2, 126, words, at="middle", size=12)
        picture.text((x + to_x) / 2, 143, more, "dim", at="middle", size=12)
    picture.text(20, 178, "Both read the same events in the same order, m3 included.", size=12)
    return picture.svg()


def merge() -> str:
    """A network splits and heals, as the members of one group read it."""
    picture = Picture(720, 276, "A split and a merge, as the members of a group read them.")
    rows = ((56, "alice, bob", "alice bob"), (150, "carol", "carol"))
    for y, _, _ in rows:
        picture.area(10, y, 700, 78)
    for x, words in ((206, "the network splits"), (508, "it heals")):
        picture.line(x, 40, x, 232, "alarm", 'stroke-dasharray="4 4"')
        picture.text(x, 30, words, "warning", "middle", 12)
    for y, names, mine in rows:
        picture.text(20, y + 24, names)
        for x, width, words, below in (
            (20, 168, "View  alice bob carol", ""),
            (224, 118, "Transition", f"remain: {mine}"),
            (350, 142, f"View  {mine}", f"transitional: {mine}"),
            (526, 172, "View  alice bob carol", f"transitional: {mine}"),
        ):
            picture.box(x, y + 36, width, words, "grey" if words == "Transition" else "green")
            picture.text(x + 2, y + 26, below, "dim", size=11)
    picture.arrow(20, 244, 706)
    words = "At the merge nobody is lost, so there is no transition: the view says with whom you come."
    picture.text(20, 264, words, "dim", size=12)
    return picture.svg()


COLUMNS = 97  # of a terminal
ADVANCE, LINE, BAR = 7.83, 19, 34  # pixels: of a character, of a line, above the first


def chat() -> str:
    """Terminals as they were: a transcript, its windows headed by ===. Dark, on any page."""
    windows: list[tuple[str, list[tuple[str, str]]]] = []  # title; lines, with the colour of each
    for line in (HERE / "chat.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("=== "):
            windows.append((line.removeprefix("=== "), []))
        else:
            wrapped = [line[at : at + COLUMNS] for at in range(0, len(line), COLUMNS)]
            windows[-1][1].extend((part, _colour_of(line)) for part in wrapped)
    width = round(COLUMNS * ADVANCE) + 40
    parts, y = [], 0
    for title, lines in windows:
        height = BAR + LINE * len(lines) + 16
        parts += _window(title, lines, y, width, height)
        y += height + 12
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y - 12}" viewBox="0 0 {width} {y - 12}" '
            f'role="img" font-family="{MONO}" font-size="13">',
            "<title>Three daemons, a chat, and a daemon that is killed</title>",
            *parts,
            "</svg>\n",
        )
    )


def _window(title: str, lines: Sequence[tuple[str, str]], top: int, width: int, height: int) -> list[str]:
    parts = [
        f'<rect x="0.5" y="{top + 0.5}" width="{width - 1}" height="{height - 1}" rx="9" fill="#10151c" '
        'stroke="#57606a"/>',
        *(f'<circle cx="{20 + 17 * n}" cy="{top + 18}" r="5" fill="{fill}"/>' for n, fill in enumerate(_LIGHTS)),
        f'<text x="{width / 2}" y="{top + 22}" text-anchor="middle" fill="#9198a1" font-size="12">{title}</text>',
    ]
    for number, (line, colour) in enumerate(lines):
        words = escape(line.replace(" ", "\N{NO-BREAK SPACE}"))  # blanks in a row would become one
        parts.append(
            f'<text x="20" y="{top + BAR + 19 + number * LINE}" fill="{colour}" '
            f'textLength="{len(line) * ADVANCE:.1f}">{words}</text>'
        )
    return parts


_LIGHTS = ("#ff5f57", "#febc2e", "#28c840")
_SPEAKERS = {"alice": "#f0f6fc", "bob": "#76e3ea", "carol": "#d2a8ff"}


def _colour_of(words: str) -> str:
    speaker, colon, _ = words.partition(": ")
    if words.startswith("$"):
        return "#7ee787"
    if "warning:" in words or words.startswith("The network"):
        return "#e3b341"
    if colon and speaker in _SPEAKERS:
        return _SPEAKERS[speaker]
    return "#9198a1" if words.endswith(".") or words == "…" else "#e6edf3"


PICTURES: dict[str, Callable[[], str]] = {
    "chat.svg": chat,
    "groups.svg": groups,
    "transition.svg": transition,
    "merge.svg": merge,
}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (HERE / name).write_text(draw(), encoding="utf-8")
