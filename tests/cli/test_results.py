"""Frequencies and recoveries of a real server, as JSON and in words."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldprecover import GRR
from ldprecover.protocols.wire import pack
from ldprecover_client import load_dataset


@pytest.fixture(scope="module")
def poisoned(server: Any) -> Any:
    """A GRR round of 4,000 genuine reports and 1,000 for one target."""
    items = list(load_dataset("cities").items)
    opened = server.open_round("grr", 3.0, items=items)
    oracle, rng = GRR(3.0, len(items)), np.random.default_rng(1)
    genuine = oracle.perturb(rng.integers(5, size=4000), rng)
    malicious = oracle.encode(np.full(1000, items.index("Reno, NV")), rng)
    for reports in (genuine, malicious):
        assert server.submit(opened["id"], pack(reports)).status_code == 202
    return opened


def test_json_is_the_server_s_answer(on_server: Any, server: Any, poisoned: Any) -> None:
    assert on_server(
        "frequencies", "--round", poisoned["name"], "--json"
    ).json == server.frequencies(poisoned["id"])
    fields = {
        "eta": 0.25,
        "targets": ["Reno, NV"],
        "malicious_model": "exact",
        "method": "ldprecover",
    }
    expected = server.http.post(f"/rounds/{poisoned['id']}/recover", json=fields).json()
    options = ("--eta", "0.25", "--target", "Reno, NV", "--malicious-model", "exact", "--json")
    assert on_server("recover", "--round", poisoned["name"], *options).json == expected


def test_frequencies_in_words_show_the_most_frequent_first(on_server: Any, poisoned: Any) -> None:
    result = on_server("frequencies", "--round", poisoned["name"], "--top", "3")
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0] == "5,000 reports, grr, epsilon 3"
    assert lines[2].startswith("Reno, NV")
    assert "█" in lines[2]
    assert "… and 99 more items" in result.out
    assert "\x1b" not in result.out


def test_frequencies_in_words_mark_canaries_and_say_what_was_set_aside(
    on_server: Any, server: Any
) -> None:
    opened = server.open_round(
        "oue", 0.5, items=[f"i{i}" for i in range(60)], canaries=2, quarantine=True
    )
    rows = np.packbits(np.arange(62) < np.array([1, 24, 62])[:, None], axis=1, bitorder="little")
    assert server.submit(opened["id"], rows.tobytes()).status_code == 202
    shown = on_server("frequencies", "--round", opened["name"], "--top", "62").out
    assert shown.startswith(
        "1 report, oue, epsilon 0.5\n2 reports in quarantine and not counted.\n"
    )
    assert "canary 2 (canary)" in shown
    assert "i0 (canary)" not in shown


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_row_is_folded_where_the_terminal_is_narrow(
    on_server: Any, poisoned: Any, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bars give way to names and numbers; below 60 columns a recovery's names may take two
    lines.
    """
    monkeypatch.setenv("COLUMNS", str(width))
    for command in [("frequencies",), ("recover", "--target", "Reno, NV")][
        : 1 if width < 60 else 2
    ]:
        lines = on_server(*command, "--round", poisoned["name"], "--top", "5").out.splitlines()
        assert max(map(len, lines)) <= width
        rows = lines[2 : next(i for i, line in enumerate(lines) if line.startswith("…"))]
        assert len(rows) in (5, 6)
        assert all(row[-1].isdigit() for row in rows)


def test_a_recovery_in_words_marks_targets_and_has_the_notes(on_server: Any, poisoned: Any) -> None:
    result = on_server("recover", "--round", poisoned["name"], "--top", "2", "--target", "Reno, NV")
    assert result.out.startswith("5,000 reports, ldprecover*, eta 0.2")
    assert "Reno, NV (target)" in result.out
    assert "Note: LDPRecover*" in result.out
    plain = on_server("recover", "--round", poisoned["name"], "--method", "norm-sub")
    assert plain.out.startswith("5,000 reports, norm-sub, ")
    assert "(target)" not in plain.out


def test_options_and_a_support_are_sent_as_they_are_given(
    on_server: Any, server: Any, poisoned: Any, tmp_path: Path
) -> None:
    """One share a line; a whole number is an integer."""
    shares = np.full(102, 0.25 / 101)
    shares[5] = 0.75
    shares[0] += 1 - shares.sum()
    file = tmp_path / "shares.txt"
    file.write_text("".join(f"{share!r}\n" for share in shares.tolist()), encoding="utf-8")
    for options, fields in (
        (
            ("--malicious-model", "custom", "--support", str(file)),
            {"malicious_model": "custom", "support": shares.tolist()},
        ),
        (
            (
                "--method",
                "k-means",
                "--option",
                "subsets=4",
                "--option",
                "rate=0.25",
                "--option",
                "seed=7",
            ),
            {"method": "k-means", "options": {"subsets": 4, "rate": 0.25, "seed": 7}},
        ),
    ):
        expected = server.http.post(f"/rounds/{poisoned['id']}/recover", json=fields).json()
        assert "recovered" in expected
        assert (
            on_server("recover", "--round", poisoned["name"], *options, "--json").json == expected
        )


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("0.5\n\n0.5\n", "line 2 of"),
        ("0.5\nhalf\n", "line 2 of"),
        ("inf\n", "line 1 of"),
        ("0.5\n", "--support must be of"),
    ],
)
def test_a_support_that_is_none_is_one_line(
    on_server: Any, poisoned: Any, tmp_path: Path, text: str, word: str
) -> None:
    file = tmp_path / "shares.txt"
    file.write_text(text, encoding="utf-8")
    options = ("--malicious-model", "custom", "--support", str(file))
    result = on_server("recover", "--round", poisoned["name"], *options)
    assert result.code == 2
    assert word in result.error


def test_a_round_without_reports_has_no_estimates(on_server: Any, server: Any) -> None:
    empty = server.open_round("oue", 1.0)
    assert "the round has no reports" in on_server("frequencies", "--round", empty["name"]).out
    assert on_server("frequencies", "--round", empty["name"], "--json").json["frequencies"] is None
    result = on_server("recover", "--round", empty["name"])
    assert result.code == 1
    assert "ldprecover simulate" in result.error


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        (("--target", "reno"), 2, "did you mean 'Reno, NV'"),
        (("--method", "magic"), 2, "--method must be one of ldprecover, norm-sub"),
        (("--eta", "11"), 2, "--eta: Input should be less than or equal to 10"),
        (("--eta", "nan"), 2, "--eta"),
        (("--malicious-model", "fuzzy"), 2, "--malicious-model: Input should be 'paper', 'exact'"),
        (("--malicious-model", "custom"), 2, "--malicious-model custom needs support"),
        (("--infer-targets", "--target", "Reno, NV"), 2, "give either --target or --infer-targets"),
        (("--method", "base-cut", "--option", "alpha"), 2, "--option takes a name and a number"),
        (("--method", "base-cut", "--option", "=1"), 2, "--option takes a name and a number"),
        (("--method", "base-cut", "--option", "alpha=nan"), 2, "not 'alpha=nan'"),
        (
            ("--method", "base-cut", "--option", "alpha=1", "--option", "alpha=2"),
            2,
            "--option alpha is given twice",
        ),
        (
            ("--method", "base-cut", "--option", "beta=1"),
            2,
            "base-cut has no option 'beta'; its options are alpha",
        ),
        (
            ("--method", "base-cut", "--option", "alpha=101"),
            2,
            "alpha must be a number from 1e-09 to 100, not 101",
        ),
        (("--support", "nowhere.txt"), 2, "nowhere.txt cannot be read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_recovered_so_is_refused(
    on_server: Any, poisoned: Any, options: tuple[str, ...], code: int, word: str
) -> None:
    result = on_server("recover", "--round", poisoned["name"], *options)
    assert result.code == code
    assert word in result.error


def test_an_earlier_round_that_there_is_not_is_the_one_that_is_named(
    on_server: Any, server: Any
) -> None:
    now = server.open_round("grr", 1.0, domain_size=16)
    on_server("simulate", "--users", "20", "--round", now["name"])
    result = on_server(
        "recover", "--method", "unmix", "--round", now["name"], "--history", "nonsense"
    )
    assert "no round is called 'nonsense'" in result.error
