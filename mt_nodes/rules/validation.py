# SPDX-License-Identifier: Apache-2.0
"""Whether a follow-up is a valid test of its relation: AutoMT's three factors, each with its source.

A follow-up is valid if source and follow-up are on the relation's road (scenario), the change is visible (manipulation)
and the relation makes sense for the case (logical); arXiv 2510.19438, second research question. The paper asks models;
here scenes, mutations and conditions decide. A case with an unknown factor is not valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mt_nodes.relations.facts.condition import conjunction, evaluate, missing
from mt_nodes.rules.ontology import ANY_ROAD
from mt_nodes.rules.scene import SceneFacts
from mt_nodes.rules.statement import Statement

#: No behaviour is meaningful for a standing ego: it cannot slow down or turn, and may well have to drive off.
STATE = "moving"
FACTORS = ("scenario", "manipulation", "logical")


@dataclass(frozen=True)
class Factor:
    """One of the three factors: whether it holds, None if unknown, and its source or reason."""

    holds: bool | None
    source: str


@dataclass(frozen=True)
class Validation:
    """The three factors of one follow-up."""

    scenario: Factor
    manipulation: Factor
    logical: Factor

    @property
    def valid(self) -> bool | None:
        """Whether all three hold; False if one does not, else None if one is unknown."""
        holds = [getattr(self, name).holds for name in FACTORS]
        return False if False in holds else None if None in holds else True

    def as_plain(self) -> dict[str, Any]:
        """Return it in the form of JSON."""
        factors = {name: vars(getattr(self, name)) for name in FACTORS}
        return {"valid": self.valid, **factors}


def scenario_alignment(statement: Statement, source: SceneFacts, followup: SceneFacts) -> Factor:
    """Return whether both scenes are on the relation's road."""
    for name, scene in (("source", source), ("follow-up", followup)):
        fits = on_road(statement.road, scene)
        if not fits.holds:
            return Factor(fits.holds, f"{name}: {fits.source}")
    return Factor(True, fits.source)


def on_road(road: str, scene: SceneFacts) -> Factor:
    """Return whether a scene is on a road; every scene is on any road."""
    if road == ANY_ROAD:
        return Factor(True, "any road will do")
    if scene.value("roads") is None:
        return Factor(None, f"is for {road}, and the road is not known: {scene.source('roads')}")
    if road in scene.roads:
        return Factor(True, scene.source("roads"))
    return Factor(False, f"is for {road}, the case approaches {', '.join(scene.roads)}")


def logical_alignment(statement: Statement, needs: str, scene: SceneFacts, edit: Mapping[str, Any]) -> Factor:
    """Return whether a relation makes sense for a source: its condition and its element's needs hold there.

    ``needs``: condition of the element (:attr:`mt_nodes.rules.terms.Element.needs`). ``edit``: known facts of the
    change, such as the number on the added sign.
    """
    condition = conjunction(STATE, statement.condition, needs)
    facts = {**scene.known, **edit}
    holds = evaluate(condition, facts)
    if holds is None:
        unclear = "; ".join(f"{name}: {scene.source(name)}" for name in missing(condition, facts))
        return Factor(None, f"'{condition}' cannot be evaluated: {unclear}")
    return Factor(holds, f"'{condition}' is {str(holds).lower()}")


def manipulation_verification(broken: str = "", detected: bool | None = None, look: str = "") -> Factor:
    """Return whether the change was made.

    ``broken``: the broken promise of the mutation's guarantee, empty if it holds. ``detected``: whether an independent
    check, which shares no code with the mutation, found it; None: there is none. ``look``: description of that check.
    """
    if broken:
        return Factor(False, f"the mutation's guarantee: {broken}")
    if detected is None:
        return Factor(True, "the mutation's guarantee holds; nothing else looked")
    return Factor(detected, f"{look}: {'seen' if detected else 'not seen'}; the mutation's guarantee holds")
