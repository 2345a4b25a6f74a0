"""Plans on the command line: what is worked out, in a table and as JSON."""

import json

import pytest
from tests.cli.conftest import Run

from ldprecover.planning import PlanRequest, plan
from ldprecover.protocols import PROTOCOLS


def test_a_plan_shows_every_protocol_the_best_first_and_what_attackers_gain(run: Run) -> None:
    shown = run("plan", "--domain-size", "102", "--epsilon", "0.5", "--error", "0.005")
    assert (shown.code, shown.err) == (0, "")
    lines = shown.out.splitlines()
    assert lines[0] == "Computed: the smallest number of users. The first protocol is the best."
    found = plan(PlanRequest(domain_size=102, epsilon=0.5, error=0.005))
    rows = [line.split() for line in lines[2 : 2 + len(PROTOCOLS)]]
    assert [row[0] for row in rows] == list(found.protocols)
    assert [row[2] for row in rows] == [f"{each.users:,}" for each in found.rounds]
    (gained,) = (line.split()[1:] for line in lines if line.startswith("mga "))
    assert gained == [f"{100 * (each.gains[0].gain or 0):,.0f}" for each in found.rounds]


def test_json_is_the_plan_alone(run: Run) -> None:
    shown = run(
        "plan",
        "--domain-size",
        "20",
        "--users",
        "100",
        "--epsilon",
        "1",
        "--protocol",
        "oue",
        "--json",
    )
    found = plan(PlanRequest(domain_size=20, users=100, epsilon=1.0), ["oue"])
    assert shown.json == json.loads(json.dumps(found.to_dict()))


def test_what_cannot_be_had_is_said(run: Run) -> None:
    shown = run("plan", "--domain-size", "20", "--users", "1", "--error", "1e-6")
    assert shown.code == 0
    assert shown.out.count("no epsilon up to 10 is enough") == len(PROTOCOLS)
    sums = run("plan", "--domain-size", "20", "--users", "100", "--epsilon", "1", "--sum-of", "4")
    assert "Not with hr: hr lacks a law" in sums.out


def test_gains_that_take_long_are_asked_for(run: Run) -> None:
    asked = ("plan", "--domain-size", "12", "--users", "100", "--epsilon", "1", "--protocol", "olh")
    assert "--thorough" in run(*asked).out
    assert "--thorough" not in run(*asked, "--thorough").out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            (),
            (
                "give all but one of --domain-size, --users, --epsilon, --error: --domain-size, "
                "--users, --epsilon, "
            ),
        ),
        (
            ("--domain-size", "20"),
            "give all but one of --domain-size, --users, --epsilon, --error: --users, --epsilon",
        ),
        (("--domain-size=2", "--users=9", "--epsilon=1", "--error=1"), "give all but one of"),
        (
            ("--domain-size", "20", "--users", "0", "--epsilon", "1"),
            "--users must be an integer from 1",
        ),
        (
            ("--domain-size", "20", "--users", "9", "--error", "2"),
            "--error must be a number above 0",
        ),
        (
            ("--domain-size", "20", "--users", "9", "--epsilon", "1", "--protocol", "rap"),
            "--protocol must be one of",
        ),
    ],
)
def test_what_makes_no_plan_is_refused(run: Run, options: tuple[str, ...], said: str) -> None:
    refused = run("plan", *options)
    assert refused.code == 2
    assert refused.error.startswith(said)
