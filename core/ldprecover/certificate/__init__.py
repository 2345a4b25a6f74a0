"""Certificates: what a round proves, whatever malicious users sent.

A recovery guesses what was added; a certificate assumes only how many reports were malicious.
`undetectable` says what these could do without a trace.
"""

from ldprecover.certificate.certificates import Certificate, Claim, Ranking, certify
from ldprecover.certificate.questions import Ahead, AmongFirst, MoreThan
from ldprecover.certificate.undetectable import Undetectable, undetectable

__all__ = [
    "Ahead",
    "AmongFirst",
    "Certificate",
    "Claim",
    "MoreThan",
    "Ranking",
    "Undetectable",
    "certify",
    "undetectable",
]
