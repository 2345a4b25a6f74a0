"""Certificates: what a round proves, whatever malicious users sent.

A recovery guesses what was added; a certificate assumes only how many reports were malicious.
`undetectable` says what these could do without a trace.
"""

from ldprecover.certificate.certificates import (
    Ahead,
    AmongFirst,
    Certificate,
    Claim,
    MoreThan,
    Ranking,
    certify,
)
from ldprecover.certificate.means import MeanAbove, mean_limits
from ldprecover.certificate.undetectable import Undetectable, undetectable

__all__ = [
    "Ahead",
    "AmongFirst",
    "Certificate",
    "Claim",
    "MeanAbove",
    "MoreThan",
    "Ranking",
    "Undetectable",
    "certify",
    "mean_limits",
    "undetectable",
]
