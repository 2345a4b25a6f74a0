"""Checks that every frequency oracle must pass, for this package and for plugins.

    from ldprecover.testing import check_protocol

    def test_the_protocol_keeps_the_contract():
        check_protocol(MyProtocol(1.0, 12))

Each check is an assertion. Where a protocol raises ParameterError with its name, it need not pass.
Reports are drawn from a seeded generator. Where chance decides, the tolerance is a bound
(Bernstein, Hoeffding) or a quantile that a correct protocol passes but once in 10^9, for each
number that is compared.
"""

from __future__ import annotations

import json
import math
import pickle
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ldprecover import distributions
from ldprecover.crafting import Crafter, EncodingCrafter, Strategy, crafter_of
from ldprecover.errors import ParameterError, ReportError
from ldprecover.protocols import wire
from ldprecover.protocols.oracle import FrequencyOracle
from ldprecover.reports import Tally, tally_sampler
from ldprecover.testing.privacy import check_epsilon, check_randomness, check_support_probabilities
from ldprecover.testing.tolerances import (
    RATE,
    assert_close,
    assert_counts,
    assert_follows,
    bernstein,
    bernstein_of,
)
from ldprecover.types import FloatArray, Rng

__all__ = ["check_protocol"]

_USERS = 20_000
_TALLIES = 400


def check_protocol(oracle: FrequencyOracle, *, seed: int = 1) -> None:
    """Run every check. Raises AssertionError for the first that the oracle fails.

    The error names the check, its requirement and the reason. An exception of the oracle gets a
    note with the same text.
    """
    for name, check in CHECKS.items():
        requirement = (check.__doc__ or "").partition("\n")[0]
        failure = f"{oracle.protocol} fails the check {name}. {requirement}"
        try:
            check(oracle, np.random.default_rng(seed))
        except AssertionError as error:
            reason = str(error) or traceback.extract_tb(error.__traceback__)[-1].line
            raise AssertionError(f"{failure} It is not so: {reason}") from error
        except Exception as error:
            error.add_note(failure)
            raise


def check_parameters(oracle: FrequencyOracle, rng: Rng) -> None:
    """The oracle is a value with probabilities in order, and its class says what it is."""
    assert 0 < oracle.q < oracle.p <= 1
    assert oracle.protocol.isidentifier()
    assert oracle.protocol == oracle.protocol.lower()
    assert oracle.title
    assert pickle.loads(pickle.dumps(oracle)) == oracle  # noqa: S301 - what was just written
    if oracle.parameter is not None:
        own = oracle.parameter
        assert oracle.own[own.name] == getattr(oracle, own.name)
        assert own.low <= own.default(oracle.epsilon, oracle.domain_size) <= own.high
    assert all(
        name.isidentifier() and 0 < word < 1 << 64 for name, word in oracle.thresholds.items()
    )
    json.dumps(oracle.wire.forms.example)
    assert oracle.wire.forms.json.endswith(".")
    assert oracle.wire.forms.packed.endswith(".")
    assert list(oracle.wire.forms.values) == [column.name for column in oracle.wire.columns]
    assert list(oracle.wire.forms.example) == [column.name for column in oracle.wire.columns]


def check_reports(oracle: FrequencyOracle, rng: Rng) -> None:
    """Reports are of one type, pass their own check, and say alike what they support in every way
    of asking.
    """
    d = oracle.domain_size
    items = rng.integers(d, size=300)
    for reports in (
        oracle.perturb(items, rng),
        oracle.encode(items, rng),
        oracle.perturb(items),
        oracle.perturb([]),
        oracle.encode([]),
    ):
        assert reports.dtype == oracle.wire.dtype.base
        assert reports.nbytes == len(reports) * oracle.wire.size
        oracle.wire.check(reports)
        supports = oracle.supports(reports)
        assert supports.shape == (len(reports), d)
        assert supports.dtype == np.bool_
        some = rng.permutation(d)[: d // 2 + 1]
        assert np.array_equal(oracle.supports(reports, some), supports[:, some])
        sizes = supports.sum(axis=1)
        assert np.array_equal(oracle.support_sizes(reports), sizes)
        if oracle.fixed_size is not None:
            message = (
                f"every report must support {oracle.fixed_size}, as the traits or fixed_size say"
            )
            assert (sizes == oracle.fixed_size).all(), (
                f"{message}, and some support {sizes.min()} or {sizes.max()}"
            )
        one = not oracle.traits.one_item or oracle.fixed_size == 1
        assert one, f"fixed_size must be 1 where the trait one_item is set, not {oracle.fixed_size}"
    assert oracle.supports(oracle.encode(items, rng))[np.arange(300), items].all()
    for wrong in ([d], [-1], [0.5], [[0]]):
        for report in (oracle.perturb, oracle.encode):
            _raises(partial(report, wrong, rng))


def check_seeds(oracle: FrequencyOracle, rng: Rng) -> None:
    """Seeds of 32 bits hardly ever come twice; a protocol without seeds raises ParameterError with
    its name.
    """
    reports = oracle.perturb(np.zeros(2000, np.int64), rng)
    if not oracle.traits.seeded:
        _raises(lambda: oracle.seeds(reports), oracle.protocol)
        return
    seeds = oracle.seeds(reports)
    assert seeds.dtype == np.uint32
    assert seeds.size - np.unique(seeds).size <= distributions.poisson_quantile(
        1 - RATE, 2000**2 / 2**33
    )


def check_packed_form(oracle: FrequencyOracle, rng: Rng) -> None:
    """Packed reports are read as they were written; for any other bytes the error has a
    position.
    """
    form = oracle.wire
    reports = oracle.perturb(rng.integers(oracle.domain_size, size=50), rng)
    packed = wire.pack(reports)
    assert len(packed) == 50 * form.size
    assert np.array_equal(form.unpack(packed), reports)
    for _ in range(200):
        data = rng.bytes(5 * form.size)
        mixed = packed[: 3 * form.size] + data
        try:
            form.unpack(mixed)
        except ReportError as error:
            assert error.position is not None
            assert error.position >= 3
            if error.position > 3:
                form.unpack(mixed[: error.position * form.size])
        else:
            values = form.split(form.unpack(mixed))
            for column, each in zip(form.columns, values, strict=True):
                assert column.kind is str or max(each) < column.limit
            again = form.from_columns(values)
            assert wire.pack(again) == mixed


def check_json_form(oracle: FrequencyOracle, rng: Rng) -> None:
    """The JSON form is read as it was written, is no longer than said, and the first bad report is
    named.
    """
    form = oracle.wire
    reports = oracle.perturb(rng.integers(oracle.domain_size, size=20), rng)
    body = form.to_json(reports)
    assert list(body) == [column.name for column in form.columns]
    columns = json.loads(json.dumps([*body.values()]))
    assert wire.pack(form.from_columns(columns)) == wire.pack(reports)
    one = form.from_columns([values[:1] for values in columns])
    assert wire.pack(one) == wire.pack(reports[:1])
    written = sum(len(json.dumps(values)) for values in body.values())
    assert written <= 20 * form.longest_json + 2 * len(body)
    for column in form.columns:
        if column.kind is str:
            good = body[column.name][0]
            wrong = ["", good[1:], good + "0", good + "\n", "2" + good[1:], "é" + good[1:]]
            if column.ones is not None:
                wrong += ["0" * column.limit, "1" * column.limit]
            for value in wrong:
                values = list(body[column.name])
                values[3] = values[7] = value
                _raises_report_error(oracle, body | {column.name: values}, 3)
    if len(form.columns) > 1:
        last = form.columns[-1].name
        _raises_report_error(oracle, body | {last: body[last][:-1]}, 19)
    _raises_report_error(oracle, {name: [] for name in body}, None)


def check_summary(oracle: FrequencyOracle, rng: Rng) -> None:
    """Summaries add, and the support counts read off them are those of the reports; so are their
    sizes. With the trait `histogram` a summary counts the reports themselves.
    """
    reports = oracle.perturb(rng.integers(oracle.domain_size, size=500), rng)
    whole = oracle.summarise(reports)
    assert whole.dtype == np.int64
    assert whole.shape == (oracle.summary_size,)
    parts = [oracle.summarise(part) for part in np.split(reports, [0, 1, 200])]
    assert np.array_equal(sum(parts), whole)
    if oracle.traits.histogram:
        assert np.array_equal(np.bincount(reports, minlength=oracle.summary_size), whole)
    expected = oracle.supports(reports).sum(axis=0)
    assert np.array_equal(oracle.counts_from(whole), expected)
    assert np.array_equal(oracle.support_counts(reports), expected)
    tally = Tally.of(oracle, reports)
    assert np.array_equal(tally.counts(oracle), expected)
    assert Tally.from_bytes(tally.to_bytes(), 500) == tally
    assert not oracle.summarise(reports[:0]).any()
    sized = oracle.summarise_with_sizes(reports)
    assert np.array_equal(sized[0], whole)
    assert np.array_equal(sized[1], oracle.supports(reports).sum(axis=1))


def check_independence(oracle: FrequencyOracle, rng: Rng) -> None:
    """Where bits are independent, two items are supported together as often as that says."""
    if not oracle.traits.independent_bits:
        return
    own, first, last = 0, 1, oracle.domain_size - 1
    supported = oracle.supports(
        oracle.perturb(np.full(_USERS, own), rng), np.array([own, first, last])
    )
    together = np.array(
        [(supported[:, 0] & supported[:, 1]).sum(), (supported[:, 1] & supported[:, 2]).sum()]
    )
    others = oracle.q if first == last else oracle.q**2
    assert_counts(together, np.array([oracle.p * oracle.q, others]), _USERS)


def check_sizes(oracle: FrequencyOracle, rng: Rng) -> None:
    """The law of support sizes has the mean and variance that are stated, and reports follow it."""
    size_law = oracle.laws.sizes
    if size_law is None:
        return
    law, sizes = size_law.probabilities(), np.arange(oracle.domain_size + 1)
    assert law.shape == sizes.shape
    assert (law >= 0).all()
    _assert_moments(law, oracle.laws.mean_size, size_law.variance)
    sizes_of_reports = oracle.support_sizes(
        oracle.perturb(rng.integers(oracle.domain_size, size=_USERS), rng)
    )
    assert_follows(np.bincount(sizes_of_reports, minlength=sizes.size), law)


def check_joint_support(oracle: FrequencyOracle, rng: Rng) -> None:
    """The laws of several items hold: of items that a user does not hold, and of any items."""
    d = oracle.domain_size
    items = np.arange(1, min(d, 5))
    supported = oracle.supports(oracle.perturb(np.zeros(_USERS, np.int64), rng), items)
    hit_law, joint_support = oracle.laws.hits, oracle.laws.joint_support
    law = None if hit_law is None else hit_law.nonholder_law(items)
    if hit_law is not None and law is not None:
        assert law.shape == (items.size + 1,)
        variances = hit_law.variances(items.size)
        _assert_moments(law, items.size * oracle.q, None if variances is None else variances[1])
        assert_follows(np.bincount(supported.sum(axis=1), minlength=law.size), law)
    if joint_support is None:
        return
    for z in range(2, items.size + 1):
        bound = joint_support.bound(z)
        assert 0 <= bound <= 1
        all_users = oracle.supports(oracle.perturb(np.full(_USERS, items[0]), rng), items[:z])
        assert all_users.all(axis=1).sum() <= _USERS * bound + bernstein(bound, _USERS)
        threshold = joint_support.threshold(1000, z, 0.01)
        law = distributions.binomial_law(1000, min(max(bound, 1e-300), 1 - 1e-15))
        assert law[threshold:].sum() <= 0.01


def check_likelihood(oracle: FrequencyOracle, rng: Rng) -> None:
    """Likelihoods are normalised, differ by the stated ratio alone, and never by more than
    e^epsilon.
    """
    d = oracle.domain_size
    ratio, limit = oracle.laws.likelihood_ratio, math.exp(oracle.epsilon)
    within = ratio is None or 1 < ratio <= limit * (1 + 1e-12)
    assert within, (
        f"likelihood_ratio must be above 1 and at most e^epsilon, {limit:.6g}, not {ratio}"
    )
    reports = oracle.perturb(np.zeros(_USERS, np.int64), rng)
    log_likelihood = oracle.laws.log_likelihood
    if log_likelihood is None:
        return
    uniform = log_likelihood(reports, np.full(d, 1 / d))
    own = log_likelihood(reports, _one_hot(d, 0))
    # E P'(z)/P(z) = 1 under P, of ratios that are within e^epsilon: Hoeffding.
    mean = float(np.exp(uniform - own).mean())
    assert abs(mean - 1) <= limit * math.sqrt(math.log(2 / RATE) / (2 * _USERS))
    few = reports[:50]
    of_item = np.stack([log_likelihood(few, _one_hot(d, v)) for v in range(min(d, 8))])
    gap = of_item.max(axis=0) - of_item.min(axis=0)
    largest = gap.max(initial=0.0)
    assert largest <= oracle.epsilon * (1 + 1e-9), (
        f"log_likelihood differs by {largest:.6g} under two items"
    )
    if ratio is not None:
        supports = oracle.supports(few)[:, : len(of_item)].T
        least = np.where(supports, of_item - math.log(ratio), of_item)
        assert np.allclose(least, least[0]), (
            f"reports are not {ratio:.6g} times as likely under items they support"
        )


def check_honest_tally(oracle: FrequencyOracle, rng: Rng) -> None:
    """A tally from its law has the means and the variances of a tally of reports."""
    d = oracle.domain_size
    users = np.zeros(d, np.int64)
    users[: d - 1] = rng.multinomial(100, np.full(d - 1, 1 / (d - 1)))
    p, q = oracle.p, oracle.q
    sampler, weights = tally_sampler(oracle), users / 100
    mean, variance = (
        users * p + (100 - users) * q,
        users * p * (1 - p) + (100 - users) * q * (1 - q),
    )
    tallies = [sampler.honest_tally(users, rng) for _ in range(_TALLIES)]
    _check_moments(oracle, tallies, mean, variance)
    # With the items drawn too, each report supports an item with one probability.
    share = q + weights * (p - q)
    tallies = [sampler.population_tally(weights, 100, rng) for _ in range(_TALLIES)]
    _check_moments(oracle, tallies, 100 * share, 100 * share * (1 - share))
    _raises(lambda: sampler.honest_tally(users[:-1], rng))
    _raises(lambda: sampler.honest_tally(users - 1, rng))
    assert not sampler.honest_tally(np.zeros(d, np.int64), rng).n


def _assert_moments(law: FloatArray, mean: float, variance: float | None) -> None:
    """Assert sum, mean and variance of a law of numbers from 0 on."""
    values = np.arange(law.size)
    assert_close(law.sum(), 1)
    assert_close(float(law @ values), mean)
    if variance is not None:
        assert_close(float(law @ values**2 - (law @ values) ** 2), variance)


def _check_moments(
    oracle: FrequencyOracle, tallies: list[Tally], mean: FloatArray, variance: FloatArray
) -> None:
    """The counts of tallies of 100 reports have these means and variances."""
    assert all(tally.n == 100 for tally in tallies)
    counts = np.array([tally.counts(oracle) for tally in tallies], dtype=np.float64)
    error = counts.mean(axis=0) - mean
    assert (np.abs(error) <= [bernstein_of(v * _TALLIES) / _TALLIES for v in variance]).all()
    # The fourth central moment of a sum of independent bits is at most 3 v^2 + v. Once in 10^9 a
    # normal mean is 6.1 deviations off; half as much again is for the skewness of squares.
    deviation = np.sqrt((2 * variance**2 + variance) / _TALLIES)
    assert (np.abs(((counts - mean) ** 2).mean(axis=0) - variance) <= 1.5 * 6.1 * deviation).all()


def check_encoded(oracle: FrequencyOracle, rng: Rng) -> None:
    """Encoded reports, and a tally of them from its law, have the stated support."""
    d, weights = oracle.domain_size, _one_hot(oracle.domain_size, 1)
    tally = tally_sampler(oracle).encoded_tally((weights * _USERS).astype(np.int64), rng)
    assert tally.n == _USERS
    assert tally.counts(oracle)[1] == _USERS
    crafter = _stated_crafter(oracle)
    if crafter is None:
        return
    support = _answer_or_none(partial(crafter.encoded_support, weights), oracle)
    if support is None:
        return
    assert support.shape == (d,)
    assert_counts(tally.counts(oracle), support, _USERS)
    assert_counts(
        oracle.support_counts(oracle.encode(np.ones(_USERS, np.int64), rng)), support, _USERS
    )
    if crafter.displacements is not None:
        least = oracle.q - float(support[0])  # of a report of `encode`
        assert_close(min(crafter.displacements, default=0.0), least)
        assert all(least <= each <= oracle.q * (1 + 1e-12) for each in crafter.displacements)


def check_crafted(oracle: FrequencyOracle, rng: Rng) -> None:
    """Crafted reports are valid and have the stated support."""
    d = oracle.domain_size
    r, m = min(d, 3), 2000
    chosen_items = np.tile(np.arange(r), (m, 1))
    crafter = _stated_crafter(oracle)
    if crafter is None:
        return
    strategy = Strategy(search=20)
    reports = crafter.craft(chosen_items, rng, strategy)
    oracle.wire.check(reports)
    included = np.zeros(d)
    included[:r] = 1
    support = crafter.crafted_support(included, r, strategy, m)
    assert_counts(oracle.support_counts(reports), support, m)
    crafted = crafter.craft(np.zeros((100, 1), np.int64), rng)
    assert np.isfinite(crafter.log_likelihood(crafted, 0)).all()
    uniform = crafter.uniform_reports(m, rng)
    oracle.wire.check(uniform)
    assert_counts(oracle.support_counts(uniform), np.full(d, crafter.uniform_support), m)
    sized = _answer_or_none(lambda: crafter.report_of_size(d / 2, rng, 20), oracle)
    if sized is not None:
        assert len(sized) == 1
        oracle.wire.check(sized)


def _stated_crafter(oracle: FrequencyOracle) -> Crafter | None:
    """Return the registered crafter; the laws of a search among encoded items are estimates."""
    crafter = crafter_of(oracle)
    return None if isinstance(crafter, EncodingCrafter) else crafter


CHECKS: dict[str, Callable[[FrequencyOracle, Rng], None]] = {
    check.__name__.removeprefix("check_"): check
    for check in (
        check_parameters,
        check_reports,
        check_seeds,
        check_packed_form,
        check_json_form,
        check_summary,
        check_epsilon,
        check_randomness,
        check_support_probabilities,
        check_independence,
        check_sizes,
        check_joint_support,
        check_likelihood,
        check_honest_tally,
        check_encoded,
        check_crafted,
    )
}
"""Name to check."""


def _answer_or_none(ask: Callable[[], Any], oracle: FrequencyOracle) -> Any:
    """Return what the oracle answers; None where it raises ParameterError, which must have its
    name.
    """
    try:
        return ask()
    except ParameterError as error:
        assert oracle.protocol in str(error), (
            f"an error that does not name {oracle.protocol}: {error}"
        )
        return None


def _raises(ask: Callable[[], object], name: str = "") -> None:
    try:
        ask()
    except ParameterError as error:
        assert name in str(error)
    else:
        raise AssertionError("no error was raised for what cannot be")


def _raises_report_error(
    oracle: FrequencyOracle, body: dict[str, Any], position: int | None
) -> None:
    try:
        oracle.wire.from_columns([*body.values()])
    except ReportError as error:
        assert error.position == position, (
            f"position {error.position}, not {position}: {error.reason}"
        )
    else:
        raise AssertionError(f"no error was raised for the body: {str(body)[:200]}")


def _one_hot(d: int, item: int) -> FloatArray:
    weights = np.zeros(d)
    weights[item] = 1.0
    return weights
