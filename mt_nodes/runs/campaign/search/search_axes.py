# SPDX-License-Identifier: Apache-2.0
"""What a search is over: the strengths of its relation."""

from __future__ import annotations

from mt_nodes.base.errors import UsageError
from mt_nodes.relations.relation import Relation
from mt_nodes.relations.strength import Strength, axis, is_place, strengths
from mt_nodes.runs.campaign.search.search_request import SearchRequest


def axes_of(request: SearchRequest, relation: Relation) -> tuple[Strength, ...]:
    """Return what is searched over: what ``over`` names, else every strength that the relation has turned up.

    Raises UsageError: there is nothing to search over.
    """
    if request.over:
        named = tuple(_axis(request, relation, text) for text in request.over)
        if twice := sorted({a.name for a in named if [b.name for b in named].count(a.name) > 1}):
            raise UsageError(f"--over: got {', '.join(twice)} twice, expected each once")
        return named
    found = strengths(relation, request.reach)
    if not found:
        raise UsageError(
            f"relation '{relation.id}' has no strength that could be turned down; name what to search with --over, "
            "such as --over object_added.range_m"
        )
    return found


def _axis(request: SearchRequest, relation: Relation, text: str) -> Strength:
    name, equals, ends = text.partition("=")
    if not equals:
        plain = axis(relation, name) if request.reach == "relation" else None
        reaching = [a for a in strengths(relation, request.reach) if name in (a.name, a.parameter)]
        return plain or (reaching[0] if len(reaching) == 1 else axis(relation, name))
    weak, dots, strong = ends.partition("..")
    try:
        both = (float(weak), float(strong)) if dots else None
    except ValueError:
        both = None
    if both is None:
        raise UsageError(f"--over {text}: got '{ends}', expected WEAK..STRONG such as {name}=1..1000")
    return axis(relation, name, both)


def places_of(relation: Relation, axes: tuple[Strength, ...]) -> tuple[bool, ...]:
    """Tell which axes say where, and not how much."""
    return tuple(is_place(relation, one) for one in axes)
