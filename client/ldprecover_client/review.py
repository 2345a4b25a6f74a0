# ruff: noqa: RUF001  letters of all scripts
"""One review of the labels of a file: lines that may be no items are named before a round opens."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from unicodedata import normalize

from ldprecover.items import quoted
from ldprecover_client.encodings import garbled
from ldprecover_client.errors import OddLabelsError
from ldprecover_client.tables import Table, column_key

_SHOWN = 3
_CYRILLIC = "авекмнорстухѕіј"
_LATIN = str.maketrans(_CYRILLIC, "abekmhopctyxsij")

_ODD = {
    "may be a sum, not an item": r"(?i)((grand|sub)?[ -]?totals?|totale|totaal|totalt|"
    r"(total|résultat) (g[eé]n[eé]ral|geral|global)|sum|all|summe|summa|suma|gesamt(summe)?|"
    r"gesamtergebnis|insgesamt|zusammen|razem|ogółem|celkem|"
    r"összesen|yhteensä|toplam|i alt|итого|всего|сумма|разом|σύνολο|общо|укупно|المجموع|الإجمالي|"
    r'סה"כ|סך הכל|合計|总计|總計|合计|합계|รวม)\s*([:(=].*)?',
    "may be a missing value": r"NULL|null|NaN|nan|NaT|<NA>|N/A|n/a|[(\[<](null|NULL)[)\]>]|"
    r"undefined|#(N/A|NV|[A-Z/]+[0!?]+)|#{2,}|[-–—]|\((blank|empty)\)",
    "has quotes around it": r"(\[\d+\] +|\w+ ?= ?\[?)?(\"[^\"]*\"[],;]? *)+|"
    r"('[^']*'[,;]? *)+|“[^”]*”|[„‚][^“”‘’]*[“”‘’]|`[^`]*`",
    "may be a note, not an item": r"(?i)(sources?|quellen?|fuentes?|fonte|источник|notes?|nota|"
    r"zdroj|poznámka|źródło|uwagi?|forrás|megjegyzés|bron|kilde|källa|lähde|kaynak|πηγή|出典|来源|출처|"
    r"anmerkung(en)?|hinweise?|remarques?|data|stand|(last )?updated|generated)\s*[:：].*|©.*|"
    r"[*†‡¹²³]+ *\w.*|\(?\d+ rows?\b.*|page \d+( of \d+)?|"
    r"(exported|printed|downloaded|retrieved|exportiert|abgerufen) (on|at|by|from|am) .*",
    "may be a heading or a prompt": r"#+\s.*|[^:]*:|(VALUE LABELS|label define) .*|"
    r"(?i:[-–—=<([ ]*(please |bitte )?(select|choose|(aus)?wählen|choisir|sélectionner|seleccione|"
    r"selecione|wybierz|vyberte|выберите|请选择|選択)( (one|an option|an answer))?[-–—=.… >)\]]*)",
    "has letters joined into one": r".*[\ufb00-\ufb06].*",
    # U+200B divides words of Thai, Lao, Burmese and Khmer, and U+200F is written with Hebrew.
    "has a hidden character": r".*([\xad\u200e\u202a-\u202e\u2060\u2066-\u2069\ue000-\uf8ff\ufeff]|"
    r"\u200b(?![\u0e00-\u109f\u1780-\u17ff])).*|(?!.*[\u0590-\u08ff]).*\u200f.*",
    "begins with a bullet or number": r"([-*•·▪◦–○●◯■□►➢➤❖☐☑☒]|\[[ xX]?\]|(\d\d?|[a-z])\))\s+\D.*",
    "is a formula of a spreadsheet": r"=.+",
    "has no letter or number": r"[-=+_~|:.\s]{3,}",
    "may be of a second header": r"(?i)(open-ended )?response|\{\"importid.*",
    "was rounded by a spreadsheet": r"-?\d+([.,]\d+)?E\+\d+",
    "has characters written as codes": r".*(&(#\w+|[A-Za-z]+\d?);|(%[0-9A-F]{2}){2}|"
    r"(=[0-9A-F]{2}){2}|[A-Za-z]=[0-9A-F]{2}[a-z]|\+A[\w+/]{2,}-|\\(u[0-9a-f]{4}|x[0-9a-f]{2})|"
    r"</?[a-z]+\d? ?/?>).*",
    "ends with a separator": r".*[,;|]|.*\.{4,} *\d*",
    "has lost characters": r"(?!.*://).*(\w\?+[^\W\d_]|\?\?+\w|\ufffd).*",
}
"""Patterns of whole labels, by what they may be."""
_ODD_IN_MOST = {
    "begins with a bullet or number, as most do": r"(?:(?:\d{1,3}|[a-z])\.|\*|\d{1,3} *=|"
    r"\d{1,3}(?= +[\"'])|\d{1,3} {2,})\s*(\D.*)",
    "ends with a share or number, as most do": r"(.*[^\s,])(?:\s+(?:\(?\d+(?:[.,]\d+)?\s?%\)?|"
    r"\((?:n ?= ?)?(?!(?:19|20)\d\d\))\d+\))|,\d+)",
}
"""Likewise, where most labels are such and differ in the rest, unlike 1. FC Köln or 5. Klasse."""


def review(table: Table, at: int, places: Mapping[str, str], as_is: bool) -> None:
    """Raise OddLabelsError, with line and text, for what may be no item, unless taken `as_is`.

    `places` has the labels of the column `at`, and where each is in the file.
    """
    if as_is:
        return
    header = [*map(column_key, table.header[at : at + 1])]
    reasons = garbled([*places], table.codec) | _look_alikes(places)
    for reason, odd in _ODD_IN_MOST.items():
        rests = {label: match[1] for label in places if (match := re.fullmatch(odd, label))}
        if len({*rests.values()}) == len(rests) > len(places) / 2:
            reasons |= dict.fromkeys(rests, reason)
    labels = (
        f"{place}: {quoted(label)} {reason}"
        for label, place in places.items()
        if (reason := reasons.get(label) or _odd(label, header))
    )
    findings = [*islice(chain(table.odd_lines, labels), _SHOWN + 1)]
    if findings:
        also = "; and more" if findings[_SHOWN:] else ""
        raise OddLabelsError(
            f"{'; '.join(findings[:_SHOWN])}{also}: mend the file, or take all as it is with "
            "--as-is"
        )


def _odd(label: str, header: Sequence[str]) -> str:
    """Return why a label alone may be no item, or ""."""
    if column_key(label) in header:
        return "may be of a second header"
    return next((reason for reason, odd in _ODD.items() if re.fullmatch(odd, label)), "")


def _look_alikes(places: Mapping[str, str]) -> dict[str, str]:
    """Return labels that look like one before, mix alphabets or are several others, with why.

    Labels that differ in case alone split the votes of one answer, but MB and Mb may be meant.
    """
    first: dict[str, str] = {}
    findings = {}
    for label in places:
        plain = re.sub("[\ufe0e\ufe0f]", "", normalize("NFKC", label)).lower()
        if (before := first.setdefault(plain.translate(_LATIN), label)) != label:
            findings[label] = f"looks like {quoted(before)} in {places[before]}"
        if re.search(f"[a-z][{_CYRILLIC}]|[{_CYRILLIC}][a-z]", plain):
            findings[label] = "has letters of two alphabets in a word"
        parts = re.split(" / |[,;|、，] *", label)
        if label not in parts and (len(places) == 1 or places.keys() >= {*parts}):
            findings[label] = "may be several answers"
    return findings
