"""Answers as CSV: what spreadsheets and data frames read, and nothing that a spreadsheet
would run.
"""

import csv
import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import ServerProcess

from ldprecover import OUE
from ldprecover.protocols import wire
from ldprecover_interface.csv import to_csv

pytestmark = pytest.mark.sqlite


LABELS = (
    '=HYPERLINK("http://a.test","b")',
    "+1",
    "-1",
    "@SUM(A1)",
    'a "quoted", b; c',
    "plain",
    "Łódź",
    "\uff1d1",
)


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.fixture(scope="module")
def poisoned(server: ServerProcess) -> dict[str, Any]:
    rng, oracle = np.random.default_rng(5), OUE(2.0, len(LABELS))
    opened = server.open_round("oue", 2.0, items=LABELS)
    reports = oracle.perturb(rng.choice([0, 1, 3], 800), rng)
    assert server.submit(opened["id"], wire.pack(reports)).status_code == 202
    return opened


def test_frequencies_are_the_columns_of_the_json(
    server: ServerProcess, poisoned: dict[str, Any]
) -> None:
    path = f"/rounds/{poisoned['id']}/frequencies"
    answer, answered = server.get(f"{path}?format=csv"), server.get(path).json()
    assert answer.headers["content-type"] == "text/csv; charset=utf-8; header=present"
    assert (
        answer.headers["content-disposition"]
        == f'attachment; filename="frequencies-{poisoned["id"]}.csv"'
    )
    rows = read(answer.text)
    assert list(rows[0]) == ["item", "index", "support", "frequency", "standard_error"]
    assert [float(row["frequency"]) for row in rows] == answered["frequencies"]
    assert [float(row["standard_error"]) for row in rows] == answered["standard_errors"]
    assert [int(row["support"]) for row in rows] == answered["counts"]
    assert [LABELS[int(row["index"])] for row in rows] == answered["items"]
    assert server.get(f"{path}?format=json").json() == answered


def test_recovery_contains_conclusions(server: ServerProcess, poisoned: dict[str, Any]) -> None:
    path = f"/rounds/{poisoned['id']}/recover"
    expected = {"method": "ldprecover", "targets": [3]}
    answered = server.post(path, json=expected).json()
    answer = server.post(f"{path}?format=csv", json=expected)
    rows = read(answer.text)
    for name in ("poisoned", "malicious", "genuine", "recovered"):
        assert [float(row[name]) for row in rows] == answered[name]
    assert [row["target"] for row in rows] == [
        "true" if i == 3 else "false" for i in range(len(LABELS))
    ]
    assert {row["lower"] for row in rows} == {""}


def test_recovery_has_an_address(server: ServerProcess, poisoned: dict[str, Any]) -> None:
    path = f"/rounds/{poisoned['id']}/recover"
    body = {"eta": 0.3, "targets": ["-1", "plain"], "malicious_model": "exact"}
    query = {"eta": 0.3, "target": ["-1", "plain"], "malicious_model": "exact"}
    assert server.get(path, params=query).json() == server.post(path, json=body).json()
    plain, marked = (
        server.get(path, params={**query, "format": form}).content for form in ("csv", "csv-bom")
    )
    assert marked == b"\xef\xbb\xbf" + plain
    assert len(read(plain.decode())) == len(LABELS)
    for wrong in ({"eta": 11}, {"target": "no item"}, {"method": "none"}, {"targets": "plain"}):
        assert server.get(path, params=wrong).status_code == 422


def test_a_recovery_with_intervals_has_them(
    server: ServerProcess, poisoned: dict[str, Any]
) -> None:
    path = f"/rounds/{poisoned['id']}/recover"
    answered = server.post(path, json={"method": "unmix"}).json()["conclusions"]
    rows = read(server.post(f"{path}?format=csv", json={"method": "unmix"}).text)
    assert [float(row["lower"]) for row in rows] == answered["lower"]
    assert [float(row["standard_deviation"]) for row in rows] == answered["standard_deviations"]


def test_alarms_are_rows(server: ServerProcess, poisoned: dict[str, Any]) -> None:
    path = f"/rounds/{poisoned['id']}"
    alarms = server.get(f"{path}/alarms").json()["alarms"]
    rows = read(server.get(f"{path}/alarms?format=csv").text)
    assert [row["name"] for row in rows] == [alarm["name"] for alarm in alarms]
    assert [float(row["statistic"]) for row in rows] == [alarm["statistic"] for alarm in alarms]
    assert [row["raised"] for row in rows] == [str(alarm["raised"]).lower() for alarm in alarms]


def test_empty_round_has_only_counts(server: ServerProcess) -> None:
    rows = read(server.get(f"/rounds/{server.open_round()['id']}/frequencies?format=csv").text)
    assert [(row["support"], row["frequency"]) for row in rows] == [("0", "")] * 4


@given(st.lists(st.tuples(st.text(), st.integers(), st.floats(allow_nan=False)), min_size=1))
def test_any_text_round_trips_except_for_apostrophe(rows: list[tuple[str, int, float]]) -> None:
    back = list(
        csv.reader(io.StringIO(to_csv(("text", "whole", "real"), rows).decode(), newline=""))
    )
    assert back[0] == ["text", "whole", "real"]
    for (text, whole, real), cells in zip(rows, back[1:], strict=True):
        assert cells[0] in (text, f"'{text}")
        assert cells[0][:1] not in tuple("=+-@\t\r\n")
        assert (int(cells[1]), float(cells[2])) == (whole, real)
