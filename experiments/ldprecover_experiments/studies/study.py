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

import hashlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, PlainValidator

from ldprecover import ParameterError
from ldprecover._checks import check_whole
from ldprecover.plugins import OBJECTS, PROTOCOL_REGISTRY, ensure
from ldprecover.recovery import RecoveryRequest
from ldprecover_experiments.errors import ExperimentError
from ldprecover_experiments.simulation.parameters import (
    BETA,
    EPSILON,
    ETA,
    malicious_users,
)
from ldprecover_experiments.studies.cells import (
    Cell,
    GenuineUsers,
    RoundSimulation,
    load_genuine_users,
    oracle_of,
)
from ldprecover_experiments.studies.records import sha256
from ldprecover_experiments.studies.results import Results
from ldprecover_experiments.studies.rows import CellRow, RowFile
from ldprecover_experiments.studies.runs import Task, run_tasks, tasks_of
from ldprecover_experiments.studies.specs import AttackSpec, MethodSpec, dataset_in
from ldprecover_experiments.validation import OneOrMore, StrictModel, listed

PROTOCOLS = ("grr", "oue", "olh")
"""The paper's."""


_PRESETS = Path(__file__).parent / "presets"

PRESETS = tuple(sorted(file.stem for file in _PRESETS.glob("*.toml")))
"""The names of the studies that are shipped."""

MAX_CELLS = 1_000_000
"""Limit of a study; the fastest cells take some hours then."""


class Study(StrictModel):
    """Every combination of attacks, protocols, data sets and parameters, with every method.

    `data` holds sources of `dataset_of`. `attacks` and `methods` are names, functions, objects,
    mappings or specifications. `users` None is the paper's number for its stand-ins, and that of
    the data otherwise. Values must be distinct, and a study has at most MAX_CELLS cells. Raises
    ParameterError and DatasetError.

        study = Study.of({"attacks": "mga", "methods": "norm-sub", "users": 500, "trials": 2})
        study.run().to_frame()
    """

    owner: ClassVar[str] = "a study"
    name: str = "study"
    methods: OneOrMore[Annotated[MethodSpec, PlainValidator(MethodSpec.of_mapping)]]
    attacks: OneOrMore[Annotated[AttackSpec, PlainValidator(AttackSpec.of_mapping)]]
    data: OneOrMore[Any] = ("cities",)
    protocols: OneOrMore[str] = PROTOCOLS
    epsilon: OneOrMore[float] = (EPSILON,)
    beta: OneOrMore[float] = (BETA,)
    eta: OneOrMore[float] = (ETA,)
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
        if str(file) in PRESETS and not path.is_file():
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

        Files are relative to the folder. `data` replaces the data sets: a source of `dataset_of`,
        or a list of sources and of pairs of a source and its column. Raises ParameterError and
        DatasetError.
        """
        own = document.get("data", "cities") if data is None else data
        sources = [dataset_in(folder or Path(), source) for source in listed(own)]
        study = cls.of_mapping({**document, "data": sources})
        names = [each.get("file") if isinstance(each, Mapping) else each for each in listed(own)]
        files = {name: (folder or Path()) / name for name in names if isinstance(name, str)}
        study.record["study"] = {key: str(value) for key, value in document.items()}
        study.record["sha256"] |= {k: sha256(file) for k, file in files.items() if file.is_file()}
        return study

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
        for attack in self.attacks:
            for protocol in set(attack.protocols or ()) - set(self.protocols):
                raise ParameterError(f"{protocol}, of the attack {attack}, is not in protocols")
        for protocol in self.protocols:
            ensure(protocol, PROTOCOL_REGISTRY)
        for protocol, epsilon in product(self.protocols, self.epsilon):
            oracle_of(protocol, epsilon, 2)  # raises for an epsilon outside its range
        for eta in self.eta:
            RecoveryRequest("ldprecover", eta=eta)  # raises for an eta outside its range
        for beta in self.beta:
            malicious_users(1, beta)

    @cached_property
    def record(self) -> dict[str, dict[str, str]]:
        """The keys that were given as `study`, and as `sha256` hashes of data files and modules."""
        codes = {attack.name: attack.code for attack in self.attacks}
        codes |= {method.method: method.code for method in self.methods}
        return {"study": {}, "sha256": {name: code for name, code in codes.items() if code}}

    @cached_property
    def users_by_data(self) -> dict[str, GenuineUsers]:
        """The users of each data set, by its name. Raises DatasetError and ParameterError."""
        users = [load_genuine_users(source, self.users) for source in self.data]
        _check_once("data", [each.name for each in users])
        return {each.name: each for each in users}

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
        settings: list[Cell] = []
        for data, protocol, spec in product(self.users_by_data, self.protocols, self.attacks):
            if protocol not in (spec.protocols or self.protocols):
                continue
            attack = spec.model_copy(update={"protocols": None})
            betas = (0.0,) if spec.name == "none" else self.beta
            first = len(settings)
            for beta, epsilon, eta, questions, assign in product(
                betas, self.epsilon, self.eta, self.questions, self.assign
            ):
                settings.append(
                    Cell(
                        data,
                        protocol,
                        attack,
                        beta,
                        epsilon,
                        eta=eta,
                        questions=questions,
                        assign=assign,
                    )
                )
                if len(settings) * self.trials > MAX_CELLS:
                    raise ParameterError(
                        f"a study has at most {MAX_CELLS:,} cells: give fewer trials, or fewer "
                        "values"
                    )
            self._check(settings[first])
        return settings

    def _check(self, cell: Cell) -> None:
        """Raise ParameterError for an attack that this protocol cannot have."""
        try:
            simulation = RoundSimulation(cell, self.users_by_data[cell.data], self.seed)
            if cell.attack.model == "crafted" or self.reads_reports:
                simulation.malicious_reports(1)  # raises for a model without reports
        except ParameterError as error:
            subject = f"the attack {cell.attack}" if cell.attack.malicious else "no attack"
            raise ParameterError(f"{subject} on {cell.protocol} reports: {error}") from error

    @property
    def reads_reports(self) -> bool:
        """Whether some method reads the reports, so that all are made."""
        return any(spec.reads_reports for spec in self.methods)

    def _reports(self, cell: Cell) -> int:
        """Return the number of reports to make, on average over the assignments of a form."""
        n = self.users_by_data[cell.data].n
        is_made = self.reads_reports or cell.attack.model == "crafted"
        m = malicious_users(n, cell.beta) if is_made else 0
        if cell.assign == "ticket":
            m //= cell.questions
        return m + n // cell.questions if self.reads_reports else m

    @property
    def cost(self) -> str:
        """A sentence with the numbers of cells, recoveries and reports to make."""
        number = len(self._settings) * self.trials
        reports = sum(map(self._reports, self._settings)) * self.trials
        return (
            f"{self.name}: {number:,} cells, {number * len(self.methods):,} "
            f"recoveries, {reports:,} reports to make; all other counts are drawn from their law."
        )

    @property
    def rows(self) -> list[CellRow]:
        """The row of every cell, without outcomes; that of methods has the hash of their JSON."""
        specs = [
            spec.model_dump_json(exclude=None if spec.code else {"code"}) for spec in self.methods
        ]
        methods = hashlib.sha256("\n".join(specs).encode()).hexdigest()[:16]
        rows = []
        for cell in self.cells:
            users = self.users_by_data[cell.data]
            rows.append(
                CellRow(cell=cell, digest=users.digest, n=users.n, seed=self.seed, methods=methods)
            )
        return rows

    def run(
        self, jobs: int = 1, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> Results:
        """Run every cell in `jobs` processes, and return the results.

        Functions and objects that no module's file has by name run in this process. A script with
        several jobs needs `if __name__ == "__main__":`. Raises ExperimentError and ParameterError.
        """
        return run_studies([self], jobs, progress)[0]


def run_studies(
    studies: Sequence[Study],
    jobs: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    file: RowFile | None = None,
    on_finishing: Callable[[], None] = lambda: None,
) -> list[Results]:
    """Run every cell that the file lacks in `jobs` processes; return the results of each study.

    `on_finishing` is called if an interruption has to wait for running cells. Raises as `Study.run`
    does.
    """
    check_whole("jobs", jobs, 1)
    file = file or RowFile()
    tasks: list[Task] = []
    queued = set(file.rows)
    for study in studies:
        missing = [row for row in study.rows if row not in queued]
        queued.update(missing)
        tasks += tasks_of(missing, study.users_by_data, study.methods)
        names = {*(a.name for a in study.attacks), *(m.method for m in study.methods)}
        if not names.isdisjoint(OBJECTS):
            jobs = 1
    done, total = 0, len(queued) - len(file.rows)
    progress(done, total)
    try:
        with closing(run_tasks(tasks, min(jobs, len(tasks)), on_finishing)) as finished:
            for rows in finished:
                file.add(rows)
                done += len(rows)
                progress(done, total)
    except (KeyboardInterrupt, SystemExit, ExperimentError) as stopped:
        if file.file is not None:
            stopped.add_note(f"{done} of {total} cells were run; the same command continues")
        raise
    return [
        Results(study.name, [file.rows[row] for row in study.rows], study.record)
        for study in studies
    ]


def _check_once(key: str, values: Sequence[Any]) -> None:
    earlier = set()
    for value in values:
        if value in earlier:
            raise ParameterError(f"{key} has {value} twice")
        earlier.add(value)
