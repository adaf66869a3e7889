# SPDX-License-Identifier: Apache-2.0
"""Scenes that are turned, moved, mirrored and scaled: where returns and outputs go, and what the proof sees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_bundles import TREE, made_bundle, made_cloud

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.data.association import moved
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.outputs import Detections
from mt_nodes.data.transforms import Transform, TransformTree, move, pose_matrix
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.lidar.scene_moved import SceneMoved
from mt_nodes.relations.mutations.lidar.scene_moves import CloudMirrored, CloudRotated, CloudScaled, CloudTranslated

#: A sensor that is off the ego's axis and tilted, and one looking back.
TILTED = TransformTree(
    [
        Transform("base_link", "velodyne", pose_matrix([1.2, -0.3, 1.8], [0.02, -0.03, 0.3, 0.953])),
        Transform("base_link", "rear", pose_matrix([-1.0, 0.0, 0.9], [0.0, 0.0, 1.0, 0.0])),
    ]
)
MOVES = [
    CloudRotated(yaw_rad=0.7, spread_rad=0.2),
    CloudTranslated(x_m=3.0, y_m=-1.0, z_m=0.4, spread_m=0.3),
    CloudMirrored(),
    CloudScaled(factor=1.1, spread=0.05),
]
every_move = pytest.mark.parametrize("mutation", MOVES, ids=lambda m: type(m).__name__)


def derived(mutation: SceneMoved, bundle: Bundle, seed: int = 1) -> tuple[Followup, Draw]:
    rng = np.random.default_rng(seed)
    draw = mutation.draw(rng, bundle, mutation.begin(rng, bundle))
    return mutation.apply(bundle, draw), draw


def in_ego(bundle: Bundle, cloud: Cloud) -> Any:
    return move(bundle.transforms.lookup("base_link", cloud.frame_id), cloud.xyz.astype(np.float64))


def edited(followup: Followup, topic: str | None = None, **changes: Any) -> Followup:
    cloud = followup.first.cloud(topic)
    raw = cloud.raw.copy()
    for name, (row, value) in changes.items():
        raw.view(cloud.points.dtype)[name][row] = value
    changed = cloud.with_raw(raw, height=cloud.height)
    return Followup(((0, followup.first.with_clouds([changed])),), followup.effects)


@every_move
@pytest.mark.parametrize("layout", ["kitti", "double", "big_endian", "scattered_fields"])
def test_returns_go_where_outputs_are_expected(mutation: SceneMoved, layout: str) -> None:
    bundle = replace(made_bundle(made_cloud(layout)), transforms=TILTED)
    mutation = replace(mutation, max_range_m=1000.0, min_range_m=0.0)
    followup, draw = derived(mutation, bundle)
    effects = followup.effects
    assert effects.output_frame_id == "base_link" and effects.output_transform is not None
    expected = move(effects.output_transform, in_ego(bundle, bundle.cloud()))
    np.testing.assert_allclose(in_ego(bundle, followup.first.cloud()), expected, atol=1e-4)
    assert mutation.guarantee(bundle, followup, draw) is None


@settings(max_examples=25, deadline=None)
@given(yaw=st.floats(-np.pi, np.pi), seed=st.integers(0, 99), holes=st.sampled_from([0.0, 0.4]))
def test_a_turn_keeps_height_and_distance_from_the_axis(yaw: float, seed: int, holes: float) -> None:
    bundle = replace(made_bundle(made_cloud(count=300, seed=seed, holes=holes)), transforms=TILTED)
    followup, draw = derived(CloudRotated(yaw_rad=yaw, spread_rad=0.0, max_range_m=1000.0), bundle)
    old, new = (in_ego(bundle, b.cloud()) for b in (bundle, followup.first))
    np.testing.assert_allclose(np.hypot(*new[:, :2].T), np.hypot(*old[:, :2].T), atol=1e-4)
    np.testing.assert_allclose(new[:, 2], old[:, 2], atol=1e-4)
    assert CloudRotated(max_range_m=1000.0).guarantee(bundle, followup, draw) is None


def test_a_scaled_return_stays_on_its_beam() -> None:
    bundle = replace(made_bundle(), transforms=TILTED)
    followup, draw = derived(CloudScaled(factor=1.2, spread=0.0, max_range_m=1000.0), bundle)
    np.testing.assert_allclose(followup.first.cloud().xyz, bundle.cloud().xyz * 1.2, rtol=1e-5, atol=1e-5)
    assert draw["/sensing/lidar/points|factor"] == pytest.approx(1.2)


@every_move
def test_nothing_but_places_and_ranges_changes(mutation: SceneMoved) -> None:
    bundle = made_bundle(made_cloud("ouster", 8192, height=64, holes=0.3))
    old, new = bundle.cloud(), derived(mutation, bundle)[0].first.cloud()
    empty = ~np.isfinite(old.xyz).all(axis=1)
    assert new.height == 64 and empty.any() and not np.isfinite(new.xyz[empty]).any()
    there = np.isfinite(new.xyz).all(axis=1)
    for name in ("ring", "t", "reflectivity"):
        assert (old.points[name] == new.points[name]).all()
    ranges_m = np.linalg.norm(new.xyz[there].astype(np.float64), axis=1)
    np.testing.assert_allclose(new.points["range"][there], ranges_m * 1000.0, atol=3.0)


@pytest.mark.parametrize("organised", [True, False])
def test_what_comes_to_lie_out_of_reach_is_lost(organised: bool) -> None:
    cloud = made_cloud("ouster", 4096, height=64 if organised else 1)
    bundle, mutation = made_bundle(cloud), CloudTranslated(x_m=30.0, spread_m=0.0, max_range_m=80.5)
    followup, draw = derived(mutation, bundle)
    new = followup.first.cloud()
    reach_m = np.linalg.norm(new.xyz.astype(np.float64), axis=1)
    assert np.nanmax(reach_m) <= 80.501
    lost = 4096 - int(np.isfinite(reach_m).sum())
    assert lost > 500 and len(new) == (4096 if organised else 4096 - lost)
    assert mutation.guarantee(bundle, followup, draw) is None
    kept = Followup(((0, bundle.with_clouds([replace(bundle.cloud())])),), followup.effects)
    assert mutation.guarantee(bundle, kept, draw) is not None


def test_zero_returns_stay_where_they_are() -> None:
    cloud = made_cloud("kitti", 500)
    raw = cloud.raw.copy()
    for name in "xyz":
        raw.view(cloud.points.dtype)[name][:100] = 0.0
    bundle = made_bundle(cloud.with_raw(raw))
    for mutation in MOVES:
        followup, draw = derived(mutation, bundle)
        assert (followup.first.cloud().xyz[:100] == 0.0).all()
        assert mutation.guarantee(bundle, followup, draw) is None


def test_clouds_of_one_scene_move_alike() -> None:
    rear = replace(made_cloud(seed=5), topic="/rear", frame_id="rear")
    bundle = replace(made_bundle(made_cloud(), rear), transforms=TILTED)
    followup, draw = derived(CloudRotated(), bundle)
    assert draw["/rear|yaw_rad"] == draw["/sensing/lidar/points|yaw_rad"]
    for topic in ("/rear", "/sensing/lidar/points"):
        expected = move(followup.effects.output_transform, in_ego(bundle, bundle.cloud(topic)))  # type: ignore[arg-type]
        np.testing.assert_allclose(in_ego(bundle, followup.first.cloud(topic)), expected, atol=1e-4)
    with pytest.raises(NotApplicable, match="the 2 clouds stand apart"):
        derived(CloudScaled(), bundle)


def test_drawn_once_holds_for_the_episode() -> None:
    mutation, bundle = CloudRotated(drawn_once=True), made_bundle()
    state = mutation.begin(np.random.default_rng(3), bundle)
    draws = [mutation.draw(np.random.default_rng(i), bundle, state) for i in range(3)]
    assert draws[0] == draws[1] == draws[2]
    each = [replace(mutation, drawn_once=False).draw(np.random.default_rng(i), bundle, state) for i in range(2)]
    assert each[0] != each[1]


def test_what_cannot_be_carried_says_why() -> None:
    whole = np.zeros(3, dtype=[("x", "<i2"), ("y", "<i2"), ("z", "<i2")])
    whole["x"] = 5
    with pytest.raises(NotApplicable, match="whole-number coordinates"):
        derived(CloudMirrored(), made_bundle(Cloud("/points", 0, "velodyne", whole)))
    with pytest.raises(NotApplicable, match="no cloud with a return"):
        derived(CloudMirrored(), made_bundle(made_cloud(count=20, holes=1.1)))
    with pytest.raises(UsageError, match="no transform from frame 'velodyne' to 'ego'"):
        derived(CloudMirrored(frame_id="ego"), made_bundle())


@every_move
def test_the_proof_sees_a_broken_copy(mutation: SceneMoved) -> None:
    bundle = made_bundle(made_cloud("ouster", 512))
    followup, draw = derived(mutation, bundle)
    x, ranges = (followup.first.cloud().points[name] for name in ("x", "range"))
    broken = {
        "a return moved": (edited(followup, x=(7, x[7] + 0.01)), "from where it belongs"),
        "not a number": (edited(followup, x=(7, np.nan)), "from where it belongs"),
        "ring": (edited(followup, ring=(7, 99)), "something else changed"),
        "range": (edited(followup, range=(7, ranges[7] + 9)), "'range' does not follow"),
        "nothing done": (Followup(((0, bundle),), followup.effects), "from where it belongs"),
    }
    for what, (bad, text) in broken.items():
        assert text in str(mutation.guarantee(bundle, bad, draw)), what


class TurnedTheWrongWay(CloudRotated):
    def matrix(self, draw: Draw, to_ego: Any) -> Any:
        return np.linalg.inv(super().matrix(draw, to_ego))


class MirroredFrontToBack(CloudMirrored):
    def matrix(self, draw: Draw, to_ego: Any) -> Any:
        return np.diag([-1.0, 1.0, 1.0, 1.0])


class ScaledAboutTheGround(CloudScaled):
    def matrix(self, draw: Draw, to_ego: Any) -> Any:
        return super().matrix(draw, np.eye(4))


class MovedInTheSensorsFrame(CloudTranslated):
    def matrix(self, draw: Draw, to_ego: Any) -> Any:
        return to_ego @ super().matrix(draw, to_ego) @ np.linalg.inv(to_ego)


@pytest.mark.parametrize(
    "wrong", [TurnedTheWrongWay, MirroredFrontToBack, ScaledAboutTheGround, MovedInTheSensorsFrame]
)
def test_the_proof_does_not_believe_the_matrix(wrong: type[SceneMoved]) -> None:
    bundle, mutation = replace(made_bundle(), transforms=TILTED), wrong()
    followup, draw = derived(mutation, bundle)
    assert "from where it belongs" in str(mutation.guarantee(bundle, followup, draw))


def test_boxes_are_mirrored_and_scaled() -> None:
    box = Detections.make("base_link", None, [[10, 4, 1]], [[4, 2, 1.5]], [0.5], velocity_mps=[[3, 1, 0]])
    mirrored = moved(box, CloudMirrored().matrix({}, np.eye(4)), "base_link")
    np.testing.assert_allclose(mirrored.center_m, [[10, -4, 1]])
    np.testing.assert_allclose(mirrored.yaw_rad, [-0.5])
    np.testing.assert_allclose(mirrored.velocity_mps, [[3, -1, 0]])
    assert (mirrored.size_m == box.size_m).all()
    scaled = moved(box, CloudScaled().matrix({"factor": 2.0}, TREE.lookup("base_link", "velodyne")), "base_link")
    np.testing.assert_allclose(scaled.center_m, [[20, 8, 0.27]])
    np.testing.assert_allclose(scaled.size_m, [[8, 4, 3]])
    np.testing.assert_allclose(scaled.yaw_rad, [0.5])
