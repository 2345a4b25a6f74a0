"""What plans cite of measured rounds is what stands on the page."""

from tests.docs.markdown import ROOT, Page

from ldprecover.planning.measured import PAGE, measured_of
from ldprecover.protocols import PROTOCOLS

ATTACKS = {
    "mga": "MGA, crafted",
    "mga-a": "MGA-A, r' = 4",
    "apa": "APA, r' = 4",
    "ria": "MGA, input poisoning",
}
METHODS = {
    "none": "poisoned",
    "norm-sub": "`norm-sub`",
    "ldprecover": "`ldprecover`, targets",
    "unmix": "`unmix`",
}


def printed() -> dict[tuple[str, str, str], str]:
    """Return the cells of the page's tables by protocol, attack and method."""
    path, _, anchor = PAGE.partition("#")
    page = Page(ROOT / path)
    assert anchor in page.anchors
    text = page.text.partition("\n## Methods compared\n")[2].partition("\n## ")[0]
    cells: dict[tuple[str, str, str], str] = {}
    protocol, columns = "", list[str]()
    for line in text.splitlines():
        row = [cell.strip() for cell in line.strip("|").split("|")]
        if row[0].lower() in PROTOCOLS:
            protocol, columns = row[0].lower(), row[1:]
        elif line.startswith("| ") and protocol:
            cells |= {
                (protocol, column, row[0]): cell
                for column, cell in zip(columns, row[1:], strict=True)
            }
    return cells


def test_every_number_is_the_pages() -> None:
    cells = printed()
    for protocol in PROTOCOLS:
        cited = measured_of(protocol)
        assert {each.attack for each in cited} == {
            attack for attack, column in ATTACKS.items() if (protocol, column, "poisoned") in cells
        }
        for each in cited:
            cell = cells[protocol, ATTACKS[each.attack], METHODS[each.method]]
            mse, _, gain = cell.partition(" ")
            assert (each.mse, each.gain) == (float(mse), float(gain.strip("()"))), (protocol, each)


def test_nothing_is_cited_of_a_protocol_that_was_not_measured() -> None:
    assert measured_of("another") == ()
