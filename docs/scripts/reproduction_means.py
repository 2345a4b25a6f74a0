"""The means of a run of `ldprecover reproduce`, and how docs/measurements/reproduction.md writes
them.
"""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from ldprecover_experiments.paper import EXPERIMENTS
from ldprecover_experiments.tables import Table

KEPT = Path(__file__).parent.parent / "measurements" / "reproduction" / "summary.csv"
ATTACKS = tuple((str(kind.attack), kind.model, kind.protocols) for kind in EXPERIMENTS["mse"].kinds)


class Means:
    """The means of a run, which remembers those that were asked for."""

    def __init__(self, file: Path) -> None:
        with file.open(newline="", encoding="utf-8") as text:
            rows = list(csv.DictReader(text))
        self.header = list(rows[0])
        self._rows = {self._key(row): row for row in rows}
        self._used: set[tuple[str, ...]] = set()

    def get(
        self,
        method: str,
        protocol: str,
        attack: str,
        model: str = "one-hot",
        *,
        number: str = "mse",
        data: str = "cities",
        beta: float = 0.05,
        epsilon: float = 0.5,
        eta: float = 0.2,
        xi: float = 0.0,
    ) -> float | None:
        """Return a mean, None where the method does not fit."""
        key = (
            data,
            protocol,
            attack,
            model,
            *(f"{value:g}" for value in (beta, epsilon, eta, xi)),
            method,
        )
        if key not in self._rows:
            return None
        self._used.add(key)
        text = self._rows[key][number]
        return float(text) if text else None

    def __call__(self, *arguments: str, **options: object) -> float:
        found = self.get(*arguments, **options)  # type: ignore[arg-type]
        assert found is not None, (arguments, options)
        return found

    def keep(self, file: Path) -> None:
        """Write the means that were asked for."""
        with file.open("w", newline="", encoding="utf-8") as text:
            writer = csv.DictWriter(text, self.header, lineterminator="\n")
            writer.writeheader()
            writer.writerows(row for key, row in self._rows.items() if key in self._used)

    @staticmethod
    def _key(row: dict[str, str]) -> tuple[str, ...]:
        names = ("data", "protocol", "attack", "model", "beta", "epsilon", "eta", "xi", "method")
        return tuple(row[name] for name in names)


def number(value: float | None) -> str:
    """Return a number as the page has it: three digits."""
    if value is None:
        return ""
    if value >= 1:
        return f"{value:.3g}"
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def gain(value: float | None) -> str:
    """Return a frequency gain as the page has it."""
    return "" if value is None else f"{round(value, 3) + 0.0:.3f}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    return Table(header, list(rows)).markdown()
