"""The evaluation of certificates: they hold in its rounds, and it would see it if they did not."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from ldprecover import Tally, frequency_oracle
from ldprecover.certificate import certify, undetectable
from ldprecover.protocols import PROTOCOLS
from ldprecover_attacker import ATTACKS, make_attack
from ldprecover_experiments import certificate_widths, detection
from ldprecover_experiments.certificate_evaluation import PARTS, ROUNDS
from ldprecover_experiments.certificate_rounds import (
    NOBODY,
    WORLDS,
    Round,
    Verdict,
    is_inside,
    limit,
    tables,
)
from ldprecover_experiments.parameters import load_genuine_users

# A round's number modulo the number of protocols is its protocol, and the quotient its attack. A
# sample has equally many rounds of each protocol if both numbers have no divisor in common.
_PERIODS = len(PROTOCOLS) * (1 + len(ATTACKS))
_STEP = next(step for step in itertools.count(53) if math.gcd(step, _PERIODS) == 1)
_SAMPLE = slice(0, 960, _STEP)


def test_certificates_hold_in_all_but_few_rounds() -> None:
    """A sample of the evaluation. At a confidence of .95 each, as many wrong ones as the limit have
    a probability of at most 1e-6; and clean rounds are expected to prove no share.
    """
    keys = PARTS["rounds"].tasks(0, 1, 1.0)[_SAMPLE]
    rows = [dict(PARTS["rounds"].play(key)) for key in keys]
    played = [Verdict.of(row) for row in rows]
    rivals = [Verdict.of(row, "rival ") for row in rows]
    assert {row["protocol"] for row in rows} == set(PROTOCOLS)
    assert {row["evidence"] for row in rows} == {"counts", "reports"}
    assert sum(verdict.is_wrong for verdict in played) < limit(len(played))
    assert sum(verdict.is_wrong for verdict in rivals) < limit(len(rivals))
    assert sum(verdict.changed for verdict in rivals) > len(rivals) / 4
    # The tolerance is not only safe: some attack needed hardly more than it says.
    closest = max(verdict.tolerance / verdict.share for verdict in rivals if verdict.changed)
    assert 0.7 < closest <= 1
    results = {table.title: table for table in tables(rows)}
    (row,) = results["certificates of all rounds"].rows
    assert row[1] == str(len(keys))


def test_rounds_have_every_protocol_attack_and_world() -> None:
    # With a step of one more than the protocols both the protocol and the attack change each time.
    step = len(PROTOCOLS) + 1
    rounds = [Round.drawn(0, number) for number in range(0, ROUNDS, step)]
    assert {each.oracle.protocol for each in rounds} == set(PROTOCOLS)
    assert {each.attack for each in rounds} == {NOBODY, *ATTACKS}
    assert {each.world for each in rounds} == set(WORLDS)
    assert {each.attack for each in rounds if each.reads} == {NOBODY, *ATTACKS}
    sizes = [each.users.size for each in rounds]
    assert min(sizes) < 5
    assert max(sizes) == 1_000
    assert min(each.n for each in rounds) < 500
    assert max(each.n for each in rounds) > 500_000
    assert all(each.malicious == 0 for each in rounds if each.attack == NOBODY)
    assert max(each.share for each in rounds) > 0.19


def test_same_seed_plays_the_same_round() -> None:
    first, again, other = (Round.drawn(seed, 13).play() for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_intervals_of_too_small_a_share_are_seen_to_be_wrong() -> None:
    oracle, rng = frequency_oracle("oue", 1.0, 20), np.random.default_rng(1)
    users = np.full(20, 5_000)
    tally = oracle.simulation.honest_tally(users, rng)
    fakes = make_attack("mga", targets=[0, 1]).reports(oracle, 5_000, rng)
    together, truth = tally + Tally.of(oracle, fakes), users / users.sum()
    share = 5_000 / together.n
    assert is_inside(certify(oracle, together, share), truth, [(0, 1)], [(0, 5)])
    assert not is_inside(certify(oracle, together, share / 4), truth, [], [])
    certificate = certify(oracle, tally, 0.02)
    assert is_inside(certificate, truth, [(0, 1)], [(0, 5)])
    raised = truth.copy()
    raised[:2] += (0.1, -0.05)
    assert not is_inside(certificate, raised / raised.sum(), [], [])


@pytest.mark.parametrize("wrong", [{"inside": False}, {"least": 0.06}, {"tolerance": 0.06}])
def test_verdict_is_wrong_for_each_of_its_parts(wrong: dict[str, float]) -> None:
    right = Verdict(inside=True, least=0.01, tolerance=0.04, share=0.05, changed=True)
    assert not right.is_wrong
    assert replace(right, **wrong).is_wrong  # type: ignore[arg-type]


@pytest.mark.parametrize("each", [1, 3, 5])
def test_divergence_is_of_the_attack_that_is_played(each: int) -> None:
    oracle = frequency_oracle("oue", 1.0, 102)
    law = detection._fake_law(oracle, 10, each)
    hits = np.arange(11) @ law.sum(axis=1) / 10
    attack = make_attack("apa", targets=range(10), each=each)
    assert hits == pytest.approx(attack.support(oracle)[0])
    assert law.sum() == pytest.approx(1)
    assert detection.divergence(1.0, 0.0, 10, each) == pytest.approx(0, abs=1e-12)
    grows = [detection.divergence(1.0, beta, 10, each) for beta in (0.01, 0.05, 0.1)]
    assert 0 < grows[0] < grows[1] < grows[2]


def test_detection_is_of_settings_on_both_sides() -> None:
    """A round far above the honest law is seen, and one far below is not."""
    keys = PARTS["detection"].tasks(0, 1, 1.0)
    assert len(set(keys)) == len(keys)
    far, near = (
        ("0", "0", "1", "0.1", "20000", "5", "5"),
        ("0", "0", "1", "0.01", "20000", "5", "1"),
    )
    rows = [
        dict(zip(detection.COLUMNS, key, strict=False)) | detection.play(key) for key in (far, near)
    ]
    rates = list(detection.rates(rows).values())
    assert rates[0][0] > 8
    assert rates[1][0] < 0.25
    assert [rate for _, rate, _ in rates] == [1, 0]


def test_normal_limits_are_inside_those_that_always_hold() -> None:
    key = ("0", "oue", "1", NOBODY)
    row = {name: float(value) for name, value in certificate_widths.play_counts(key).items()}
    assert row["low"] < row["normal low"] < row["truth"] < row["normal high"] < row["high"]
    assert row["high"] - row["low"] < 1.1 * (row["normal high"] - row["normal low"])


@pytest.mark.parametrize("protocol", ["oue", "olh"])
def test_best_width_falls_to_the_floor(protocol: str) -> None:
    oracle = frequency_oracle(protocol, 1.0, 102)
    f = load_genuine_users("cities").frequencies
    total = float(f[list(certificate_widths.TARGETS)].sum())
    floor = undetectable(oracle, f, certificate_widths.TARGETS, 0.05).floor
    few, many = (certificate_widths.best_width(oracle, total, n) for n in (10**5, 10**10))
    assert many == pytest.approx(floor, rel=0.06)
    assert few > 1.5 * floor
