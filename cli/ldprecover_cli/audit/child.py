"""Runs a function as a command under audit: `python -m ldprecover_cli.audit.child module:function`.

It answers each line of standard input, a value, with a line of JSON on standard output.
"""

import importlib
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

FORGET = "\x00"
"""The line on which the module's package is imported again."""
_OF_JSON = (str, int, float, list, dict, type(None))


def main(name: str) -> None:
    """Answer values by the function `module:function` of the current folder or an installation."""
    sys.path.insert(0, "")
    reports = sys.stdout
    with redirect_stdout(sys.stderr):  # what the module prints is no report
        function = _imported(name)
        for line in sys.stdin:
            value = line.removesuffix("\n")
            if value == FORGET:
                function = _imported(name)
            else:
                print(json.dumps(_answer(function, value), default=repr), file=reports, flush=True)


def _answer(function: Callable[[str], Any], value: str) -> dict[str, Any]:
    """Return the report of a value with the type that JSON lacks, or what the function raises."""
    try:
        report = function(value)
    except Exception as error:  # noqa: BLE001  it is a report
        return {"raises": type(error).__name__, "message": str(error)}
    report = report.tolist() if hasattr(report, "tolist") else report
    if isinstance(report, _OF_JSON):
        return {"report": report}
    return {"report": report, "type": type(report).__name__}


def report_of(ask: Callable[[str], str], value: str) -> Any:
    """Return the function's report of a value, or raise what it raises; `ask` answers by `main`."""
    answer = json.loads(ask(value))
    if "raises" in answer:
        raise type(answer["raises"], (Exception,), {})(answer["message"])
    return answer if "type" in answer else answer["report"]


def _imported(name: str) -> Callable[[str], Any]:
    """Return the function, of a module that no longer has what it remembered."""
    module, _, attribute = name.partition(":")
    package = module.partition(".")[0]
    for each in [key for key in sys.modules if key.partition(".")[0] == package]:
        del sys.modules[each]
    function: Callable[[str], Any] = getattr(importlib.import_module(module), attribute)
    return function


if __name__ == "__main__":
    main(sys.argv[1])
