# SPDX-License-Identifier: Apache-2.0
"""Random generators that depend on what is drawn, not on when."""

from __future__ import annotations

import hashlib
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt


def generator(seed: int, relation: str, episode: int, bundle: int | None, draw: str | int) -> np.random.Generator:
    """Return the generator of one draw.

    The stream depends on its five arguments alone, so that order, speed and machine load do not change
    a follow-up. ``bundle`` is None for what persists over a segment (:meth:`Mutation.begin`).
    """
    identity = f"{seed}\x1f{relation}\x1f{episode}\x1f{'-' if bundle is None else bundle}\x1f{draw}"
    digest = hashlib.sha256(identity.encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))


class Request(NamedTuple):
    """What a draw asks of its generator: a permutation of, or so many standard normal, numbers."""

    method: Literal["permutation", "standard_normal"]
    size: int


class ForeseenGenerator(np.random.Generator):
    """A generator that has answered beforehand what it is expected to be asked first.

    It gives the very numbers that the plain one gives, also where something else is asked of it, first or ever.

    Args:
        plain: nothing was asked of it; it is not used any more. expected: what is asked first.
    """

    def __init__(self, plain: np.random.Generator, expected: Request) -> None:
        super().__init__(plain.bit_generator)
        self._expected, self._before = expected, plain.bit_generator.state
        ahead = np.random.Generator(np.random.PCG64(0))
        ahead.bit_generator.state = self._before
        self._answer: npt.NDArray[Any] | None = getattr(ahead, expected.method)(expected.size)
        self._after = ahead.bit_generator.state

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """Return what :meth:`numpy.random.Generator.permutation` does."""
        foreseen = self._foreseen("permutation", x)
        return super().permutation(x, axis) if foreseen is None else foreseen

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Return what :meth:`numpy.random.Generator.standard_normal` does."""
        foreseen = self._foreseen("standard_normal", size) if dtype is np.float64 and out is None else None
        return super().standard_normal(size, dtype, out) if foreseen is None else foreseen

    def _foreseen(self, method: str, count: Any) -> npt.NDArray[Any] | None:
        answer, self._answer = self._answer, None
        asked_first = answer is not None and self.bit_generator.state == self._before
        if not asked_first or type(count) is not int or self._expected != (method, count):
            return None
        self.bit_generator.state = self._after
        return answer
