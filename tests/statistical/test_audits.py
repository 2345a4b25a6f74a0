"""Audits of the own clients, in Python and JavaScript: no violation, and evidence close to epsilon.

Each is wrong once in 10^6 runs. A client of epsilon 1.5 in place of 1 is noticed, since evidence
reaches about .8 of it. `pytest -s` prints the rows of the table in docs/how-to/audit.md.
"""

import base64
import math
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ldprecover import FrequencyOracle, frequency_oracle
from ldprecover.auditing import audit
from ldprecover.protocols import PROTOCOLS
from ldprecover_cli.audit.client import Client

SOURCES = Path(__file__).parents[2] / "client" / "js" / "src"
LEAST = 0.6

pytestmark = pytest.mark.statistical
NODE = """
import {{ PROTOCOLS }} from "{folder}/protocols.js";
import {{ systemCrypto, wordsFrom }} from "{folder}/words.js";
import {{ createInterface }} from "node:readline";
const protocol = PROTOCOLS.get("{protocol}");
const round = {{ epsilon: 1, d: {d}, own: {own} }};
round.thresholds = protocol.thresholds(round);
const words = wordsFrom(await systemCrypto());
for await (const line of createInterface({{ input: process.stdin }})) {{
  console.log(Buffer.from(protocol.perturb(round, Number(line), words)).toString("base64"));
}}
"""


def own_oracle(protocol: str) -> FrequencyOracle:
    return frequency_oracle(protocol, 1.0, 4)


def check(name: str, oracle: FrequencyOracle, function: Callable[[Any], Any], **more: Any) -> None:
    result = audit(function, ["0", "1"], 1.0, oracle=oracle, **more)
    print(f"| {name} | {math.floor(100 * result.at_least) / 100:.2f} | {result.event[:60]} |")  # noqa: T201
    assert LEAST < result.at_least <= 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_python_client_is_sound(protocol: str) -> None:
    oracle = own_oracle(protocol)
    check(
        f"{protocol}, Python",
        oracle,
        lambda value: oracle.wire.to_json(oracle.perturb([int(value)])),
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_javascript_client_is_sound(protocol: str) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("the client for JavaScript needs Node, which is not installed")
    oracle = own_oracle(protocol)
    own = next(iter(oracle.own.values()), "undefined")
    code = NODE.format(folder=SOURCES, protocol=protocol, d=oracle.domain_size, own=own)
    command = [node, "--input-type=module", "--eval", code]
    with closing(Client(command)) as client:
        check(
            f"{protocol}, JavaScript",
            oracle,
            lambda value: oracle.wire.unpack(base64.b64decode(client.report(value))),
            restart=client.restart,
        )
