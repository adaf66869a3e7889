# SPDX-License-Identifier: Apache-2.0
"""Tiny mutations that exercise what makes, records and writes follow-ups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.effects import Effects, Volume
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation

SHADOW = Volume("lidar", (5.0, 0.0, 0.0), (1.0, 1.0, 1.0))


@dataclass(frozen=True)
class Shuffle(Mutation):
    """Permutes points and drops the last ``drop``; not applicable to every third bundle."""

    drop: int = 0
    every_third: bool = True
    lie: bool = False
    sensors = ("lidar",)

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> Any:
        return rng.integers(1 << 30)

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        if self.every_third and bundle.index % 3 == 2:
            raise NotApplicable("a third bundle")
        return {"order": rng.permutation(len(bundle.cloud())), "of_episode": int(state), "gain": float(rng.uniform())}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        cloud = bundle.cloud()
        kept = draw["order"][: len(cloud) - self.drop]
        made = bundle.with_clouds([cloud.with_raw(cloud.raw[kept])])
        return Followup(((0, made),), Effects(occluded=(SHADOW,), numbers={"dropped": self.drop}))

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        lost = len(source.cloud()) - len(followup.first.cloud())
        return f"{lost} points lost, {self.drop} promised" if lost != self.drop or self.lie else None


@dataclass(frozen=True)
class Echo(Mutation):
    """Sends the bundle again, ``delay_ns`` later, its cloud's stamp moved along."""

    delay_ns: int = 30_000_000
    sensors = ("lidar", "camera")

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        return {"coin": rng.uniform()}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        again = bundle.with_clouds(replace(c, stamp_ns=c.stamp_ns + self.delay_ns) for c in bundle.clouds)
        return Followup(((0, bundle), (self.delay_ns, again)), Effects(numbers={"echoes": 1}))

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        return None if len(followup.bundles) == 2 else "no echo"


@dataclass(frozen=True)
class Nothing(Mutation):
    """Sends nothing at all."""

    sensors = ("lidar",)

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        return {}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        return Followup(())

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        return None
