"""What `--json` prints: plain dictionaries with the keys that docs/reference/cli.md lists. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ordercast.checker import Verdict, Witness
from ordercast.checker.verdict import message_text, view_text
from ordercast.cli.recording import Recording
from ordercast.cli.timeline import Entry
from ordercast.model.ids import process_text
from ordercast.sim.run_options import options_json


def verdict_document(verdict: Verdict) -> dict[str, Any]:
    return {
        "promise": None if verdict.promise is None else verdict.promise.value,
        "outcome": verdict.outcome.value,
        "sentence": verdict.sentence,
        "witnesses": [_witness_document(witness) for witness in verdict.witnesses],
    }


def verdict_documents(verdicts: Iterable[Verdict]) -> list[dict[str, Any]]:
    return [verdict_document(verdict) for verdict in verdicts]


def _witness_document(witness: Witness) -> dict[str, Any]:
    return {
        "what": witness.what,
        "process": None if witness.process is None else process_text(witness.process),
        "message": None if witness.message is None else message_text(witness.message),
        "view": None if witness.view is None else view_text(witness.view),
    }


def recording_document(recording: Recording, trace: str | None = None) -> dict[str, Any]:
    """Return the document of `ordercast sim`."""
    return {
        "seed": recording.seed,
        "valid": recording.is_valid,
        "settled": recording.settled,
        "verdict": verdict_document(recording.verdict),
        "verdicts": verdict_documents(recording.verdicts),
        "error": recording.error,
        "digest": recording.digest,
        "virtual_ns": recording.virtual_ns,
        "inputs": recording.inputs,
        "submitted": recording.submitted,
        "delivered": recording.delivered,
        "seconds": round(recording.seconds, 6),
        "counts": dict(sorted(recording.counts.items())),
        "timeline": [_entry_document(entry) for entry in recording.timeline.entries],
        "processes": {
            process_text(process): {
                "views": tally.views,
                "submitted": tally.submitted,
                "delivered": tally.delivered,
                "retransmitted": tally.retransmitted,
                "requested": tally.requested,
            }
            for process, tally in sorted(recording.timeline.tallies.items())
        },
        "options": options_json(recording.options),
        "replay": recording.command,
        "trace": trace,
    }


def _entry_document(entry: Entry) -> dict[str, Any]:
    return {
        "at_ns": entry.at,
        "kind": entry.kind.value,
        "processes": [process_text(process) for process in entry.processes],
        "text": entry.text,
    }
