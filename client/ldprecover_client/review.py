# ruff: noqa: RUF001  letters of all scripts
"""One review of the labels of a file: lines that may be no items are named before a round opens."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain, islice

from ldprecover.items import quoted
from ldprecover_client.encodings import better_reading
from ldprecover_client.errors import OddLabelsError
from ldprecover_client.tables import Table, column_key

_SHOWN = 3

_ODD = {
    "may be a sum, not an item": r"(?i)((grand|sub)?[ -]?totals?|total (g[eé]n[eé]ral|geral)|"
    r"totale|totaal|totalt|sum|all|summe|summa|suma|gesamt(summe)?|insgesamt|zusammen|razem|ogółem|celkem|"
    r"összesen|yhteensä|toplam|i alt|итого|всего|сумма|разом|σύνολο|общо|укупно|المجموع|الإجمالي|"
    r'סה"כ|סך הכל|合計|总计|總計|合计|합계|รวม)\s*([:(=].*)?',
    "may be a missing value": r"NULL|null|NaN|nan|NaT|<NA>|N/A|n/a|[(\[<](null|NULL)[)\]>]|"
    r"undefined|#(N/A|NV|[A-Z/]+[0!?]+)|#{2,}|[-–—]|\((blank|empty)\)",
    "has quotes around it": r"\"[^\"]*\"|'[^']*'|“[^”]*”|[„‚][^“”‘’]*[“”‘’]|`[^`]*`",
    "may be a note, not an item": r"(?i)(sources?|quellen?|fuentes?|fonte|источник|notes?|nota|"
    r"zdroj|poznámka|źródło|uwagi?|forrás|megjegyzés|bron|kilde|källa|lähde|kaynak|πηγή|出典|来源|출처|"
    r"anmerkung(en)?|hinweise?|remarques?|data|stand|(last )?updated|generated)\s*[:：].*|©.*|"
    r"[*†‡¹²³]+ *\w.*|\(?\d+ rows?\b.*|page \d+( of \d+)?",
    "may be a heading": r"#+\s.*|[^:]*:",
    "has a hidden character": r".*[\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff].*",
    "begins with a bullet or number": r"([-*•·▪◦–]|\[[ xX]?\]|\(?(\d{1,3}|[a-z])[.)])\s+\D.*",
    "ends with a separator": r".*[,;|]",
    "is a formula of a spreadsheet": r"=.+",
    "has no letter or number": r"[-=+_~|:.\s]{3,}",
    "may be of a second header": r"(?i)(open-ended )?response|\{\"importid.*",
    "was rounded by a spreadsheet": r"-?\d+([.,]\d+)?E\+\d+",
    "has characters written as codes": r".*(&(#\w+|[A-Za-z]+\d?);|(%[0-9A-F]{2}){2}|"
    r"(=[0-9A-F]{2}){2}|\\(u[0-9a-f]{4}|x[0-9a-f]{2})|</?[a-z]+\d? ?/?>).*",
    "has lost characters": r".*(\w\?+[^\W\d_]|\?\?+\w|[\ufffd\ue000-\uf8ff]).*",
}
"""Patterns of whole labels, by what they may be."""


def review(table: Table, at: int, places: Mapping[str, str], as_is: bool) -> None:
    """Raise OddLabelsError, with line and text, for what may be no item, unless taken `as_is`.

    `places` has the labels of the column `at`, and where each is in the file.
    """
    labels = (
        f"{place}: {quoted(label)} {reason}"
        for label, place in places.items()
        if (reason := _reason(label, table.header[at : at + 1], table.codec))
    )
    findings = [] if as_is else [*islice(chain(table.odd_lines, labels), _SHOWN + 1)]
    if findings:
        also = "; and more" if findings[_SHOWN:] else ""
        raise OddLabelsError(
            f"{'; '.join(findings[:_SHOWN])}{also}: mend the file, or take all as it is with "
            "--as-is"
        )


def _reason(label: str, header: Sequence[str], codec: str) -> str:
    """Return why a label may be no item, or ""."""
    if column_key(label) in map(column_key, header):
        return "may be of a second header"
    for reason, odd in _ODD.items():
        if re.fullmatch(odd, label):
            return reason
    text = "" if label.isascii() else better_reading(label, codec)
    return text and f"may be {text}"
