# SPDX-License-Identifier: Apache-2.0
"""Least distances between the ego and everybody else."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.base.arrays import Floats
from mt_nodes.world.drive import shapes
from mt_nodes.world.drive.bodies import size_of
from mt_nodes.world.drive.driven import ScenarioTrace


def least_m(driven: ScenarioTrace) -> dict[str, float]:
    """Return the least distance between the outlines of the ego and of each actor and obstacle, by name.

    At the instants at which the stack got input; 0 for contact, also between two instants.
    """
    scenario, trace = driven.scenario, driven.trace
    ego = outlines(shapes.of_vehicle(scenario.ego.vehicle), trace.ego[:, :3])
    found = {}
    for i, actor in enumerate(scenario.actors):
        polygons = outlines(shapes.box(*size_of(actor)[:2]), trace.actors[:, i, :3])
        found[actor.name] = float(shapely.distance(ego, polygons).min())
    for one in scenario.obstacles:
        polygons = outlines(shapes.of_obstacle(one), np.array([astuple(one.pose)]))
        found[one.name] = float(shapely.distance(ego, polygons).min())
    return {**found, **{name: 0.0 for name in driven.hit if name in found}}


def outlines(corners_m: Floats, poses: Floats) -> npt.NDArray[np.object_]:
    """Return (N,) polygons of corners (K, 2) of a body's own frame, at poses (N, 3)."""
    c, s = np.cos(poses[:, 2]), np.sin(poses[:, 2])
    turn = np.stack([np.stack([c, -s], axis=-1), np.stack([s, c], axis=-1)], axis=-2)
    return np.asarray(shapely.polygons(np.einsum("nij,kj->nki", turn, corners_m) + poses[:, None, :2]))
