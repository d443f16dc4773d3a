"""What is not installed with Ordercast itself: packages, and the extras that bring them."""

from __future__ import annotations

EXTRAS = {
    "rich": "cli",
    "pyarrow": "trace",
    "numpy": "trace",
    "pandas": "spark",
    "pyspark": "spark",
    "msgpack": "msgpack",
}


def missing_extra(who: str, error: ModuleNotFoundError) -> str:
    """Return what needs which package, and how it is installed. The error itself is raised if it is none of these."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        raise error
    return f"{who} needs {package}: install it with `pip install 'ordercast[{EXTRAS[package]}]'`"
