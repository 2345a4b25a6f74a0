"""Clients of two items or more, sound and flawed in one way each."""

import itertools
import json
import math
import random
from collections.abc import Callable
from typing import Any

Client = Callable[[str], Any]
ITEMS = "abcd"
draws = random.Random(20)


def grr(value: str, epsilon: float = 1.0, items: str = ITEMS) -> str:
    keep = draws.random() < math.exp(epsilon) / (math.exp(epsilon) + len(items) - 1)
    return value if keep else draws.choice([item for item in items if item != value])


def bits(value: str, own: float, others: float) -> list[int]:
    return [int(draws.random() < (own if item == value else others)) for item in ITEMS]


def oue(value: str) -> list[int]:
    return bits(value, 0.5, 1 / (math.e + 1))


def sue(value: str) -> list[int]:
    p = 1 / (1 + math.exp(-0.5))
    return bits(value, p, 1 - p)


def subset(value: str) -> list[str]:
    """SS with subsets of two of four items: e : 1 for the item."""
    others = [item for item in ITEMS if item != value]
    chosen = [value, draws.choice(others)]
    if draws.random() >= math.e / (math.e + 1):
        chosen = draws.sample(others, 2)
    return sorted(chosen)


SOUND: dict[str, Client] = {
    "grr": grr,
    "oue": oue,
    "oue as text": lambda value: "".join(map(str, oue(value))),
    "sue": sue,
    "subset": subset,
    "an index and a bit": lambda value: {"index": 1, "bit": grr(value) == "b"},
    "a nonce": lambda value: json.dumps([draws.random(), grr(value)]),
    "numbers without noise": lambda value: draws.gauss(0, 1),
}


def laplace(value: str) -> float:
    return float(value == "b") + draws.choice([-1, 1]) * draws.expovariate(1)


def coded(value: str) -> Any:
    answer = grr(value)
    return answer if answer == value else answer.encode()


def fails_on_b(value: str) -> str:
    if value == "b" and draws.random() < 0.02:
        raise ValueError("unknown item")
    return grr(value)


def true_item_first(value: str) -> list[str]:
    return sorted(subset(value), key=lambda item: (item != value, item))


def reuses_a_seed(value: str) -> str:
    fixed = random.Random(1)
    return str((ITEMS.index(value) + fixed.randrange(4)) % 4)


_calls = itertools.count()


def honest_every_third_call(value: str) -> str:
    return value if next(_calls) % 3 == 0 else grr(value)


FLAWED: dict[str, Client] = {
    "length": lambda value: [grr(value)] * (3 if value == "a" and draws.random() < 0.1 else 2),
    "order": true_item_first,
    "type": coded,
    "exception": fails_on_b,
    "low bits": laplace,
    "a bit is never cleared": lambda value: bits(value, 1.0, 1 / (math.e + 1)),
    "a seed is reused": reuses_a_seed,
    "state between calls": honest_every_third_call,
    "a larger epsilon": lambda value: grr(value, 1.5),
    "in clear once in 20": lambda value: f"{value}!" if draws.random() < 0.05 else grr(value),
}


class Memoising:
    """GRR at epsilon 2 that answers the same for a value again, by GRR of the first answer."""

    def __init__(self, second: float = math.inf) -> None:
        self._second = second
        self.answers: dict[str, str] = {}

    def __call__(self, value: str) -> str:
        answer = self.answers.setdefault(value, grr(value, 2.0))
        return answer if self._second == math.inf else grr(answer, self._second)

    def forget(self) -> None:
        self.answers.clear()
