# SPDX-License-Identifier: Apache-2.0
"""Fisheye lenses and rigs of cameras: projection, the page of what works, one world in overlapping views."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import pytest

from mt_nodes.base import plugins
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Followup
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.rig_light import exposure_ratio, shading_in_rig, views_of_scene
from mt_nodes.relations.mutations.joint import particles_in_pictures
from mt_nodes.relations.mutations.joint.air_in_pictures import air_light
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.world.camera.depth import depth_of
from mt_nodes.world.camera.light import light_of, values_of
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.scene.camera_rendering import CameraSensor

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import camera_layouts  # noqa: E402
from lidar_layouts import APPLIES, outcome  # noqa: E402

COEFFICIENTS = (0.02, -0.005, 0.001, 0.0)


def fisheye(distortion: tuple[float, ...] = COEFFICIENTS, across_deg: float = 190.0) -> CameraModel:
    sensor = CameraSensor(480, 360, across_deg, model="equidistant", distortion=distortion)
    return CameraModel.of(sensor.info("/c/info", 0, "camera"), (360, 480))


@cache
def rig() -> Bundle:
    return camera_layouts.bundles_of("four fisheyes")[1]


@cache
def changed(name: str, **params: float) -> Followup:
    made = plugins.catalogue("mutations")[name](**params)
    derived, proof = MutationPipeline([made], 0, "rig").derive_unproven(rig())
    assert proof() is None
    return derived.followup


def rays_in_base_link(bundle: Bundle, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Where a camera of the rig stands, and the directions (H, W, 3) of its pixels."""
    view = View.of(bundle, bundle.images[number])
    pose = np.asarray(bundle.transforms.lookup("base_link", view.image.frame_id))
    return pose[:3, 3], view.camera().grid() @ pose[:3, :3].T


def test_a_fisheye_sees_beyond_90_degrees_by_its_formula() -> None:
    camera = fisheye()
    pixels = np.random.default_rng(0).random((500, 2)) * (480.0, 360.0)
    directions = camera.directions(pixels)
    assert directions[:, 2].min() < -0.1, "some pixels look behind the camera"
    np.testing.assert_allclose(camera.project(7.0 * directions), pixels, atol=1e-6)
    angle = np.arccos(directions[:, 2])
    stretched = angle * (1.0 + 0.02 * angle**2 - 0.005 * angle**4 + 0.001 * angle**6)
    from_centre = np.hypot(*(pixels - camera.k[:2, 2]).T) / camera.k[0, 0]
    np.testing.assert_allclose(stretched, from_centre, atol=1e-9)


def test_a_fisheye_is_opencvs_where_that_has_an_answer() -> None:
    camera = fisheye()
    places = np.random.default_rng(1).normal(size=(500, 3))
    places[:, 2] = 0.3 + np.abs(places[:, 2])
    expected = cv2.fisheye.projectPoints(places[:, None], np.zeros(3), np.zeros(3), camera.k, np.array(COEFFICIENTS))[0]
    np.testing.assert_allclose(camera.project(places), expected.reshape(-1, 2), atol=1e-6)


def test_a_fisheye_whose_coefficients_are_zero_is_no_pinhole() -> None:
    camera = fisheye((0.0,) * 4, 150.0)
    at_60_deg = camera.project(np.array([[np.sin(np.pi / 3), 0.0, np.cos(np.pi / 3)]]))[0, 0] - camera.k[0, 2]
    assert at_60_deg == pytest.approx(camera.k[0, 0] * np.pi / 3)


def test_a_model_that_turns_back_sees_no_farther_than_where_it_turns() -> None:
    camera = fisheye((-0.2, 0.0, 0.0, 0.0), 150.0)
    turns = np.sqrt(1.0 / 0.6)
    assert camera.widest_rad <= turns + 0.01
    assert np.isfinite(camera.directions(np.array([[0.0, 0.0], [479.0, 359.0]]))).all()
    assert np.isnan(camera.project(np.array([[np.sin(turns + 0.1), 0.0, np.cos(turns + 0.1)]]))).all()


def test_clouds_give_the_depth_of_what_a_fisheye_sees_beside_and_behind_it() -> None:
    view = View.of(rig(), rig().images[0])
    cells = depth_of(view.bundle, view.image, view.camera())
    off_deg = np.degrees(np.arccos(view.camera().grid(cells.step_px)[..., 2]))
    _, rays = rays_in_base_link(rig(), 0)
    level = np.abs(np.degrees(np.arcsin(rays[:: cells.step_px, :: cells.step_px, 2])) + 5.0) < 4.0
    for low, high in ((0.0, 30.0), (60.0, 80.0), (82.0, 92.0)):
        beside = level & (off_deg > low) & (off_deg < high)
        assert beside.sum() > 50 and cells.measured[beside].mean() > 0.15, (low, cells.measured[beside].mean())


def test_an_added_object_stands_at_one_place_in_all_views() -> None:
    followup = changed("object_added", where="bearing", bearing_rad=(-0.7, -0.4), frame_id="base_link")
    boxes = followup.effects.image_boxes
    assert len(boxes) == 2, "ahead and to the right, it is in two views"
    lines = []
    for box in boxes:
        number = [image.topic for image in rig().images].index(box.topic)
        view = View.of(rig(), rig().images[number])
        pose = np.asarray(rig().transforms.lookup("base_link", view.image.frame_id))
        middle = (np.array(box.box_px[:2]) + box.box_px[2:]) / 2.0
        lines.append((pose[:3, 3], view.camera().directions(middle[None])[0] @ pose[:3, :3].T))
    (a, u), (b, v) = lines
    along = np.linalg.lstsq(np.column_stack([u, -v]), b - a, rcond=None)[0]
    apart_m = np.linalg.norm(a + along[0] * u - b - along[1] * v)
    place = (a + along[0] * u + b + along[1] * v) / 2.0
    added = followup.effects.added[0].center_m
    assert apart_m < 0.3 and np.linalg.norm(place - added) < 0.8, (apart_m, place, added)


def test_the_sun_stands_in_one_direction_in_all_views() -> None:
    followup = changed("sun_glare", azimuth_rad=0.7, elevation_rad=0.75)
    towards = np.array([np.cos(0.7) * np.cos(0.75), np.sin(0.7) * np.cos(0.75), np.sin(0.75)])
    seen = 0
    for number, (old, new) in enumerate(zip(rig().images, followup.first.images, strict=True)):
        if new is old:
            continue
        _, rays = rays_in_base_link(rig(), number)
        brighter = np.asarray(new.pixels, float).sum(axis=2) - np.asarray(old.pixels, float).sum(axis=2)
        white = (np.asarray(new.pixels) >= 250).all(axis=2) & (brighter > 20)
        if white.sum() > 20:
            middle = rays[white].mean(axis=0)
            assert np.degrees(np.arccos(middle @ towards / np.linalg.norm(middle))) < 6.0
            seen += 1
    assert seen == 2, "ahead and to the left"


@pytest.mark.parametrize(
    ("layout", "seed", "name"),
    [
        ("four pinholes", 3, "rain"),  # thin clouds over one camera
        ("four pinholes", 4, "dust"),  # walls as bright as the sky that few cells of the picture show
        ("four fisheyes", 2, "fog"),  # walls that a car hides from the topmost beams
        ("four fisheyes", 2, "sun_glare"),
    ],
)
def test_weather_on_rigs_holds_on_other_streets(layout: str, seed: int, name: str) -> None:
    mutation = camera_layouts.camera_mutations()[name]
    assert outcome(mutation, list(camera_layouts.bundles_of(layout, seed))) == APPLIES


def with_one_darker(share: float) -> Bundle:
    """The rig with the light of its camera to the left multiplied by a share: a shorter exposure."""
    left = rig().images[1]
    darker = values_of(light_of(np.asarray(left.pixels) / 255.0) * share) * 255.0
    image = replace(left, pixels=np.rint(darker).astype(np.uint8))
    return replace(rig(), images=(rig().images[0], image, *rig().images[2:]))


def test_a_rig_has_one_air_and_one_light_at_the_exposure_of_each_camera() -> None:
    for share in (1.0, 0.6):
        bundle = with_one_darker(share)
        views = [View.of(bundle, image) for image in bundle.images]
        exposures = np.array([views_of_scene(view)[0] for view in views])
        ratio = exposures / exposures[0]
        assert ratio == pytest.approx([1.0, share, 1.0, 1.0], rel=0.06)
        air = np.array([air_light(view, (1.0, 1.0, 1.0))[0] for view in views])
        assert air / exposures == pytest.approx(np.full(4, air[0] / exposures[0]), rel=1e-4)
        levels = np.array([shading_in_rig(view).level for view in views])
        assert levels / exposures == pytest.approx(np.full(4, levels[0] / exposures[0]), rel=1e-4)


def test_places_that_two_cameras_see_are_as_bright_in_both_in_fog() -> None:
    """Their ratio stays what the exposures make it, though one camera's picture is darker."""
    bundle = with_one_darker(0.6)
    made = plugins.catalogue("mutations")["fog"](visibility_m=60.0)
    derived, proof = MutationPipeline([made], 0, "rig").derive_unproven(bundle)
    assert proof() is None
    before, after = (
        exposure_ratio(*(View.of(of, of.images[n]) for n in (0, 1))) for of in (bundle, derived.followup.first)
    )
    assert before == pytest.approx(1.0 / 0.6, rel=0.06)
    assert after == pytest.approx(before, rel=0.06)


def test_a_camera_that_overlaps_with_no_other_has_its_own_light() -> None:
    bundle = replace(rig(), images=rig().images[:1])
    exposure, views = views_of_scene(View.of(bundle, bundle.images[0]))
    assert exposure == 1.0 and len(views) == 1
    apart = camera_layouts.bundles_of("four pinholes")[1]
    ahead_and_back = replace(apart, images=(apart.images[0], apart.images[2]))
    for image in ahead_and_back.images:
        assert len(views_of_scene(View.of(ahead_and_back, image))[1]) == 1


def test_all_cameras_of_a_rig_see_the_same_drops() -> None:
    """A drop near two cameras has one place on the vehicle, at the instant of both pictures."""
    made = particles_in_pictures
    spectrum = plugins.catalogue("mutations")["rain"](rain_mm_per_h=25.0).spectrum
    seen = []
    for number in (0, 1):
        view = View.of(rig(), rig().images[number])
        boxes = replace(made._boxes(view), focal_px=600.0)
        classes = made._particles(7, spectrum, boxes, lambda d: np.tile([-5.0, 0.3, -6.0], (len(d), 1)), 12.3)
        seen.append([(places + boxes.camera_m, places) for places, _ in classes])
    close = 0
    for (on_vehicle, around), (of_other, around_other) in zip(*seen, strict=True):
        far = min(np.abs(around).max(), np.abs(around_other).max())
        both = (np.abs(around).max(axis=1) < far) & (np.abs(on_vehicle - of_other).max(axis=1) < far)
        np.testing.assert_allclose(on_vehicle[both], of_other[both], atol=1e-3)
        close += int(both.sum())
    assert len(seen[0]) > 3 and close > 100
