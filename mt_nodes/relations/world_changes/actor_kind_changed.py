# SPDX-License-Identifier: Apache-2.0
"""Somebody is of another kind."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.relations.world_changes.base import Draw, ScenarioChange, Setting, WorldEffects
from mt_nodes.world.drive.bodies import mass_of, size_of
from mt_nodes.world.drive.scenario import Actor
from mt_nodes.world.drive.scenario_checks import OF_PEOPLE
from mt_nodes.world.scene.objects import KINDS


@dataclass(frozen=True)
class ActorKindChanged(ScenarioChange):
    """One actor of a kind is of another: same place, same movement and, unless ``natural``, same size and mass.

    Matched geometry asks whether a name decides; natural geometry whether the looks do, which size is a part of.
    """

    whose: str = param("adult", choices=tuple(KINDS), help="kind of those of whom one is changed")
    to: str = param("child", choices=tuple(KINDS), help="kind that it becomes")
    natural: bool = param(False, help="with the size and mass of its new kind")

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Choose who."""
        names = sorted(actor.name for actor in setting.scenario.actors if actor.kind == self.whose)
        if not names:
            raise NotApplicable(f"no actor is of kind '{self.whose}'")
        return {"name": names[int(rng.integers(len(names)))]}

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Change the kind."""
        scenario = setting.scenario
        actors = tuple(self._changed(a) if a.name == draw["name"] else a for a in scenario.actors)
        return replace(setting, scenario=replace(scenario, actors=actors)), WorldEffects(changed=(draw["name"],))

    def _changed(self, actor: Actor) -> Actor:
        # Nobody but people is of an age or a gender; whether one waits at lights is told apart from that.
        person = actor.person if KINDS[self.to].label in OF_PEOPLE else None
        size_m, mass_kg = (None, None) if self.natural else (size_of(actor), mass_of(actor))
        return replace(actor, kind=self.to, person=person, size_m=size_m, mass_kg=mass_kg)
