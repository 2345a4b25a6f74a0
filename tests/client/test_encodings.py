"""Lists in other encodings than UTF-8: which are named by the error, and what reads as garbled."""

import re
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
def test_error_shows_line_on_which_encodings_differ(tmp_path: Path, encoding: str) -> None:
    words = ["Bonn", *CITIES[encoding].split()]
    path = _write(tmp_path, CITIES[encoding], encoding)
    with pytest.raises(DatasetError, match=r"cities\.txt, line 2 is not text in UTF-8") as caught:
        load_items(path)
    number, shown = re.findall(r"line (\d+) reads right: --encoding (.*)", str(caught.value))[0]
    assert f"'{words[int(number) - 1]}'" in shown
    samples = re.findall(r"'(.*?)'", shown)
    assert len({*samples}) == len(samples) <= 3
    assert load_items(path, encoding=encoding) == tuple(words)


@pytest.mark.parametrize(
    ("encoding", "text", "shown"),
    [
        ("cp1250", "Káva Čaj Voda", "cp1252 ('Èaj'), or cp1250 ('Čaj')"),
        ("gb18030", "茶 咖啡 水 果汁", "--encoding gb18030 ('茶'"),
        ("cp737", "Καφές Τσάι Νερό", "--encoding cp737 ('Καφές')"),
        ("iso-8859-6", "قهوة شاي ماء", "--encoding iso-8859-6 (\u2068'قهوة'"),
    ],
)
def test_error_names_right_encoding_of_short_list(
    tmp_path: Path, encoding: str, text: str, shown: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        load_items(_write(tmp_path, text, encoding))
    assert shown in str(caught.value)


@pytest.mark.parametrize(
    ("encoding", "wrong", "text"),
    [
        ("cp1250", "cp1252", "Erdő Tűz Víz"),
        ("cp1254", "cp1252", "Şalgam Çay Kahve"),
        ("cp1257", "cp1252", "Šiauliai Panevėžys"),
        ("cp437", "cp1252", "Käse Brötchen"),
        ("cp1250", "mac-roman", "Čaj Káva"),
        ("shift_jis", "gb18030", "お茶 東京 コーヒー"),
        ("big5", "gb18030", "紅茶 綠茶 牛奶"),
        ("gb18030", "big5", "红茶 绿茶 牛奶"),
        ("gb18030", "euc-kr", "红茶 绿茶 牛奶"),
        ("euc-kr", "gb18030", "홍차 녹차 우유"),
    ],
)
def test_list_in_wrong_named_encoding_is_refused(
    tmp_path: Path, encoding: str, wrong: str, text: str
) -> None:
    path = _write(tmp_path, text, encoding)
    with pytest.raises(DatasetError, match=rf"line 2: .* may be .*'{text.split()[0]}'"):
        load_items(path, encoding=wrong)
    assert load_items(path, encoding=encoding)[1:] == tuple(text.split())


@pytest.mark.parametrize(
    ("raw", "encoding"), [(b"\xef\xbb\xbftea\npie", "cp1252"), (b"tea\npie!", "utf-16")]
)
def test_encoding_against_first_bytes_is_refused(tmp_path: Path, raw: bytes, encoding: str) -> None:
    (tmp_path / "f.txt").write_bytes(raw)
    with pytest.raises(DatasetError, match="leave out --encoding"):
        load_items(tmp_path / "f.txt", encoding=encoding)


def test_latin_1_has_the_quotes_of_windows(tmp_path: Path) -> None:
    path = _write(tmp_path, "Don\u2019t Café", "cp1252")
    assert load_items(path, encoding="latin-1") == ("Bonn", "Don\u2019t", "Café")


def test_file_of_mixed_encodings_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_bytes("Käse\nMüsli\n".encode() + "Öl\n".encode("cp1252"))
    with pytest.raises(DatasetError, match="line 3 is not text in UTF-8, as other lines are"):
        load_items(tmp_path / "f.txt")


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
    "encoding", ["rot13", "hex", "utf-32", "utf-7", "cp037", "latin", "idna", "unicode_escape", ""]
)
def test_refuses_encodings_without_ascii(tmp_path: Path, encoding: str) -> None:
    path = _write(tmp_path, "Ulm", "ascii")
    if encoding == "latin":
        assert load_items(path, encoding=encoding) == ("Bonn", "Ulm")
        return
    with pytest.raises(DatasetError, match="encoding must be utf-16, or one of Python's"):
        load_items(path, encoding=encoding)
