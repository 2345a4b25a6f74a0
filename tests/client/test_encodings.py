"""Lists in other encodings than UTF-8: which are named by the error, and what reads as garbled."""

from pathlib import Path

import pytest

from ldprecover_client import DatasetError, load_dataset, load_items

CITIES = {
    "mac-roman": "Köln München Düsseldorf Nürnberg Saarbrücken Göttingen Besançon Orléans",
    "cp1252": "Köln München Málaga Córdoba Besançon Orléans Århus Tromsø",
    "cp850": "Köln München Düsseldorf Nürnberg Göttingen Besançon Orléans Nîmes",
    "cp437": "Köln München Düsseldorf Nürnberg Göttingen Besançon Orléans Nîmes",
    "cp1250": "Łódź Kraków Gdańsk Poznań Częstochowa Toruń Świdnica",
    "iso-8859-2": "Łódź Kraków Gdańsk Poznań Częstochowa Toruń Świdnica",
    "cp1251": "Москва Казань Самара Омск Уфа Пермь",
    "koi8-r": "Москва Казань Самара Омск Уфа Пермь",
    "cp1253": "Αθήνα Πάτρα Λάρισα Βόλος Ρόδος",
    "cp1254": "İzmir Eskişehir Çankaya Beşiktaş Muğla Niğde",
    "cp1255": "חיפה אשדוד נתניה חולון רמלה",
    "cp1256": "القاهرة بغداد جدة الرياض حلب",
    "cp874": "กรุงเทพ ชลบุรี พระประแดง บางแค",
    "shift_jis": "東京 よこはま なごや さっぽろ",
    "gb18030": "上海 北京 广州 天津 武汉 南京 沈阳",
    "big5": "台北 新北 高雄 台南 板橋 桃園",
    "euc-kr": "부산 인천 대구 대전 광주",
}


def _write(folder: Path, text: str, encoding: str) -> Path:
    path = folder / "cities.txt"
    path.write_bytes("\r".join(["Bonn", *text.split()]).encode(encoding))
    return path


@pytest.mark.parametrize("encoding", CITIES)
def test_error_shows_first_bad_line_in_likely_encodings(tmp_path: Path, encoding: str) -> None:
    path = _write(tmp_path, CITIES[encoding], encoding)
    first = CITIES[encoding].split()[0]
    with pytest.raises(DatasetError, match=r"cities\.txt, line 2 is not text in UTF-8") as caught:
        load_items(path)
    assert f"'{first}'" in str(caught.value)
    assert load_items(path, encoding=encoding) == ("Bonn", *CITIES[encoding].split())


@pytest.mark.parametrize(
    ("written", "read", "label"),
    [
        ("mac-roman", "cp1252", "MŸnchen"),
        ("cp1251", "cp1252", "Ìîñêâà"),
        ("koi8-r", "cp1251", "нПУЛЧБ"),
        ("cp1250", "cp1252", "£ódŸ"),
        ("cp1252", "cp1251", "Kцln"),
        ("cp1252", "cp850", "K÷ln"),
        ("cp874", "cp1252", ""),
        ("euc-kr", "cp1252", ""),
        ("utf-8", "cp1252", "KÃ¶ln"),
        ("utf-8", "mac-roman", "K√∂ln"),
    ],
)
def test_garbled_labels_are_refused(tmp_path: Path, written: str, read: str, label: str) -> None:
    """Also if a program read them in a wrong encoding before it wrote them as UTF-8."""
    raw = CITIES.get(written, CITIES["cp1252"]).encode(written)
    if read != "cp850":
        raw = b" ".join(word for word in raw.split() if not set(word) & {*b"\x81\x8d\x8f\x90\x9d"})
    path = tmp_path / "cities.csv"
    text = "\n".join(["item", *raw.decode(read).split(" ")])
    for encoding in (read, "utf-8"):
        path.write_text(text, encoding=encoding)
        with pytest.raises(DatasetError, match=r"line \d: .*may be .* in .*--as-is") as caught:
            load_items(path, encoding=encoding)
        assert label in str(caught.value)
        assert load_items(path, encoding=encoding, as_is=True)[0] == text.split()[1]


@pytest.mark.parametrize("encoding", CITIES)
def test_labels_in_their_encoding_are_taken(tmp_path: Path, encoding: str) -> None:
    for each in ("utf-8", encoding):
        data = load_dataset(_write(tmp_path, CITIES[encoding], each), encoding=each)
        assert len(data.items) == len(CITIES[encoding].split()) + 1


@pytest.mark.parametrize(
    "encoding", ["rot13", "hex", "utf-32", "utf-7", "cp037", "latin", "\0", ""]
)
def test_refuses_encodings_without_ascii(tmp_path: Path, encoding: str) -> None:
    path = _write(tmp_path, "Ulm", "ascii")
    if encoding == "latin":
        assert load_items(path, encoding=encoding) == ("Bonn", "Ulm")
        return
    with pytest.raises(DatasetError, match="encoding must be utf-16, or one of Python's"):
        load_items(path, encoding=encoding)
