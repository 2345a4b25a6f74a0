"""Responses are read from bytes that anybody may have written."""

import contextlib
import json
import math
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.messages import (
    ACCEPTED,
    CERTIFICATE,
    FREQUENCIES,
    RECOVERY,
    VERSION,
    round_message,
)

from ldprecover import OLH, RoundParameters
from ldprecover.protocols import PROTOCOLS
from ldprecover_client import (
    InconsistentRoundError,
    InvalidAnswerError,
    RefusedError,
    ServerError,
    UnknownProtocolError,
    Verdict,
)
from ldprecover_client.answers import (
    read_certificate,
    read_frequencies,
    read_parameters,
    read_recovery,
    read_rounds,
    read_status,
    read_tickets,
)
from ldprecover_client.calls import HttpResponse, problem_in, reader
from ldprecover_interface.operation import Version
from ldprecover_interface.submissions import Accepted

KEEP = OLH(0.5, 3, 3).thresholds["keep_below"]
LABELS = ("a", "b", "c")


def answer(body: object, status: int = 200, content_type: str = "application/json") -> HttpResponse:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return HttpResponse(status, {"content-type": content_type}, content)


def a_round(kind: str = "olh", **changes) -> dict[str, Any]:
    message = round_message(RoundParameters(kind, 0.5, LABELS), thresholds={})
    return message | changes


def a_summary(kind: str = "olh", **changes) -> dict[str, Any]:
    round_ = a_round(kind, **changes)
    del round_["items"]
    return round_


READ: dict[str, tuple[Callable[[HttpResponse], Any], dict[str, Any]]] = {
    "parameters": (read_parameters, a_round()),
    "round": (read_status, a_round()),
    "rounds": (read_rounds, {"rounds": [a_summary(), a_summary("grr")]}),
    "submission": (reader(Accepted), ACCEPTED),
    "frequencies": (read_frequencies, FREQUENCIES),
    "recovery": (read_recovery, RECOVERY),
    "certificate": (lambda answer: read_certificate(answer, 1), CERTIFICATE),
    "version": (reader(Version), VERSION),
}
"""A reader of each kind of response, and a whole one."""

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_round_is_read_with_its_parameters(protocol: str):
    round_ = read_parameters(answer(a_round(protocol)))
    assert round_.parameters == RoundParameters(protocol, 0.5, LABELS)
    assert (round_.id, round_.name) == ("r1", "letters")
    assert (round_.p, round_.q) == (round_.parameters.oracle.p, round_.parameters.oracle.q)
    assert round_.digest == round_.parameters.digest


def test_practice_round_is_read_with_its_digest():
    parameters = RoundParameters("olh", 0.5, LABELS, practice=True)
    round_ = read_parameters(answer(round_message(parameters, practice=True)))
    assert (round_.practice, round_.parameters) == (True, parameters)
    assert repr(round_).endswith("3 items, practice)")
    with pytest.raises(InconsistentRoundError, match="digest"):
        read_parameters(answer(round_message(parameters)))


def test_round_with_its_state_is_read():
    status = read_status(answer(a_round(state="closed", closed_at="2024-05-02T12:00:00Z")))
    assert (status.state, status.n, status.closed_at) == ("closed", 7, "2024-05-02T12:00:00Z")


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_listed_round_equals_summary_of_round(protocol: str):
    changes = {"access": "key", "retention": "none"}
    whole = read_status(answer(a_round(protocol, **changes)))
    (listed,) = read_rounds(answer({"rounds": [a_summary(protocol, **changes)]}))
    assert vars(listed).items() <= vars(whole).items()
    assert listed.own == whole.own
    assert {name: getattr(listed, name) for name in changes} == changes


@pytest.mark.parametrize(("reader", "body"), READ.values(), ids=READ)
@given(data=st.data())
def test_changed_field_is_read_or_a_server_error(reader, body: dict[str, Any], data: st.DataObject):
    """UnknownProtocolError is for a protocol of a plugin that is not loaded."""
    where = data.draw(st.sampled_from(sorted(body)))
    changed = dict(body)
    if data.draw(st.booleans()):
        changed[where] = data.draw(anything)
    else:
        del changed[where]
    with contextlib.suppress(ServerError, UnknownProtocolError):
        reader(answer(changed))


@pytest.mark.parametrize(("reader", "body"), READ.values(), ids=READ)
@given(content=st.binary(max_size=30) | anything.map(lambda value: json.dumps(value).encode()))
def test_rejects_any_other_response(reader, body: object, content: bytes):
    with pytest.raises(ServerError):
        reader(answer(content))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>Sign in to the network</html>",
        b"[" * 100_000,
        b'{"round":' * 50_000,
        b"\xff\xfe\xfd",
        b"9" * 9999,
    ],
    ids=["empty", "a page", "nested arrays", "nested objects", "no text", "a long number"],
)
def test_rejects_what_is_not_a_json_object(content: bytes):
    with pytest.raises(InvalidAnswerError, match="JSON"):
        reader(Accepted)(answer(content))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"p": 0.9}, "states p = 0.9"),
        ({"q": 0.2}, "states q = 0.2"),
        ({"epsilon": 8.0}, "states p"),
        ({"digest": "0" * 64}, "digest"),
        ({"items": ["a", "b", "d"]}, "digest"),
        ({"items": ["a", "a", "c"]}, "distinct"),
        ({"items": ["a", "caf\u00e9", "cafe\u0301"]}, "item 1 and item 2, which look the same"),
        ({"items": ["a", 301 * "b", "c"]}, "item 1 has 301"),
        ({"thresholds": {"keep_below": str(KEEP + 1)}}, "another threshold keep_below"),
    ],
)
def test_rejects_contradictory_round(changes: dict[str, Any], words: str):
    with pytest.raises(InconsistentRoundError, match=words):
        read_parameters(answer(a_round(**changes)))


@pytest.mark.parametrize(
    "stated", [{}, {"keep_below": str(KEEP)}, {"keep_below": str(KEEP), "of_a_later_version": "1"}]
)
def test_round_may_state_its_thresholds(stated: dict[str, str]):
    assert read_parameters(answer(a_round(thresholds=stated))).parameters.oracle.thresholds == {
        "keep_below": KEEP
    }


def test_unknown_protocol_is_named():
    with pytest.raises(
        UnknownProtocolError,
        match="protocol 'rappor' is not known here: install and load the plugin",
    ):
        read_parameters(answer(a_round(protocol="rappor")))


ANSWER = CERTIFICATE["answers"][0]
CONCLUDED = RECOVERY["conclusions"]
INVALID_CONCLUSIONS: dict[str, Any] = {
    "lower": [0.1],
    "upper": ["0.1", 0.2],
    "attack": 1,
    "suspects": [{"item": 2, "label": "c", "probability": 0.7}],
    "dropped": [{"screen": "sizes", "what": "x", "reports": -1}],
}
VERDICT: dict[str, Any] = {
    "reports": 5,
    "attack": "possible",
    "attack_probability": 0.4,
    "unseen": [{"items": 1, "share": 0.05, "gain": 0.2, "untested": 0.2}],
    "malicious_share": None,
    "least_malicious_share": 0,
    "raised": [1, 0],
    "top": [{"item": 1, "label": "b", "estimate": 0.75}],
    "sentences": ["An attack is possible."],
}


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("parameters", {"epsilon": "0.5"}, "epsilon"),
        ("parameters", {"q": 10**400}, "q must be "),
        ("parameters", {"hash_range": None}, "hash_range"),
        ("parameters", {"thresholds": {"keep_below": KEEP}}, "thresholds.keep_below must be "),
        ("parameters", {"digest": ""}, "digest"),
        *(("parameters", {"id": id}, "id must be") for id in ("x/y", "a b", "", "r" * 200)),
        ("submission", {"accepted": 0}, "accepted"),
        ("submission", {"round": None}, "round"),
        ("frequencies", {"counts": [4]}, "1 values for 2 items"),
        ("frequencies", {"counts": [5, 0]}, "counts: the value of item 0"),
        ("frequencies", {"frequencies": None}, "frequencies"),
        ("frequencies", {"frequencies": [math.nan, 0.0]}, r"frequencies\.0 must be a number"),
        ("frequencies", {"frequencies": [math.inf, 0.0]}, r"frequencies\.0 must be a number"),
        ("frequencies", {"standard_errors": [0.1, 0.1, 0.1]}, "standard_errors"),
        ("frequencies", {"n": 0, "counts": [0, 0]}, "without reports"),
        ("recovery", {"targets": [2]}, "targets"),
        ("recovery", {"recovered": [1.0]}, "recovered"),
        *(
            ("recovery", {"conclusions": CONCLUDED | {name: value}}, name)
            for name, value in INVALID_CONCLUSIONS.items()
        ),
        ("certificate", {"lower": [0.1]}, "lower"),
        ("certificate", {"answers": []}, "answers"),
        ("certificate", {"answers": [ANSWER | {"certain": [2]}]}, "certain"),
        ("certificate", {"answers": [ANSWER | {"possible": [-1]}]}, "possible"),
    ],
)
def test_rejects_invalid_field(kind: str, changes: dict[str, Any], words: str):
    read, body = READ[kind]
    with pytest.raises(InvalidAnswerError, match=words):
        read(answer(body | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"attack": None},
        {"raised": [2, 3]},
        {"raised": [0] * 21},
        {"top": [{"item": 9, "label": "b", "estimate": 0.75}]},
        {"top": VERDICT["top"] * 11},
    ],
)
def test_rejects_invalid_verdict(changes: dict[str, Any]):
    body = a_round(verdict=VERDICT | changes)
    for read, sent in ((read_status, body), (read_rounds, {"rounds": [body]})):
        with pytest.raises(InvalidAnswerError, match=next(iter(changes))):
            read(answer(sent))


LISTS = ("unseen", "suspects", "dropped", "sentences")


def test_conclusions_are_read_unchanged():
    nothing = dict.fromkeys(CONCLUDED) | {name: [] for name in LISTS}
    for conclusions in (CONCLUDED, nothing):
        read = read_recovery(answer(RECOVERY | {"conclusions": conclusions}))
        assert json.loads(read.to_json())["conclusions"] == conclusions


def test_accepts_p_and_q_with_rounding_errors():
    oracle = RoundParameters("olh", 0.5, LABELS).oracle
    close = read_parameters(answer(a_round(p=oracle.p * (1 + 1e-14), q=oracle.q * (1 - 1e-14))))
    assert close.p != oracle.p


def test_frequencies_without_reports_are_none():
    nothing = {"n": 0, "counts": [0, 0], "frequencies": None, "standard_errors": None, "sum": None}
    empty = read_frequencies(answer(FREQUENCIES | nothing))
    assert (empty.frequencies, empty.standard_errors, empty.sum) == (None, None, None)
    assert repr(empty) == "Frequencies(olh, epsilon 0.5, 0 reports, 2 items)"
    assert "<td>a</td>" in empty._repr_html_()


def test_frequencies_become_a_table_and_a_data_frame():
    labels = FREQUENCIES | {"items": ["<b>", "a"]}
    read = read_frequencies(answer(labels))
    table = read._repr_html_()
    assert table.index("&lt;b&gt;</td><td>110.00 %") < table.index("<td>a</td><td>-10.00 %")
    pandas = pytest.importorskip("pandas")
    frame = read.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.index.name == "item"
    assert list(frame.columns) == ["support", "frequency", "standard_error"]
    assert frame.loc["a", "frequency"] == -0.1
    recovered = read_recovery(answer(RECOVERY)).to_frame()
    assert recovered["recovered"].tolist() == RECOVERY["recovered"]
    certified = read_certificate(answer(CERTIFICATE), 1).to_frame()
    assert certified["upper"].tolist() == CERTIFICATE["upper"]


def test_frequencies_without_pandas_are_no_data_frame(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'ldprecover\[experiments\]'"):
        read_frequencies(answer(FREQUENCIES)).to_frame()


def test_frequencies_are_typed_and_show_labels():
    read = read_frequencies(answer(FREQUENCIES))
    assert read.frequencies is not None
    assert read.frequencies.tolist() == [1.1, -0.1]
    assert (read.items, read.counts.tolist(), read.notes) == (["a", "b"], [4, 0], [])
    assert json.loads(read.to_json()) == FREQUENCIES
    assert repr(read) == (
        "Frequencies(olh, epsilon 0.5, 4 reports, 2 items: a 110.00 %; b -10.00 %)"
    )


def problem_of(response: HttpResponse) -> RefusedError:
    """Return the problem of a response."""
    problem = problem_in(response)
    assert problem is not None
    return problem


def test_problem_has_type_position_and_detail():
    body = {
        "type": "/docs/errors#invalid-report",
        "title": "A report is malformed",
        "detail": "too big",
        "position": 4,
    }
    error = problem_of(answer(body, 422, "application/problem+json; charset=utf-8"))
    assert (error.status, error.slug, error.position) == (422, "invalid-report", 4)
    assert str(error) == "A report is malformed (report 4): too big"


def test_problem_without_known_fields_is_an_error():
    error = problem_of(answer({"title": 7, "position": "x"}, 418, "application/problem+json"))
    assert (error.status, error.slug, error.detail, error.position) == (418, "", None, None)
    assert "418" in str(error)


def test_problem_text_is_printable_and_short():
    error = problem_in(
        answer({"title": "\x1b[2Jgone\n", "detail": "x" * 10_000}, 409, "application/problem+json")
    )
    assert "\x1b" not in str(error)
    assert "\n" not in str(error)
    assert len(str(error)) < 1000


@pytest.mark.parametrize("content_type", ["application/json", "text/html", ""])
def test_other_media_type_is_no_problem(content_type: str):
    assert problem_in(answer({"title": "no"}, 404, content_type)) is None


def test_problem_that_is_not_json_is_none():
    assert problem_in(answer(b"<html>", 404, "application/problem+json")) is None


def test_problem_names_invalid_fields():
    good = {"field": "epsilon", "reason": "too \x1b high"}
    body = {
        "title": "t",
        "errors": [good, {"field": 3, "reason": "x"}, "text", {"field": "name"}] + [good] * 40,
    }
    problem = problem_of(
        HttpResponse(422, {"content-type": "application/problem+json"}, json.dumps(body).encode())
    )
    assert problem.fields[0] == ("epsilon", "too \N{REPLACEMENT CHARACTER} high")
    assert set(problem.fields) == {problem.fields[0]}
    assert len(problem.fields) <= 20


@pytest.mark.parametrize("body", [b"<h1>\n", b"a" * 45, b"A" * 22 + b"." + b"A" * 21])
def test_rejects_malformed_tickets(body: bytes):
    with pytest.raises(InvalidAnswerError, match="the form of tickets"):
        read_tickets(HttpResponse(200, {}, body), 1)


def test_round_has_its_verdict():
    assert read_status(answer(a_round())).verdict is None
    status = read_status(answer(a_round(verdict=VERDICT)))
    (listed,) = read_rounds(answer({"rounds": [a_summary(verdict=VERDICT)]}))
    assert status.verdict == listed.verdict == Verdict.model_validate(VERDICT)
