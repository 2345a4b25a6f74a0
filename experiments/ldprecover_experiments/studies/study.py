"""Studies: attacks, methods, protocols, data sets and parameters from a small TOML file.

data = ["cities", {file = "pets.csv", column = "pet"}]
protocols = ["grr", "oue"]
beta = [0.01, 0.05]
users = 20000
trials = 5
attacks = ["mga", {name = "apa", each = 4}, {name = "aa", kind = "peaked", model = "input"}]
methods = ["norm-sub", "ldprecover", {method = "ldprecover", targets = true, name = "told"}]
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator

from ldprecover import ParameterError, frequency_oracle
from ldprecover._checks import check_whole
from ldprecover.plugins import OBJECTS, PROTOCOL_REGISTRY, ensure
from ldprecover.recovery import RecoveryRequest
from ldprecover_experiments.simulation.datasets import NAMES, dataset_of
from ldprecover_experiments.simulation.parameters import (
    BETA,
    EPSILON,
    ETA,
    TARGETS,
    malicious_users,
)
from ldprecover_experiments.studies.cells import (
    Cell,
    GenuineUsers,
    RoundSimulation,
    load_users_by_data,
)
from ldprecover_experiments.studies.measures import Outcome
from ldprecover_experiments.studies.paper import PROTOCOLS
from ldprecover_experiments.studies.results import Results
from ldprecover_experiments.studies.runs import Work, run_cells
from ldprecover_experiments.studies.specs import AttackSpec, MethodSpec
from ldprecover_experiments.validation import Form, OneOrMore, listed


class DataForm(Form):
    """A data file of a study, and how `dataset_of` reads it."""

    owner: ClassVar[str] = "data"
    file: str
    column: str | None = None
    encoding: str = "utf-8"
    least: int = 1


def _plain_name(name: str) -> str:
    plain = name.isprintable() and not name.isspace() and not set(name) & set("/\\")
    if not plain or name in ("", ".", ".."):
        raise ParameterError(f"name must be a plain file name, without a folder, not {name!r:.40}")
    return name


def _source(source: Any, folder: Path = Path()) -> Any:
    """Return a source of `dataset_of`; files are relative to the folder. Raises DatasetError."""
    if isinstance(source, Mapping) and any(isinstance(each, str) for each in source.values()):
        form = DataForm.of_mapping(source)
        options = form.model_dump(exclude={"file"})
        return dataset_of(folder / form.file, **options)
    if isinstance(source, tuple):
        return dataset_of(*source)
    if isinstance(source, str):
        return source if source in NAMES else folder / source
    return source if isinstance(source, Path) else dataset_of(source)


def _eta(eta: Any) -> Any:
    if isinstance(eta, str):
        raise ParameterError(
            f"eta of a study must be numbers, not {eta!r}: methods take such an eta"
        )
    return eta


_PRESETS = Path(__file__).parent / "presets"

PRESETS = tuple(sorted(file.stem for file in _PRESETS.glob("*.toml")))
"""The names of the studies that are shipped."""

MAX_CELLS = 1_000_000
"""Limit of a study; the fastest cells take some hours then."""


class Study(Form):
    """Every combination of attacks, protocols, data sets and parameters, with every method.

    `data` holds sources of `dataset_of`, or pairs of a source and its column. `attacks` and
    `methods` are names, functions, objects, mappings or specifications. `users` None is the paper's
    number for its stand-ins, and that of the data otherwise. `name` is a plain file name. Values
    must be distinct, and a study has at most MAX_CELLS cells. Raises ParameterError and
    DatasetError.

        study = Study.of({"attacks": "mga", "methods": "norm-sub", "users": 500, "trials": 2})
        study.run().to_frame()
    """

    owner: ClassVar[str] = "a study"
    name: Annotated[str, AfterValidator(_plain_name)] = "study"
    methods: OneOrMore[Annotated[MethodSpec, PlainValidator(MethodSpec.of_mapping)]]
    attacks: OneOrMore[Annotated[AttackSpec, PlainValidator(AttackSpec.of_mapping)]]
    data: OneOrMore[Annotated[Any, PlainValidator(_source)]] = ("cities",)
    protocols: OneOrMore[str] = PROTOCOLS
    epsilon: OneOrMore[float] = (EPSILON,)
    beta: OneOrMore[float] = (BETA,)
    eta: OneOrMore[Annotated[float, BeforeValidator(_eta)]] = (ETA,)
    questions: OneOrMore[Annotated[int, Field(ge=1, le=50)]] = (1,)
    assign: OneOrMore[Literal["ticket", "client"]] = ("ticket",)
    users: Annotated[int, Field(ge=1)] | None = None
    trials: Annotated[int, Field(ge=1)] = 10
    seed: Annotated[int, Field(ge=0)] = 0

    @classmethod
    def load(cls, file: str | Path) -> Self:
        """Return the study of a TOML file, or of a name in PRESETS.

        Paths of data files are relative to the file's folder.
        Raises ParameterError for an invalid file; for an unknown key it suggests a near one.
        """
        path = Path(file)
        if str(file) in PRESETS and not path.exists():
            path = _PRESETS / f"{file}.toml"
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
            return cls.of({"name": path.stem} | document, path.parent)
        except OSError as error:
            raise ParameterError(f"cannot read {path}: {error.strerror or error}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ParameterError(f"{path} is not a TOML file: {error}") from error
        except ParameterError as error:
            raise ParameterError(f"{path}: {error}") from error

    @classmethod
    def of(
        cls,
        document: Mapping[str, Any],
        folder: Path | None = None,
        *,
        data: Any = None,
    ) -> Self:
        """Return the study of a mapping with the keys of a TOML file.

        `data` replaces its data sets: a source of `dataset_of`, or a list of them. Raises
        ParameterError and DatasetError.
        """
        own = document.get("data", "cities") if data is None else data
        sources = [_source(source, folder or Path()) for source in listed(own)]
        return cls.of_mapping({**document, "data": sources})

    def model_post_init(self, context: Any, /) -> None:
        """Raise ParameterError for values that do not fit together."""
        for spec in self.methods:
            if spec.name in ("genuine", "poisoned"):
                raise ParameterError(
                    f"a method cannot be called {spec.name!r}: that is the estimate it is compared "
                    "with"
                )
        _check_once("methods", [spec.name for spec in self.methods])
        for key in ("protocols", "epsilon", "beta", "eta", "questions", "assign"):
            _check_once(key, getattr(self, key))
        _check_once("attacks", [f"{spec}, {spec.model}" for spec in self.attacks])
        if self._number > MAX_CELLS:
            raise ParameterError(
                f"a study has at most {MAX_CELLS:,} cells, not {self._number:,}: give fewer "
                "trials, or fewer values"
            )
        for protocol in self.protocols:
            ensure(protocol, PROTOCOL_REGISTRY)
        for protocol, epsilon in product(self.protocols, self.epsilon):
            frequency_oracle(protocol, epsilon, 2)  # raises for an epsilon outside its range
        for eta in self.eta:
            RecoveryRequest("ldprecover", eta=eta)  # raises for an eta outside its range
        for beta in self.beta:
            malicious_users(1, beta)

    @cached_property
    def users_by_data(self) -> dict[str, GenuineUsers]:
        """The users of each data set, by its name. Raises DatasetError and ParameterError."""
        counts = [spec.targets or TARGETS for spec in self.attacks if spec.targeted]
        targets = max((r if isinstance(r, int) else len(r) for r in counts), default=1)
        return load_users_by_data(self.data, self.users, targets=targets)

    @property
    def _number(self) -> int:
        """The number of cells."""
        attacks = sum(1 if spec.name == "none" else len(self.beta) for spec in self.attacks)
        values = (self.data, self.protocols, self.epsilon, self.eta, self.questions, self.assign)
        return attacks * math.prod(map(len, values)) * self.trials

    @cached_property
    def cells(self) -> list[Cell]:
        """Every cell once, the trials of a setting together.

        Raises ParameterError for a combination that cannot be simulated.
        """
        return [
            replace(cell, trial=trial) for cell in self._settings for trial in range(self.trials)
        ]

    @cached_property
    def _settings(self) -> list[Cell]:
        """The first trial of every setting. Raises as `cells` does."""
        every = []
        for data, protocol, spec in product(self.users_by_data, self.protocols, self.attacks):
            beta = (0.0,) if spec.name == "none" else self.beta
            cells = [
                Cell(data, protocol, spec, *parameters)
                for parameters in product(beta, self.epsilon, self.eta, self.questions, self.assign)
            ]
            self._check(cells[0])
            every += cells
        return every

    def _check(self, cell: Cell) -> None:
        """Raise ParameterError for an attack that this protocol cannot have."""
        try:
            simulation = RoundSimulation(cell, self.users_by_data[cell.data], self.seed)
            if cell.attack.model == "crafted" or self.work.reads_reports:
                simulation.malicious_reports(1)  # raises for a model without reports
        except ParameterError as error:
            subject = f"the attack {cell.attack}" if cell.attack.malicious else "no attack"
            raise ParameterError(f"{subject} on {cell.protocol} reports: {error}") from error

    @property
    def work(self) -> Work:
        """The work on each cell."""
        return Work(self.users_by_data, self.seed, tuple(self.methods))

    @property
    def cost(self) -> str:
        """A sentence with the numbers of cells, recoveries and reports to make."""
        reports = sum(map(self.work.reports, self._settings)) * self.trials
        return (
            f"{self.name}: {self._number:,} cells, {self._number * len(self.methods):,} "
            f"recoveries, {reports:,} reports to make; all other counts are drawn from their law."
        )

    def run(
        self, jobs: int = 1, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> Results:
        """Run every cell in `jobs` processes, and return the results.

        Functions and objects that no module's file has by name run in this process. A script with
        several jobs needs `if __name__ == "__main__":`. Raises ExperimentError and ParameterError.
        """
        check_whole("jobs", jobs, 1)
        outcomes: dict[Cell, list[Outcome]] = {}
        cells = self.cells
        if OBJECTS.keys() & {*(a.name for a in self.attacks), *(m.method for m in self.methods)}:
            jobs = 1
        for some in run_cells(cells, self.work, min(jobs, len(cells))):
            outcomes.update(some)
            progress(len(outcomes), len(cells))
        return Results(self.name, {cell: outcomes[cell] for cell in cells})


def _check_once(key: str, values: Sequence[Any]) -> None:
    earlier = set()
    for value in values:
        if value in earlier:
            raise ParameterError(f"{key} has {value} twice")
        earlier.add(value)
