"""What is written on a page can be read, in light and in dark."""

from __future__ import annotations

import re

import pytest

from ordercast.pipeline.page.style import COLOURS, PLOTS

Colour = tuple[float, float, float]
WANTED = 4.5  # to 1, for text


def colours(mode: str) -> dict[str, Colour]:
    light, dark = COLOURS.split("@media")
    named = re.findall(r"--(\w+):(#\w+)", light) + (re.findall(r"--(\w+):(#\w+)", dark) if mode == "dark" else [])
    return {name: colour(text) for name, text in named}


def colour(text: str) -> Colour:
    digits = text.removeprefix("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    red, green, blue = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    return red, green, blue


def contrast(one: Colour, other: Colour) -> float:
    """As the guidelines for accessible pages define it."""

    def luminance(colour: Colour) -> float:
        red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in colour)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_the_guidelines() -> None:
    assert contrast(colour("#fff"), colour("#000")) == pytest.approx(21)
    assert contrast(colour("#777"), colour("#fff")) == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("text", ["ink", "soft", "good", "bad", "c0"])
def test_text_stands_out_from_what_is_behind_it(mode: str, text: str) -> None:
    known = colours(mode)
    for behind in ("paper", "sheet"):
        assert contrast(known[text], known[behind]) >= WANTED, behind


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_inside_stretches_stands_out_from_them(mode: str) -> None:
    known = colours(mode)
    (ink,) = re.findall(r"svg \.inside\{fill:(#\w+)", PLOTS)
    light, dark = re.findall(r"\.stretch\{fill-opacity:([.\d]+)\}", PLOTS)
    opacity = float(light if mode == "light" else dark)
    for number in range(8):
        pairs = zip(known[f"c{number}"], known["sheet"], strict=True)
        red, green, blue = (opacity * front + (1 - opacity) * back for front, back in pairs)
        assert contrast(colour(ink), (red, green, blue)) >= WANTED, number
