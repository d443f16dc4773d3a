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
    given: dict[str, str] = {}
    for said, value in options.items():
        name = known.get(said.lower())
        if name is None:
            raise UsageError(f"ordercast has no option {said!r} for {for_what}: there are {', '.join(names)}")
        if name in given:
            raise UsageError(f"{name} is given twice: {said} is another name of it")
        given[name] = value
    return given
