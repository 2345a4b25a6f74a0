"""Batches of submissions: their rows, and what of them waits counted."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ldprecover import Tally, frequency_oracle
from ldprecover.protocols import wire
from ldprecover_server.ingest.batches import Submission, SubmissionBatch


@given(
    st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=8),
    st.integers(0, 2**32),
)
def test_batch_is_independent_of_counting_ahead(sent: list[tuple[int, bool]], seed: int) -> None:
    oracle, rng = frequency_oracle("oue", 0.5, 60), np.random.default_rng(seed)
    submissions, everything = [], []
    for i, (n, is_ahead) in enumerate(sent):
        reports = oracle.perturb(rng.integers(0, 60, n), rng)
        everything.append(reports)
        submission = Submission(1, oracle, str(i), wire.pack(reports))
        submissions.append(submission)
        if is_ahead:
            submission.count()
    batch = SubmissionBatch(submissions)
    for fresh in (range(len(sent)), range(len(sent) // 2, len(sent))):
        reports = np.concatenate([everything[i] for i in fresh])
        data, tally = batch.rows(fresh)
        assert tally == Tally.of(oracle, reports)
        stored = np.frombuffer(data, oracle.wire.dtype)
        assert sorted(stored.tolist()) == sorted(reports.tolist())


def test_reports_of_a_batch_are_shuffled() -> None:
    """In order by chance once in 50! times."""
    items = list(range(50))
    oracle, reports = frequency_oracle("grr", 0.5, 50), np.array(items, "<u4")
    data, _ = SubmissionBatch([Submission(1, oracle, "key", wire.pack(reports))]).rows([0])
    stored = np.frombuffer(data, "<u4").tolist()
    assert sorted(stored) == items
    assert stored not in (items, items[::-1])


def test_counts_ahead_only_large_submissions_with_small_tallies() -> None:
    def takes_long(protocol: str, d: int, n: int) -> bool:
        oracle = frequency_oracle(protocol, 0.5, d)
        return Submission(1, oracle, "key", bytes(n * oracle.wire.size)).takes_long

    assert takes_long("olh", 490, 10_000)
    assert takes_long("olh", 60, 10_000)
    assert not takes_long("olh", 60, 8_000), "it is counted with its group"
    assert not takes_long("olh", 100_000, 10_000), (
        "tallies that wait would hold far more memory than their reports"
    )
    assert not takes_long("grr", 490, 100_000), "it is counted as fast as it is read"
