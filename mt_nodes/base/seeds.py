# SPDX-License-Identifier: Apache-2.0
"""Random generators that depend on what is drawn, not on when."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np

T = TypeVar("T")


def generator(seed: int, relation: str, episode: int, bundle: int | None, draw: str | int) -> np.random.Generator:
    """Return the generator of one draw.

    The stream depends on its five arguments alone, so order, speed and machine load do not change a follow-up.
    ``bundle`` is None for the state of a whole segment (:meth:`Mutation.begin`).
    """
    identity = f"{seed}\x1f{relation}\x1f{episode}\x1f{'-' if bundle is None else bundle}\x1f{draw}"
    digest = hashlib.sha256(identity.encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))


class ForeseeingGenerator(np.random.Generator):
    """A generator with something that was drawn ahead of time, from another one in the same state."""

    ahead: Any = None


def foreseeing(identity: tuple[int, str, int, int | None, str | int]) -> ForeseeingGenerator:
    """Return the same stream as :func:`generator`."""
    return ForeseeingGenerator(generator(*identity).bit_generator)


def drawn_ahead(rng: np.random.Generator, kind: type[T]) -> T | None:
    """Take what was drawn ahead from a generator, once: its own generator goes on from there. None: nothing was."""
    ahead = getattr(rng, "ahead", None)
    if not isinstance(ahead, kind):
        return None
    cast("ForeseeingGenerator", rng).ahead = None
    return ahead


class _OnDemand:
    """Stands for a generator that is seeded at its first use: seeding takes a tenth of a millisecond."""

    def __init__(self, *identity: Any) -> None:
        self._identity = identity

    @cached_property
    def _seeded(self) -> np.random.Generator:
        return generator(*self._identity)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._seeded, name)


def generator_on_demand(
    seed: int, relation: str, episode: int, bundle: int | None, draw: str | int
) -> np.random.Generator:
    """Return the same stream as :func:`generator`, for what hardly ever draws from it."""
    return cast("np.random.Generator", _OnDemand(seed, relation, episode, bundle, draw))
