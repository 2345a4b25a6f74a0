"""Studies that play rounds one by one: the adversary of un-mixing, and years of a series."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
from pydantic import TypeAdapter

from ldprecover.sentences import counted
from ldprecover_experiments.simulation.tables import TextTable
from ldprecover_experiments.studies import adversary, series
from ldprecover_experiments.studies.records import environment, module_hash, write_files
from ldprecover_experiments.studies.runs import run_tasks
from ldprecover_experiments.studies.verification import differences
from ldprecover_interface.csv import to_csv

Round = tuple[str, dict[str, float]]
"""What a round is, and its measures."""
Progress = Callable[[int, int], None]

PLAYS: Mapping[str, Callable[[int, int], Round]] = {
    "adversary": adversary.play,
    "series": series.play,
}
"""Name -> function of a seed and a number, which returns what the round is, and its measures."""


@dataclass(frozen=True, eq=False)
class PlayedRounds:
    """The rounds of a seed, each with what it is and its measures, and what made them."""

    name: str
    seed: int
    rounds: Sequence[Round]
    environment: str
    sha256: str | None

    @property
    def table(self) -> TextTable:
        """The mean and the largest value of each measure."""
        n, rows = len(self.rounds), []
        for name in self.rounds[0][1]:
            values = np.array([measures[name] for _, measures in self.rounds])
            error = values.std(ddof=1) / n**0.5 if n > 1 else np.nan
            largest = int(values.argmax())
            numbers = (values.mean(), error, values[largest])
            rows.append([name, self.rounds[largest][0], *(f"{each:.4g}" for each in numbers)])
        columns = ("measure", "largest in", "mean", "standard error", "largest")
        return TextTable(
            columns, rows, f"{self.name}: {counted(n, 'round')} of seed {self.seed}", 3
        )

    def write(self, stem: Path) -> None:
        """Write JSON, CSV with a row for each round, and the table for LaTeX."""
        rows = ([label, *measures.values()] for label, measures in self.rounds)
        csv = to_csv(["round", *self.rounds[0][1]], rows).decode()
        write_files(stem, PLAYED.dump_json(self).decode(), csv, {"": self.table})

    def differences(self, jobs: int, number: int, seed: int, progress: Progress) -> Iterator[str]:
        """Play a random sample of the rounds again in `jobs` processes; yield the differences."""
        sample = Random(seed).sample(range(len(self.rounds)), number)
        again = _played(self.name, self.seed, sample, jobs, progress)
        for i, (label, measures) in zip(sample, again, strict=True):
            yield from differences(label, self.rounds[i][1], measures)


PLAYED = TypeAdapter(PlayedRounds)


def play_rounds(name: str, seed: int, rounds: int, jobs: int, progress: Progress) -> PlayedRounds:
    """Play the rounds of one of PLAYS in `jobs` processes."""
    played = _played(name, seed, range(rounds), jobs, progress)
    code = module_hash(f"{PLAYS[name].__module__}:")
    return PlayedRounds(name, seed, played, environment(), code)


def _played(
    name: str, seed: int, numbers: Sequence[int], jobs: int, progress: Progress
) -> list[Round]:
    """Return what these rounds of a seed are, with their measures."""
    tasks = [partial(_play, name, seed, i) for i in numbers]
    played: dict[int, Round] = {}
    with closing(run_tasks(tasks, min(jobs, len(tasks)), lambda: None)) as finished:
        for i, each in finished:
            played[i] = each
            progress(len(played), len(tasks))
    return [played[i] for i in numbers]


def _play(name: str, seed: int, i: int) -> tuple[int, Round]:
    return i, PLAYS[name](seed, i)
