"""Methods, alarms and suspects of a real server, as JSON and in words."""

from typing import Any

import numpy as np
import pytest

from ldprecover import OUE
from ldprecover.protocols.wire import pack

D = 12
ITEMS = [f"item {i}" for i in range(D)]


@pytest.fixture(scope="module")
def series(server: Any) -> list[str]:
    """Two rounds of one series, the second with 800 of 4,800 reports that support two items of 12
    and no other.
    """
    oracle, rng = OUE(2.0, D), np.random.default_rng(1)
    bits = np.zeros((800, D), dtype=np.uint8)
    bits[:, [4, 9]] = 1
    malicious = np.packbits(bits, axis=1, bitorder="little")
    opened = []
    for week in (1, 2):
        round = server.open_round(
            "oue", 2.0, items=ITEMS, name=f"analysis-{week}", series="analysis"
        )
        reports = oracle.perturb(rng.integers(D, size=4000), rng)
        for sent in (reports, malicious)[:week]:
            assert server.submit(round["id"], pack(sent)).status_code == 202
        if week == 1:
            server.http.post(f"/rounds/{round['id']}/close", headers=server.admin)
        opened.append(round["id"])
    return opened


@pytest.mark.parametrize("command", ["methods", "alarms", "suspects"])
def test_json_is_the_server_s_answer(
    on_server: Any, server: Any, series: list[str], command: str
) -> None:
    answer = server.http.get(f"/rounds/{series[1]}/{command}").json()
    assert on_server(command, "--round", "analysis-2", "--json").json == answer


def test_stats_count_what_came_of_submissions(on_server: Any, server: Any) -> None:
    round_ = server.open_round()
    packed = pack(np.zeros(5, "<u4"))
    for key in ("a", "a", "b"):
        server.submit(round_["id"], packed, key)
    assert on_server("stats", round_["name"], "--json").json == {
        "round": round_["id"],
        "reports": 10,
        "duplicates": 1,
        "quarantined": None,
        "refusals": {},
    }
    shown = " ".join(on_server("stats", round_["name"]).out.split())
    assert shown == "reports counted 10 duplicate submissions 1"


def test_methods_say_what_they_need_and_which_the_round_cannot_give(
    on_server: Any, series: list[str]
) -> None:
    lines = on_server("methods", "--round", series[1]).out.splitlines()
    assert any(line.startswith("ldprecover ") and "counts" in line for line in lines)
    assert any(line.startswith("diffstats ") and "reports" in line for line in lines)


def test_alarms_say_which_are_raised(on_server: Any, series: list[str]) -> None:
    quiet, loud = (on_server("alarms", "--round", id, "--rate", "0.000001").out for id in series)
    assert quiet.startswith("4,000 reports\n")
    assert "RAISED" not in quiet
    assert any(line.startswith("support-size") and "RAISED" in line for line in loud.splitlines())


def test_suspects_are_shown_and_can_be_taken_for_targets(on_server: Any, series: list[str]) -> None:
    shown = on_server("suspects", "--round", series[1], "--rate", "0.001").out
    assert shown.startswith("Compared with 1 earlier round of the series")
    assert "item 4" in shown
    assert "item 9" in shown
    assert "No item rose" in on_server("suspects", "--round", series[1], "--drift", "1").out
    answer = on_server(
        "recover", "--round", series[1], "--infer-targets", "--eta", "0.2", "--json"
    ).json
    assert {4, 9} <= set(answer["targets"])


def test_what_cannot_be_compared_or_estimated_is_one_line(
    on_server: Any, series: list[str]
) -> None:
    assert on_server("suspects", "--round", series[0]).error.startswith(
        "the series analysis has no earlier round"
    )
    assert "eta" in on_server("recover", "--round", series[0], "--eta", "nan").error
    nan = on_server("suspects", "--round", series[1], "--drift", "nan")
    assert (nan.code, nan.error) == (2, "--drift must be a finite number, not nan")
    assert "--eta" in on_server("recover", "--round", series[0], "--eta", "1_0").error
    assert "rate" in on_server("alarms", "--round", series[0], "--rate", "0.7").error
