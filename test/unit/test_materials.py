# SPDX-License-Identifier: Apache-2.0
"""What materials send back to a LiDAR, what a receiver makes of it, and how complete an object is in a cloud."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from completeness import completeness

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.objects.changed_returns import changed
from mt_nodes.relations.mutations.objects.in_scene import Sensor, draw_hits, look_at, proof_of_hits
from mt_nodes.relations.mutations.objects.object_added import ObjectAdded
from mt_nodes.world.scene.appearance import PAINT_COLOURS
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.materials import MATTE, PAINT, PAINTS, Faces
from mt_nodes.world.scene.meshes import GLASS, RETRO, box, merged
from mt_nodes.world.scene.sight import RaycastBody, body_of

SENSOR = Sensor(0.02, 120.0, 0.2)
ANGLES = np.radians([0.0, 10.0, 45.0, 80.0, 89.0])


@cache
def street() -> Bundle:
    return next(iter(generate_drive(1)))


def brightness(reflectivity: float, finish: object, angles: np.ndarray = ANGLES) -> np.ndarray:
    faces = Faces(np.array([reflectivity]), finish)  # type: ignore[arg-type]
    return faces.brightness(np.zeros(len(angles), np.int64), np.cos(angles))


def at(x_m: float, z_m: float = -1.73) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = x_m, 0.0, z_m
    return pose


def wall(x_m: float) -> Cloud:
    """A cloud of rays to a wall far ahead, ring by ring."""
    azimuth, elevation = np.meshgrid(np.radians(np.arange(8.0, -8.0, -0.2)), np.radians(np.arange(1.0, -9.0, -0.4)))
    points = np.zeros(
        azimuth.size, dtype=[("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "<f4"), ("ring", "<u2")]
    )
    points["x"], points["y"] = x_m, x_m * np.tan(azimuth).ravel()
    points["z"] = np.hypot(points["x"], points["y"]) * np.tan(elevation).ravel()
    points["intensity"], points["ring"] = 200.0, np.repeat(np.arange(len(azimuth)), azimuth.shape[1])
    return Cloud("/l", 0, "lidar", points)


def test_reflectivity_is_that_at_normal_incidence_and_falls_towards_glancing() -> None:
    rough, paint = brightness(0.5, MATTE), brightness(0.5, PAINT)
    assert rough[0] == pytest.approx(0.5) and (np.diff(rough) < 0).all()
    assert rough[3] > 0.5 * np.cos(ANGLES[3]), "a rough surface is brighter there than Lambert's"
    assert paint[0] > 1.0, "a glint, where it is square to the beam"
    assert 1.0 < paint[2] / (0.5 * np.cos(ANGLES[2])) < 1.25 and paint[4] < 0.05 < rough[4]


def test_glass_is_dark_unless_square_and_transmits_less_at_a_slant() -> None:
    glass = brightness(GLASS, PAINT)
    assert glass[2:].max() < 0.01 < glass[0]
    through = Faces(np.array([GLASS])).transmission(np.zeros(5, np.int64), np.cos(ANGLES))
    assert 0.2 < through[0] < 0.5 and (np.diff(through) < 0).all() and through[4] < 0.02
    assert (Faces(np.array([0.5])).transmission(np.zeros(5, np.int64), np.cos(ANGLES)) == 0.0).all()


def test_a_number_plate_sends_light_back() -> None:
    assert brightness(RETRO, PAINT)[1] > 20.0 > brightness(RETRO, PAINT)[3]


def test_detection_is_chance_around_the_threshold() -> None:
    signal = np.array([0.5, 0.9, 1.0, 1.1, 1.5])
    share = SENSOR.detection_probability(signal, np.full(5, 30.0))
    assert share[2] == pytest.approx(0.5) and (np.diff(share) > 0).all() and share[0] < 0.02 and share[4] > 0.98
    assert (SENSOR.detection_probability(signal, np.full(5, 130.0)) == 0.0).all()
    near, far = SENSOR.signal(np.full(2, 0.2), np.array([60.0, 120.0]))
    assert (near, far) == pytest.approx((4.0, 1.0))


def test_a_dark_wall_loses_returns_with_range() -> None:
    lost = []
    for x_m in (20.0, 50.0, 58.0, 66.0, 90.0):
        cloud, body = wall(100.0), RaycastBody(box((0.2, 4.0, 3.0), (0.0, 0.0, 1.5), 0.055))
        draw = draw_hits(np.random.default_rng(3), cloud, look_at(cloud, body, at(x_m)), SENSOR)
        lost.append(len(draw["lost"]) / (len(draw["lost"]) + len(draw["rows"])))
    assert lost[0] == 0.0 and (np.diff(lost) >= 0).all() and 0.05 < lost[2] < 0.8 and lost[4] > 0.95


def test_rays_through_glass_meet_what_is_behind_or_the_source() -> None:
    panes = [box((0.01, 3.0, 3.0), (x, 0.0, 1.5), GLASS) for x in (0.0, 2.0)]
    body = RaycastBody(merged([*panes, box((0.2, 1.0, 3.0), (1.0, 0.0, 1.5), 0.9)]))
    cloud, pose = wall(14.0), at(9.0)
    look = look_at(cloud, body, pose)
    draw = draw_hits(np.random.default_rng(0), cloud, look, SENSOR)
    new = changed(cloud, draw)
    assert proof_of_hits(cloud, new, draw, body, pose, SENSOR) is None
    range_x = new.points["x"].astype(float)
    inside = (range_x > 9.5) & (range_x < 10.2)
    assert inside.sum() > 20, "the surface behind the first pane"
    assert len(draw["dimmed"]) and len(draw["lost"]) and (draw["dimmed_intensity"] < 0.1 * 200.0).all()
    for name in ("x", "y", "z"):
        assert np.isin(cloud.points[name][draw["dimmed"]], new.points[name]).all(), "seen through both, it stays"
    brighter = {**draw, "dimmed_intensity": np.full(len(draw["dimmed"]), 250.0, np.float32)}
    assert "brighter behind glass" in str(proof_of_hits(cloud, changed(cloud, brighter), brighter, body, pose, SENSOR))


@pytest.mark.parametrize("kind", ["car", "truck", "bus", "tram", "tow_truck"])
def test_glass_lets_no_echo_of_the_pane_hide_what_is_behind(kind: str) -> None:
    pose = at(16.0)
    pose[:2, :2] *= -1.0  # it comes towards the sensor
    look = look_at(wall(60.0), body_of(kind), pose)
    pane = look.hits.transmission > 0.0
    assert pane.any() and np.isfinite(look.hits.behind_m[pane]).mean() > 0.1, "seats, trim, or the other wall"
    assert (look.hits.behind_m[pane] >= look.hits.range_m[pane]).all()


def test_paint_changes_both_sensors_and_vehicles_alone() -> None:
    assert PAINTS.keys() == PAINT_COLOURS.keys()
    shine = {p: np.median(look_at(wall(60.0), body_of("car", p), at(14.0)).hits.brightness) for p in PAINTS}
    assert shine["white"] > shine["grey"] > shine["black"] > 0.0
    white, black = (ObjectAdded(kind="car", paint=paint).figure_in({}) for paint in ("white", "black"))
    assert white is not black
    with pytest.raises(UsageError, match="is not painted"):
        ObjectAdded(kind="adult", paint="white")


def test_a_full_wall_is_complete_and_a_thinned_one_is_not() -> None:
    cloud = wall(30.0)
    xyz = cloud.xyz
    rows = np.flatnonzero((np.abs(xyz[:, 1]) < 2.0) & (np.abs(xyz[:, 2] + 2.0) < 1.2))
    whole = completeness(cloud, rows)
    assert whole.share == pytest.approx(1.0, abs=0.06)
    kept = np.random.default_rng(2).random(len(rows)) < 0.6
    assert completeness(cloud, rows[kept]).share == pytest.approx(0.6 * whole.share, abs=0.06)
    with pytest.raises(NotApplicable, match="at least 10"):
        completeness(cloud, rows[:4])


def test_an_added_car_is_as_incomplete_as_recorded_ones() -> None:
    """Recorded cars seen from behind bring back 0.66 to 0.87 of the rays (docs/mutations.md)."""
    mutation = ObjectAdded(
        kind="car", where="bearing", bearing_rad=(-0.5, 0.5), range_m=(10.0, 25.0), yaw_rad=0.0, frame_id="base_link"
    )
    rng, cloud = np.random.default_rng(1), street().cloud()
    draw = mutation.draw(rng, street(), mutation.begin(rng, street()))
    new = mutation.apply(street(), draw).first.cloud()
    pose = np.linalg.inv(street().transforms.lookup("base_link", cloud.frame_id)) @ draw[f"{cloud.topic}|pose"]
    local = (new.xyz.astype(float) - pose[:3, 3]) @ pose[:3, :3]
    body = mutation.body_in({"variant": draw[f"{cloud.topic}|variant"]})
    near = ((local > body.low_m - 0.1) & (local < body.high_m + 0.1)).all(axis=1) & (local[:, 2] > 0.3)
    assert 0.6 < completeness(new, np.flatnonzero(near)).share < 0.92
