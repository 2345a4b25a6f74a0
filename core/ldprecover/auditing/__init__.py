"""Audits of any client that perturbs values: what its reports prove of its epsilon.

An audit knows nothing of a client but its reports. It can prove a violation, never its absence.
"""

from ldprecover.auditing.audits import Audit, audit

__all__ = ["Audit", "audit"]
