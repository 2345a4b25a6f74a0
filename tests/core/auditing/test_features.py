"""What one report shows."""

from array import array
from typing import Any

import numpy as np
import pytest

from ldprecover.auditing.features import features, group_features


@pytest.mark.parametrize(
    ("report", "shown"),
    [
        ("tea", ["report == 'tea'", "len(report) == 3", "report[1] == 'e'", "'tea' in report"]),
        ('{"x": [1, 0]}', ["json(report)['x'][0] == 1", "len(json(report)['x']) == 2"]),
        ([3, 1], ["report ascends: False", "argmin(report) == 1", "report[-1] == 1"]),
        ([3, 1], ["report[0] == 3 and report[1] == 1"]),
        ((0.75, None), ["report[0].hex() == '0x1.8000000000000p-1'", "report[1] == None"]),
        (0.75, ["lowest bit of report == 2**-2", "report is about 8e-01", "report > 0 is True"]),
        (768, ["bit 9 of report is 1", "report.bit_length() == 10"]),
        (True, ["report == True"]),
        (b"\x00a", ["report[1] == 97", "type(report) == bytes"]),
        (np.array([1, 2], np.uint8), ["report.dtype == uint8", "report[1] == 2"]),
        (array("B", [1, 2]), ["report.dtype == array", "report[1] == 2"]),
        ({"b", "a"}, ["sorted(report)[0] == 'a'"]),
        ("", ["len(report) == 0"]),
        (10**400, [f"report.bit_length() == {(10**400).bit_length()}"]),
        ("1" * 400, ["len(report) == 400"]),
        ("12,FLAG,7", ["split(report)[1] == 'FLAG'"]),
        ([2, 2], ["len(set(report)) == 1"]),
        (ValueError("no"), ["raises ValueError", "raises ValueError('no')"]),
    ],
)
def test_features_of_a_report(report: Any, shown: list[str]) -> None:
    assert set(shown) <= features(report, ["tea"])


def test_reports_of_one_person_are_compared() -> None:
    result = group_features(["a", "a", "b", "b"])
    shown = {"call 3: report == 'b'", "distinct reports == 2", "mode of the first half == 'a'"}
    assert shown <= result
    assert "mode of the first half == mode of the second half is False" in result
