"""Earlier rounds as the history of a recovery: named by the caller, checked one by one, and never
taken unasked.
"""

from typing import Any

import numpy as np
import pytest
from tests.server.conftest import InProcess, problem_of

from ldprecover import Estimates, RecoveryRequest, Tally, frequency_oracle, recover
from ldprecover.protocols import wire

pytestmark = pytest.mark.sqlite


D = 24
N = 3_000
ORACLE = frequency_oracle("grr", 1.0, D)
SHARES = 0.8 ** np.arange(D) / (0.8 ** np.arange(D)).sum()


def reports_of(seed: int, malicious: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    honest = ORACLE.perturb(rng.choice(D, N, p=SHARES), rng)
    return np.concatenate([honest, np.full(malicious, 20, honest.dtype)])


def round_of(app: InProcess, reports: np.ndarray, *, closed: bool = True, **fields: Any) -> str:
    opened = app.open_round("grr", 1.0, **({"domain_size": D} | fields))
    for start in range(0, len(reports), N):
        content = wire.pack(reports[start : start + N])
        answer = app.submit(opened, content)
        assert answer.status_code == 202, answer.text
    if closed:
        assert app.close_round(opened).status_code == 200
    return str(opened)


def recovered(app: InProcess, round: str, status: int = 200, **body: Any) -> dict[str, Any]:
    answer = app.post(f"/rounds/{round}/recover", json={"method": "unmix"} | body)
    assert answer.status_code == status, answer.text
    recovered_round: dict[str, Any] = answer.json()
    return recovered_round


def test_method_gets_the_rounds_named_as_history(in_process: InProcess) -> None:
    first, second, now = reports_of(1), reports_of(2), reports_of(3, malicious=300)
    before = [
        round_of(in_process, reports, name=name)
        for reports, name in ((first, "may"), (second, "june"))
    ]
    round = round_of(in_process, now, closed=False)
    answer = recovered(in_process, round, history=["may", before[1], "may", before[0]])
    tallies = [(ORACLE, Tally.of(ORACLE, reports)) for reports in (first, second)]
    estimates = Estimates.of(ORACLE, Tally.of(ORACLE, now)).frequencies
    expected = recover(ORACLE, estimates, RecoveryRequest("unmix", history=tallies), n=len(now))
    assert answer["recovered"] == pytest.approx(expected.recovered.tolist(), abs=1e-12)
    assert answer["conclusions"]["history_weight"] is not None
    assert recovered(in_process, round)["conclusions"]["history_weight"] is None, (
        "none is taken that is not named"
    )


def test_what_cannot_be_history_is_refused_with_the_reason(in_process: InProcess) -> None:
    round = round_of(in_process, reports_of(1), name="now")
    round_of(in_process, reports_of(2), name="open", closed=False)
    round_of(in_process, reports_of(2)[:0], name="empty")
    round_of(
        in_process,
        reports_of(2),
        name="others",
        domain_size=None,
        items=[f"item {i}" for i in range(D)],
    )
    round_of(in_process, reports_of(2), name="asked", question="Which do you own?")
    for name, reason in {
        "now": "a round cannot be its own history",
        "open": "the round open is still open",
        "empty": "the round empty has no reports",
        "others": "the round others has other items",
        "asked": "the round asked asks another question",
    }.items():
        answer = in_process.post(
            f"/rounds/{round}/recover", json={"method": "unmix", "history": [name]}
        )
        assert answer.status_code == 422, answer.text
        assert answer.json()["detail"] == f"history: {reason}"
    missing = in_process.post(
        f"/rounds/{round}/recover", json={"method": "unmix", "history": ["nowhere"]}
    )
    assert problem_of(missing) == "round-not-found"


def test_history_that_the_caller_may_not_read_is_refused(in_process: InProcess) -> None:
    round = round_of(in_process, reports_of(1), closed=False)
    round_of(in_process, reports_of(2), name="secret", read_access="key")
    body = {"method": "unmix", "history": ["secret"]}
    answer = in_process.post(f"/rounds/{round}/recover", json=body)
    assert problem_of(answer) == "unauthorized"
    assert (
        in_process.post(f"/rounds/{round}/recover", json=body, headers=in_process.admin).status_code
        == 200
    )


def test_fifty_long_names_fit_into_a_request(in_process: InProcess) -> None:
    names = [f"{i:03d}".ljust(64, "x") for i in range(2)]
    for name in names:
        round_of(in_process, reports_of(1)[:50], name=name)
    round = round_of(in_process, reports_of(2), closed=False)
    recovered(in_process, round, history=(names * 25))
