"""`plan`: plans as a table and as JSON."""

import json

import pytest
from tests.cli.conftest import Run

from ldprecover.planning import PlanRequest, plan, plan_form
from ldprecover.protocols import PROTOCOLS


def test_shows_protocols_by_quality_and_sentences(run: Run) -> None:
    shown = run("plan --domain-size 102 --epsilon 0.5 --error 0.005").succeeds()
    assert shown.err == ""
    lines = shown.out.splitlines()
    assert lines[0] == "Computed: the smallest number of users. The first protocol is the best."
    expected = plan(PlanRequest(domain_size=102, epsilon=0.5, error=0.005))
    rows = [line.split() for line in lines[2 : 2 + len(PROTOCOLS)]]
    assert [row[0] for row in rows] == list(expected.protocols)
    assert [row[2] for row in rows] == [f"{each.users:,}" for each in expected.rounds]
    assert [row[6] for row in rows] == [
        f"{100 * (each.gain or 0):,.0f}" for each in expected.rounds
    ]
    assert " ".join(expected.sentences) in shown.words
    assert [row[8] for row in rows] == [
        f"{100 * (each.attacker_success_rate or 0):.3g}" for each in expected.rounds
    ]


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


def test_json_is_the_plan(run: Run) -> None:
    shown = run("plan --domain-size 20 --users 100 --epsilon 1 --protocol oue --json")
    expected = plan(PlanRequest(domain_size=20, users=100, epsilon=1.0), ["oue"])
    assert shown.json == json.loads(json.dumps(expected.to_dict()))


def test_says_why_a_protocol_has_no_plan(run: Run) -> None:
    shown = run("plan --domain-size 20 --users 1 --error 1e-6").succeeds()
    assert shown.out.count("no epsilon up to 10 is enough") == len(PROTOCOLS)


GIVE = "all but one of --domain-size, users, epsilon, error must be given: "


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ("", f"{GIVE}--domain-size and users and epsilon and "),
        ("--domain-size 20", f"{GIVE}users and epsilon"),
        ("--domain-size=2 --users=9 --epsilon=1 --error=1", f"{GIVE}all are given"),
        ("--domain-size=2 --domain-size=3 --users=9 --epsilon=1 --lead=1", "several --domain-size"),
        ("--lead 0.1 --users 20", f"{GIVE}--domain-size and epsilon are missing"),
    ],
)
def test_rejects_an_invalid_plan(run: Run, options: str, start: str) -> None:
    assert run(f"plan {options}").fails(2).startswith(start)


def test_several_domain_sizes_plan_a_form(run: Run) -> None:
    line = "plan --domain-size 40 --domain-size 12 --users 9999 --epsilon 1 --beta 0.1"
    planned = run(f"{line} --json").json
    assert [each["users"] for each in planned["rounds"]] == [4999, 4999]
    assert plan_form([40, 12], 1.0, 9999, beta=0.1).sentences[-1] in run(line).words
