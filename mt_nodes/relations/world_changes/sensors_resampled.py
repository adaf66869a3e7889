# SPDX-License-Identifier: Apache-2.0
"""The sham of the closed loop: other noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mt_nodes.relations.world_changes.base import Draw, ScenarioChange, Setting, WorldEffects


@dataclass(frozen=True)
class SensorsResampled(ScenarioChange):
    """The same world, seen with the sensors' noise drawn anew; of objects that are told, in another order.

    No driver may care about either: a second drive through the same street has other noise anyway.
    """

    role: ClassVar[str] = "sham"

    def draw(self, rng: np.random.Generator, setting: Setting) -> Draw:
        """Choose the noise."""
        return {"noise": int(rng.integers(1, 2**31))}

    def apply(self, setting: Setting, draw: Draw) -> tuple[Setting, WorldEffects]:
        """Give the sensors other noise."""
        return replace(setting, noise=draw["noise"]), WorldEffects()
