# SPDX-License-Identifier: Apache-2.0
"""How long objects could stand at places: what is there, what hides them, what comes, and what the ego passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_bundles import made_bundle, made_cloud

from mt_nodes.data.ego.ego_motion import EgoMotion
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import pose_matrix
from mt_nodes.relations.mutations.objects.place_outlook import ObstaclePoints, Steps, by_duration, steps_of
from mt_nodes.world.scene.placement_solver import Footprint

PERSON = Footprint((0.0, 0.0), (0.3, 0.3), 1.7)
MOUNT = pose_matrix((0.0, 0.0, 1.73), (0.0, 0.0, 0.0, 1.0))
DEMANDS = 1.0, 0.7


def cloud_with(*boxes: tuple[float, float]) -> Cloud:
    """Level ground every 0.4 m on which boxes of 1 m, 1.5 m high, stand at places (x, y) of the ego's frame."""
    ground = np.stack(np.meshgrid(np.arange(-35.0, 35.0, 0.4), np.arange(-35.0, 35.0, 0.4)), -1).reshape(-1, 2)
    side = np.stack(np.meshgrid(*[np.arange(-0.5, 0.51, 0.1)] * 2, np.arange(0.1, 1.5, 0.1)), -1).reshape(-1, 3)
    xyz = np.concatenate(
        [np.column_stack([ground, np.zeros(len(ground))]), *(side + np.array([x, y, 0.0]) for x, y in boxes)]
    )
    cloud = made_cloud(count=len(xyz))
    points = cloud.points.copy()
    points["x"], points["y"], points["z"] = xyz[:, 0], xyz[:, 1], xyz[:, 2] - 1.73
    return replace(cloud, points=points)


def usable(cloud: Cloud, *places: tuple[float, float]) -> list[bool]:
    around = ObstaclePoints.of(cloud, MOUNT)
    against = around.obstruction(np.array([[*place, 0.4] for place in places]), PERSON, *DEMANDS)
    return (against == 0.0).tolist()


def test_places_are_usable_where_nothing_stands_within_the_clearance_or_before_them() -> None:
    cloud = cloud_with((10.0, 0.0))
    there, beside, farther = (10.0, 0.0), (10.0, 1.4), (10.0, 2.5)
    assert usable(cloud, there, beside, farther) == [False, False, True]
    behind, far_behind, free = (14.0, 0.0), (20.0, 0.2), (14.0, 3.0)
    assert usable(cloud, behind, far_behind, free) == [False, False, True]
    assert usable(cloud_with(), there, beside, behind) == [True] * 3


def durations(steps: Steps, *places: tuple[float, float], speed: float = 0.0) -> tuple[list[int], list[float]]:
    of = np.array([[*place, 0.0] for place in places])
    velocities = np.tile([speed, 0.0, 0.0], (len(of), 1))
    order, lasts_s = by_duration(steps, of, velocities, PERSON, DEMANDS, 30.0)
    return order, lasts_s.tolist()


def test_traffic_to_come_takes_places_and_those_where_an_object_lasts_longest_come_first() -> None:
    clouds = [cloud_with((x, 3.0)) for x in (25.0, 20.0, 15.0, 10.0)]
    steps = [(0.3 * i, ObstaclePoints.of(cloud, MOUNT), np.eye(4)) for i, cloud in enumerate(clouds)]
    order, lasts_s = durations(steps, (20.0, 3.0), (10.0, 3.0), (15.0, 3.0), (12.0, -3.0))
    assert order == [3, 1, 2, 0]
    assert lasts_s == pytest.approx([0.3, 0.9, 0.6, 1.4])


@pytest.mark.parametrize(("speed_mps", "near_s"), [(4.0, 2.9), (40.0, 0.6)])
def test_a_place_that_the_ego_passes_late_is_as_good_as_one_that_it_never_passes(
    speed_mps: float, near_s: float
) -> None:
    around = ObstaclePoints.of(cloud_with(), MOUNT)
    steps = [(t, around, pose_matrix((-speed_mps * t, 0.0, 0.0), (0, 0, 0, 1))) for t in (0.0, 0.6, 1.2, 1.8, 2.4)]
    assert durations(steps, (8.0, 4.0), (29.0, 4.0))[1] == pytest.approx([near_s, 2.9])


def test_an_object_that_moves_is_looked_for_where_it_is_then() -> None:
    around = ObstaclePoints.of(cloud_with((20.0, 3.0)), MOUNT)
    steps = [(0.5 * i, around, np.eye(4)) for i in range(4)]
    assert durations(steps, (10.0, 3.0))[1] == pytest.approx([2.0])
    assert durations(steps, (10.0, 3.0), speed=9.0)[1] == pytest.approx([1.0])


def moving(index: int, x_m: float, cloud: Cloud) -> Bundle:
    pose, speed = pose_matrix((x_m, 0.0, 0.0), (0, 0, 0, 1)), np.array([10.0, 0.0, 0.0])
    motion = EgoMotion(pose, speed, 0.0, "odometry", "odometry /odom", 0)
    return replace(made_bundle(cloud, index=index), motion=motion, stamp_ns=index * 100_000_000)


def test_what_is_to_come_is_looked_up_in_a_recording_and_foreseen_elsewhere() -> None:
    now = moving(0, 0.0, cloud_with((18.0, 0.0)))
    clouds = cloud_with(), cloud_with(), cloud_with((15.0, 4.0))
    coming = [moving(i, 1.0 * i, cloud) for i, cloud in zip((3, 6, 9), clouds, strict=True)]
    steps = steps_of(now, coming, "base_link")
    assert [t for t, _, _ in steps] == pytest.approx([0.0, 0.3, 0.6, 0.9])
    # Fixed in the world 24 m away, it is 15 m ahead after 0.9 s, where something comes by; behind the box it is hidden.
    assert durations(steps, (24.0, 4.0), (24.0, -4.0), (21.0, 0.0))[1] == pytest.approx([0.9, 1.4, 0.0])
    foreseen = steps_of(now, (), "base_link")
    assert foreseen[-1][0] == pytest.approx(3.0) and foreseen[-1][2][0, 3] == pytest.approx(-30.0)
    assert durations(foreseen, (24.0, 4.0))[1] == [pytest.approx(3.5)], "passed after two seconds: good enough"
    assert len(steps_of(replace(now, motion=None), (), "base_link")) == 1
