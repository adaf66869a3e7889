# SPDX-License-Identifier: Apache-2.0
"""Boxes by their bottoms, and as KITTI has them in a camera's frame: they come out where their corners are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recordings import cloud

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.transforms import Transform, TransformTree, move, pose_matrix
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.stack import Stack, load_stack

#: An optical frame 1.5 m above base_link: x right, y down, z ahead.
OPTICAL = pose_matrix((0.3, 0.1, 1.5), (-0.5, 0.5, -0.5, 0.5))
FRAMES = TransformTree(
    [Transform("base_link", "lidar", np.eye(4)), Transform("base_link", "camera", OPTICAL)],
)
KITTI = {"boxes": "kitti_camera", "boxes_frame": "camera", "points_frame": "base_link"}


def said(answer: Any, **keys: Any) -> Any:
    stack = Stack(name="s", callable="x:y", inputs={"lidar": "/points"}, **keys)
    found = CallableHost(lambda points: answer, stack, takes_stamp=False)(cloud(0), FRAMES).detections
    assert found is not None
    return found


def corners(length: float, width: float, height: float) -> np.ndarray:
    """Of a box in KITTI's camera frame about the middle of its bottom, unturned: length along x, height against y."""
    x, y, z = np.meshgrid([-length / 2, length / 2], [0.0, -height], [-width / 2, width / 2])
    return np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1)


@given(st.floats(-3.1, 3.1), st.floats(-20, 20), st.floats(3, 50))
def test_a_box_of_kittis_is_where_its_corners_are(rotation_y: float, x: float, z: float) -> None:
    bottom, size = np.array([x, 1.6, z]), (4.2, 1.8, 1.5)
    c, s = np.cos(rotation_y), np.sin(rotation_y)
    # The devkit's matrix about the axis that leads down.
    turned = corners(*size) @ np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]]).T + bottom
    expected = move(OPTICAL, turned)
    length, width, height = size
    found = said([[*bottom, length, height, width, rotation_y, 0.9, 1]], **KITTI)
    assert found.frame_id == "base_link" and found.score.tolist() == [0.9] and found.label.tolist() == ["1"]
    assert found.size_m[0].tolist() == [length, width, height]
    got = _own_corners(found)
    away = np.linalg.norm(got[:, None] - expected[None], axis=2)
    assert away.min(axis=1).max() < 1e-9 and away.min(axis=0).max() < 1e-9
    ahead = expected[corners(*size)[:, 0] > 0].mean(axis=0) - expected.mean(axis=0)
    assert np.cos(found.yaw_rad[0] - np.arctan2(ahead[1], ahead[0])) == pytest.approx(1.0)


def _own_corners(found: Any) -> np.ndarray:
    (length, width, height), yaw = found.size_m[0], found.yaw_rad[0]
    x, y, z = np.meshgrid([-length / 2, length / 2], [-width / 2, width / 2], [-height / 2, height / 2])
    c, s = np.cos(yaw), np.sin(yaw)
    turned = np.stack([c * x - s * y, s * x + c * y, z], axis=-1).reshape(-1, 3)
    return np.asarray(turned + found.center_m[0])


def test_a_table_with_rotation_y_is_read_where_the_file_says_so() -> None:
    row = {"x": 2.0, "y": 1.5, "z": 10.0, "l": 4.0, "w": 2.0, "h": 1.4, "rotation_y": -np.pi / 2, "score": 0.8}
    found = said([row], **KITTI)
    # It points away from the camera, which is ahead.
    assert found.yaw_rad[0] == pytest.approx(0.0, abs=1e-9)
    assert found.center_m[0] == pytest.approx((10.3, -1.9, 0.7)) and found.size_m[0].tolist() == [4.0, 2.0, 1.4]
    with pytest.raises(InfrastructureError, match="write boxes: kitti_camera and boxes_frame"):
        said([row])


def test_the_middle_of_the_bottom_is_half_a_height_below_the_middle() -> None:
    found = said([[5.0, 1.0, -1.7, 4.0, 2.0, 1.6, 0.3]], boxes="bottom_centre")
    assert found.center_m[0] == pytest.approx((5.0, 1.0, -0.9)) and found.yaw_rad[0] == 0.3
    assert said([[5.0, 1.0, -1.7, 4.0, 2.0, 1.6, 0.3]]).center_m[0].tolist() == [5.0, 1.0, -1.7]
    assert len(said([], boxes="bottom_centre")) == 0


@pytest.mark.parametrize("keys", [{"points_frame": "camera"}, {"boxes_frame": "lidar"}, {"boxes_frame": "base_link"}])
def test_a_frame_that_is_no_cameras_and_one_without_z_up_are_refused(keys: dict[str, str]) -> None:
    with pytest.raises(InfrastructureError, match=r"does not point down in .* expected an optical frame"):
        said([[0.0, 0.0, 9.0, 4.0, 1.5, 2.0, 0.0]], **{**KITTI, **keys})


def test_a_camera_that_nobody_knows_is_said() -> None:
    with pytest.raises(InfrastructureError, match="no transform from 'rear' \\(boxes_frame\\) to 'base_link'"):
        said([[0.0, 0.0, 9.0, 4.0, 1.5, 2.0, 0.0]], **{**KITTI, "boxes_frame": "rear"})


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (
            "callable: a:b\nboxes: kitti_camera",
            "boxes_frame: got '' with boxes: kitti_camera; only kitti_camera takes it, and needs",
        ),
        ("callable: a:b\nboxes_frame: camera", "got 'camera' with boxes: centre; only kitti_camera takes it"),
        ("callable: a:b\nboxes: kitti", "boxes: got 'kitti'"),
        ("command: [x]\nboxes: bottom_centre", "is for a callable"),
    ],
)
def test_a_file_that_says_half_of_it_is_refused(rows: str, says: str, tmp_path: Any) -> None:
    (tmp_path / "mine.yaml").write_text(rows)
    with pytest.raises(UsageError) as error:
        load_stack(str(tmp_path / "mine.yaml"))
    assert says in str(error.value)
