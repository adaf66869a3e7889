# SPDX-License-Identifier: Apache-2.0
"""Clouds in the layouts of Autoware's sensors, PointXYZIRC and PointXYZIRCAEDT, through every LiDAR mutation.

The layouts are those of autoware_core's common/autoware_point_types; units as in Nebula's point types: azimuth and
elevation in radians, distance in metres, time in nanoseconds from the stamp.
"""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_bundles import padded
from sensor_msgs.msg import PointCloud2, PointField

from mt_nodes.base import plugins
from mt_nodes.base.seeds import generator
from mt_nodes.data.cdr.point_fields import fields_of
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.nodes.convert import cloud_from_message, cloud_to_message
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.relations.mutations.lidar.angle_fields import angle_fields, proof_of_angles, write_angles
from mt_nodes.relations.mutations.lidar.placement import empty_returns
from mt_nodes.world.scene.drive import generate_drive

IRC = {
    "x": ("<f4", 0), "y": ("<f4", 4), "z": ("<f4", 8), "intensity": ("u1", 12), "return_type": ("u1", 13),
    "channel": ("<u2", 14),
}  # fmt: skip
AEDT = {"azimuth": ("<f4", 16), "elevation": ("<f4", 20), "distance": ("<f4", 24), "time_stamp": ("<u4", 28)}
LAYOUTS = {"irc": padded(16, **IRC), "ircaedt": padded(32, **IRC, **AEDT)}
SINGLE_STRONGEST = 1
MUTATIONS = {n: cls for n, cls in plugins.catalogue("mutations").items() if "lidar" in getattr(cls, "sensors", ())}
TURN = 2.0 * np.pi


def directions(cloud: Cloud) -> tuple[Any, Any, Any]:
    """Azimuth, elevation and distance (N,) of points."""
    x, y, z = (cloud.points[name].astype(np.float64) for name in "xyz")
    return np.arctan2(y, x), np.arctan2(z, np.hypot(x, y)), np.sqrt(x * x + y * y + z * z)


def as_autoware(cloud: Cloud, layout: str) -> Cloud:
    points = np.zeros(len(cloud), LAYOUTS[layout])
    made = replace(cloud, points=points)
    for name in "xyz":
        points[name] = cloud.points[name]
    points["intensity"], points["channel"] = cloud.points["intensity"], cloud.points["ring"]
    points["return_type"] = SINGLE_STRONGEST
    if layout == "ircaedt":
        azimuth, points["elevation"], points["distance"] = directions(made)
        points["azimuth"] = np.mod(azimuth, TURN)
        points["time_stamp"] = (cloud.points["time"] - cloud.points["time"].min()) * 1e9
    return made


@lru_cache
def stream(layout: str) -> tuple[Bundle, ...]:
    made = [b.with_clouds([as_autoware(b.cloud(), layout)]) for b in generate_drive(4)]
    return tuple(replace(b, earlier=tuple(made[:i])) for i, b in enumerate(made))


def derived(mutation: Mutation, bundle: Bundle) -> tuple[Followup, Draw]:
    state = mutation.begin(generator(7, "autoware", 0, None, 0), stream("irc")[0] if not bundle.earlier else bundle)
    draw = mutation.draw(generator(7, "autoware", 0, bundle.index, 0), bundle, state)
    return mutation.apply(bundle, draw), draw


@pytest.mark.by_turns("name", "layout", of=len(LAYOUTS))
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", MUTATIONS)
def test_every_mutation_takes_clouds_of_autoware_and_keeps_their_fields_true(name: str, layout: str) -> None:
    bundle, mutation = stream(layout)[-1], MUTATIONS[name]()
    followup, draw = derived(mutation, bundle)
    assert mutation.guarantee(bundle, followup, draw) is None
    source = bundle.cloud().points
    for _, made in followup.bundles:
        cloud = made.cloud()
        points = cloud.points
        assert points.dtype == LAYOUTS[layout] and len(points) == cloud.height * cloud.width
        assert set(np.unique(points["return_type"])) == {SINGLE_STRONGEST}
        assert set(np.unique(points["channel"])) <= set(np.unique(source["channel"]))
        if layout == "ircaedt":
            assert points["time_stamp"].max() <= source["time_stamp"].max()
            follows(cloud)


def follows(cloud: Cloud) -> None:
    azimuth, elevation, distance = (part[~empty_returns(cloud)] for part in directions(cloud))
    points = cloud.points[~empty_returns(cloud)]
    off = np.abs(np.mod(points["azimuth"] - azimuth + np.pi, TURN) - np.pi)
    assert off.max() < 1e-4 and np.abs(points["elevation"] - elevation).max() < 1e-4
    np.testing.assert_allclose(points["distance"], distance, rtol=1e-4)
    assert points["azimuth"].min() >= 0.0 and points["azimuth"].max() < TURN


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_is_the_same_in_a_message_and_back(layout: str) -> None:
    cloud = stream(layout)[0].cloud()
    fields = [PointField(**vars(field)) for field in fields_of(cloud.points.dtype, layout)[0]]
    message = cloud_to_message(cloud, PointCloud2(fields=fields))
    assert [(f.name, f.offset, f.datatype, f.count) for f in message.fields][3:6] == [
        ("intensity", 12, 2, 1),
        ("return_type", 13, 2, 1),
        ("channel", 14, 4, 1),
    ]
    assert message.point_step == LAYOUTS[layout].itemsize
    again = cloud_from_message(cloud.topic, message)
    assert again.points.dtype == cloud.points.dtype and again.raw.tobytes() == cloud.raw.tobytes()


@pytest.mark.parametrize(
    "name", ["noise_outside_roi", "cloud_mirrored", "motion_distorted", "object_added", "density_increased"]
)
@pytest.mark.parametrize("field", ["azimuth", "elevation"])
def test_a_direction_that_does_not_follow_is_no_follow_up(name: str, field: str) -> None:
    bundle, mutation = stream("ircaedt")[-1], MUTATIONS[name]()
    followup, draw = derived(mutation, bundle)
    new, old = followup.first.cloud(), bundle.cloud()
    over_ground = [cloud.points["x"] + 1j * cloud.points["y"] for cloud in (new, old)]
    changed = np.flatnonzero(~np.isin(*over_ground))[0]
    points = new.points.copy()
    points[field][changed] += 0.01
    broken = replace(followup, bundles=((0, bundle.with_clouds([replace(new, points=points)])),))
    assert f"field '{field}' does not follow the coordinates" in (mutation.guarantee(bundle, broken, draw) or "")


@pytest.mark.parametrize("name", ["cloud_translated", "cloud_scaled", "beams_miscalibrated", "object_removed"])
def test_an_organised_cloud_keeps_its_fields_true_too(name: str) -> None:
    bundle, mutation = stream("ircaedt")[-1], MUTATIONS[name]()
    cloud = bundle.cloud()
    points = cloud.points[: len(cloud) // 64 * 64].copy()
    for axis in "xyz":
        points[axis][::7] = np.nan
    organised = bundle.with_clouds([replace(cloud, points=points, height=64, is_dense=False)])
    followup, draw = derived(mutation, organised)
    assert mutation.guarantee(organised, followup, draw) is None
    follows(followup.first.cloud())
    assert empty_returns(followup.first.cloud()).sum() >= empty_returns(organised.cloud()).sum() > 0


# --- whatever a driver calls an angle


def with_azimuth(kind: str, unit: float, sign: float, offset: float, low: float, count: int = 3000) -> Cloud:
    """A cloud whose azimuth is said so."""
    cloud = stream("ircaedt")[0].cloud()
    layout = padded(40, **IRC, **{**AEDT, "azimuth": (kind, 32)})
    points = np.zeros(count, layout)
    for name in LAYOUTS["ircaedt"].names or ():
        points[name] = cloud.points[name][:: len(cloud) // count][:count]
    made = replace(cloud, points=points)
    values = unit * (low + np.mod(sign * directions(made)[0] + offset - low, TURN))
    points["azimuth"] = np.rint(values) % round(unit * TURN) if np.dtype(kind).kind == "u" else values
    return made


@settings(max_examples=30, deadline=None)
@given(
    unit=st.sampled_from([1.0, 180.0 / np.pi, 18000.0 / np.pi]),
    sign=st.sampled_from([1.0, -1.0]),
    offset=st.sampled_from([0.0, np.pi / 2, np.pi]) | st.floats(-3.0, 3.0),
    low=st.sampled_from([0.0, -np.pi]),
    kind=st.sampled_from(["<f4", ">f4", "<f8"]),
)
def test_whatever_the_convention_what_is_turned_says_so(
    unit: float, sign: float, offset: float, low: float, kind: str
) -> None:
    cloud = with_azimuth(kind, unit, sign, offset, low)
    assert angle_fields(cloud) == ("azimuth", "elevation")
    turned = replace(cloud, points=cloud.points.copy())
    turned.points["x"], turned.points["y"] = -cloud.points["y"], cloud.points["x"]
    assert "'azimuth' does not follow" in (proof_of_angles(cloud, turned, slice(None)) or "")
    write_angles(turned.points, cloud, slice(None))
    assert proof_of_angles(cloud, turned, slice(None)) is None
    change = (turned.points["azimuth"].astype(np.float64) - cloud.points["azimuth"]) / unit - sign * np.pi / 2
    assert np.abs(np.mod(change + np.pi, TURN) - np.pi).max() < 1e-4


def test_hundredths_of_degrees_in_whole_numbers_stay_within_the_turn() -> None:
    cloud = with_azimuth("<u2", 18000.0 / np.pi, -1.0, np.pi / 2, 0.0)
    before = cloud.points["azimuth"].copy()
    write_angles(cloud.points, cloud, slice(None))
    np.testing.assert_array_equal(cloud.points["azimuth"], before)
    cloud.points["x"], cloud.points["y"] = 1e-6, 10.0  # a hair beside where the turn ends
    write_angles(cloud.points, cloud, slice(None))
    assert set(np.unique(cloud.points["azimuth"])) == {0}


def test_a_field_that_means_something_else_is_left_alone() -> None:
    cloud = with_azimuth("<f4", 1.0, 1.0, 0.0, 0.0)
    rng = np.random.default_rng(1)
    cloud.points["azimuth"] = rng.uniform(0, TURN, len(cloud))
    cloud.points["elevation"][::2] = np.nan
    assert angle_fields(cloud) == ("elevation",)
    before = cloud.points["azimuth"].copy()
    write_angles(cloud.points, cloud, slice(None))
    np.testing.assert_array_equal(cloud.points["azimuth"], before)
    for points in (cloud.points[:5], cloud.points[:0]):
        assert angle_fields(dataclasses.replace(cloud, points=points)) == ()
