# SPDX-License-Identifier: Apache-2.0
"""What a segmentation network is given of a cloud, and what is made of what it says."""

from __future__ import annotations

import math
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_caffe import PARTS, made_cnnseg

from mt_nodes.base.errors import UsageError
from mt_nodes.runs.models.cell_labels import AUGMENTATIONS, augmented, cell_labels
from mt_nodes.runs.models.labelled_clouds import LabelledCloud, labelled_cloud
from mt_nodes.stacks.reference import cell_features as cf
from mt_nodes.stacks.reference.cell_features import CellGrid
from mt_nodes.stacks.reference.cell_network import CellNetwork
from mt_nodes.stacks.reference.cell_objects import CATEGORY, CHANNELS, CLASS, CONFIDENCE, HEIGHT, OFFSET, objects_of

#: Cells of half a metre.
SMALL = CellGrid(64, 16.0)


def cloud(*rows: tuple[float, float, float, float]) -> np.ndarray:
    return np.array(rows, dtype=np.float32)


def features_at(points: np.ndarray, x: float, y: float) -> list[float]:
    cell = int(SMALL.cell_of(np.array([x]), np.array([y]))[0])
    return SMALL.features(points, 255.0).reshape(8, -1)[:, cell].tolist()


def test_a_cell_has_the_eight_numbers_of_its_returns() -> None:
    points = cloud((3.1, 2.1, -1.0, 51.0), (3.2, 2.2, 0.5, 102.0), (3.3, 2.4, 0.5, 153.0), (-9.0, 0.0, 2.0, 255.0))
    got = features_at(points, 3.25, 2.25)
    expected = {
        cf.MAX_HEIGHT: 0.5,
        cf.MEAN_HEIGHT: 0.0,
        cf.COUNT: math.log(4.0),
        cf.DIRECTION: math.atan2(2.25, 3.25) / (2.0 * math.pi),
        cf.TOP_INTENSITY: 0.6,  # of the two highest the brighter one's
        cf.MEAN_INTENSITY: 0.4,
        cf.DISTANCE: math.hypot(3.25, 2.25) / 60.0 - 0.5,
        cf.OCCUPIED: 1.0,
    }
    assert got == pytest.approx([expected[i] for i in range(8)], abs=2e-4)


def test_an_empty_cell_is_known_only_by_its_place() -> None:
    got = features_at(cloud((3.1, 2.1, 1.0, 9.0)), -7.0, 5.0)
    assert [got[i] for i in range(8) if i not in (cf.DIRECTION, cf.DISTANCE)] == [0.0] * 6
    assert got[cf.DIRECTION] != 0.0


def test_the_first_row_is_ahead_and_the_first_column_to_the_left() -> None:
    x, y = np.array([15.9, 15.9, -15.9, 16.1, np.nan]), np.array([15.9, -15.9, 15.9, 0.0, 0.0])
    assert SMALL.cell_of(x, y).tolist() == [0, 63, 63 * 64, -1, -1]
    assert SMALL.centres_m[0] == 15.75 and SMALL.centres_m[-1] == -15.75


@pytest.mark.parametrize("bad", [(0.0, 0.0, 5.5, 1.0), (0.0, 0.0, -5.5, 1.0), (np.nan, 0, 0, 0), (0, 0, np.inf, 0)])
def test_what_is_too_high_or_no_number_is_left_out(bad: tuple[float, float, float, float]) -> None:
    good = (1.0, 1.0, 0.0, 9.0)
    assert np.array_equal(SMALL.features(cloud(good, bad), 255.0), SMALL.features(cloud(good), 255.0))


def test_an_intensity_that_is_no_number_is_0() -> None:
    assert np.isfinite(SMALL.features(cloud((1.0, 1.0, 0.0, np.nan)), 255.0)).all()


@given(st.integers(0, 2**32 - 1))
def test_the_order_of_returns_is_nothing_to_the_features(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(0.0, 6.0, (500, 4)).astype(np.float32)
    points[::7] = points[1::7][: len(points[::7])]  # some returns twice
    assert np.array_equal(SMALL.features(points, 1.0), SMALL.features(rng.permutation(points), 1.0))


def said_of(*objects: tuple[tuple[int, int], tuple[int, int], int, float]) -> np.ndarray:
    """What a network says that knows of blocks of cells: first row and column, last ones, class, score."""
    said = np.zeros((CHANNELS, 64, 64), dtype=np.float32)
    for (top, left), (bottom, right), kind, score in objects:
        rows, columns = np.mgrid[top : bottom + 1, left : right + 1]
        here = (slice(top, bottom + 1), slice(left, right + 1))
        said[(CATEGORY, *here)], said[(CONFIDENCE, *here)] = 0.9, score
        said[(OFFSET.start, *here)] = ((top + bottom) / 2.0 - rows) * SMALL.cell_m
        said[(OFFSET.start + 1, *here)] = ((left + right) / 2.0 - columns) * SMALL.cell_m
        said[(CLASS.start + kind, *here)], said[(HEIGHT, *here)] = 0.8, -0.5
    return said


def test_cells_that_point_at_one_place_are_one_object() -> None:
    found = objects_of(said_of(((5, 5), (9, 7), 1, 0.7), ((5, 8), (9, 10), 4, 0.4)), SMALL, 0.5)
    assert found.score.tolist() == pytest.approx([0.7, 0.4]) and found.kind.tolist() == [1, 4]
    assert found.top_m.tolist() == pytest.approx([-0.5, -0.5])
    number = found.number.reshape(64, 64)
    assert (number[5:10, 5:8] == 0).all() and (number[5:10, 8:11] == 1).all() and (number >= 0).sum() == 30


def test_places_side_by_side_are_one_object_and_apart_two() -> None:
    """Cells of one object seldom agree to the cell about where its middle is."""
    beside = said_of(((5, 5), (9, 7), 1, 0.7))
    beside[OFFSET.start, 5:10, 7] += SMALL.cell_m  # these point one row farther
    assert len(objects_of(beside, SMALL, 0.5).score) == 1
    beside[OFFSET.start, 5:10, 7] += 3 * SMALL.cell_m
    assert len(objects_of(beside, SMALL, 0.5).score) == 2


@pytest.mark.parametrize(
    ("between", "apart", "objects"), [(0, 0, 1), (1, 0, 2), (1, 1, 1), (2, 1, 2), (2, 2, 1), (3, 2, 2)]
)
@pytest.mark.parametrize("along", [0, 1])
def test_so_many_cells_between_two_places_leave_one_object(between: int, apart: int, objects: int, along: int) -> None:
    said = said_of(((20, 20), (20, 20), 1, 0.7), ((40, 40), (40, 40), 1, 0.7))
    other = [20, 20]
    other[along] += between + 1
    # The second one's cell points at the place that lies so far from the first one's.
    said[OFFSET.start, 40, 40], said[OFFSET.start + 1, 40, 40] = (SMALL.cell_m * (place - 40) for place in other)
    assert len(objects_of(said, SMALL, 0.5, apart).score) == objects


def test_a_path_over_many_cells_ends_where_the_last_one_points() -> None:
    """Every third cell of a row points at the next of them only, and the last at itself: far apart, and one object."""
    said = said_of(*(((10, column), (10, column), 1, 0.7) for column in range(10, 40, 3)))
    said[OFFSET.start + 1, 10, 10:37] = 3.0 * SMALL.cell_m
    found = objects_of(said, SMALL, 0.5)
    assert len(found.score) == 1 and (found.number >= 0).sum() == 10


def test_an_unlikely_cell_is_of_no_object_and_nothing_said_is_no_object() -> None:
    said = said_of(((5, 5), (9, 7), 1, 0.7))
    assert len(objects_of(said, SMALL, 0.95).score) == 0
    assert (objects_of(said, SMALL, 0.95).number == -1).all()
    said[CATEGORY, 5, 5] = 0.4
    assert (objects_of(said, SMALL, 0.5).number >= 0).sum() == 14


@given(st.integers(0, 2**32 - 1))
def test_whatever_is_said_ends_in_objects(seed: int) -> None:
    """Paths may run in circles, and lead out of the grid."""
    said = np.random.default_rng(seed).normal(0.5, 20.0, (CHANNELS, 64, 64)).astype(np.float32)
    found = objects_of(said, SMALL, 0.5)
    assert ((found.number >= 0) == (said[CATEGORY].ravel() >= 0.5)).all()
    assert set(np.unique(found.number[found.number >= 0]).tolist()) == set(range(len(found.score)))


@pytest.fixture(scope="module")
def streets() -> list[LabelledCloud]:
    return [labelled_cloud(7, index) for index in range(3)]


def test_a_made_up_street_is_the_same_again_and_another_one_is_another(streets: list[LabelledCloud]) -> None:
    again = labelled_cloud(7, 0)
    assert np.array_equal(again.points, streets[0].points) and np.array_equal(again.owner, streets[0].owner)
    assert not np.array_equal(labelled_cloud(8, 0).points, again.points)


def test_returns_are_where_their_objects_are(streets: list[LabelledCloud]) -> None:
    for street in streets:
        of = street.owner >= 0
        assert 0.02 < of.mean() < 0.8 and street.owner.max() < len(street.kind)
        away = np.linalg.norm(street.points[of, :2] - street.centre_m[street.owner[of]], axis=1)
        assert away.max() < 8.0
        assert (street.points[of, 2] <= street.top_m[street.owner[of]] + 0.2).all()
        # No return of the road belongs to anybody.
        assert (street.points[of, 2] > -street.sensor_height_m - 2.5).all()


def test_from_perfect_labels_come_the_objects(streets: list[LabelledCloud]) -> None:
    grid = CellGrid()
    for street in streets:
        labels = cell_labels(street, grid)
        found = objects_of(labels, grid, 0.5)
        cell = grid.cell_of(*street.points[:, :2].T)
        seen = (street.owner >= 0) & (cell >= 0)
        # Each object's returns are of one candidate, but where two share a cell or stand side by side.
        right = [
            np.bincount(found.number[cell[seen & (street.owner == row)]]).max() / (seen & (street.owner == row)).sum()
            for row in np.unique(street.owner[seen])
        ]
        assert np.mean(right) > 0.97
        assert abs(len(found.score) - len(right)) <= 0.1 * len(right) + 1


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_a_mutated_cloud_knows_whose_its_returns_are(name: str, streets: list[LabelledCloud]) -> None:
    from mt_nodes.runs.models.cell_labels import _mutated

    changed = _mutated(streets[0], name, np.random.default_rng(1))
    assert not np.array_equal(changed.points, streets[0].points)
    of = changed.owner >= 0
    away = np.linalg.norm(changed.points[of, :2] - changed.centre_m[changed.owner[of]], axis=1)
    assert of.any() and np.quantile(away, 0.99) < 8.0


def test_a_turned_cloud_has_its_objects_turned(streets: list[LabelledCloud]) -> None:
    for seed in range(6):
        changed = augmented(streets[1], np.random.default_rng(seed))
        of = changed.owner >= 0
        away = np.linalg.norm(changed.points[of, :2] - changed.centre_m[changed.owner[of]], axis=1)
        assert np.quantile(away, 0.99) < 8.0


def test_apollos_two_files_are_read(tmp_path: Path) -> None:
    path = made_cnnseg(64).write(tmp_path)
    said = CellNetwork(str(path), SMALL)
    given = SMALL.features(np.random.default_rng(0).normal(0.0, 4.0, (800, 4)).astype(np.float32), 1.0)
    out = said(given)
    occupied = given[cf.OCCUPIED] > 0
    assert out.shape == (CHANNELS, 64, 64) and (out[CATEGORY][~occupied] == 0.0).all()
    assert ((out[CATEGORY][occupied] > 0.0) & (out[CATEGORY][occupied] < 1.0)).all()
    for channel in (CONFIDENCE, *range(CLASS.start, CLASS.stop)):
        assert (out[channel] > 0.0).all() and (out[channel] < 1.0).all()
    # The parts are where Apollo has them: what OpenCV says of the layer before they are taken apart.
    network = cv2.dnn.readNetFromCaffe(str(path), str(path.with_suffix(".caffemodel")))
    network.setInput(given[None])
    whole = network.forward("deconv0")[0]
    assert np.array_equal(out[OFFSET], whole[OFFSET]) and np.array_equal(out[HEIGHT], whole[HEIGHT])


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (lambda folder: (folder / "deploy.caffemodel").unlink(), "expected its weights in"),
        (lambda folder: (folder / "deploy.caffemodel").write_bytes(b"no"), "no network can be read"),
        (lambda folder: (folder / "deploy.prototxt").write_text("no"), "no network can be read"),
    ],
)
def test_files_that_are_none_are_refused(break_it: object, says: str, tmp_path: Path) -> None:
    path = made_cnnseg(64).write(tmp_path)
    break_it(tmp_path)  # type: ignore[operator]
    with pytest.raises(UsageError, match=says):
        CellNetwork(str(path), SMALL)


def test_a_network_of_another_form_is_refused(tmp_path: Path) -> None:
    without = {**PARTS, "height_pt": 0}
    made = made_cnnseg(64, parts={name: count for name, count in without.items() if count})
    with pytest.raises(UsageError, match="got no output height_pt, expected category_score"):
        CellNetwork(str(made.write(tmp_path)), SMALL)
    wider = made_cnnseg(64, parts={**PARTS, "instance_pt": 3})
    with pytest.raises(UsageError, match=r"got an output of shape \(3, 64, 64\), expected \(2, 64, 64\)"):
        CellNetwork(str(wider.write(tmp_path)), SMALL)
