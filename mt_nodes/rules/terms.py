# SPDX-License-Identifier: Apache-2.0
"""The terms of the ontology: roads, elements of the scene, and behaviours of the ego vehicle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.manipulations import manipulations
from mt_nodes.rules.statement import ADDS, REPLACES


@dataclass(frozen=True)
class Term:
    """A name of the ontology and its phrases in rules; ``regions``: those whose published ontology has it."""

    name: str
    says: tuple[str, ...]
    regions: tuple[str, ...] = ()


@dataclass(frozen=True)
class RoadTerm(Term):
    """A type of road or place.

    ``marked_by``: the element that shows it, if a rule names nothing else. ``area``: it contains places of other names.
    """

    marked_by: str = ""
    area: bool = False


@dataclass(frozen=True)
class Element(Term):
    """An element that a follow-up adds or replaces.

    Attributes:
        category: one of :data:`CATEGORIES`. manipulation: name by region, of any other region under an empty key.
        unsupported: why nothing shows it. road: its road if a rule names none. needs: condition on the source.
        weak: mentioned beside a rule's subject. stands: it does not move. general: what follows it specifies it.
        bare: words for it if nothing else is named. asks: behaviour, if no other is named. forbids: behaviour that a
            prohibition about it demands. implied_by: behaviours that mean it if nothing is named. crossing: road that
            "crossing" means next to it.
    """

    category: str = ""
    manipulation: Mapping[str, str] = field(default_factory=dict)
    unsupported: str = ""
    road: str = ""
    needs: str = ""
    weak: bool = False
    stands: bool = False
    general: bool = False
    asks: str = ""
    forbids: str = ""
    implied_by: tuple[str, ...] = ()
    crossing: str = ""
    bare: tuple[str, ...] = ()

    @property
    def verb(self) -> str:
        """Weather, light and the road's state always exist, so they are replaced; all else is added."""
        return REPLACES if self.category == "environment" else ADDS

    def manipulation_for(self, region: str) -> str:
        """Return the name of the manipulation that shows it in a region; empty if there is none."""
        return self.manipulation.get(region) or self.manipulation.get("", "")

    def gap(self, region: str = "") -> str:
        """Return why it cannot be shown, empty if it can."""
        if self.unsupported:
            return self.unsupported
        return manipulations()[self.manipulation_for(region)].unsupported


@dataclass(frozen=True)
class Behaviour(Term):
    """A demanded behaviour, and the check that judges it; see ``config/ontology/behaviours.yaml``.

    ``in_world`` is the check of two drives in the closed loop; empty if there is none.
    """

    says_not: tuple[str, ...] = ()
    denied: str = ""
    reads_as: str = ""
    check: tuple[str, Mapping[str, Any]] = ("", {})
    in_world: tuple[str, Mapping[str, Any]] = ("", {})

    def make_check(self, where: str = "") -> Check:
        """Build the check of this behaviour. Raises UsageError: there is no such check, or a parameter is wrong."""
        return _built(self.check, f"{where or self.name}.check")

    def make_check_in_world(self, where: str = "") -> Check:
        """Build the check of this behaviour in the closed loop.

        Raises UsageError: it has none there, there is no such check, or a parameter is wrong.
        """
        if not self.in_world[0]:
            raise UsageError(f"{where or self.name}: no check under in_world, which judges it in the closed loop")
        return _built(self.in_world, f"{where or self.name}.in_world")


def _built(check: tuple[str, Mapping[str, Any]], where: str) -> Check:
    name, params = check
    return cast(Check, build(plugins.find("checks", name, where), params, f"{where}.{name}"))
