# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.data.association import Association, bev_iou, canonical, covered, footprints, moved
from mt_nodes.data.outputs import Detections
from mt_nodes.data.transforms import pose_matrix


def boxes(
    *rows: tuple[float, float], label: str = "car", size: tuple[float, float] = (4.0, 2.0), yaw: float = 0.0
) -> Detections:
    count = len(rows)
    return Detections.make(
        "base_link", None, [[x, y, 0.5] for x, y in rows], [[*size, 1.5]] * count, [yaw] * count, [label] * count
    )


def joined(*parts: Detections) -> Detections:
    return Detections.make(
        "base_link",
        None,
        np.concatenate([p.center_m for p in parts]),
        np.concatenate([p.size_m for p in parts]),
        np.concatenate([p.yaw_rad for p in parts]),
        [label for p in parts for label in p.label.tolist()],
    )


def partners(pairs: tuple[np.ndarray, np.ndarray]) -> dict[int, int]:
    return dict(zip(*(p.tolist() for p in pairs), strict=True))


def test_one_to_one_by_distance() -> None:
    source, followup = boxes((0, 0), (10, 0), (20, 0)), boxes((20.5, 0), (0.5, 0))
    assert partners(Association().pair(source, followup)) == {0: 1, 2: 0}
    assert partners(Association().pair(source, boxes())) == {}
    assert partners(Association().pair(boxes(), followup)) == {}


@pytest.mark.parametrize(
    ("label", "gate"), [("car", 2.0), ("pedestrian", 0.8), ("cyclist", 1.2), ("unknown", 1.5), ("Car", 2.0)]
)
def test_gate_is_that_of_the_source_class(label: str, gate: float) -> None:
    source = boxes((0, 0), label=label)
    assert partners(Association().pair(source, boxes((gate - 0.01, 0), label="bus"))) == {0: 0}
    assert partners(Association().pair(source, boxes((gate + 0.01, 0), label="bus"))) == {}


def test_a_chain_of_poor_pairs_does_not_hide_a_loss() -> None:
    # A is seen again, B is lost, and a ghost appears within A's gate; B is within the gate of A's new box.
    source, followup = boxes((0, 0), (1.8, 0)), boxes((0, 0), (-1.9, 0))
    assert partners(Association().pair(source, followup)) == {0: 0}


def test_same_class() -> None:
    source, followup = boxes((0, 0), label="car"), boxes((0.1, 0), label="pedestrian")
    assert partners(Association().pair(source, followup)) == {0: 0}
    assert partners(Association(same_class=True).pair(source, followup)) == {}


def test_bev_iou_of_boxes() -> None:
    assert bev_iou(boxes((0, 0)), boxes((2, 0), (8, 0)))[0] == pytest.approx([1 / 3, 0.0])
    turned = bev_iou(boxes((3, 3)), boxes((3, 3), yaw=np.pi / 2))
    assert turned[0, 0] == pytest.approx(4 / 12)
    assert bev_iou(boxes((0, 0), size=(0, 0)), boxes((0, 0)))[0, 0] == 0.0


def test_bev_iou_pairs_by_overlap() -> None:
    source, followup = boxes((0, 0), (10, 0)), boxes((9, 0), (3.9, 0))
    assert partners(Association("bev_iou").pair(source, followup)) == {1: 0}


def test_footprint_of_a_turned_box() -> None:
    corners = np.array(footprints(boxes((1, 2), yaw=np.pi / 2))[0].exterior.coords)
    assert (corners.min(0), corners.max(0)) == (pytest.approx([0, 0]), pytest.approx([2, 4]))


def test_covered_by_the_union_of_parts() -> None:
    halves = boxes((-1, 0), (1, 0), size=(2, 2))
    assert covered(boxes((0, 0)), halves, False) == pytest.approx([1.0])
    assert covered(boxes((0, 0)), halves.take(np.array([0])), False) == pytest.approx([0.5])
    # Two that overlap do not count twice.
    assert covered(boxes((0, 0)), boxes((-1, 0), (-1, 0), size=(2, 2)), False) == pytest.approx([0.5])
    assert covered(boxes((0, 0)), boxes(), False) == pytest.approx([0.0])
    assert covered(boxes(), halves, False).shape == (0,)


def test_covered_by_its_own_class_only() -> None:
    obstacles = joined(boxes((0, 0)), boxes((10, 0), label="pedestrian"))
    others = joined(boxes((0, 0), label="pedestrian"), boxes((10, 0), label="pedestrian"))
    assert covered(obstacles, others, False) == pytest.approx([1.0, 1.0])
    assert covered(obstacles, others, True) == pytest.approx([0.0, 1.0])


def test_a_box_without_size_is_never_covered() -> None:
    assert covered(boxes((0, 0), size=(0, 0)), boxes((0, 0)), False) == pytest.approx([0.0])
    assert covered(boxes((0, 0)), boxes((0, 0), size=(0, 0)), False) == pytest.approx([0.0])


@given(st.permutations(range(6)), st.integers(0, 1000))
def test_canonical_order_forgets_the_order(order: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    made = Detections.make(
        "f", None, rng.integers(0, 2, (6, 3)), rng.integers(1, 3, (6, 3)), rng.integers(0, 2, 6), list("ababab")
    )
    first, second = canonical(made), canonical(made.take(np.array(order)))
    for name in ("center_m", "size_m", "yaw_rad", "label"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_moved_turns_boxes_and_velocities() -> None:
    made = Detections.make("a", 5, [[1, 0, 0]], [[4, 2, 1]], [0.0], velocity_mps=[[3, 0, 0]], covariance=[np.eye(6)])
    quarter = moved(made, pose_matrix([10, 0, 0], [0, 0, np.sqrt(0.5), np.sqrt(0.5)]), "b")
    assert (quarter.frame_id, quarter.stamp_ns) == ("b", 5)
    np.testing.assert_allclose(quarter.center_m, [[10, 1, 0]], atol=1e-12)
    np.testing.assert_allclose(quarter.velocity_mps, [[0, 3, 0]], atol=1e-12)
    assert quarter.yaw_rad == pytest.approx([np.pi / 2])
    assert np.isnan(quarter.covariance).all()
