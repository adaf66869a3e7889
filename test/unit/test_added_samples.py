# SPDX-License-Identifier: Apache-2.0
"""Frames of folders as samples of a detector's training: which returns are of what, and of which nobody knows."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from mt_nodes.base.errors import UsageError
from mt_nodes.data.datasets.kitti_writer import KittiFrame, lidar_alone
from mt_nodes.data.datasets.picture_label_files import BoxedPicture, write_coco
from mt_nodes.data.outputs import Detections, ImageBoxes
from mt_nodes.runs.models import added_samples
from mt_nodes.runs.models.added_samples import AddedSamples, added_clouds, added_pictures, cloud_of, picture_of
from mt_nodes.runs.models.cell_labels import cell_labels, told_cells
from mt_nodes.runs.models.labelled_clouds import BACKGROUND, NOT_TOLD
from mt_nodes.runs.models.labelled_pictures import PICTURE_CLASSES
from mt_nodes.runs.models.picture_labels import IGNORED, square
from mt_nodes.stacks.reference.cell_features import CellGrid
from mt_nodes.stacks.reference.cell_objects import CATEGORY, CLASSES

#: Of a truck, of its wheels or the road below it, beside it, in a box that is to be ignored, and outside the zone.
POINTS = [(12.0, 1.0, 0.0), (12.0, 1.0, -1.73), (20.0, -5.0, -1.0), (30.0, 0.0, -1.0), (50.0, 0.0, -1.0)]


@pytest.fixture(autouse=True)
def nothing_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(added_samples, "_READ", {})


def folder(
    place: Path, manifest: bool = True, throughout: bool = True, xyz: list[tuple[float, float, float]] = POINTS
) -> Path:
    truck = Detections.make("lidar", None, [(12.0, 1.0, -0.03)], [(8.0, 2.5, 3.4)], [0.3], ["truck"])
    points = np.column_stack([xyz, np.full(len(xyz), 0.5)]).astype(np.float32)
    nothing = truck.take(np.zeros(1, dtype=bool))
    KittiFrame(points, truck, nothing, lidar_alone()).write(place / "training", "000000")
    if manifest:
        ignored = [{"center_m": [30.0, 0.0, -1.0], "size_m": [2.0, 2.0, 2.0], "yaw_rad": 0.0}]
        zone = "POLYGON ((1 -9, 1 9, 39 9, 39 -9, 1 -9))"
        row = {"frame": "000000", "mount_m": [0.0, 0.0, 1.9], "zone_wkt": zone, "ignored": ignored}
        (place / "manifest.json").write_text(json.dumps({"frames": [{**row, "labelled_throughout": throughout}]}))
    return place


def test_returns_are_of_the_object_of_the_road_or_of_nobody_knows(tmp_path: Path) -> None:
    cloud = cloud_of(folder(tmp_path), "000000")
    assert cloud.owner.tolist() == [0, NOT_TOLD, BACKGROUND, NOT_TOLD, NOT_TOLD]
    assert (cloud.kind.tolist(), cloud.sensor_height_m) == ([CLASSES.index("truck")], 1.9)
    assert cloud.points[:, 3].tolist() == [127.5] * len(POINTS), "KITTI's reflectance is 0..1"
    assert cloud.top_m == pytest.approx([1.67], abs=1e-3)
    # Messages, and what mutations make of them, keep it.
    assert cloud.changed(cloud.message()).owner.tolist() == cloud.owner.tolist()


def test_without_a_manifest_what_camera_2_sees_is_labelled(tmp_path: Path) -> None:
    assert cloud_of(folder(tmp_path, manifest=False), "000000").owner.tolist() == [0, NOT_TOLD] + [BACKGROUND] * 3


def test_the_cells_of_which_nobody_knows_are_not_learned(tmp_path: Path) -> None:
    cloud, grid = cloud_of(folder(tmp_path), "000000"), CellGrid()
    cells = grid.cell_of(cloud.points[:, 0], cloud.points[:, 1])
    assert told_cells(cloud, grid).ravel()[cells].tolist() == [1.0, 1.0, 1.0, 0.0, 0.0]
    assert cell_labels(cloud, grid)[CATEGORY].ravel()[cells].tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]


def test_what_a_stack_may_have_missed_is_no_background(tmp_path: Path) -> None:
    # A cone that no label has, and the road before it and far from it.
    others = [(20.0, -5.0, -1.2), (19.0, -5.0, -1.71), (35.0, 5.0, -1.7)]
    for throughout, cone in ((False, NOT_TOLD), (True, BACKGROUND)):
        added_samples._READ.clear()
        place = tmp_path / str(throughout)
        cloud = cloud_of(folder(place, throughout=throughout, xyz=[POINTS[0], *others]), "000000")
        assert cloud.owner.tolist() == [0, cone, BACKGROUND, BACKGROUND]


def test_the_wheels_of_an_object_are_no_background_even_where_they_touch_the_road(tmp_path: Path) -> None:
    low = [(12.0, 1.0, -1.73 + z) for z in (-0.04, 0.0, 0.08, 0.2)]
    assert cloud_of(folder(tmp_path, xyz=low), "000000").owner.tolist() == [NOT_TOLD] * 3 + [0]


@pytest.mark.parametrize("throughout", [False, True])
def test_what_no_box_of_a_stack_has_in_a_picture_is_no_background(tmp_path: Path, throughout: bool) -> None:
    torch = pytest.importorskip("torch", reason="mt_nodes[models] is not installed")
    from mt_nodes.runs.models.picture_training import _assigned

    (tmp_path / "images").mkdir()
    path = tmp_path / "images" / "000000.png"
    cv2.imwrite(str(path), np.zeros((256, 256, 3), np.uint8))
    said = ImageBoxes.make("camera", None, [[10, 10, 90, 90]], ["car"])
    write_coco(tmp_path, [BoxedPicture(path, (256, 256), said, ImageBoxes.none("camera", None))])
    row = {"frame": "000000", "labelled_throughout": throughout}
    (tmp_path / "manifest.json").write_text(json.dumps({"frames": [row]}))
    picture = picture_of(tmp_path, "0")
    kind = np.where(picture.visible > 0.0, picture.kind, IGNORED)
    objects = torch.from_numpy(np.column_stack([kind, picture.box_px]).astype(np.float32))[None]
    middle = torch.tensor([[50.0, 50.0], [200.0, 200.0]])
    predicted = torch.tensor([[[12.0, 12.0, 88.0, 88.0], [180.0, 180.0, 220.0, 220.0]]])
    *_, counted = _assigned(predicted, torch.full((1, 2, len(PICTURE_CLASSES)), 0.5), objects, middle)
    assert counted.tolist() == [[True, throughout]]


def test_boxes_that_are_ignored_or_of_another_class_are_neither_found_nor_wrong(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    path = tmp_path / "images" / "000000.png"
    cv2.imwrite(str(path), np.zeros((100, 100, 3), np.uint8))
    said = ImageBoxes.make("camera", None, [[10, 10, 40, 60], [50, 10, 90, 60]], ["bus", "deer"])
    ignored = ImageBoxes.make("camera", None, [[10, 70, 40, 95]], ["car"])
    write_coco(tmp_path, [BoxedPicture(path, (100, 100), said, ignored)])
    samples = added_pictures([tmp_path], 1.0)
    (frame,) = samples.frames
    picture = picture_of(*frame)
    assert picture.visible.tolist() == [1.0, 0.0, 0.0] and PICTURE_CLASSES[picture.kind[0]] == "truck"
    _, objects = square(picture, 256, np.random.default_rng(0))
    kinds = objects[:, 0][objects[:, 0] > -2]
    assert set(kinds.tolist()) <= {float(PICTURE_CLASSES.index("truck")), float(IGNORED)}


def test_the_share_is_kept_and_no_folder_means_no_frame(tmp_path: Path) -> None:
    rng, samples = np.random.default_rng(0), added_clouds([folder(tmp_path)], 0.25)
    assert sum(samples.drawn(rng) is not None for _ in range(4000)) == pytest.approx(1000, abs=100)
    assert AddedSamples().drawn(rng) is None


def test_a_folder_of_another_layout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected KITTI's layout"):
        added_clouds([tmp_path], 0.5)
    with pytest.raises(UsageError, match="expected a folder of `mt replay failures export`"):
        added_pictures([tmp_path], 0.5)


@pytest.mark.parametrize("name", ["cnnseg_streets", "yolo_streets"])
def test_a_training_begins_with_what_was_exported(name: str) -> None:
    torch = pytest.importorskip("torch", reason="mt_nodes[models] is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="mt_nodes[onnx] is not installed")
    from mt_nodes.base.resources import find
    from mt_nodes.runs.models.cnnseg_network import SlimCnnSeg
    from mt_nodes.runs.models.picture_network import SmallDetector
    from mt_nodes.runs.models.starting_weights import start_from

    kind, shape = {"cnnseg_streets": (SlimCnnSeg, (1, 8, 640, 640)), "yolo_streets": (SmallDetector, (1, 3, 384, 640))}[
        name
    ]
    network, given = kind(), torch.rand(shape)
    start_from(network, name)
    session = runtime.InferenceSession(str(find("weights", name, (".onnx",))))
    (said,) = session.run(None, {session.get_inputs()[0].name: given.numpy()})
    np.testing.assert_allclose(network.eval()(given).detach().numpy(), said, atol=2e-3)
    other = SlimCnnSeg() if kind is SmallDetector else SmallDetector()
    with pytest.raises(UsageError, match="are weights of another network"):
        start_from(other, name)
