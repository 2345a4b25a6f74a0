"""Studies: attacks, methods, protocols, data sets and parameters from a small TOML file.

data = ["cities", {file = "pets.csv", column = "pet"}]
protocols = ["grr", "oue"]
beta = [0.01, 0.05]
users = 20000
trials = 5
attacks = ["mga", {name = "apa", each = 4}, {name = "aa", kind = "peaked", model = "input"}]
methods = ["norm-sub", "ldprecover", {method = "ldprecover", targets = true, name = "told"}]
"""

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from ldprecover import ParameterError, frequency_oracle
from ldprecover.recovery import METHODS, RecoveryRequest
from ldprecover_attacker import ATTACKS
from ldprecover_experiments.attacks import AttackSpec
from ldprecover_experiments.datasets import NAMES
from ldprecover_experiments.measures import MethodSpec, Outcome
from ldprecover_experiments.paper import PROTOCOLS
from ldprecover_experiments.parameters import (
    BETA,
    EPSILON,
    ETA,
    Cell,
    GenuineUsers,
    load_users_by_data,
    malicious_users,
)
from ldprecover_experiments.poisoned_round import RoundSimulation
from ldprecover_experiments.results import Results
from ldprecover_experiments.runs import Work, run_cells
from ldprecover_experiments.validation import Form, OneOrMore, check, suggestion


class DataForm(Form):
    """A data file of a study, and the column to count."""

    file: str
    column: str | None = None


class AttackForm(Form):
    """An attack of a study."""

    name: str
    model: str = "crafted"
    targets: Annotated[int, Field(ge=1)] | Annotated[list[str], Field(min_length=1)] | None = None
    kind: str | None = None
    size: int | None = None
    each: int | None = None
    rate: float | None = None
    search: int | Literal["exhaustive"] | None = None
    item: int | str | None = None
    against: str | None = None
    attackers: int = 1


class MethodForm(Form):
    """A method of a study: the fields of MethodSpec."""

    method: str
    name: str | None = None
    eta: float | str | None = None
    targets: bool = False
    malicious_model: str = "paper"
    support: bool = False
    options: dict[str, float] = Field(default_factory=dict)
    reads: bool = True
    history: bool = False


class StudyForm(Form):
    """A study file. Absent keys take the defaults of Study."""

    name: str = "study"
    methods: OneOrMore[str | dict[str, Any]]
    attacks: OneOrMore[str | dict[str, Any]]
    data: OneOrMore[str | dict[str, Any]] | None = None
    protocols: OneOrMore[str] | None = None
    epsilon: OneOrMore[float] | None = None
    beta: OneOrMore[float] | None = None
    eta: OneOrMore[float] | None = None
    users: int | None = None
    trials: int | None = None
    seed: int | None = None


MAX_CELLS = 1_000_000
"""Limit of a study; the fastest cells take some hours then."""


@dataclass(frozen=True)
class Study:
    """Every combination of attacks, protocols, data sets and parameters, with every method.

    `data` holds sources of `dataset_of`. `attacks` are pairs of an attack (None for no attack) and
    its report model. `users` None is the paper's number for its stand-ins, and that of the data
    otherwise. `name` is a plain file name. Values must be distinct, and a study has at most
    MAX_CELLS cells. Raises ParameterError and DatasetError.
    """

    name: str
    methods: Sequence[MethodSpec]
    attacks: Sequence[tuple[AttackSpec | None, str]]
    data: Sequence[Any] = ("cities",)
    protocols: Sequence[str] = PROTOCOLS
    epsilon: Sequence[float] = (EPSILON,)
    beta: Sequence[float] = (BETA,)
    eta: Sequence[float] = (ETA,)
    users: int | None = None
    trials: int = 10
    seed: int = 0
    columns: Mapping[int, str] = field(default_factory=dict)
    """The column to count, by the position of its source in `data`."""

    @classmethod
    def load(cls, file: str | Path) -> Self:
        """Return the study of a TOML file. Paths of data files are relative to its folder.

        Raises ParameterError for an invalid file; for an unknown key it suggests a near one.
        """
        path = Path(file)
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
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
        data: Sequence[Any] | None = None,
    ) -> Self:
        """Return the study of a mapping with the keys of a TOML file.

        `data` replaces its data sets, by data in memory for example. Raises ParameterError.
        """
        form = check(StudyForm, document, "a study")
        rest = form.model_dump(exclude={"name", "methods", "attacks", "data"}, exclude_none=True)
        if data is not None:
            rest["data"] = data
        elif form.data:
            sources = [_source(source, folder or Path()) for source in form.data]
            rest["data"] = [source for source, _ in sources]
            rest["columns"] = {i: column for i, (_, column) in enumerate(sources) if column}
        return cls(
            form.name,
            [_method(method) for method in form.methods],
            [_attack(attack) for attack in form.attacks],
            **rest,
        )

    def __post_init__(self) -> None:
        _check_name(self.name)
        for name, least in (("users", 1), ("trials", 1), ("seed", 0)):
            value = getattr(self, name)
            if (name, value) != ("users", None) and (type(value) is not int or value < least):
                raise ParameterError(
                    f"{name} must be an integer of at least {least}, not {value!r:.40}"
                )
        names = [spec.name for spec in self.methods]
        for name in names:
            if name in ("genuine", "poisoned"):
                raise ParameterError(
                    f"a method cannot be called {name!r}: that is the estimate it is compared with"
                )
            if names.count(name) > 1:
                raise ParameterError(f"two methods are called {name!r}: give one another name")
        for key in ("protocols", "epsilon", "beta", "eta"):
            _check_once(key, getattr(self, key))
        _check_once("attacks", [f"{spec or 'none'}, {model}" for spec, model in self.attacks])
        if self._number > MAX_CELLS:
            raise ParameterError(
                f"a study has at most {MAX_CELLS:,} cells, not {self._number:,}: give fewer "
                "trials, or fewer values"
            )
        for protocol, epsilon in product(self.protocols, self.epsilon):
            frequency_oracle(protocol, epsilon, 2)  # raises for an epsilon outside its range
        for eta in self.eta:
            RecoveryRequest(eta=eta)  # raises for an eta outside its range
        for beta in self.beta:
            malicious_users(1, beta)

    @cached_property
    def users_by_data(self) -> dict[str, GenuineUsers]:
        """The users of each data set, by its name. Raises DatasetError and ParameterError."""
        counts = [spec.targets for spec, _ in self.attacks if spec is not None and spec.targeted]
        targets = max((r if isinstance(r, int) else len(r) for r in counts), default=1)
        return load_users_by_data(
            self.data, users=self.users, columns=self.columns, targets=targets
        )

    @property
    def _number(self) -> int:
        """The number of cells."""
        attacks = sum(len(self.beta) if spec else 1 for spec, _ in self.attacks)
        values = (self.data, self.protocols, self.epsilon, self.eta)
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
        for data, protocol, (spec, model) in product(
            self.users_by_data, self.protocols, self.attacks
        ):
            for beta, epsilon, eta in product(
                self.beta if spec else (0.0,), self.epsilon, self.eta
            ):
                cell = Cell(data, protocol, spec, model, float(beta), float(epsilon), float(eta))
                simulation = RoundSimulation(cell, self.users_by_data[data], self.seed)
                if model == "crafted" or self.work.reads_reports:
                    simulation.malicious_reports(1)  # raises for a model without reports
                every.append(cell)
        return every

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
        """Run every cell in `jobs` processes, and return the results."""
        outcomes: dict[Cell, list[Outcome]] = {}
        cells = self.cells
        for some in run_cells(cells, self.work, min(jobs, len(cells))):
            outcomes.update(some)
            progress(len(outcomes), len(cells))
        return Results(self.name, {cell: outcomes[cell] for cell in cells})


def _check_name(name: Any) -> None:
    plain = (
        isinstance(name, str)
        and name.isprintable()
        and not name.isspace()
        and not set(name) & set("/\\")
    )
    if not plain or name in ("", ".", ".."):
        raise ParameterError(f"name must be a plain file name, without a folder, not {name!r:.40}")


def _check_once(key: str, values: Sequence[Any]) -> None:
    earlier = set()
    for value in values:
        if value in earlier:
            raise ParameterError(f"{key} has {value} twice")
        earlier.add(value)


def _source(source: str | Mapping[str, Any], folder: Path) -> tuple[str | Path, str | None]:
    if isinstance(source, str):
        return source if source in NAMES else folder / source, None
    form = check(DataForm, source, "data")
    return folder / form.file, form.column


def _attack(attack: str | Mapping[str, Any]) -> tuple[AttackSpec | None, str]:
    if attack == "none":
        return None, "none"
    fields = {"name": attack} if isinstance(attack, str) else attack
    form = check(AttackForm, fields, "an attack")
    if form.name not in ATTACKS:
        names = ", ".join(sorted(ATTACKS))
        raise ParameterError(f"attack must be none or one of {names}, not {form.name!r}")
    own = {"name", "model", "kind", "attackers"}
    spec = AttackSpec(
        form.name,
        form.kind,
        form.attackers,
        form.model_dump(exclude=own, exclude_unset=True),
    )
    if "targets" in spec.options and not spec.targeted:
        raise ParameterError(f"targets does not belong to {form.name}")
    spec.make(form.model, (0,) if spec.targeted else None)  # raises for impossible options
    return spec, form.model


def _method(method: str | Mapping[str, Any]) -> MethodSpec:
    fields = {"method": method} if isinstance(method, str) else method
    form = check(MethodForm, fields, "a method")
    if form.method not in METHODS:
        hint = suggestion(form.method, METHODS)
        raise ParameterError(f"there is no method {form.method!r}; {hint}")
    METHODS[form.method].checked(form.options)
    rest = ", ".join(
        f"{key} {value}" for key, value in fields.items() if key not in ("method", "name")
    )
    default_name = f"{form.method} ({rest})" if rest else form.method
    return MethodSpec(**form.model_dump() | {"name": form.name or default_name})
