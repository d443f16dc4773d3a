"""Draws what `bench/live.py` measured: throughput beside Corosync's, and what each choice costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

OURS, THEIRS, GREY = "#2563a8", "#c8743a", "#666666"


def draw(document: dict[str, Any], path: Path) -> None:
    pyplot.rcParams.update(
        {"font.size": 10, "svg.fonttype": "none", "axes.spines.top": False, "axes.spines.right": False}
    )
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 5.2), width_ratios=(1, 1.25))
    _throughput(left, document)
    _choices(right, document)
    figure.suptitle(f"Four nodes on one machine with {document['cores']} cores, {document['interpreter']}", fontsize=10)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def _throughput(axes: Any, document: dict[str, Any]) -> None:
    sizes = sorted({row["case"]["size"] for row in document["outcomes"]})
    ours = [_best_of_ours(document, size) for size in sizes]
    theirs = [_best_of_theirs(document, size) for size in sizes]
    for at, (size, mine, other) in enumerate(zip(sizes, ours, theirs, strict=True)):
        mbit, other_mbit = mine * size * 8 / 1e6, other * size * 8 / 1e6
        axes.bar(at - 0.2, mbit, 0.38, color=OURS)
        axes.bar(at + 0.2, other_mbit, 0.38, color=THEIRS)
        axes.annotate(_thousands(mine), (at - 0.2, mbit), ha="center", va="bottom", fontsize=8)
        if other:
            axes.annotate(_thousands(other), (at + 0.2, other_mbit), ha="center", va="bottom", fontsize=8)
            axes.annotate(
                f"{mine / other:.1f}×", (at, 0), (0, -30), textcoords="offset points", ha="center", color=GREY
            )
    axes.set_xticks(range(len(sizes)), [f"{size:,} B" for size in sizes])
    axes.set_ylabel("Mbit/s delivered at each node (messages/s above the bars)")
    axes.bar(0, 0, color=OURS, label="Ordercast, Python")
    axes.bar(0, 0, color=THEIRS, label="Corosync, best of three configurations")
    axes.set_ylim(top=axes.get_ylim()[1] * 1.2)
    axes.legend(frameon=False, loc="upper left")
    axes.set_title("Throughput, agreed delivery")


def _thousands(count: float) -> str:
    return f"{count / 1e3:,.0f}k" if count >= 10_000 else f"{count / 1e3:,.1f}k"


def _choices(axes: Any, document: dict[str, Any]) -> None:
    """Every other row of 1,350 bytes, as a share of the plain one."""
    rows = [row for row in document["outcomes"] if row["case"]["size"] == 1350 and not row["case"]["rate"]]
    names = [_words(row["case"]) for row in rows]
    values = [row["per_s"] / 1e3 for row in rows]
    axes.barh(range(len(rows)), values, color=OURS)
    for at, value in enumerate(values):
        axes.annotate(f"{value:,.0f}k", (value, at), (3, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(range(len(rows)), names)
    axes.invert_yaxis()
    axes.set_xlabel("thousand messages of 1,350 B per second at each node")
    axes.set_title("One thing changed at a time")


def _words(case: dict[str, Any]) -> str:
    words = ["one sends" if case["senders"] == 1 else "all send"]
    words += ["8 nodes"] if case["nodes"] == 8 else []
    words += [case["service"]] if case["service"] != "agreed" else []
    words += ["one by one"] if case["delivery"] == "messages" else []
    words += [f"trace {case['trace']}"] if case["trace"] != "off" else []
    words += [] if case["segmentation"] else ["no offload"]
    words += [] if case["wire"] else ["single datagrams on the wire"]
    words += ["accelerated"] if case["accelerated"] else []
    return ", ".join(words[1:] or words)


def _best_of_ours(document: dict[str, Any], size: int) -> float:
    plain = {"nodes": 4, "service": "agreed", "delivery": "batches", "trace": "off", "segmentation": True, "wire": True}
    plain |= {"accelerated": False, "rate": 0.0, "size": size}
    rows = [row for row in document["outcomes"] if all(row["case"][key] == value for key, value in plain.items())]
    return max((row["per_s"] for row in rows), default=0.0)


def _best_of_theirs(document: dict[str, Any], size: int) -> float:
    rows = [row for row in document["corosync"] if row["load"]["size"] == size and not row["load"]["rate"]]
    return max((row["delivered_per_s"] for row in rows if not row["problem"]), default=0.0)
