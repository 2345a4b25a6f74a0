"""What a certificate says of its numbers."""

from typing import Any

import numpy as np
import pytest

from ldprecover.certificate.results import CertificateResult, ImpossibleShareError

LABELS = ["a", "b", "\u05d0"]


def result(*answers: dict[str, Any], **fields: Any) -> CertificateResult:
    return CertificateResult(
        **{
            "n": 100,
            "malicious_share": 0.05,
            "confidence": 0.95,
            "events": 3,
            "from_reports": False,
            "seed": None,
            "assumption": "",
            "least_malicious_share": 0.0,
            "lower": np.array([0.1, 0.2, 0.3]),
            "upper": np.array([0.2, 0.4, 0.33331]),
            "answers": list(answers),
        }
        | fields
    )


UNPROVEN = {"certified": False, "tolerance": None}


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            {"certified": False, "tolerance": 0.02349, "top": 1, "items": [0]},
            (
                "a leads if at most 2.34 % of the reports are malicious, but this is not certain "
                "if 5 % are."
            ),
        ),
        (
            UNPROVEN | {"ahead": [2, 1], "estimate": -0.1},
            (
                "Not certified, and not so among the numbers as collected: \u2068\u05d0\u2069 is "
                "ahead of b."
            ),
        ),
        (
            UNPROVEN | {"ahead": [0, 1], "estimate": 0.0},
            "Not certified, and not so among the numbers as collected: a is ahead of b.",
        ),
        (
            UNPROVEN | {"top": 2, "items": [1, 2]},
            (
                "The first 2 are b and \u2068\u05d0\u2069 among the numbers as collected, but this "
                "is not certain: the noise of honest reports is enough to change it."
            ),
        ),
        (
            UNPROVEN | {"mean_above": 0.3, "estimate": 0.3},
            "Not certified, and not so among the numbers as collected: The mean is above 0.3.",
        ),
        (
            UNPROVEN | {"items": [1], "lower": 0.0, "upper": 1.0, "more_than": 0.0},
            "Between 0 and 100 % of the honest users hold b.",
        ),
        (
            {"items": [0, 1], "lower": 0.10009, "upper": 0.20001, "estimate": 0.15}
            | {"certified": True, "tolerance": 0.1, "more_than": 0.1},
            (
                "Between 10 and 20.1 % of the honest users hold a or b. More than 10 % of the "
                "honest users hold a or b. That holds even if up to 10 % of the reports are "
                "malicious."
            ),
        ),
    ],
)
def test_answer_is_a_sentence(answer: dict[str, Any], sentence: str) -> None:
    assert result(answer).sentences(LABELS).answers == [sentence]


def test_proven_share_is_the_cause_of_doubt() -> None:
    proven = result(UNPROVEN | {"top": 1, "items": [0]}, least_malicious_share=0.0309999)
    sentences = proven.sentences(LABELS)
    assert sentences.answers[0].endswith(
        "the reports that are proven to be malicious are enough to change it."
    )
    assert sentences.proven == "At least 3.09 % of the reports are malicious: the reports prove it."
    assert result().sentences(LABELS).proven is None


def test_bound_is_that_of_the_widest_interval() -> None:
    assert result().sentences(LABELS).bound == (
        "If 5 % of the reports are malicious, an item's share is only known to within 20 points."
    )
    ends = {"lower": np.array([0.3, 0.4]), "upper": np.array([0.6, 0.70001])}
    numbers = result(**ends)
    assert numbers.mean == pytest.approx((-0.2, 0.40002))
    assert numbers.sentences(["-1", "1"]).bound == (
        "If 5 % of the reports are malicious, the mean of the honest users' numbers is only known "
        "to be between -0.2 and 0.401."
    )


def test_impossible_share_has_no_sentences() -> None:
    impossible = result(lower=None, upper=None, least_malicious_share=0.0666)
    with pytest.raises(ImpossibleShareError, match=r"they prove that at least 6\.66 % are"):
        impossible.sentences(LABELS)
