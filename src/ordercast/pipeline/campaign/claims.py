"""What a paper says of one curve beside another, and whether ours agree: "2,000 to 4,000 KB/s more than …". Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ordercast.model.errors import UsageError
from ordercast.pipeline.page.scales import number_text

_KEYS = ("note", "curve", "over", "low", "high", "as")
_DIFFERENCE, _RATIO = "difference", "ratio"


@dataclass(frozen=True, slots=True)
class Claim:
    note: str  # in the paper's sense
    curve: str  # places on the axis of the series: this one …
    over: str  # … beside this one
    low: float
    high: float
    is_ratio: bool  # otherwise a difference

    def of(self, value: float, base: float) -> float:
        return value / base if self.is_ratio else value - base

    def bounds(self, base: float) -> tuple[float, float]:
        """Where the curve should be, when the other one is here."""
        return (base * self.low, base * self.high) if self.is_ratio else (base + self.low, base + self.high)


@dataclass(frozen=True, slots=True)
class Finding:
    """What ours are, by place on the axis."""

    claim: Claim
    found: Mapping[float, float]

    @property
    def within(self) -> list[float]:
        return [x for x, value in self.found.items() if self.claim.low <= value <= self.claim.high]

    @property
    def range_text(self) -> str:
        if not self.found:
            return "–"
        lowest, highest = min(self.found, key=self.found.__getitem__), max(self.found, key=self.found.__getitem__)
        return f"{self._value(lowest)} at {number_text(lowest)} … {self._value(highest)} at {number_text(highest)}"

    @property
    def within_text(self) -> str:
        within = self.within
        outside = [x for x in self.found if x not in within]
        if not outside:
            return "everywhere" if within else "–"
        if len(outside) < len(within):
            return f"all but {', '.join(map(number_text, outside))}"
        return ", ".join(map(number_text, within)) or "nowhere"

    def _value(self, x: float) -> str:
        value = self.found[x]
        return f"{value:.2f}" if self.claim.is_ratio else ("+" if value > 0 else "") + number_text(round(value))


def finding_of(claim: Claim, means: Mapping[str, Mapping[float, float]]) -> Finding:
    """`means`: every curve by name."""
    curve, over = means.get(claim.curve, {}), means.get(claim.over, {})
    return Finding(claim, {x: claim.of(curve[x], over[x]) for x in sorted(curve.keys() & over.keys())})


def claim_from(table: Mapping[str, Any]) -> Claim:
    stranger = next((key for key in table if key not in _KEYS), None)
    if stranger is not None:
        raise UsageError(f"a claim has no key {stranger!r}: it may have {', '.join(_KEYS)}")
    kind = table.get("as", _DIFFERENCE)
    if kind not in (_DIFFERENCE, _RATIO):
        raise UsageError(f"as = {kind!r} cannot be used: choose among {_DIFFERENCE}, {_RATIO}")
    low, high = float(table["low"]), float(table["high"])
    if low > high:
        raise UsageError(f"claim {table['note']!r}: low = {low:g} is above high = {high:g}")
    return Claim(str(table["note"]), str(table["curve"]), str(table["over"]), low, high, kind == _RATIO)


def check_claims(claims: Sequence[Claim], names: set[str], title: str) -> None:
    """UsageError when one is about a curve that is not there."""
    for claim in claims:
        for name in (claim.curve, claim.over):
            if name not in names:
                raise UsageError(
                    f"comparison {title!r}: there is no curve {name!r}, there are {', '.join(sorted(names))}"
                )
