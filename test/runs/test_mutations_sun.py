# SPDX-License-Identifier: Apache-2.0
"""The sun before camera and LiDAR: how much of it is visible, alike for both, and what the lens makes of it."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import cv2
import numpy as np
import pytest
from made_images import street_in

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.joint.every_sensor import surroundings
from mt_nodes.relations.mutations.joint.sun_glare import SunGlare
from mt_nodes.relations.mutations.joint.sun_visibility import clear_shares, sun_directions, visible_share
from mt_nodes.relations.pipeline import DerivedFollowup, MutationPipeline
from mt_nodes.world.camera.relight import coarse_light, grey
from mt_nodes.world.camera.sun_light import DISC_RAD, air_mass, glare_spread, sunshape
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive

CAMERA = "/sensing/camera/image"


@lru_cache(maxsize=1)
def scene() -> Bundle:
    return next(iter(generate_drive(1, camera=CameraSensor(320, 240))))


def shining(bundle: Bundle, azimuth_rad: float, elevation_rad: float = 0.2, **more: Any) -> DerivedFollowup:
    mutation = SunGlare(azimuth_rad=azimuth_rad, elevation_rad=elevation_rad, **more)
    return MutationPipeline([mutation], 3, "sun").derive(bundle)


def towards(azimuth_rad: float, elevation_rad: float) -> np.ndarray:
    flat = np.cos(elevation_rad)
    return np.array([flat * np.cos(azimuth_rad), flat * np.sin(azimuth_rad), np.sin(elevation_rad)])


def test_the_disc_and_its_aureole_add_up_as_published() -> None:
    """Buie's profile: 1 in the middle, 0.4 at the edge, a hundredth beside it; of χ = 0.05 some 5 % in the aureole."""
    edges = sunshape(np.array([0.0, 4.0e-3, 4.649e-3, 4.651e-3, 0.02, 0.05]), 0.05)
    assert edges[0] == 1.0 and 0.35 < edges[2] < edges[1] < 1.0
    assert edges[3] < 0.05 and 0.0 < edges[4] < edges[3] and edges[5] == 0.0
    angle = np.linspace(0.0, 43.6e-3, 40_000)
    power = sunshape(angle, 0.05) * angle
    share = power[angle > DISC_RAD].sum() / power.sum()
    _, weight = sun_directions(towards(0.0, 0.2), 0.05)
    assert weight.sum() == pytest.approx(1.0)
    assert weight[36:].sum() == pytest.approx(share, abs=0.01) and 0.02 < share < 0.08


def test_air_and_glare_are_those_of_their_sources() -> None:
    assert air_mass(np.pi / 2) == pytest.approx(1.0, abs=0.001) and air_mass(0.0) == pytest.approx(37.92, abs=0.1)
    veil = glare_spread(np.radians([1.0, 10.0, 30.0]))
    assert veil / veil[0] == pytest.approx(np.array([15.0, 0.06, 10.0 / 27e3 + 5.0 / 900.0]) / 15.0)


def test_the_sun_sets_behind_a_house_gradually_and_alike_for_both_sensors() -> None:
    """Across the edge of a roof: the share falls steadily, within a degree, and both sensors draw the same one."""
    view = View.of(scene(), scene().images[0])
    around = surroundings(view)
    column = around.shape[1] // 2 + around.shape[1] // 5
    edge = int(np.flatnonzero(around.sky[:, column])[-1])
    assert 3 < edge < around.shape[0] - 10
    rays = around.rays[edge - 3 : edge + 4, column]
    sun_of = [rays[i] + (rays[i + 1] - rays[i]) * part for i in range(6) for part in (0.0, 0.5)]
    shares = [visible_share(scene(), sun / np.linalg.norm(sun), "base_link", 0.05) for sun in sun_of]
    assert shares[0] > 0.9 and shares[-1] < 0.05
    assert all(later <= earlier + 0.02 for earlier, later in pairwise(shares))
    assert sum(0.05 < share < 0.95 for share in shares) >= 3
    derived = shining(scene(), 0.0, 0.15)
    drawn = {name: value for name, value in derived.draws[0].items() if name.endswith("visible")}
    assert len(drawn) == 2 and len(set(drawn.values())) == 1


def test_half_of_the_sun_is_half_of_the_glare_and_of_the_background() -> None:
    open_sky = shining(scene(), 0.0, 0.15)
    hazy = shining(scene(), 0.0, 0.15, haze_depth=0.1)
    left = float(np.exp(-0.1 * air_mass(0.15)))
    for sensor in (CAMERA, "/sensing/lidar/points"):
        before, after = (d.draws[0][f"{sensor}|visible"] for d in (open_sky, hazy))
        assert after == pytest.approx(left * before)
    lost, fewer = (d.effects.numbers["returns_lost"] for d in (open_sky, hazy))
    assert 0 < fewer < lost


def test_beams_into_the_sky_show_the_sun_where_no_picture_does() -> None:
    """Behind the ego, a LiDAR alone: a wall of returns hides the sun, rays without one do not."""
    alone = replace(scene(), images=(), camera_infos=())
    directions = [towards(azimuth, 0.02)[None] for azimuth in np.linspace(1.2, np.pi, 20)]
    shares = [float(clear_shares(alone, direction, "base_link")[0]) for direction in directions]
    assert shares[-1] > 0.9 and min(shares) == 0.0 and np.median(shares[:10]) < 0.1


def test_the_veil_falls_steadily_as_the_sun_leaves_the_picture() -> None:
    """From the middle to a right angle beside the axis: gradual, until the picture stays and says why."""
    bare = replace(scene(), clouds=(), extra_clouds=scene().clouds)
    dark = replace(bare.images[0], pixels=np.asarray(bare.images[0].pixels) // 4)
    bare = replace(bare, images=(dark,))
    corner, change = (slice(None), slice(-40, None)), []
    for azimuth in np.radians([-34.0, -38.0, -44.0, -52.0, -62.0]):
        visible = _seen_everywhere(bare, float(azimuth))
        change.append(float((np.asarray(visible).astype(int) - dark.pixels)[corner].mean()))
    assert all(later < earlier for earlier, later in pairwise(change)) and change[-1] > 0.2
    with pytest.raises(NotApplicable, match="degrees off the camera's axis"):
        _seen_everywhere(bare, np.radians(-88.0))


def _seen_everywhere(bundle: Bundle, azimuth_rad: float) -> Any:
    """The picture with the sun there, whatever stands before it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SunGlare, "visible", lambda *_: 1.0)
        return shining(bundle, azimuth_rad).followup.first.images[0].pixels


def test_the_disc_is_saturated_and_the_bloom_fades_by_the_equation() -> None:
    derived = shining(scene(), 0.0, 0.15)
    assert derived.broken is None
    view, after = (View.of(scene(), image) for image in (scene().images[0], derived.followup.first.images[0]))
    around = surroundings(view)
    off = np.arccos(np.clip(around.rays @ towards(0.0, 0.15), -1.0, 1.0))
    light = grey(coarse_light(after.picture, around.shape, around.depth.step_px))
    assert light[off < 0.02].min() > 0.85
    rings = [float(light[around.sky & (off > low) & (off < low + 0.05)].mean()) for low in (0.02, 0.1, 0.2, 0.3)]
    assert rings == sorted(rings, reverse=True)


@pytest.mark.parametrize("spoil", ["twice the veil", "no veil", "darker"])
def test_another_light_than_that_of_the_equation_breaks_the_guarantee(spoil: str) -> None:
    derived = shining(scene(), 0.0, 0.15)
    made = np.asarray(derived.followup.first.images[0].pixels)
    old = np.asarray(scene().images[0].pixels)
    pixels = {
        "twice the veil": np.minimum(made.astype(int) + np.maximum(made.astype(int) - old, 0) + 12, 255),
        "no veil": np.where(cv2.blur(made, (3, 3)) > 250, made, old * 0.8),
        "darker": made * 0.8,
    }[spoil].astype(np.uint8)
    mutation = SunGlare(azimuth_rad=0.0, elevation_rad=0.15)
    changed = replace(derived.followup.first.images[0], pixels=pixels)
    followup = replace(derived.followup, bundles=((0, replace(derived.followup.first, images=(changed,))),))
    assert "the mean light is" in str(mutation.guarantee(scene(), followup, derived.draws[0]))


def test_two_shares_of_one_sun_break_the_guarantee() -> None:
    derived = shining(scene(), 0.0, 0.15)
    draw = derived.draws[0] | {f"{CAMERA}|visible": 0.5}
    mutation = SunGlare(azimuth_rad=0.0, elevation_rad=0.15)
    assert "expected one share" in str(mutation.guarantee(scene(), derived.followup, draw))


def test_a_hidden_sun_changes_nothing_and_says_so() -> None:
    with pytest.raises(NotApplicable, match=r"0% of the sun's light is visible.*hides all but 0\.0% of it"):
        shining(scene(), 0.35, 0.02)


def test_the_sun_is_chosen_where_it_shines_into_a_picture() -> None:
    mutation = SunGlare(elevation_rad=0.12)
    for seed in range(4):
        sun = mutation.begin(np.random.default_rng(seed), scene())
        assert visible_share(scene(), sun, "base_link", 0.05) > 0.5 and abs(np.arctan2(sun[1], sun[0])) < 0.6


def test_pictures_of_every_encoding_get_the_same_light() -> None:
    light = []
    for kind in ("bgr8", "rgb16", "jpeg"):
        image = shining(street_in(kind), 0.0, 0.25).followup.first.images[0]
        light.append(View.of(scene(), image).picture.rgb8().astype(int))
    assert np.abs(light[0] - light[1]).mean() < 1.0 and np.abs(light[0] - light[2]).mean() < 4.0
