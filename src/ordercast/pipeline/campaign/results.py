"""The folder of a campaign: what came of each run, whole files only, so that it can be interrupted at any time.

    results/part-000001.parquet …   rows as in trial.py, one file per wave, there whole or not at all
    campaign.json                   what the campaign is, and how far it is
    report.html                     for people

A run is done when a row of its cell's key and its seed is there. A cell's key is made of its settings, so a file that
was changed runs what it did not run before, and nothing else. Where one run has two rows the later counts.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.model.errors import UsageError
from ordercast.pipeline.campaign.plan import Campaign
from ordercast.pipeline.campaign.trial import SCHEMA, VALID
from ordercast.pipeline.out_folder import writing_into

PARTS = "results"
ABOUT = "campaign.json"
KEPT = "what was done is kept: make room, and run the same command to go on, or choose another folder with --out"
Job = tuple[int, int]  # place of the cell, and seed


class Results:
    def __init__(self, folder: Path) -> None:
        """Makes the folder."""
        self.folder = folder
        try:
            (folder / PARTS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"the folder {folder} cannot be made: {error.strerror}; choose another with --out"
            ) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Two campaigns in one folder would run everything twice."""
        with writing_into(self.folder, KEPT):
            file = (self.folder / ".lock").open("w")
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise UsageError(
                    f"a campaign is running in {self.folder}: wait for it, or choose another folder"
                ) from error
            yield

    def parts(self) -> list[Path]:
        return sorted((self.folder / PARTS).glob("part-*.parquet"))

    def append(self, table: pa.Table) -> None:
        parts = self.parts()
        number = int(parts[-1].stem.removeprefix("part-")) + 1 if parts else 1
        path = self.folder / PARTS / f"part-{number:06d}.parquet"
        unfinished = path.with_name(f".{path.name}.unfinished")
        with writing_into(self.folder, KEPT):
            with unfinished.open("wb") as file:
                pq.write_table(table.cast(SCHEMA), file, compression="zstd")
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)

    def rows(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All of them, in the order in which they were written. UsageError names a file that cannot be read."""
        tables = []
        for path in self.parts():
            try:
                tables.append(
                    pq.read_table(path, columns=None if columns is None else list(columns), partitioning=None)
                )
            except (OSError, pa.ArrowException, KeyError) as error:
                raise UsageError(f"{path} cannot be read: remove it, then its runs are run again") from error
        schema = SCHEMA if columns is None else pa.schema([SCHEMA.field(name) for name in columns])
        return pa.concat_tables(tables).cast(schema) if tables else schema.empty_table()

    def latest(self, campaign: Campaign) -> list[dict[str, Any]]:
        """One row per run of this campaign, by cell and seed."""
        place = {cell.key: number for number, cell in enumerate(campaign.cells)}
        seeds = campaign.seeds
        found = {
            (place[row["cell_key"]], row["seed"]): row
            for row in self.rows().to_pylist()
            if row["cell_key"] in place and row["seed"] in seeds
        }
        return [found[key] for key in sorted(found)]

    def done(self, *, failed_too: bool = True) -> set[tuple[str, int]]:
        rows = self.rows(("cell_key", "seed", "outcome"))
        columns = (rows[name].to_pylist() for name in ("cell_key", "seed", "outcome"))
        latest = {(key, seed): outcome for key, seed, outcome in zip(*columns, strict=True)}
        return {run for run, outcome in latest.items() if failed_too or outcome == VALID}

    def describe(self, campaign: Campaign, done: int) -> None:
        document = {
            "campaign": campaign.name,
            "title": campaign.title,
            "file": str(campaign.path),
            "seeds": [campaign.seeds[0], campaign.seeds[-1]],
            "cells": [cell.name for cell in campaign.cells],
            "runs": campaign.runs,
            "done": done,
        }
        unfinished = self.folder / f".{ABOUT}.unfinished"
        with writing_into(self.folder, KEPT):
            unfinished.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            unfinished.replace(self.folder / ABOUT)


def jobs_of(campaign: Campaign, done: set[tuple[str, int]]) -> list[Job]:
    """What is still to be run."""
    places = {cell.key: place for place, cell in enumerate(campaign.cells)}  # those who run the same have one
    return [(place, seed) for seed in campaign.seeds for key, place in places.items() if (key, seed) not in done]
