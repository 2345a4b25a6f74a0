"""Requests that are refused: one table for the HTTP interface and for the command.

Each call has rows of a field, its value, the message with which the interface answers, and the
options with which the command sends the value; no options if it sends no such value. A message
may be only the beginning. The round has the items a to k.
"""

from typing import Any

Row = tuple[str, Any, str, str]

ONE_OF = "questions.0 must have one of items, ahead, top and mean_above"
OPEN_NOTHING = "give either items or domain_size"
EITHER = "body must have either malicious_share or malicious_tickets"
ETA = "eta must be a number from 0 to 10 or 'auto', not "
RETENTION = "retention must be 'forever' or 'none', not "
PAGE = "limit must be an integer from 1 to 200, not "
ALL_BUT_ONE = "all but one of domain_size, users, epsilon, error must be given: "

REFUSALS: dict[str, list[Row]] = {
    "open": [
        ("epsilon", 11.0, "epsilon must be a number from 0.01 to 10, not 11.0", "--epsilon 11"),
        (
            "epsilon",
            "\u05d0",
            "epsilon must be a number from 0.01 to 10, not \u2068'\u05d0'\u2069",
            "",
        ),
        ("", {"protocol": "grr"}, "epsilon is missing; it must be a number from 0.01 to 10", ""),
        (
            "items",
            ["a", "b", ""],
            "items.2 must be a string that is not empty, not ''",
            "",  # the command checks labels itself
        ),
        (
            "items",
            ["a", "b", "a"],
            "items must be distinct, and 'a' is item 0 and item 2",
            "--item a",
        ),
        (
            "items",
            ["a", "b", "caf\u00e9", "cafe\u0301"],
            (
                "items must be distinct, and 'cafe\u0301' is item 2 and item 3, which look the "
                "same: U+00E9 and U+0065 U+0301 from character 3"
            ),
            "--item caf\u00e9 --item cafe\u0301",
        ),
        ("items", ["a", "b", " "], "item 2 is blank", "--item ' '"),
        ("items", ["a", "b", 301 * "\U0001f600"], "item 2 has 301 characters, and a label", ""),
        ("items", None, OPEN_NOTHING, ""),
        ("domain_size", 4, OPEN_NOTHING, ""),
        ("name", "Capital", "name must be 1 to 64 small letters, digits, dots,", "Capital"),
        ("name", "current", "name: 'current' is reserved for the round opened last", "current"),
        ("protocol", "kue", "protocol must be 'grr', 'oue', 'olh', 'sue',", "--protocol kue"),
        ("question", "two\nlines", "question holds a control character, U+000A", ""),
        ("dummies", 3, "dummies is not known; there are question,", "--parameter dummies=3"),
        ("hash_range", 4, "hash_range belongs to olh, llh; grr has", "--parameter hash_range=4"),
        ("hash_range", "3", "hash_range must be an integer from 2 to 65536, not '3'", ""),
        ("retention", "\u202e\0" + 99 * "x", f"{RETENTION}'\\u202e\\x00{58 * 'x'}'…", ""),
        ("", [], "body must be an object, not []", ""),
    ],
    "recover": [
        ("eta", 11, f"{ETA}11", "--eta 11"),
        ("eta", "aut", f"{ETA}'aut'", "--eta aut"),
        ("eta", True, f"{ETA}true", ""),
        ("targets", 5, "targets must be a list, not 5", ""),
        ("targets", ["a", 1.5], "targets.1 must be a string or an integer, not 1.5", ""),
        ("support", [2.0], "support.0 must be a number from 0 to 1, not 2.0", "--support 2"),
        (
            "",
            {"malicious_model": "custom", "support": [0.5]},
            "support must be of the 11 items, each from 0 to 1, not of 1",
            "--support 0.5 --malicious-model custom",
        ),
        ("options", {"a": 1, "b": []}, "options.b must be a number or a string, not []", ""),
        ("options", {"x": 1}, "ldprecover has no option 'x'; it has none", "--option x=1"),
        ("malicious_model", "padded", "malicious_model padded needs", "--malicious-model padded"),
        (
            "history",
            51 * ["x"],
            "history must be a list of at most 50 entries, not a list of 51 entries",
            51 * "--history x ",
        ),
        ("method", {"\n": 1}, "method must be a string, not an object of 1 fields", ""),
        ("colour", "red", "colour is not known; there are eta, targets, method,", ""),
        ("eta\u200b", 0.1, "eta\\u200b is not known; there are eta,", ""),
        ("\u202e\u05d0", 0.1, "\\u202e\\u05d0 is not known; there are eta,", ""),
        ("", [], "body must be an object, not []", ""),
    ],
    "certificate": [
        ("", None, "body is missing; it must be an object", ""),
        ("", {}, EITHER, ""),
        ("malicious_tickets", 1, EITHER, ""),
        (
            "malicious_share",
            1.0,
            "malicious_share must be a number of at least 0 and below 1, not 1.0",
            "--malicious-share 1",
        ),
        (
            "",
            {"malicious_tickets": 1},
            "malicious_tickets: the round takes reports without tickets; give a share",
            "",
        ),
        ("confidence", 0.4, "confidence must be a number of at least 0.5", "--confidence 0.4"),
        ("reports", True, "a certificate from reports is of a closed round", ""),
        ("questions", 21 * [{"top": 1}], "questions must be a list of at most 20", ""),
        ("questions", [{}], ONE_OF, ""),
        ("questions", [{"top": 1, "ahead": [0, 1]}], ONE_OF, ""),
        ("questions", [{"top": 1, "more_than": 0}], "questions.0 must have more_than only", ""),
        ("questions", [{"items": [0], "more_than": 1}], "questions.0.more_than must be", ""),
        ("questions", [{"items": ["z"]}], "questions: items: no item is labelled 'z'", ""),
        (
            "questions",
            [{"mean_above": 5.0}],
            "questions.0.mean_above must be a number of at least -1 and below 1, not 5.0",
            "--mean-above 5",
        ),
        ("questions", [{"ahead": [1]}], "questions.0.ahead must be a list of 2 to 2 entries", ""),
        ("questions", [{"ahead": [1, 1]}], "questions: ahead: the two items must", "--ahead b,b"),
        (
            "questions",
            [{"mean_above": 0.2}],
            "questions: mean_above: only a round for numbers has a mean, with items -1 and 1",
            "--mean-above 0.2",
        ),
        ("questions", [{"top": 12}], "questions: top must be at most the 11 items", "--top 12"),
    ],
    "plan": [
        ("", {}, f"{ALL_BUT_ONE}domain_size and users and epsilon and error are missing", ""),
        ("error", 0.1, f"{ALL_BUT_ONE}all are given", ""),
        ("users", 0, "users must be an integer from 1 to 1000000000000, not", "--users 0"),
        ("protocol", "rap", "protocol must be one of grr, oue,", "--protocol rap"),
        ("epsilon", "nan", "epsilon must be a number from 0.01 to 10, not", "--epsilon nan"),
        ("domain_size", 100001, "domain_size must be an integer", "--domain-size 100001"),
        ("targets", 100001, "targets must be an integer from 1 to", "--targets 100001"),
        ("beta", 1.1, "beta must be a number from 0 to 1, not", "--malicious-share 1.1"),
        ("gain", 0, "gain must be a number above 0 and at most 1000000, not", "--gain 0"),
    ],
    "alarms": [
        ("rate", 0.5, "rate must be a number of at least 1e-09 and below 0.5", "--rate 0.5"),
        ("canary", "z", "canary: no item is labelled 'z'", "--canary z"),
        ("format", "xml", "format must be 'json', 'csv' or 'csv-bom', not 'xml'", ""),
    ],
    "frequencies": [("format", "xml", "format must be 'json', 'csv' or 'csv-bom', not 'xml'", "")],
    "tickets": [("count", 1, "access: the round's is 'open', and tickets are for", "")],
    "list": [("limit", value, f"{PAGE}'{value}'", "") for value in (0, 201, "many")],
}
ROWS = [(call, *row) for call, rows in REFUSALS.items() for row in rows]
