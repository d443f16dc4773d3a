"""`ordercast graph laboratory`: the thesis' protocols, what each guarantees, and a seed at which it gives no more."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from ordercast.cli.tables import new_table
from ordercast.cli.terminal import Meter, output, write_json
from ordercast.sim.laboratory.rows import ROWS, Found, judged
from ordercast.sim.laboratory.world import FRAGMENT, NETWORK, NULLS

COLUMNS = ("protocol", "guarantee", "bound", "asked", "verdict")


def examined(seeds: range, *, as_json: bool) -> int:
    """Run every protocol with these seeds, and judge it. Exit status 1 if one is not as the thesis says."""
    found: list[Found] = []
    with Meter("laboratory", len(ROWS)) as meter:
        for place, row in enumerate(ROWS, 1):
            found += judged(row, seeds)
            meter.show(place, row.name)
    if as_json:
        write_json(_document(found, seeds))
    else:
        _print(found)
    return 0 if all(one.is_as_said for one in found) else 1


def _verdict(one: Found) -> Text:
    if one.is_promised:
        return Text("kept", "green") if one.is_as_said else Text(f"BROKEN with seed {one.seed}: {one.sentence}", "red")
    if one.seed is None:
        return Text("not promised, and no seed here shows it: give more", "yellow")
    return Text(f"not promised; broken with seed {one.seed}: {one.sentence}")


def _print(found: list[Found]) -> None:
    console = output()
    for row in ROWS:
        table = new_table(*COLUMNS[1:], right=("bound", "asked"), title=f"{row.name}: {row.idea}")
        for one in found:
            if one.protocol == row.name:
                bound = f"{one.bound:,}" if one.bound else ""
                table.add_row(one.guarantee, bound, f"{one.applied:,}", _verdict(one))
        console.print(table)
    units = f"φ_P = {FRAGMENT:,}, φ_N = {NETWORK:,}, δ = {NULLS:,} units of time; P0, Q0 and R0 guarantee nothing"
    console.print(Text(units, "dim"), soft_wrap=True)


def _document(found: list[Found], seeds: range) -> dict[str, Any]:
    return {
        "seeds": [seeds[0], seeds[-1]],
        "guarantees": [
            {
                "protocol": one.protocol,
                "guarantee": one.guarantee,
                "bound": one.bound,
                "promised": one.is_promised,
                "asked": one.applied,
                "broken_with_seed": one.seed,
                "how": one.sentence,
                "as_said": one.is_as_said,
            }
            for one in found
        ],
    }
