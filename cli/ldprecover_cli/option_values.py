"""Reads the values of options: numbers, NAME=VALUE, and the lines of files."""

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ldprecover_cli.errors import UsageError, file_errors

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def number_or_text(text: str) -> float | str:
    """Return a finite number, whole ones as integers; otherwise the text, which others check."""
    number = _number(text)
    if number is None:
        return text
    return int(number) if number.is_integer() else number


def method_options(
    texts: Sequence[str] | None, option: str = "--option", example: str = "least=3"
) -> dict[str, Any]:
    """Return the numbers and words of NAME=VALUE by name. Raises UsageError."""
    values = values_by_name(option, example, texts)
    return {name: number_or_text(value) for name, value in values.items()}


def values_by_name(option: str, example: str, texts: Sequence[str] | None) -> dict[str, str]:
    """Return the values of NAME=VALUE by name. Raises UsageError."""
    values: dict[str, str] = {}
    for text in texts or []:
        name, _, value = text.partition("=")
        if not name or not value:
            raise UsageError(f"{option} takes a name and a value, as {example}, not {text!r}")
        if name in values:
            raise UsageError(f"{option} {name} is given twice")
        values[name] = value
    return values


def read_lines(file: Path) -> list[str]:
    """Return the lines of a text file in UTF-8, which end as Python's do. Raises UsageError."""
    try:
        with file_errors("read", file), file.open(encoding="utf-8-sig") as lines:
            return [line.rstrip("\n") for line in lines]
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} must be a text file in UTF-8") from error


def duration(text: str) -> timedelta | None:
    """Return a time as 30m, 36h, 7d or 2w; None for another text."""
    match = re.fullmatch(r"(\d{1,6})([mhdw])", text)
    return timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else None


def closing_time(text: str | None) -> str | None:
    """Return a time of the clock, or after a duration, with its offset. Raises UsageError."""
    if text is None:
        return None
    try:
        length = duration(text)
        time = datetime.fromisoformat(text) if length is None else datetime.now(UTC) + length
        return time.astimezone().isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        raise UsageError(
            f"--closes takes a time, as 2030-01-31T18:00, or 7d, not {text!r}"
        ) from None


def support_of(file: Path | None) -> list[float] | None:
    """Return the numbers of a text file, one a line; None for no file. Raises UsageError."""
    if file is None:
        return None
    from ldprecover_client.tables import open_table

    numbers = []
    with open_table(file) as table:
        for place, (cell,) in table.rows([0]):
            if (number := _number(str(cell))) is None:
                raise UsageError(f"{place} must be a number")
            numbers.append(number)
    return numbers


def _number(text: str) -> float | None:
    """Return the finite number in a text, or None."""
    try:
        number = float(text)
    except ValueError:
        return None
    # Python reads 1_0 as 10, and digits of other scripts; no other program does.
    return number if math.isfinite(number) and text.isascii() and "_" not in text else None
