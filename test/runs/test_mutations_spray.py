# SPDX-License-Identifier: Apache-2.0
"""Spray that camera and LiDAR see: one plume, one optical depth, at the speed of the ego."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytest

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.ego.ego_motion import EgoMotion
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.camera.each_image import View, of_image
from mt_nodes.relations.mutations.joint import spray_in_pictures
from mt_nodes.relations.mutations.joint.every_sensor import surroundings
from mt_nodes.relations.mutations.joint.plume import depth
from mt_nodes.relations.mutations.joint.spray import Spray
from mt_nodes.relations.mutations.joint.vehicle_backs import nearest_vehicle
from mt_nodes.relations.pipeline import DerivedFollowup, MutationPipeline
from mt_nodes.world.camera import measures
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive

CLOUD, IMAGE = "/sensing/lidar/points", "/sensing/camera/image"
DENSE = Spray(water_mm=3.0, speed_mps=25.0)


@lru_cache(maxsize=1)
def scene() -> Bundle:
    return next(iter(generate_drive(1, seed=2, camera=CameraSensor(320, 240))))


def derive(mutation: Spray = DENSE, bundle: Bundle | None = None) -> DerivedFollowup:
    return MutationPipeline([mutation], 3, "spray").derive(bundle or scene())


@lru_cache(maxsize=1)
def sprayed() -> DerivedFollowup:
    return derive()


def test_both_sensors_draw_one_plume() -> None:
    derived = sprayed()
    assert derived.broken is None and not derived.effects.unchanged
    draw = derived.draws[0]
    for name in ("vehicle", "key", "drift_m", "speed_mps"):
        assert np.array_equal(draw[f"{CLOUD}|{name}"], draw[f"{IMAGE}|{name}"])


def test_the_veil_has_the_optical_depth_of_the_lidars_plume() -> None:
    """The quadrature that weakens returns, along lines of sight: patches make it vary, and leave its mean."""
    view = View.of(scene(), scene().images[0])
    draw, around = of_image(sprayed().draws[0], view.image), surroundings(view)
    plume = DENSE.plume(draw)
    passing, _ = DENSE._passing(view, plume)
    enter, leave = DENSE._way(view, plume)
    through = leave > enter
    expected = depth(plume, around.camera_m, around.rays[through].T, enter[through], leave[through])
    found = -np.log(passing[through])
    assert through.sum() > 200 and (passing[~through] == 1.0).all()
    thick = expected > 0.05
    assert np.average(found[thick]) == pytest.approx(np.average(expected[thick]), rel=0.25)
    assert np.corrcoef(found[thick], expected[thick])[0, 1] > 0.7
    near, far = around.range_m[through] < plume.box_m[0][0], around.range_m[through] > plume.box_m[1][0]
    assert not near.any() or expected[near].max() < expected[far].max()


def test_only_lines_of_sight_through_the_plume_change() -> None:
    view = View.of(scene(), scene().images[0])
    old, new = view.picture.pixels, View.of(scene(), sprayed().followup.first.images[0]).picture.pixels
    where = DENSE.affected(view, of_image(sprayed().draws[0], view.image)) != 0
    assert (old != new).any(axis=-1)[where].any() and (old == new)[~where].all()


@pytest.mark.parametrize("spoil", ["none of it", "twice of it"])
def test_another_depth_breaks_the_guarantee(spoil: str) -> None:
    derived = sprayed()
    old, new = (np.asarray(b.images[0].pixels).astype(int) for b in (scene(), derived.followup.first))
    factor = {"none of it": 0.05, "twice of it": 2.2}[spoil]
    pixels = np.clip(old + factor * (new - old), 0, 255).astype(np.uint8)
    changed = replace(derived.followup.first.images[0], pixels=pixels)
    followup = replace(derived.followup, bundles=((0, replace(derived.followup.first, images=(changed,))),))
    assert "mean light is off" in str(DENSE.guarantee(scene(), followup, derived.draws[0]))


def test_more_water_veils_more() -> None:
    old = View.of(scene(), scene().images[0]).picture
    veils = [
        measures.mean_difference(old, View.of(scene(), derive(mutation).followup.first.images[0]).picture)
        for mutation in (replace(DENSE, water_mm=0.5), DENSE)
    ]
    assert 0.0 < veils[0] < veils[1]


def test_a_camera_from_which_the_plume_is_hidden_keeps_its_picture_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A wall right before the camera, which the LiDAR looks over."""
    view = View.of(scene(), scene().images[0])
    monkeypatch.setattr(spray_in_pictures, "_known_passing", WeakKeyDictionary())
    monkeypatch.setattr(Spray, "_way", lambda *_: (np.full(surroundings(view).shape, 3.0), np.zeros((1, 1))))
    derived = derive()
    assert derived.broken is None and derived.followup.first.images[0] is scene().images[0]
    assert "takes 0.0% of the light" in derived.effects.unchanged[IMAGE]
    with pytest.raises(NotApplicable, match="no camera shows the change"):
        MutationPipeline([DENSE], 3, "spray", requires=("camera",)).derive(scene())


def moving(speed_mps: float, along_m: float = 0.0) -> Bundle:
    pose = np.eye(4)
    pose[0, 3] = along_m
    motion = EgoMotion(pose, np.array([speed_mps, 0.0, 0.0]), 0.0, "tf", "/tf")
    return replace(scene(), motion=motion)


def test_the_vehicle_ahead_drives_as_the_ego_does() -> None:
    mutation = Spray(water_mm=3.0)
    assert mutation.needs_motion and not DENSE.needs_motion
    fast, slow = (derive(mutation, moving(speed)).draws[0][f"{CLOUD}|speed_mps"] for speed in (25.0, 12.0))
    assert (fast, slow) == (25.0, 12.0)
    assert mutation.plume(_of_cloud(derive(mutation, moving(25.0)))).extinction_per_m == pytest.approx(
        25.0 / 12.0 * mutation.plume(_of_cloud(derive(mutation, moving(12.0)))).extinction_per_m
    )
    unknown = derive(mutation, replace(scene(), track=None)).draws[0]
    assert unknown[f"{CLOUD}|speed_mps"] == 20.0 and "assumed" in unknown[f"{CLOUD}|ego_motion"]
    with pytest.raises(NotApplicable, match=r"loses 0\.1% of its power.*it is out of the picture, hidden, or too thin"):
        derive(mutation, moving(0.0))


def test_patches_fall_back_by_the_way_that_the_ego_has_gone() -> None:
    mutation = Spray(water_mm=3.0)
    state = mutation.begin(np.random.default_rng(0), moving(20.0, along_m=100.0))
    later = replace(moving(5.0, along_m=103.5), stamp_ns=scene().stamp_ns + 400_000_000)
    assert mutation.plume_draw(later, state)["drift_m"] == pytest.approx(3.5)
    assert DENSE.plume_draw(later, state)["drift_m"] == pytest.approx(25.0 * 0.4)


def _of_cloud(derived: DerivedFollowup) -> dict[str, Any]:
    return {k.removeprefix(f"{CLOUD}|"): v for k, v in derived.draws[0].items() if k.startswith(CLOUD)}


def test_mirror_images_below_the_road_join_no_vehicles() -> None:
    """Two cars side by side, and a few returns metres below the road between them: they stay two."""
    x, y = (a.ravel() for a in np.meshgrid(np.arange(2.5, 60.0, 0.25), np.arange(-7.0, 7.0, 0.25)))
    road = np.column_stack([x, y, np.zeros(len(x))])
    cars = []
    for middle in (0.0, 3.0):
        side, up = (a.ravel() for a in np.meshgrid(np.linspace(-0.9, 0.9, 30), np.linspace(0.2, 1.5, 12)))
        cars.append(np.column_stack([np.full(len(side), 12.0), side + middle, up]))
    mirrored = np.column_stack([np.linspace(11.0, 13.0, 9), np.linspace(0.0, 3.0, 9), np.full(9, -2.5)])
    found = nearest_vehicle(np.concatenate([road, *cars, mirrored]), (5.0, 50.0), 1.0, 50)
    assert found.middle_y_m == pytest.approx(0.0, abs=0.01) and found.half_width_m == pytest.approx(0.9, abs=0.01)
    beside = np.concatenate([road, cars[0] - [7.6, 0.0, 0.0]])
    with pytest.raises(NotApplicable, match="none of"):
        nearest_vehicle(beside, (5.0, 50.0), 4.0, 50)
