"""What a checker says: one of five outcomes, a sentence for people, and the witnesses that prove it.

Verdicts combine: the worst wins. UNKNOWN is worse than VALID, because a history that cannot be judged must not pass for
one that was. NOT EXERCISED is a promise that the history gave nobody a chance to break: it is not counted as kept.
"""

from __future__ import annotations

from collections import Counter
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
    NOT_EXERCISED = "NOT EXERCISED"
    NOT_PROMISED = "NOT PROMISED"

    @property
    def severity(self) -> int:
        return _SEVERITY[self]


_SEVERITY = {
    Outcome.NOT_PROMISED: 0,
    Outcome.NOT_EXERCISED: 1,
    Outcome.VALID: 2,
    Outcome.UNKNOWN: 3,
    Outcome.INVALID: 4,
}
NOT_BROKEN = (Outcome.VALID, Outcome.NOT_EXERCISED, Outcome.NOT_PROMISED)


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
    """The worst outcome, with the sentence of each that has it. VALID when nothing is broken, exercised or not."""
    if not verdicts:
        return Verdict(None, Outcome.UNKNOWN, "nothing was checked")
    worst = max((verdict.outcome for verdict in verdicts), key=lambda outcome: outcome.severity)
    having = [verdict for verdict in verdicts if verdict.outcome is worst]
    if worst in NOT_BROKEN:
        worst, sentence = Outcome.VALID if worst is Outcome.NOT_EXERCISED else worst, sum_of(verdicts)
    else:
        sentence = "; ".join(f"{_name(verdict)}: {verdict.sentence}" for verdict in having)
    return Verdict(None, worst, sentence, tuple(witness for verdict in having for witness in verdict.witnesses))


def sum_of(verdicts: Sequence[Verdict]) -> str:
    """`14 promises kept, 1 not exercised`: a line that counts every outcome by itself."""
    counts = Counter(verdict.outcome for verdict in verdicts)
    kept = counts.pop(Outcome.VALID, 0)
    rest = [f"{counts[outcome]} {outcome.value.lower()}" for outcome in Outcome if counts[outcome]]
    return ", ".join([f"{kept} {'promise' if kept == 1 else 'promises'} kept", *rest])


def _name(verdict: Verdict) -> str:
    return "combined" if verdict.promise is None else verdict.promise.value


def message_text(message: MessageId) -> str:
    """`n2/0#5`: the fifth message of sender 0 at node 2."""
    return f"{process_text(message.process)}/{message.sender}#{message.counter}"


def view_text(view: ConfigurationId) -> str:
    return "none" if view == NO_CONFIGURATION else str(view)
