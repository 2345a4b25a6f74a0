"""The package agrees with the vectors, and the vectors with exact arithmetic."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.vectors.reference import OUTPUTS

from ldprecover import (
    FrequencyOracle,
    RecoveryRequest,
    ReportError,
    RoundParameters,
    counting,
    frequency_oracle,
    recover,
)
from ldprecover.estimation.means import round_numbers
from ldprecover.items import label_key
from ldprecover.protocols import GRR, HR, LLH, MAX_HASH_RANGE, OLH, OUE, SS, SUE, wire
from ldprecover.rounds.tickets import assigned_round
from ldprecover_server.http.decoding import ReportDecoder

HERE = Path(__file__).parent


def cases(name: str, key: str = "cases") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((HERE / name).read_text(encoding="utf-8"))[key]
    return rows


def oracle_of(case: dict[str, Any], domain_size: int, epsilon: float = 1.0) -> FrequencyOracle:
    return frequency_oracle(case["protocol"], case.get("epsilon", epsilon), domain_size, own(case))


def from_json(oracle: FrequencyOracle, body: dict[str, Any]) -> bytes:
    """Return the packed bytes of reports in JSON."""
    return ReportDecoder(oracle)(json.dumps(body).encode())


def own(case: dict[str, Any]) -> int | None:
    """Return the value of a case's own parameter."""
    return case.get("hash_range", case.get("subset_size"))


@pytest.mark.parametrize(("name", "key"), OUTPUTS)
def test_vectors_equal_exact_arithmetic(name: str, key: str) -> None:
    for case in cases(name, key):
        assert {**case, **OUTPUTS[name, key](case)} == case


def test_tickets() -> None:
    for case in cases("tickets.json"):
        assert assigned_round(case["ticket"], case["rounds"]) == case["index"], case


def test_hashes() -> None:
    for case in cases("hash.json"):
        seed, item, g = case["seed"], case["item"], case["hash_range"]
        bucket = counting.olh_buckets(np.array([seed], np.uint32), np.array([item], np.uint32), g)
        assert bucket.tolist() == [case["bucket"]], case
        oracle = frequency_oracle("olh", 1.0, 100_000, g)
        report = np.array([(seed, case["bucket"])], oracle.wire.dtype)
        assert oracle.support_counts(report)[item] == 1, case


@pytest.mark.parametrize(
    "case", cases("wire.json"), ids=lambda c: f"{c['protocol']}-{c['domain_size']}"
)
def test_wire_forms(case: dict[str, Any]) -> None:
    oracle = oracle_of(case, case["domain_size"])
    packed = bytes.fromhex(case["packed"])
    assert from_json(oracle, case["json"]) == packed
    assert oracle.wire.to_json(oracle.wire.unpack(packed)) == case["json"]


@pytest.mark.parametrize(
    "case", cases("wire.json", "refused"), ids=lambda c: str(c.get("json", c.get("packed")))
)
def test_refused_wire_forms(case: dict[str, Any]) -> None:
    oracle = oracle_of(case, case["domain_size"])
    read: Any = partial(from_json, oracle) if "json" in case else oracle.wire.unpack
    sent = case["json"] if "json" in case else bytes.fromhex(case["packed"])
    with pytest.raises(ReportError) as refused:
        read(sent)
    assert refused.value.position == case["position"]


def test_thresholds() -> None:
    for case in cases("thresholds.json"):
        epsilon, values, d = case["epsilon"], case.get("values"), case.get("domain_size", 4)
        if "subset_size" in case:
            oracles: list[FrequencyOracle] = [SS(epsilon, d, case["subset_size"])]
        elif values is not None:
            oracles = [GRR(epsilon, values), *([HR(epsilon, d)] if values == 2 else [])]
            oracles += [OLH(epsilon, d, values)] if values <= MAX_HASH_RANGE else []
            oracles += [LLH(epsilon, d, values)] if values in (2, 3) else []
        else:
            oracles = [SUE(epsilon, d) if "turn_below" in case else OUE(epsilon, d)]
        stated = {name: int(value) for name, value in case.items() if name.endswith("_below")}
        assert [oracle.thresholds for oracle in oracles] == [stated] * len(oracles), case


def words_of(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Replace the operating system's words by a case's; return a counter of the remaining ones."""
    remaining = bytearray(b"".join(int(word).to_bytes(8, "little") for word in case["words"]))

    def urandom(n: int) -> bytes:
        assert len(remaining) >= n, case
        taken = bytes(remaining[:n])
        del remaining[:n]
        return taken

    monkeypatch.setattr("ldprecover.protocols.sampling.os.urandom", urandom)
    return lambda: len(remaining) // 8


def test_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    for case in cases("reports.json"):
        oracle = frequency_oracle(case["protocol"], case["epsilon"], case["domain_size"], own(case))
        words_left = words_of(case, monkeypatch)
        assert wire.pack(oracle.perturb([case["item"]])).hex() == case["packed"], case
        assert words_left() == 0, case


def test_rounded_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    for case in cases("reports.json", "numbers"):
        words_left = words_of(case, monkeypatch)
        assert round_numbers([case["number"]]).tolist() == [case["item"]], case
        assert words_left() == 0


def test_columns() -> None:
    for case in cases("columns.json"):
        supports = HR(1.0, case["domain_size"]).supports(np.array([case["column"]], np.uint32))
        assert np.flatnonzero(supports[0]).tolist() == case["supported"], case


def test_linear_hashes() -> None:
    for case in cases("linear_hashes.json"):
        oracle = LLH(1.0, case["domain_size"], case["hash_range"])
        supports = oracle.supports(np.array([case["report"]], np.uint32))
        assert np.flatnonzero(supports[0]).tolist() == case["supported"], case
    for case in cases("linear_hashes.json", "counts"):
        oracle = LLH(1.0, case["domain_size"], case["hash_range"])
        reports = np.array(case["reports"], oracle.wire.dtype)
        assert oracle.support_counts(reports).tolist() == case["counts"]


def test_parameters() -> None:
    for case in cases("parameters.json"):
        parameters = RoundParameters(
            case["protocol"],
            case["epsilon"],
            tuple(case["items"]),
            parameter=own(case),
            practice=case.get("practice", False),
        )
        assert parameters.digest == case["digest"]
        assert parameters.oracle.p == pytest.approx(case["p"], rel=1e-14)
        assert parameters.oracle.q == pytest.approx(case["q"], rel=1e-14)


@pytest.mark.parametrize("case", cases("labels.json"), ids=lambda c: ascii(c["label"]))
def test_keys_of_labels(case: dict[str, str]) -> None:
    assert label_key(case["label"]) == label_key(case["key"]) == case["key"]


def test_estimates() -> None:
    for case in cases("estimates.json"):
        oracle = oracle_of(case, len(case["counts"]))
        frequencies = oracle.estimate(case["counts"], case["n"])
        np.testing.assert_allclose(frequencies, case["frequencies"], rtol=1e-12, atol=1e-13)
        errors = oracle.standard_errors(frequencies, case["n"])
        np.testing.assert_allclose(errors, case["standard_errors"], rtol=1e-12)
        assert oracle.malicious_sum == pytest.approx(case["malicious_sum"], rel=1e-12)


def test_recover() -> None:
    for case in cases("recover.json"):
        oracle = oracle_of(case, len(case["counts"]))
        result = recover(
            oracle,
            oracle.estimate(case["counts"], case["n"]),
            RecoveryRequest(
                case["method"],
                eta=case["eta"],
                targets=case["targets"],
                malicious_model=case["malicious_model"],
            ),
        )
        for column in ("malicious", "genuine", "recovered"):
            np.testing.assert_allclose(
                getattr(result, column), case[column], rtol=1e-11, atol=1e-12, err_msg=str(case)
            )
