"""The means of a run of `ldprecover study paper all`, and tables of them.

cp results/summary.csv docs/measurements/reproduction/summary.csv
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ldprecover_experiments.paper import EXPERIMENTS
from ldprecover_experiments.parameters import BETA, EPSILON, ETA
from ldprecover_experiments.tables import COLUMNS, Table, shown_parameter

SUMMARY = Path(__file__).parent.parent / "measurements" / "reproduction" / "summary.csv"
SETTINGS = EXPERIMENTS["mse"].settings
_DEFAULTS: dict[str, Any] = dict.fromkeys(COLUMNS[: COLUMNS.index("method") + 1], "") | {
    "data": "cities",
    "model": "one-hot",
    "beta": BETA,
    "epsilon": EPSILON,
    "eta": ETA,
    "xi": 0.0,
}


class Means:
    """The means of a run, by the columns of its file."""

    def __init__(self, file: Path) -> None:
        with file.open(newline="", encoding="utf-8") as text:
            rows = list(csv.DictReader(text))
        self._rows = {tuple(row[name] for name in _DEFAULTS): row for row in rows}

    def get(self, number: str = "mse", **columns: object) -> float | None:
        """Return a mean, None where the method does not fit."""
        key = tuple(map(shown_parameter, (_DEFAULTS | columns).values()))
        text = self._rows.get(key, {}).get(number)
        return float(text) if text else None

    def __call__(
        self, method: str, protocol: str, attack: str, model: str = "one-hot", **columns: Any
    ) -> float:
        """Return a mean that the run has."""
        mean = self.get(method=method, protocol=protocol, attack=attack, model=model, **columns)
        assert mean is not None, (method, protocol, attack, model, columns)
        return mean

    def table(
        self,
        head: Sequence[str],
        rows: Iterable[Sequence[Any]],
        columns: Mapping[str, dict[str, Any]],
    ) -> str:
        """Return a table of means.

        A row is its first cells, which `head` names, and then some columns of the file; `columns`
        holds the others of each column of the table.
        """
        lines = []
        for *cells, fixed in rows:
            means = (fixed | varied for varied in columns.values())
            lines.append([*cells, *(shown(self.get(**each), each.get("number")) for each in means)])
        return Table([*head, *columns], lines).markdown()


def shown(value: float | None, number: str | None = None) -> str:
    """Return a mean as the page has it: three digits of an error, three decimals of a gain."""
    if value is None:
        return ""
    if number == "fg":
        return f"{round(value, 3) + 0.0:.3f}"
    if value >= 1:
        return f"{value:.3g}"
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    return f"{mantissa}e{int(exponent)}"
