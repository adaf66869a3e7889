# SPDX-License-Identifier: Apache-2.0
"""Random draws of a script: ranges and distributions, independent of the order of evaluation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mt_nodes.base import seeds
from mt_nodes.world.scenarios.language import slots
from mt_nodes.world.scenarios.language.problems import Problem, Span, ValueRefusal
from mt_nodes.world.scenarios.language.values import Item

DRAWN = {
    "range": "`range(low, high)`: a number between them, uniformly distributed",
    "uniform": "`uniform(low, high)`: the same as `range`",
    "normal": "`normal(mean, deviation)`: normally distributed; with `, low, high`: drawn again until between them",
    "choice": "`choice(a, b, …)`: one of these values, of any kind, equally likely",
}
"""What is drawn by each word."""
_TRIES = 1000


class Draws:
    """Draws for the statements of a script; a draw depends on seed, script, statement and its number there."""

    def __init__(self, seed: int, script: str) -> None:
        self._seed, self._script = seed, script
        self._statement, self._number = "", 0

    def begin(self, statement: str) -> None:
        """Begin a statement, by the name that it defines."""
        self._statement, self._number = statement, 0

    def _generator(self) -> np.random.Generator:
        self._number += 1
        return seeds.generator(self._seed, f"scenario {self._script}", 0, None, f"{self._statement}/{self._number}")

    def draw(self, name: str, at: Span, items: Sequence[Item]) -> object:
        """Return the value of a word of :data:`DRAWN`. Raises Refused: its arguments are wrong."""
        rng = self._generator()
        if name == "choice":
            if not items or any(item.data is None for item in items):
                raise ValueRefusal(Problem(at, f"{name}(…) with an empty slot", "values"))
            return items[int(rng.integers(len(items)))].data
        counts = (2, 4) if name == "normal" else (2,)
        if len(items) not in counts:
            raise ValueRefusal(Problem(at, f"{len(items)} values in {name}(…)", DRAWN[name].replace("`", "'")))
        numbers = [slots.number(item) for item in items]
        if name == "normal":
            return _normal(rng, at, numbers)
        return self._between(rng, at, numbers)

    def between(self, low: Item, high: Item) -> float:
        """Return a number in an interval."""
        return self._between(self._generator(), low.at, [slots.number(low), slots.number(high)])

    def _between(self, rng: np.random.Generator, at: Span, bounds: Sequence[float]) -> float:
        low, high = bounds
        if low > high or not np.isfinite(high - low):
            raise ValueRefusal(Problem(at, f"a range from {low:g} to {high:g}", "the lower bound first"))
        return float(rng.uniform(low, high))


def _normal(rng: np.random.Generator, at: Span, numbers: Sequence[float]) -> float:
    mean, deviation, low, high = (*numbers, -np.inf, np.inf)[:4]
    if deviation < 0.0:
        raise ValueRefusal(Problem(at, f"a deviation of {deviation:g}", "0 or more"))
    drawn = rng.normal(mean, deviation, _TRIES)
    inside = drawn[(drawn >= low) & (drawn <= high)]
    if not len(inside):
        raise ValueRefusal(Problem(at, f"bounds {low:g} to {high:g}", "some that a draw hits once in a thousand"))
    return float(inside[0])
