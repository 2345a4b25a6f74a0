"""Complete messages of a server, for fakes to send."""

from typing import Any

from ldprecover import RoundParameters
from ldprecover.protocols import own_parameters


def round_message(parameters: RoundParameters, **changes) -> dict[str, Any]:
    """Return a round with its items, state and thresholds."""
    oracle = parameters.oracle
    return {
        "id": "r1",
        "name": "letters",
        "protocol": parameters.protocol,
        "epsilon": parameters.epsilon,
        "domain_size": len(parameters.items),
        **dict.fromkeys(own_parameters()),
        **parameters.own,
        "digits": oracle.derived.get("digits"),
        "p": oracle.p,
        "q": oracle.q,
        "digest": parameters.digest,
        "access": "open",
        "read_access": "public",
        "retention": "forever",
        "thresholds": {name: str(value) for name, value in oracle.thresholds.items()},
        "items": list(parameters.items),
        "state": "open",
        "n": 7,
        "verdict": None,
        "opened_at": "2024-05-01T12:00:00Z",
        "closed_at": None,
        **changes,
    }


FREQUENCIES: dict[str, Any] = {
    "round": "r1",
    "protocol": "olh",
    "epsilon": 0.5,
    "n": 4,
    "p": 0.45,
    "q": 0.33,
    "items": ["a", "b"],
    "counts": [4, 0],
    "frequencies": [1.1, -0.1],
    "standard_errors": [0.1, 0.1],
    "sum": 1.0,
    "sum_standard_error": None,
}
RECOVERY: dict[str, Any] = {
    "round": "r1",
    "method": "ldprecover",
    "eta": 0.2,
    "targets": [1],
    "malicious_model": "paper",
    "n": 4,
    "malicious_sum": -3.5,
    "items": ["a", "b"],
    "poisoned": [1.1, -0.1],
    "malicious": [0, 0],
    "genuine": [1, 0],
    "recovered": [1.0, 0.0],
    "notes": [],
    "conclusions": {
        "standard_deviations": [0.1, 0.1],
        "lower": [0.0, 0.1],
        "upper": [0.9, 0.8],
        "attack": "possible",
        "attack_probability": 0.5,
        "unseen": [{"items": 10, "share": 0.05, "gain": 0.38, "untested": 1.0}],
        "beta": 0.05,
        "suspects": [{"item": 1, "label": "b", "probability": 0.7}],
        "dropped": [{"screen": "sizes", "what": "too many items", "reports": 3}],
        "history_weight": None,
        "sentences": ["An attack is possible."],
    },
}
CERTIFICATE: dict[str, Any] = {
    "round": "r1",
    "n": 4,
    "malicious_share": 0.1,
    "confidence": 0.95,
    "events": 4,
    "from_reports": True,
    "seed": "0123456789abcdef" * 2,
    "assumption": "If …",
    "least_malicious_share": 0,
    "items": ["a", "b"],
    "lower": [0.1, 0.2],
    "upper": [0.8, 0.9],
    "answers": [
        {
            "certified": True,
            "tolerance": 0.2,
            "top": 1,
            "items": [0],
            "certain": [],
            "possible": [0, 1],
        }
    ],
    "sentences": {"answers": ["a leads."], "bound": "If …", "proven": None},
}
VERSION = {"version": "1", "kernels": "numpy", "verdict_reports": 0}
ACCEPTED = {"round": "r1", "accepted": 2, "duplicate": False}
