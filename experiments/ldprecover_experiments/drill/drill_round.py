"""Playing a drill on a server: a round of its own, genuine users, an attack, recoveries, the
score.
"""

import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ldprecover import RecoveryRequest
from ldprecover.recovery import METHODS
from ldprecover_client import Client, ClientError, RefusedError, Retries
from ldprecover_experiments.demo import Demo
from ldprecover_experiments.drill.jobs import Job
from ldprecover_experiments.drill.score import Recovered, Score
from ldprecover_experiments.over_http import recover_on_server
from ldprecover_experiments.poisoned_round import Vector

MAX_USERS, MAX_BYTES = 1_000_000, 256 << 20
"""Users of a drill, malicious ones included, and bytes of all their reports: they are made in
memory.
"""


@dataclass(frozen=True)
class Told:
    """A method, and whether it is told which items are attacked."""

    method: str
    targets: bool = False

    @classmethod
    def all_of(cls, methods: Iterable[str], *, knows_targets: bool) -> tuple[Self, ...]:
        """Return each method untold, and told where there is something to tell and it uses that."""
        found = []
        for name in methods:
            method = METHODS[name]
            if "targets" not in method.needs or not knows_targets:
                found.append(cls(name))
            if knows_targets and "targets" in method.uses:
                found.append(cls(name, targets=True))
        return tuple(found)

    @property
    def name(self) -> str:
        """What the score calls it."""
        return f"{self.method}, told the targets" if self.targets else self.method


@dataclass(frozen=True, eq=False)
class DrillRound:
    """A drill that is ready to be played: its settings have been checked."""

    demo: Demo
    told: tuple[Told, ...]

    @property
    def settings(self) -> dict[str, Any]:
        """All of them, as JSON."""
        given = self.demo.settings.as_json()
        del given["column"]
        return given | {
            "dataset": self.demo.dataset.name,
            "methods": [each.name for each in self.told],
        }

    def on(self, url: str, key: str, run: Job) -> dict[str, Any]:
        """Play on the server at `url`, whose admin key this is, and return the score as JSON.

        The round is closed at the end; where anything goes wrong before, it is deleted. Raises
        ClientError, and CancelledError.
        """
        demo = self.demo
        with Client(url, key=key, sleep=run.pause) as server:
            with run.stage("a round is opened"):
                opened = demo.open_round(server, f"drill-{secrets.token_hex(4)}")
            run.say(round=opened.name)
            with _deleted_on_failure(url, key, opened.id):
                demo.report_genuine(url, key, opened.id, run.stage)
                genuine = self._estimate(server, opened.id)
                demo.report_malicious(url, key, opened.id, run.stage)
                server.close_round(opened.id)
                poisoned = self._estimate(server, opened.id)
                recovered = {}
                for told in self.told:
                    with run.stage(f"recovery by {told.name}") as progress:
                        recovered[told.name] = self._recovered(server, opened.id, told, progress)
        truth = demo.population.frequencies
        items, targets = demo.parameters.items, demo.targets
        return Score(
            items, targets, truth, genuine, poisoned, recovered, demo.malicious_users
        ).as_json()

    def _estimate(self, server: Client, round: str) -> Vector:
        return np.asarray(server.frequencies(round)["frequencies"], dtype=np.float64)

    def _recovered(self, server: Client, round: str, told: Told, progress: Any) -> Recovered:
        method = METHODS[told.method]
        targets = self.demo.targets if told.targets else None
        request = RecoveryRequest(told.method, eta=self.demo.settings.eta, targets=targets or ())
        as_job = method.long or "reports" in method.needs
        try:
            recovery = recover_on_server(server, round, request, progress if as_job else None)
        except RefusedError as error:  # such as a method that does not fit the protocol
            return Recovered(None, refused=" ".join(str(error).split()))
        return Recovered(recovery.recovered, recovery.notes)


@contextmanager
def _deleted_on_failure(url: str, key: str, round: str) -> Iterator[None]:
    try:
        yield
    except BaseException:
        # One try, with a client that does not end with the run: half a drill is of no use to
        # anyone.
        with (
            suppress(ClientError),
            Client(url, key=key, timeout=5.0, retries=Retries(attempts=1)) as server,
        ):
            server.delete_round(round)
        raise
