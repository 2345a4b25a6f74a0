"""Audits of the own clients, in Python and JavaScript: no violation, and evidence close to epsilon.

Each is wrong once in 10^6 runs. A client of epsilon 1.5 in place of 1 is noticed, since evidence
reaches about .8 of it. `pytest -s` prints what is proven; docs/how-to/audit.md has
the range.
"""

import base64
import math
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.client.test_usage import PERIOD, SYSTEM, World, world

from ldprecover import FrequencyOracle, frequency_oracle
from ldprecover.auditing import audit
from ldprecover.protocols import PROTOCOLS
from ldprecover_cli.audit.client import Client
from ldprecover_client import Ledger, Usage

__all__ = ["world"]

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


@pytest.mark.parametrize("flawed", [False, True])
def test_usage_tells_at_most_its_reports(
    world: World, monkeypatch: pytest.MonkeyPatch, flawed: bool
) -> None:
    """Of histories of four reports, at epsilon .5 each; wrong once in 10^6 runs.

    A program that perturbs one of the four not at all is noticed. One of epsilon .75 in place of .5
    is not: the evidence is of pairs of reports, and reaches less than 1.
    """
    form = {"question": SYSTEM, "items": ("0", "1"), "epsilon": 0.5}
    usages: list[Usage] = []

    def restart() -> None:
        ledger = Ledger.in_memory()
        monkeypatch.setattr("ldprecover_client.usage.Ledger", lambda *_, **__: ledger)
        usages[:] = [world.usage(form=form)]
        usages[0].report("0").join()
        world.now += PERIOD

    def report(value: str) -> int:
        world.server.rounds.clear()
        id = f"r{len(world.server.posts)}"
        world.server.add("grr", 0.5, ("0", "1"), id=id).update(question=SYSTEM)
        world.server.current = {"round": id}
        usages[0].report(value).join()
        world.now += PERIOD
        sent = world.server.posts[-1].content[0]
        return int(value) if flawed and len(world.server.posts) % 4 == 0 else sent

    result = audit(report, [[*"0000"], [*"0101"]], 2.0, calls=400, restart=restart, fresh=True)
    assert result.audited
    assert result.violation == flawed
