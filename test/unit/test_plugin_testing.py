# SPDX-License-Identifier: Apache-2.0
"""The helpers for tests of plugins find what a run would find."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from mt_nodes.plugin import Bundle, Draw, Followup, Mutation
from mt_nodes.plugin.testing import derive, obstacles, street
from mt_nodes.relations.mutations.lidar.drawn_returns import PointsDropped


@dataclass(frozen=True)
class Flawed(Mutation):
    """Sends the input as it is, and has one flaw."""

    sensors = ("lidar",)
    flaw: str = ""

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        return {}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        cloud = bundle.cloud()
        if self.flaw == "writes":
            cloud.points["x"][0] += 1.0
        if self.flaw == "random":
            points = cloud.points.copy()
            points["x"][0] = np.random.default_rng().uniform()
            return Followup(((0, bundle.with_clouds([replace(cloud, points=points)])),))
        return Followup(((0, bundle),))

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        return "no promise" if self.flaw == "broken" else None


@pytest.mark.parametrize(
    ("flaw", "said"),
    [
        ("writes", "wrote into the source"),
        ("random", "two follow-ups"),
        ("broken", "is broken: flawed: no promise"),
        ("", "nothing changed: raise NotApplicable"),
    ],
)
def test_a_flawed_mutation_is_found(flaw: str, said: str) -> None:
    (bundle,) = street()
    cloud = bundle.cloud()
    own = bundle.with_clouds([replace(cloud, points=cloud.points.copy())])
    with pytest.raises(AssertionError, match=said):
        derive(Flawed(flaw), own)
    assert len(derive(Flawed(), bundle, neutral=True).bundles) == 1
    with pytest.raises(AssertionError, match="at their neutral values must change nothing"):
        derive(PointsDropped(share=0.5), bundle, neutral=True)


def test_the_scene_is_the_same_each_time_and_has_obstacles_ahead() -> None:
    first, second = street(2)
    assert first.cloud().points.tobytes() == street()[0].cloud().points.tobytes() != second.cloud().points.tobytes()
    assert {"x", "y", "z", "intensity"} <= set(first.cloud().fields) and len(first.cloud()) > 20_000


def test_obstacles_are_where_they_are_put() -> None:
    said = obstacles((10.0, 2.0), (20.0, -1.0, 0.5)).detections
    assert said is not None and said.center_m.tolist() == [[10.0, 2.0, 0.75], [20.0, -1.0, 0.5]]
    assert len(obstacles().detections or ()) == 0
