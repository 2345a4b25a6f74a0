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
    function = _imported(name)
    for line in sys.stdin:
        value = line.removesuffix("\n")
        if value == FORGET:
            function = _imported(name)
            continue
        answer: dict[str, Any]
        with redirect_stdout(sys.stderr):
            try:
                report = function(value)
                report = report.tolist() if hasattr(report, "tolist") else report
                answer = {"report": report}
                if not isinstance(report, _OF_JSON):
                    answer["type"] = type(report).__name__
            except Exception as error:  # noqa: BLE001  it is a report
                answer = {"raises": type(error).__name__, "message": str(error)}
        print(json.dumps(answer, default=repr), flush=True)  # noqa: T201


def returned(line: str) -> Any:
    """Return what the function returned, by a line of `main`; raise what it raised."""
    answer = json.loads(line)
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
