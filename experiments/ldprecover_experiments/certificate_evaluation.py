"""The evaluation of certificates: whether they are right, how wide they are, what stays unseen."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ldprecover_experiments import certificate_rounds, certificate_widths, detection
from ldprecover_experiments.certificate_rounds import Row
from ldprecover_experiments.tables import Table

ROUNDS = 1_000

Key = tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """A part of the evaluation.

    `tasks` returns the keys of its rows from the seed, the trials of a setting and the share of the
    evaluation to run. `play` returns the other columns of a row, and `tables` the results.
    """

    columns: Sequence[str]
    key: int
    tasks: Callable[[int, int, float], Sequence[Key]]
    play: Callable[[Key], Mapping[str, str]]
    tables: Callable[[Sequence[Row]], Iterable[Table]]

    def run(self, key: Key) -> tuple[Key, Mapping[str, str]]:
        """Return the key with the other columns of its row."""
        return key, self.play(key)


def _round_tasks(seed: int, trials: int, share: float) -> list[Key]:
    return [(str(seed), str(number)) for number in range(max(1, round(share * ROUNDS)))]


def _play_round(key: Key) -> dict[str, str]:
    return certificate_rounds.Round.drawn(int(key[0]), int(key[1])).play()


PARTS = {
    "rounds": Part(
        certificate_rounds.COLUMNS, 2, _round_tasks, _play_round, certificate_rounds.tables
    ),
    "counts": Part(
        certificate_widths.COUNT_COLUMNS,
        4,
        certificate_widths.count_tasks,
        certificate_widths.play_counts,
        certificate_widths.count_tables,
    ),
    "reports": Part(
        certificate_widths.COLUMNS,
        5,
        certificate_widths.report_tasks,
        certificate_widths.play_reports,
        certificate_widths.report_tables,
    ),
    "detection": Part(detection.COLUMNS, 7, detection.tasks, detection.play, detection.tables),
}
"""The parts, by name."""
