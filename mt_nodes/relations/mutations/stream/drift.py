# SPDX-License-Identifier: Apache-2.0
"""Base of errors that drift over an episode."""

from __future__ import annotations

from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.relations.mutations.keyed_draws import generator_of, new_key

#: Step of a random walk.
_STEP_S = 0.1


class Drifting(Mutation):
    """Base of mutations whose error is constant, grows, or walks at random over an episode."""

    over: str
    duration_s: float

    @property
    def random(self) -> bool:  # type: ignore[override]
        """Only a walk is left to chance."""
        return self.over == "walk"

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> dict[str, int]:
        """Note when the drift begins, and draw the key of its walk."""
        return {"start_ns": bundle.stamp_ns, "key": new_key(rng)}

    def shares(self, bundle: Bundle, state: dict[str, int] | None, count: int) -> Floats:
        """Return the shares (count,) of the full errors at this bundle: 1 for a constant, 0 to 1 for a ramp.

        A walk (Wiener process) has standard deviation 1 after ``duration_s``; its steps are those of the key, however
        many bundles there are.
        """
        elapsed_s = 0.0 if state is None else max(0.0, (bundle.stamp_ns - state["start_ns"]) / 1e9)
        if self.over == "constant":
            return np.ones(count)
        if self.over == "ramp":
            return np.full(count, min(1.0, elapsed_s / self.duration_s))
        steps = generator_of(state["key"] if state else 0).standard_normal((round(elapsed_s / _STEP_S), count))
        return np.asarray(steps.sum(axis=0) * np.sqrt(_STEP_S / self.duration_s))


OVER: dict[str, Any] = {
    "choices": ("constant", "ramp", "walk"),
    "help": "constant, growing to the full error and staying there, or a random walk that has it as its spread",
}
DURATION: dict[str, Any] = {
    "low": 0.1,
    "high": 36_000.0,
    "unit": "s",
    "aspect": "fixed",
    "help": "until a ramp is full, or the spread of a walk is that of the full error",
}
