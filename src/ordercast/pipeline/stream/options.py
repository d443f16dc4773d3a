"""Options of the format, by one name each. Spark hands them on in any case, and Kafka's names mean what they mean
there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ordercast.model.errors import UsageError


def named(
    options: Mapping[str, str], names: Sequence[str], aliases: Mapping[str, str], for_what: str
) -> dict[str, str]:
    """Return the options by their names. UsageError for one that does not exist, or is given twice."""
    known = {name.lower(): name for name in names} | {alias.lower(): name for alias, name in aliases.items()}
    spelled = {alias.lower(): alias for alias in aliases}
    given: dict[str, str] = {}
    for said, value in options.items():
        name = known.get(said.lower())
        if name is None:
            raise UsageError(f"ordercast has no option {said!r} for {for_what}: there are {', '.join(names)}")
        if name in given:
            others = [alias for low, alias in spelled.items() if known[low] == name and low in map(str.lower, options)]
            raise UsageError(f"{name} is given twice: {' and '.join(others)} is another name of it")
        given[name] = value
    return given
