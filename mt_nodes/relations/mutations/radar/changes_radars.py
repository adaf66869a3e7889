# SPDX-License-Identifier: Apache-2.0
"""The part of joint mutations that is about radars: what becomes of each, or why it stays as it is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mt_nodes.base.errors import NoEffect, NotApplicable
from mt_nodes.base.plugins import name_of
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.radar import Radar
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.relations.mutations.lidar.each_cloud import of_cloud, same_kind
from mt_nodes.relations.mutations.untouched import UNTOUCHED, drawn


class ChangesRadars(Mutation):
    """Base of changes of the world that a radar sees, too, or that leave it untouched for a reason.

    Without :attr:`radar_reason` and without its own :meth:`draw_radar`, a bundle with a radar has no follow-up: the
    sensors would contradict each other.
    """

    #: Why radars stay as they are, with the source of it; empty: a subclass changes them.
    radar_reason: ClassVar[str] = ""

    def contradiction(self, inputs: Collection[str], sync_s: float) -> str:
        """Say that the effect on a radar is not known, where a stack takes one."""
        changed = self.radar_reason or type(self).draw_radar is not ChangesRadars.draw_radar
        return "" if changed or "radar" not in inputs else self._unknown

    @property
    def _unknown(self) -> str:
        return f"what {name_of(type(self))} does to a radar is not known"

    def draw_radar(self, rng: np.random.Generator, bundle: Bundle, radar: Radar, state: Any) -> Draw:
        """Make every random choice of one radar.

        Raises NotApplicable: there is no honest follow-up of it. NoEffect: the change does not reach it.
        """
        if self.radar_reason:
            raise NoEffect(f"{radar.topic}: {self.radar_reason}")
        raise NotApplicable(f"{radar.topic}: {self._unknown}")

    def change_radar(self, bundle: Bundle, radar: Radar, draw: Draw) -> Radar:
        """Return the changed detections."""
        return radar

    def prove_radar(self, bundle: Bundle, old: Radar, new: Radar, draw: Draw) -> str | None:
        """Check the two; return the broken promise, or None."""
        return None

    def describe_radars(self, bundle: Bundle, changed: dict[str, Radar], draws: dict[str, Draw]) -> Effects:
        """Return further effects on the world, by what radars show of it."""
        return Effects()

    def draw_radars(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Draw for every radar; where the change does not reach one, why."""
        draws: Draw = {}
        for radar in bundle.radars:
            draws |= drawn(radar.topic, partial(self.draw_radar, rng, bundle, radar, state))
        return draws

    def apply_to_radars(self, bundle: Bundle, followup: Followup, draw: Draw) -> Followup:
        """Return a follow-up of clouds and images with its radars changed, too."""
        draws = {radar.topic: of_cloud(draw, radar) for radar in bundle.radars}
        reasons = {topic: str(of_this[UNTOUCHED]) for topic, of_this in draws.items() if UNTOUCHED in of_this}
        changed = {
            r.topic: self.change_radar(bundle, r, draws[r.topic]) for r in bundle.radars if r.topic not in reasons
        }
        effects = followup.effects.merged(self.describe_radars(bundle, changed, draws))
        effects = replace(effects, unchanged={**effects.unchanged, **reasons})
        (delay_ns, first), *others = followup.bundles
        return Followup(((delay_ns, first.with_clouds(changed.values())), *others), effects)

    def prove_radars(self, source: Bundle, changed: Bundle, draw: Draw) -> str | None:
        """Prove the promise for every radar."""
        for old, new in zip(source.radars, changed.radars, strict=True):
            of_this = of_cloud(draw, old)
            if UNTOUCHED in of_this:
                broken = None if new is old else "changed, and it was drawn to stay as it is"
            else:
                broken = same_kind(old, new) or self.prove_radar(source, old, new, of_this)
            if broken is not None:
                return f"{old.topic}: {broken}"
        return None
