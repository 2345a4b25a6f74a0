"""The rules of all messages: strict types, unknown fields, and parameters of single protocols."""

import json
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from ldprecover import OUE, RoundExport, RoundParameters, Tally
from ldprecover.protocols import PROTOCOLS, OwnParameter
from ldprecover_interface.base import Message
from ldprecover_interface.export import Export
from ldprecover_interface.results import RecoveryQuery
from ldprecover_interface.rounds import NewRound, NewTickets
from ldprecover_interface.submissions import Accepted


class Salted(OUE):
    """A protocol with a parameter that no other protocol has."""

    protocol = "salted"
    parameter = OwnParameter("salt", 1, 9, "Grains.", lambda epsilon, domain_size: 1)


ROUND: dict[str, Any] = {"protocol": "olh", "epsilon": 0.5, "domain_size": 4}


def errors_of(model: type[Message], value: object) -> list[tuple[tuple[int | str, ...], str]]:
    """Return location and type of each validation error."""
    with pytest.raises(ValidationError) as raised:
        model.model_validate(value)
    return [(error["loc"], error["type"]) for error in raised.value.errors()]


@pytest.mark.parametrize("count", ["3", True, 3.0, None, 0, 1_000_001])
def test_numbers_are_strict(count: object) -> None:
    ((where, _),) = errors_of(NewTickets, {"count": count})
    assert where == ("count",)


@pytest.mark.parametrize("eta", [float("nan"), float("inf")])
def test_numbers_are_finite(eta: float) -> None:
    assert errors_of(RecoveryQuery, {"eta": eta})


def test_request_rejects_unknown_field() -> None:
    assert errors_of(NewTickets, {"count": 1, "colour": 2}) == [(("colour",), "extra_forbidden")]
    assert errors_of(NewRound, ROUND | {"colour": 2}) == [(("colour",), "extra_forbidden")]


def test_response_ignores_unknown_field() -> None:
    body = {"round": "A", "accepted": 1, "duplicate": False}
    assert Accepted.model_validate(body | {"later": [1]}).model_dump() == body


def test_export_of_core_has_the_declared_fields() -> None:
    parameters = RoundParameters("olh", 1.3, ("a", "b", "c"), practice=True)
    tally = Tally(np.array([5, 0, 2]), 10)
    optional: dict[str, Any] = {"seed": "0f" * 16, "series": "letters", "number": 2}
    optional |= {"question": "Which?", "title": "Letters", "thanks": "Thanks.", "language": "en"}
    document = RoundExport(
        round="R1", name="x", parameters=parameters, tally=tally, **optional
    ).to_dict()
    assert document.keys() == Export.model_fields.keys()
    assert json.loads(Export.model_validate(document).to_json()) == document


def test_long_array_stops_at_first_error() -> None:
    assert errors_of(NewRound, ROUND | {"items": [1] * 1000}) == [(("items", 0), "string_type")]


@pytest.mark.parametrize("value", [1, 1 << 40, 3.0, True])
def test_parameter_of_one_protocol_is_checked(value: object) -> None:
    assert errors_of(NewRound, ROUND | {"hash_range": value}) == [
        (("hash_range",), "own_parameter")
    ]
    assert NewRound.model_validate(ROUND | {"hash_range": 3}).own["hash_range"] == 3


def test_protocol_registered_later_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    body = ROUND | {"protocol": "salted", "salt": 3}
    assert errors_of(NewRound, body) == [(("protocol",), "literal_error")]
    monkeypatch.setitem(PROTOCOLS, "salted", Salted)
    assert NewRound.model_validate(body).own["salt"] == 3
    properties = NewRound.model_json_schema()["properties"]
    assert "salted" in properties["protocol"]["enum"]
    assert properties["salt"]["description"] == "Grains."
