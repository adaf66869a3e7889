# SPDX-License-Identifier: Apache-2.0
"""Numbers by chance that a key stands for: as many as a cloud has points, of which a ledger keeps the key alone.

A draw holds all that a follow-up is made again of. Where that would be a number for every point it holds a key, and
whoever makes the follow-up, or proves it, makes the numbers of it: the same ones with the same version of NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, ParamSpec, cast

import numpy as np
import numpy.typing as npt

#: Arrays of each kind that are kept: those of a bundle of several clouds, between its follow-up and the proof.
_KEPT = 4
#: Numbers that are drawn at a time, which stay in the processor's cache.
_PIECE = 1 << 13
Asked = ParamSpec("Asked")


def new_key(rng: np.random.Generator) -> int:
    """Draw a key."""
    return int(rng.integers(2**62))


def generator_of(key: int) -> np.random.Generator:
    """Return the generator of what a key stands for, from the beginning."""
    return np.random.Generator(np.random.PCG64(key))


def kept(make: Callable[Asked, npt.NDArray[Any]]) -> Callable[Asked, npt.NDArray[Any]]:
    """Keep the last arrays that a function made: the proof asks for what was asked for a moment before.

    They cannot be written to, as others are given the same ones.
    """

    @wraps(make)
    def made(*args: Asked.args, **kwargs: Asked.kwargs) -> npt.NDArray[Any]:
        array = make(*args, **kwargs)
        array.flags.writeable = False
        return array

    return cast("Callable[Asked, npt.NDArray[Any]]", lru_cache(maxsize=_KEPT)(made))


@kept
def order_of(key: int, count: int) -> npt.NDArray[np.int64]:
    """Return an order (count,) of so many points."""
    return generator_of(key).permutation(count)


@kept
def cut_normals(key: int, count: int, cut: float) -> npt.NDArray[np.float32]:
    """Return standard normal numbers (count,), cut at so many deviations."""
    rng, made = generator_of(key), np.empty(count, dtype=np.float32)
    for start in range(0, count, _PIECE):
        piece = made[start : start + _PIECE]
        rng.standard_normal(dtype=np.float32, out=piece)
        np.clip(piece, -cut, cut, out=piece)
    return made
