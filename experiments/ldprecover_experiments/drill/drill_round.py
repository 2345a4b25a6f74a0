"""A drill's round on a server: genuine users, an attack, recoveries and their score."""

import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from ldprecover import RecoveryRequest
from ldprecover.recovery import METHODS
from ldprecover_client import Client, ClientError, RefusedError, Retries
from ldprecover_experiments.demo import Demo
from ldprecover_experiments.drill.certificates import certify, questions_about
from ldprecover_experiments.drill.jobs import Job
from ldprecover_experiments.drill.score import Recovered, Score
from ldprecover_experiments.drill.words import TOLD, method_words
from ldprecover_experiments.measures import MethodSpec
from ldprecover_experiments.over_http import estimate_on_server, recover_on_server

MAX_USERS = 1_000_000
"""Most users of a drill, malicious ones included."""
MAX_BYTES = 256 << 20
"""Most bytes of all reports of a drill, which are made in memory."""

_OPEN = "open a round"
_BEFORE, _AFTER = "certify before the attack", "certify after the attack"
_RECOVER = "recover by"

_CLEANUP_SECONDS = 5.0


def method_specs(methods: Iterable[str], *, knows_targets: bool) -> Iterator[MethodSpec]:
    """Yield each method without targets, and with them if it uses them and they are known."""
    for name in methods:
        method, words = METHODS[name], method_words(name)
        if "targets" not in method.needs or not knows_targets:
            yield MethodSpec(words, name)
        if knows_targets and "targets" in method.uses:
            yield MethodSpec(f"{words}{TOLD}", name, targets=True)


@dataclass(frozen=True, eq=False)
class DrillRound:
    """A drill whose settings have been checked."""

    demo: Demo
    methods: tuple[MethodSpec, ...]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings as JSON."""
        settings = self.demo.settings.as_json()
        del settings["column"]
        return settings | {
            "dataset": self.demo.dataset.name,
            "methods": [spec.name for spec in self.methods],
        }

    @property
    def steps(self) -> list[str]:
        """The titles of the stages that `on` reports; those of the users are the demo's."""
        attack = ["malicious users report"] if self.demo.malicious_users else []
        recoveries = [f"{_RECOVER} {spec.name}" for spec in self.methods]
        return [_OPEN, "genuine users report", _BEFORE, *attack, _AFTER, *recoveries]

    def on(self, url: str, key: str, job: Job) -> dict[str, Any]:
        """Play on the server at `url` with its admin key.

        Return the score as JSON, with the certificates before and after the attack.
        The round is closed at the end, or deleted after an error. Raises ClientError and
        CancelledError.
        """
        demo = self.demo
        with Client(url, key=key, sleep=job.pause) as server:
            with job.stage(_OPEN):
                opened = demo.open_round(server, f"drill-{secrets.token_hex(4)}")
            job.update(round=opened.name)
            with _deleted_on_failure(url, key, opened.id):
                demo.report_genuine(url, key, opened.id, job.stage)
                share = demo.malicious_users / (demo.settings.users + demo.malicious_users)
                with job.stage(_BEFORE):
                    genuine = estimate_on_server(server, opened.id)
                    questions = questions_about(genuine, demo.targets)
                    before = certify(server, opened.id, share, questions)
                demo.report_malicious(url, key, opened.id, job.stage)
                with job.stage(_AFTER):
                    server.close_round(opened.id)
                    poisoned = estimate_on_server(server, opened.id)
                    after = certify(server, opened.id, share, questions)
                recovered = {}
                for spec in self.methods:
                    with job.stage(f"{_RECOVER} {spec.name}"):
                        recovered[spec.name] = self._recover(server, opened.id, spec)
        truth = demo.population.frequencies
        items, targets = demo.parameters.items, demo.targets
        score = Score(items, targets, truth, genuine, poisoned, recovered, demo.malicious_users)
        return score.as_json() | {"certificates": {"before": before, "after": after}}

    def _recover(self, server: Client, round: str, spec: MethodSpec) -> Recovered:
        targets = self.demo.targets if spec.targets else None
        request = RecoveryRequest(spec.method, eta=self.demo.settings.eta, targets=targets or ())
        try:
            recovery = recover_on_server(server, round, request)
        except RefusedError as error:  # such as a method that does not fit the protocol
            return Recovered(None, refused=" ".join(str(error).split()))
        return Recovered(recovery.recovered, recovery.notes)


@contextmanager
def _deleted_on_failure(url: str, key: str, round: str) -> Iterator[None]:
    try:
        yield
    except BaseException:
        # One attempt by a new client: the client of a cancelled job no longer waits or retries.
        with (
            suppress(ClientError),
            Client(url, key=key, timeout=_CLEANUP_SECONDS, retries=Retries(attempts=1)) as server,
        ):
            server.delete_round(round)
        raise
