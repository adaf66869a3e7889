# SPDX-License-Identifier: Apache-2.0
"""Random numbers represented by a key: one for every point of a cloud, while the ledger stores the key alone.

A draw holds all that is needed to reproduce a follow-up. Instead of a number for every point it holds a key, from which
the same version of NumPy generates the same numbers for the follow-up and for its proof.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, ParamSpec, cast

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Ints, Singles

#: Cached arrays of each kind: those of a bundle of several clouds, between follow-up and proof.
_CACHED = 4
#: Numbers drawn at a time, which fit the processor's cache.
_PIECE = 1 << 13
Params = ParamSpec("Params")


def new_key(rng: np.random.Generator) -> int:
    """Draw a key."""
    return int(rng.integers(2**62))


def generator_of(key: int) -> np.random.Generator:
    """Return the generator of a key, at its start."""
    return np.random.Generator(np.random.PCG64(key))


def cached(make: Callable[Params, npt.NDArray[Any]]) -> Callable[Params, npt.NDArray[Any]]:
    """Cache the last arrays of a function: the proof needs those that the follow-up has just used.

    They are read-only, because callers share them.
    """

    @wraps(make)
    def frozen(*args: Params.args, **kwargs: Params.kwargs) -> npt.NDArray[Any]:
        array = make(*args, **kwargs)
        array.flags.writeable = False
        return array

    return cast("Callable[Params, npt.NDArray[Any]]", lru_cache(maxsize=_CACHED)(frozen))


@cached
def order_of(key: int, count: int) -> Ints:
    """Return a permutation (count,) of points."""
    return generator_of(key).permutation(count)


@cached
def cut_normals(key: int, count: int, cut: float) -> Singles:
    """Return standard normal numbers (count,), cut at so many standard deviations."""
    rng, normals = generator_of(key), np.empty(count, dtype=np.float32)
    for start in range(0, count, _PIECE):
        piece = normals[start : start + _PIECE]
        rng.standard_normal(dtype=np.float32, out=piece)
        np.clip(piece, -cut, cut, out=piece)
    return normals
