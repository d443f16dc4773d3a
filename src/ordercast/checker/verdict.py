"""What a checker says: one of four outcomes, a sentence for people, and the witnesses that prove it.

Verdicts combine: the worst wins. UNKNOWN is worse than VALID, because a history that cannot be judged must not pass for
one that was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, ProcessId, process_text
from ordercast.model.promises import AnyPromise
from ordercast.trace.records import MessageId


class Outcome(Enum):
    VALID = "VALID"
    INVALID = "INVALID"
    UNKNOWN = "UNKNOWN"
    NOT_PROMISED = "NOT PROMISED"

    @property
    def severity(self) -> int:
        return _SEVERITY[self]


_SEVERITY = {Outcome.NOT_PROMISED: 0, Outcome.VALID: 1, Outcome.UNKNOWN: 2, Outcome.INVALID: 3}


@dataclass(frozen=True, slots=True)
class Witness:
    """One place in the history that shows the fault, or the reason for doubt."""

    what: str
    process: ProcessId | None = None
    message: MessageId | None = None
    view: ConfigurationId | None = None

    def __str__(self) -> str:
        place = [] if self.process is None else [process_text(self.process)]
        if self.message is not None:
            place.append(f"message {message_text(self.message)}")
        if self.view is not None:
            place.append(f"view {view_text(self.view)}")
        return f"{', '.join(place)}: {self.what}" if place else self.what


@dataclass(frozen=True, slots=True)
class Verdict:
    """`promise` is None for the combination of several."""

    promise: AnyPromise | None
    outcome: Outcome
    sentence: str
    witnesses: tuple[Witness, ...] = ()

    def __str__(self) -> str:
        name = "all promises" if self.promise is None else self.promise.value
        return f"{name}: {self.outcome.value}: {self.sentence}"


def combined(verdicts: Sequence[Verdict]) -> Verdict:
    """The worst outcome, with the sentence of each that has it."""
    if not verdicts:
        return Verdict(None, Outcome.UNKNOWN, "nothing was checked")
    worst = max((verdict.outcome for verdict in verdicts), key=lambda outcome: outcome.severity)
    having = [verdict for verdict in verdicts if verdict.outcome is worst]
    if worst in (Outcome.VALID, Outcome.NOT_PROMISED):
        sentence = f"{len(having)} of {len(verdicts)} promises {worst.value}"
    else:
        sentence = "; ".join(f"{_name(verdict)}: {verdict.sentence}" for verdict in having)
    return Verdict(None, worst, sentence, tuple(witness for verdict in having for witness in verdict.witnesses))


def _name(verdict: Verdict) -> str:
    return "combined" if verdict.promise is None else verdict.promise.value


def message_text(message: MessageId) -> str:
    """`n2/0#5`: the fifth message of sender 0 at node 2."""
    return f"{process_text(message.process)}/{message.sender}#{message.counter}"


def view_text(view: ConfigurationId) -> str:
    return "none" if view == NO_CONFIGURATION else str(view)
