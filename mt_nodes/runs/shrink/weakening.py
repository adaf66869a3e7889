# SPDX-License-Identifier: Apache-2.0
"""The move that weakens a relation's change, one parameter after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mt_nodes.base.errors import UsageError
from mt_nodes.relations.relation import Relation
from mt_nodes.relations.strength import Strength, value_of, with_values
from mt_nodes.runs.shrink.minimal import weakest
from mt_nodes.runs.shrink.shrinker import F, P, Shrinker


def weaken(shrinker: Shrinker[F, P], axes: Sequence[Strength], form: Callable[[Relation], F | None]) -> None:
    """Turn each strength of the best form down as far as it still fails.

    ``axes``: strengths of its relation. ``form``: makes the best form of a weaker relation; None: there is none.
    """
    if not axes:
        shrinker.note("strength: the relation's change has no parameter that could be weaker")
    for axis in axes:
        _weaken(shrinker, axis, form)


def _weaken(shrinker: Shrinker[F, P], axis: Strength, form: Callable[[Relation], F | None]) -> None:
    relation = shrinker.best.relation

    def fails(value: float) -> bool:
        weaker = _weaker(relation, axis, value)
        candidate = None if weaker is None else form(weaker)
        return candidate is not None and shrinker.tries(axis.name, _with_unit(value, axis), candidate)

    try:
        weakest(axis, fails)
    finally:
        shrinker.row(axis.name, _with_unit(axis.strong, axis), _with_unit(value_of(shrinker.best.relation, axis), axis))


def _with_unit(value: float, axis: Strength) -> str:
    return f"{value:g} {axis.unit}".strip()


def _weaker(relation: Relation, axis: Strength, value: float) -> Relation | None:
    """Return the relation with another value; None where its change takes it not with its other values."""
    try:
        return with_values(relation, [axis], [value])
    except (UsageError, ValueError):
        return None
