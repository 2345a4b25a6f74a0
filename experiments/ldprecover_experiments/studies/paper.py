"""The paper's tables and figures: studies of the paper's evaluation, shipped in paper.toml."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from ldprecover_experiments.simulation.tables import TextTable
from ldprecover_experiments.studies.cells import Cell
from ldprecover_experiments.studies.results import Results
from ldprecover_experiments.studies.specs import MethodSpec
from ldprecover_experiments.studies.study import Study
from ldprecover_experiments.validation import OneOrMore

_DOCUMENT = tomllib.loads(files(__package__).joinpath("paper.toml").read_text(encoding="utf-8"))

METHODS: Mapping[str, Mapping[str, str]] = _DOCUMENT["methods"]
"""Name of each method of the paper's evaluation -> its label, and header if any."""

STUDIES: Mapping[str, Mapping[str, Any]] = {
    each["name"]: _DOCUMENT["defaults"] | each for each in _DOCUMENT["studies"]
}
"""Name -> the keys of a PaperStudy, in the paper's order."""

FIGURES: Mapping[str, Mapping[str, Sequence[str]]] = {
    **{name: {"studies": [name]} for name in STUDIES},
    **_DOCUMENT["figures"],
    "all": {"studies": list(STUDIES)},
}
"""A study, a figure or all -> its studies, and the stand-in for the figure's data if one alone."""


class PaperStudy(Study):
    """A study of the paper's evaluation, with its table and its figure.

    `columns` are their methods, `number` what both show, `xi` shares of the users in a subset.
    """

    methods: tuple[MethodSpec, ...] = ()
    where: str
    shows: str
    xi: OneOrMore[float] = (0.0,)
    number: Literal["mse", "fg", "malicious_mse"] = "mse"
    columns: OneOrMore[str]

    @cached_property
    def _settings(self) -> list[Cell]:
        return [replace(cell, xi=xi) for cell in super()._settings for xi in self.xi]

    def tables(self, results: Results) -> Iterator[TextTable]:
        """Yield the table of each data set."""
        headers = {
            name: METHODS[name].get("header", METHODS[name]["label"])
            for name in self.columns
            if name in results.methods
        }
        title = f"{self.name} ({self.where}), {self.shows}"
        for data in self.users_by_data:
            rows = [row for row in results.cells if row.cell.data == data]
            yield Results(title, rows).table(self.number, labels=headers)

    def write(self, results: Results, folder: Path, *, wide: bool) -> None:
        """Write the files of `Results.write`, with the methods of the figure."""
        labels = {name: METHODS[name]["label"] for name in self.columns if name in results.methods}
        results.write(folder / self.name, [self.number], labels=labels, wide=wide)
