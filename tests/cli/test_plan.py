"""`plan`: plans as a table and as JSON."""

import json

import pytest
from tests.cli.conftest import Run

from ldprecover.planning import PlanRequest, plan
from ldprecover.protocols import PROTOCOLS


def test_shows_protocols_by_quality_and_the_gain_of_an_attacker(run: Run) -> None:
    shown = run("plan --domain-size 102 --epsilon 0.5 --error 0.005").succeeds()
    assert shown.err == ""
    lines = shown.out.splitlines()
    assert lines[0] == "Computed: the smallest number of users. The first protocol is the best."
    expected = plan(PlanRequest(domain_size=102, epsilon=0.5, error=0.005))
    rows = [line.split() for line in lines[2 : 2 + len(PROTOCOLS)]]
    assert [row[0] for row in rows] == list(expected.protocols)
    assert [row[2] for row in rows] == [f"{each.users:,}" for each in expected.rounds]
    assert [row[7] for row in rows] == [
        f"{100 * (each.gain or 0):,.0f}" for each in expected.rounds
    ]
    best = expected.rounds[0]
    assert (
        f"With {best.protocol} 5 % malicious users raise the estimates of 10 targets together by "
        f"up to {100 * (best.gain or 0):,.0f} points."
    ) in shown.words


@pytest.mark.parametrize(
    ("domain_size", "protocol", "stored", "retention"),
    [(490, "llh", "17.5 kB", " --retention none"), (8, "ss", "1 MB", "")],
)
def test_shows_the_command_that_opens_the_best(
    run: Run, domain_size: int, protocol: str, stored: str, retention: str
) -> None:
    shown = run(f"plan --domain-size {domain_size} --users 1000000 --epsilon 1").succeeds()
    lines = shown.out.splitlines()
    assert lines[2].startswith(protocol)
    assert lines[2].rstrip().endswith(stored)
    (opens,) = (line for line in lines if "Open it with: " in line)
    assert opens.partition("Open it with: ")[2] == (
        f"ldprecover round open --protocol {protocol} --epsilon 1.0 --domain-size {domain_size}"
        f"{retention}"
    )
    assert ("histogram" in opens) == bool(retention)


def test_json_is_the_plan(run: Run) -> None:
    shown = run("plan --domain-size 20 --users 100 --epsilon 1 --protocol oue --json")
    expected = plan(PlanRequest(domain_size=20, users=100, epsilon=1.0), ["oue"])
    assert shown.json == json.loads(json.dumps(expected.to_dict()))


def test_shows_the_share_that_a_gain_tolerates(run: Run) -> None:
    shown = run("plan --domain-size 20 --users 100 --epsilon 1 --gain 0.01 --protocol oue").out
    request = PlanRequest(domain_size=20, users=100, epsilon=1.0, gain=0.01)
    beta = plan(request, ["oue"]).rounds[0].beta
    lines = shown.splitlines()
    assert "share" in lines[1]
    assert lines[2].split()[7] == f"{100 * (beta or 0):.3g}"


def test_says_why_a_protocol_has_no_plan(run: Run) -> None:
    shown = run("plan --domain-size 20 --users 1 --error 1e-6").succeeds()
    assert shown.out.count("no epsilon up to 10 is enough") == len(PROTOCOLS)
    sums = run("plan --domain-size 20 --users 100 --epsilon 1 --sum-of 4")
    assert "Not with hr: hr lacks a law" in sums.out


def test_lead_alone_plans_the_least_epsilon(run: Run) -> None:
    shown = run("plan --lead 0.05 --malicious-share 0.01").succeeds()
    lines = shown.out.splitlines()
    assert lines[0] == "Computed: the smallest epsilon. The first protocol is the best."
    expected = plan(PlanRequest(domain_size=102, users=100_000, lead=0.05, beta=0.01))
    best = expected.best
    assert best is not None
    assert lines[2].split()[:4] == [best.protocol, "102", "100,000", f"{best.epsilon:.4g}"]
    assert lines[2].split()[-4] == "5"
    assert f"With {best.protocol} a lead of 5 points is safe from 1 % forged reports." in lines


def test_says_which_lead_is_safe_or_that_none_is(run: Run) -> None:
    shown = run("plan --domain-size 102 --users 100000 --epsilon 1 --beta 0.01 --protocol oue")
    request = PlanRequest(domain_size=102, users=100_000, epsilon=1.0, beta=0.01)
    lead = plan(request, ["oue"]).rounds[0].safe_lead
    assert lead is not None
    assert (
        f"With oue a lead of {100 * lead:.3g} points is safe from 1 % forged reports." in shown.out
    )
    none = run("plan --domain-size 102 --users 100 --epsilon 1 --protocol oue").out
    assert "With oue no lead is safe from 5 % forged reports." in none


def test_says_what_is_safe_instead_of_the_lead(run: Run) -> None:
    shown = run("plan --lead 0.05 --malicious-share 0.2 --protocol oue").words
    assert "Not with oue: a lead of 5 points is not safe from 20 % forged reports" in shown


GIVE = "give all but one of --domain-size, --users, --epsilon, --error: "


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ("", f"{GIVE}--domain-size, --users, --epsilon, "),
        ("--domain-size 20", f"{GIVE}--users, --epsilon"),
        ("--domain-size=2 --users=9 --epsilon=1 --error=1", f"{GIVE}all are given"),
        ("--lead 0.1 --users 20", f"{GIVE}--domain-size, --epsilon are missing"),
        ("--lead 2", "lead must be a number above 0 and at most 1"),
        ("--domain-size 20 --users 0 --epsilon 1", "users must be an integer from 1"),
        ("--domain-size 20 --users 9 --error 2", "error must be a number above 0"),
        (
            "--domain-size 20 --users 9 --epsilon 1 --protocol rap",
            "protocol must be one of",
        ),
    ],
)
def test_rejects_an_invalid_plan(run: Run, options: str, start: str) -> None:
    assert run(f"plan {options}").fails(2).startswith(start)
