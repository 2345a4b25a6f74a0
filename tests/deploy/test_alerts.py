"""The rules of Prometheus and the board of Grafana are about metrics, labels and problems that the
server has.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from tests.deploy.tools import ROOT, run

from ldprecover_server.errors import service_errors
from ldprecover_server.metrics import Metrics

PROMETHEUS = ROOT / "deploy" / "prometheus"
CASES = ROOT / "tests" / "deploy" / "alerts_test.yml"
BOARD: dict[str, Any] = json.loads(
    (ROOT / "deploy" / "grafana" / "ldprecover.json").read_text(encoding="utf-8")
)
(RULES,) = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text(encoding="utf-8"))["groups"]
(JOB,) = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text(encoding="utf-8"))[
    "scrape_configs"
]

ALERTS = [rule["expr"] for rule in RULES["rules"]]
QUERIES = [target["expr"] for panel in BOARD["panels"] for target in panel.get("targets", ())]


def series() -> dict[str, set[str]]:
    """Return the names that Prometheus stores, each with its labels: those of the manifest, and of
    every scrape.
    """
    named = {"up": {"job", "instance"}}
    for metric in Metrics().manifest:
        labels = {*metric.labels, "instance"}
        if metric.kind == "histogram":
            named |= {f"{metric.name}_bucket": labels | {"le"}, f"{metric.name}_sum": labels}
            named |= {f"{metric.name}_count": labels}
        else:
            named[metric.name] = labels
    return named


def selectors(expr: str) -> Iterator[tuple[str, set[str]]]:
    """Yield the series that an expression names, each with the labels it is chosen by."""
    for name, matchers in re.findall(
        r"\b(up|ldprecover_\w+)\b(?:\{([^}]*)\})?", re.sub(r'"[^"]*"', '""', expr)
    ):
        yield name, set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))


@pytest.mark.parametrize("expr", [*ALERTS, *QUERIES])
def test_every_expression_uses_series_of_the_server(expr: str) -> None:
    named = list(selectors(expr))
    assert named
    for name, labels in named:
        assert name in series()
        assert labels <= series()[name]
    grouped = {
        label.strip()
        for labels in re.findall(r"by \(([^)]*)\)", expr)
        for label in labels.split(",")
    }
    assert grouped <= set().union(*(series()[name] for name, _ in named))


def test_alerts_and_board_use_the_job_of_the_sample() -> None:
    jobs = {
        job
        for expr in [*ALERTS, *QUERIES, json.dumps(BOARD)]
        for job in re.findall(r'job=\\?"(\w+)', expr)
    }
    assert jobs == {JOB["job_name"]}


def test_every_reason_that_an_alert_names_is_a_problem() -> None:
    reasons = {reason for expr in ALERTS for reason in re.findall(r'reason="([^"]*)"', expr)}
    assert reasons
    assert reasons <= {refusal.type.slug for refusal in service_errors()}


def test_every_metric_is_on_the_board() -> None:
    shown = {name for expr in QUERIES for name, _ in selectors(expr)}
    missing = {
        metric.name
        for metric in Metrics().manifest
        if not shown & {metric.name, f"{metric.name}_bucket"}
    }
    assert missing == set()


def test_prometheus_takes_the_configuration_and_its_rules() -> None:
    assert f"{len(ALERTS)} rules found" in run(
        "promtool", "check", "config", PROMETHEUS / "prometheus.yml"
    )


def test_each_alert_fires_when_it_should_and_else_none() -> None:
    run("promtool", "test", "rules", CASES)
    fires = set(re.findall(r'alertname="(\w+)"', CASES.read_text(encoding="utf-8")))
    assert fires == {rule["alert"] for rule in RULES["rules"]}


def test_prometheus_understands_every_query_of_the_board(tmp_path: Path) -> None:
    filled = [
        query.replace("$__rate_interval", "5m").replace("$instance", ".*") for query in QUERIES
    ]
    rules = [{"record": f"board:{i}", "expr": expr} for i, expr in enumerate(filled)]
    path = tmp_path / "board.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": rules}]}))
    assert f"{len(QUERIES)} rules found" in run("promtool", "check", "rules", path)


def test_grafana_s_own_types_know_every_field_of_the_board() -> None:
    """They are made from Grafana's schema. What they do not know they drop, and what is missing
    they fill in.
    """
    register_default_plugins()
    assert json.loads(JSONEncoder().encode(Dashboard.from_json(BOARD))) == BOARD
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(ids)) == len(ids)
