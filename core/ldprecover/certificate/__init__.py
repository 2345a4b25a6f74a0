"""Certificates: what a round proves, whatever malicious users sent.

A recovery guesses what was added; a certificate assumes only how many reports were malicious.
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

__all__ = ["Ahead", "AmongFirst", "Certificate", "Claim", "MoreThan", "Ranking", "certify"]
