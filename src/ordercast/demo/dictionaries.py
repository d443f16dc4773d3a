"""The dictionaries looked at from outside: are they equal, and is everything there that was confirmed? Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ordercast.checker.verdict import Outcome, Verdict, Witness
from ordercast.cli.event_text import counted
from ordercast.replicated.structures.fields import Value, value_bytes

WITNESSES_MAX = 8
Entries = Mapping[Value, Value]


def digest_of(entries: Entries) -> str:
    """Return a digest of all keys and values, in the order in which the keys came."""
    digest = hashlib.blake2b(digest_size=8)
    for key, value in entries.items():
        digest.update(value_bytes(key))
        digest.update(value_bytes(value))
    return digest.hexdigest()


def size_of(entries: Entries) -> int:
    return sum(len(key) + len(value) for key, value in entries.items())


@dataclass(frozen=True, slots=True)
class Audit:
    digests: dict[str, str]  # by replica
    commands: dict[str, int]
    confirmed: int  # keys that were set once, and confirmed
    missing: tuple[str, ...]  # "kv@n1: n2/17"

    @property
    def are_equal(self) -> bool:
        return len(set(self.digests.values())) == 1 == len(set(self.commands.values()))

    def verdicts(self) -> list[Verdict]:
        return [self._equal(), self._present()]

    def _equal(self) -> Verdict:
        if self.are_equal:
            digest, count = next(iter(self.digests.values())), next(iter(self.commands.values()))
            sentence = f"all {len(self.digests)} have {counted(count, 'command')} and the digest {digest}"
            return Verdict(None, Outcome.VALID, sentence)
        each = [f"{name} has {self.commands[name]:,} commands, {digest}" for name, digest in self.digests.items()]
        return Verdict(None, Outcome.INVALID, f"the dictionaries differ: {each[0]}", tuple(map(Witness, each)))

    def _present(self) -> Verdict:
        if not self.missing:
            where = f"every one of {self.confirmed:,} confirmed entries is in every dictionary"
            return Verdict(None, Outcome.VALID, where)
        sentence = f"{len(self.missing):,} confirmed entries are missing or wrong, such as {self.missing[0]}"
        return Verdict(None, Outcome.INVALID, sentence, tuple(map(Witness, self.missing[:WITNESSES_MAX])))


def audit_of(dictionaries: Mapping[str, Entries], commands: Mapping[str, int], confirmed: Mapping[str, str]) -> Audit:
    """`confirmed`: keys that were set once, with their values."""
    digests = {name: digest_of(entries) for name, entries in dictionaries.items()}
    missing = tuple(_missing(dictionaries, confirmed.items()))
    return Audit(digests, dict(commands), len(confirmed), missing)


def _missing(dictionaries: Mapping[str, Entries], confirmed: Iterable[tuple[str, str]]) -> Iterable[str]:
    for key, value in confirmed:
        for name, entries in dictionaries.items():
            if entries.get(key) != value:
                yield f"{name}: {key}"
