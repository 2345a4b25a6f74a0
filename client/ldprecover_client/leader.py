"""The server's sentence on the certified leader of a round."""

from ldprecover_client.answers import JsonObject
from ldprecover_client.errors import RefusedError
from ldprecover_client.http import Client

_ALMOST_ALL = 0.999  # at this share every round is possible; least share and tolerance hold at any
_ROUNDING = 2.0**-29  # of the least share, which the server rounds down


def certified_leader(client: Client, reference: str) -> JsonObject | None:
    """Return a certificate with one answer: which item leads, and up to which share of forgeries.

    It assumes the largest share at which that is proven, or the least that is possible. None if the
    round has no certificate. Raises ClientError.

        certified_leader(client, "cities")["answers"][0]["sentence"]
    """
    questions = [{"top": 1}]
    try:
        anything = client.certify(reference, _ALMOST_ALL, questions=questions)
        (answer,), least = anything["answers"], anything["least_malicious_share"]
        share = answer["tolerance"]
        if share is None:
            share = least + _ROUNDING if least else 0.0
        return client.certify(reference, share, questions=questions)
    except RefusedError as error:
        if error.slug in ("unauthorized", "forbidden", "round-not-found"):
            raise
        return None


def leader_sentence(client: Client, reference: str) -> str | None:
    """Return the sentence of `certified_leader`; None if there is no certificate."""
    certificate = certified_leader(client, reference)
    if certificate is None:
        return None
    sentence: str = certificate["answers"][0]["sentence"]
    return sentence
