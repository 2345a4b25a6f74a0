"""What one report shows by itself, as expressions in the notation of Python."""

import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import combinations, islice, pairwise
from typing import Any
from zlib import crc32

_MOST_ENTRIES = 1024  # that are looked at one by one; later ones count in the whole alone
_SEPARATORS = re.compile(r"[\s,;|=&]+")
_BITS = 64
_LONGEST = 200  # characters of a value
_MOST_PAIRED = 8  # entries of which pairs are looked at
_SMALL = 256  # integers that say all by their value


def features(report: Any, texts: Sequence[str] = ()) -> set[str]:
    """Return what can be said of a report: its value, type, length, order, entries, numbers.

    A text that is JSON is taken apart too. `texts` are those of the values that the client was
    asked for: whether one occurs in the report is a feature. An exception shows its type and
    message.
    """
    if isinstance(report, Exception):
        kind = f"raises {type(report).__name__}"
        return {kind, f"{kind}({str(report)!r})"}
    shown = set(_parts("report", report))
    text = report if isinstance(report, str) else repr(report)
    shown.update(f"{each!r} in report" for each in texts if each in text)
    if isinstance(report, str):
        with suppress(ValueError, RecursionError):
            shown.update(_parts("json(report)", json.loads(report)))
    return shown


def group_features(reports: Sequence[Any], texts: Sequence[str] = ()) -> set[str]:
    """Return what can be said of the reports of one person: of each, and of all together."""
    each = [features(report, texts) for report in reports]
    if len(each) == 1:
        return each[0]
    keys, half = [_key(report) for report in reports], len(reports) // 2
    first, second = (max(part, key=part.count) for part in (keys[:half], keys[half:]))
    shown = {f"call {i}: {feature}" for i, part in enumerate(each, 1) for feature in part}
    modes = {"mode of the first half": first, "mode of the second half": second}
    shown.update(f"{name} == {key}" for name, key in modes.items())
    shown.add(f"{' == '.join(modes)} is {first == second}")
    shown.add(f"distinct reports == {len(set(keys))}")
    return shown


def _key(report: Any) -> str:
    return f"{type(report).__name__}({report})" if isinstance(report, Exception) else repr(report)


def _parts(name: str, value: Any) -> Iterator[str]:
    """Yield what can be said of a part of a report; pairs of its first entries are joined."""
    atoms = list[tuple[str, bool]]()
    yield from islice(_of_part(name, value, atoms), 8 * _MOST_ENTRIES)
    for (one, small), (other, is_small) in combinations(atoms, 2):
        if small or is_small:
            yield f"{one} and {other}"


def _of_part(name: str, value: Any, atoms: list[tuple[str, bool]]) -> Iterator[str]:
    if hasattr(value, "tolist"):  # an array, or a number of numpy
        yield f"{name}.dtype == {getattr(value, 'dtype', type(value).__name__)}"
        value = value.tolist()
    equal = f"{name} == {shortened(repr(value))}"
    yield equal
    if not _is_small(value):
        yield f"type({name}) == {type(value).__name__}"
    if isinstance(value, dict):
        yield f"list({name}) == {list(value)}"
        for key, entry in value.items():
            yield from _of_part(f"{name}[{key!r}]", entry, atoms)
    elif isinstance(value, set | frozenset):
        yield from _of_entries(f"sorted({name})", sorted(value, key=repr), atoms)
    elif isinstance(value, list | tuple | str | bytes):
        yield from _of_entries(name, list(value), atoms)
    elif len(atoms) < _MOST_PAIRED:
        atoms.append((equal, _is_small(value)))
    if isinstance(value, str) and len(fields := _SEPARATORS.split(value)) > 1:
        yield from _of_entries(f"split({name})", fields, [])
    if isinstance(value, int) and not _is_small(value):
        yield f"{name}.bit_length() == {value.bit_length()}"
        yield from (f"bit {i} of {name} is {value >> i & 1}" for i in range(_BITS))
    elif isinstance(value, float) and math.isfinite(value):
        yield from _of_float(name, value)


def shortened(text: str) -> str:
    """Return a text, or the beginning of a long one and its hash: thousands are kept."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[:80]}… #{crc32(text.encode(errors='replace')):08x}"


def _is_small(value: Any) -> bool:
    return isinstance(value, int) and abs(value) < _SMALL


def _of_entries(name: str, entries: list[Any], atoms: list[tuple[str, bool]]) -> Iterator[str]:
    yield f"len({name}) == {len(entries)}"
    for i, entry in enumerate(entries[:_MOST_ENTRIES]):
        if isinstance(entry, str) and len(entry) == 1:
            yield f"{name}[{i}] == {entry!r}"
        else:
            yield from _of_part(f"{name}[{i}]", entry, atoms)
    if entries:
        yield f"{name}[-1] == {entries[-1]!r}"
    with suppress(TypeError):  # of entries without a hash
        yield f"len(set({name})) == {len(set(entries))}"
    with suppress(TypeError, ValueError):  # without an order, or without entries
        yield f"{name} ascends: {all(one <= other for one, other in pairwise(entries))}"
        yield f"argmax({name}) == {entries.index(max(entries))}"
        yield f"argmin({name}) == {entries.index(min(entries))}"


def _of_float(name: str, value: float) -> Iterator[str]:
    """Yield the size of a number, and its lowest bit: it tells what noise was added to."""
    yield f"{name} is about {value:.0e}"
    yield f"{name} > 0 is {value > 0}"
    yield f"{name}.hex() == {value.hex()!r}"
    mantissa, exponent = math.frexp(value)
    whole = int(abs(mantissa) * 2**53)
    if whole:
        yield f"lowest bit of {name} == 2**{exponent - 54 + (whole & -whole).bit_length()}"
