# SPDX-License-Identifier: Apache-2.0
"""Exported frames read back by our own readers: KITTI, nuScenes, COCO, YOLO; and boxes as cameras see them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.datasets.dataset_name import DatasetName
from mt_nodes.data.datasets.kitti_calibration import KittiCalibration, benchmark_calibration
from mt_nodes.data.datasets.kitti_labels import boxes_of_lines
from mt_nodes.data.datasets.kitti_writer import AHEAD, KittiFrame, image_boxes, lidar_alone
from mt_nodes.data.datasets.known_datasets import open_dataset
from mt_nodes.data.datasets.nuscenes_writer import NuscenesFrame, NuscenesTables
from mt_nodes.data.datasets.picture_label_files import BoxedPicture, read_boxed_pictures, write_coco, write_yolo
from mt_nodes.data.outputs import Detections, ImageBoxes
from mt_nodes.data.projected_boxes import projected_boxes

POINTS = np.random.default_rng(1).uniform(0.0, 1.0, (40, 5)).astype(np.float32)
CLASSES = ("car", "truck", "pedestrian", "cyclist")
BOXES = st.lists(
    st.tuples(
        st.floats(6.0, 60.0), st.floats(-5.0, 5.0), st.floats(-3.0, 1.0), st.floats(0.2, 12.0), st.floats(0.2, 3.0),
        st.floats(0.2, 4.0), st.floats(-np.pi, np.pi), st.sampled_from(CLASSES),
    ),
    max_size=4,
)  # fmt: skip


def boxes(rows: list[tuple[float, float, float, float, float, float, float, str]]) -> Detections:
    numbers = np.array([row[:7] for row in rows]).reshape(-1, 7)
    return Detections.make("lidar", None, numbers[:, :3], numbers[:, 3:6], numbers[:, 6], [row[7] for row in rows])


def same(found: Detections, written: Detections, within: float) -> None:
    assert found.label.tolist() == written.label.tolist()
    np.testing.assert_allclose(found.center_m, written.center_m, atol=within)
    np.testing.assert_allclose(found.size_m, written.size_m, atol=within)
    turn = found.yaw_rad - written.yaw_rad
    np.testing.assert_allclose(np.hypot(np.cos(turn) - 1.0, np.sin(turn)), 0.0, atol=within)


def tilted() -> KittiCalibration:
    """A camera that stands beside the LiDAR and looks a little down and aside."""
    down, aside = np.radians((4.0, -3.0))
    turn = np.array([[np.cos(aside), 0, np.sin(aside)], [0, 1, 0], [-np.sin(aside), 0, np.cos(aside)]])
    turn = np.array([[1, 0, 0], [0, np.cos(down), -np.sin(down)], [0, np.sin(down), np.cos(down)]]) @ turn
    matrix = AHEAD.copy()
    matrix[:3, :3] = turn @ AHEAD[:3, :3]
    matrix[:3, 3] = (0.1, -0.3, -0.2)
    k = np.array([[700.0, 0.0, 620.0, 0.0], [0.0, 700.0, 180.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    return KittiCalibration({2: k}, matrix, None, {})


@settings(deadline=None, max_examples=60)
@given(rows=BOXES)
def test_kittis_lines_keep_boxes(rows: list[tuple[float, float, float, float, float, float, float, str]]) -> None:
    for calibration, within in ((lidar_alone(), 2e-4), (tilted(), 0.6)):
        # KITTI's boxes turn about the camera's y axis: with a tilted camera a yaw loses what the tilt adds to it.
        objects = boxes(rows)
        frame = KittiFrame(POINTS[:, :4], objects, boxes([]), calibration)
        read = boxes_of_lines(list(frame._lines()), calibration, "test")
        found = Detections.make(
            "lidar", None, [b.center_m for b in read], [b.size_m for b in read], [b.yaw_rad for b in read],
            [b.label for b in read],
        )  # fmt: skip
        same(found, objects.take(frame.seen), within)


def test_a_folder_of_kitti_is_read_again_with_points_labels_and_what_is_to_be_ignored(tmp_path: Path) -> None:
    objects = boxes(
        [(12.0, 1.0, -0.9, 4.0, 1.8, 1.5, 0.3, "car"), (20.0, -3.0, -0.8, 0.6, 0.6, 1.7, 0.0, "pedestrian")]
    )
    ignored = boxes([(30.0, 2.0, -0.9, 4.0, 1.8, 1.5, 0.0, "truck")])
    KittiFrame(POINTS[:, :4], objects, ignored, lidar_alone()).write(tmp_path / "training", "000000")
    recording = open_dataset(DatasetName.parse(f"kitti:{tmp_path}"))
    lidar = next(topic for topic in recording.topics if topic.topic == "/velodyne_points")
    truth = recording.labels(lidar.stamps_ns[0])
    assert truth is not None and truth.areas_m is not None
    same(truth.objects, objects, 2e-4)
    assert (tmp_path / "training" / "velodyne" / "000000.bin").read_bytes() == POINTS[:, :4].tobytes()
    lines = (tmp_path / "training" / "label_2" / "000000.txt").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["Car", "Pedestrian", "DontCare"]
    x0, y0, x1, y1 = map(float, lines[-1].split()[4:8])
    assert 0.0 < x0 < x1 < 621.0 and 0.0 < y0 < y1, "to the left of the middle"
    assert benchmark_calibration(tmp_path / "training" / "calib" / "000000.txt").velo_to_rect == pytest.approx(AHEAD)


def test_what_the_camera_does_not_see_has_no_line_in_kittis_file() -> None:
    behind = boxes([(-12.0, 0.0, 0.0, 4.0, 1.8, 1.5, 0.0, "car"), (12.0, 0.0, 0.0, 4.0, 1.8, 1.5, 0.0, "car")])
    frame = KittiFrame(POINTS[:, :4], behind, behind.take(np.zeros(2, bool)), lidar_alone())
    assert frame.seen.tolist() == [False, True] and len(list(frame._lines())) == 1


@settings(deadline=None, max_examples=60)
@given(rows=BOXES)
def test_a_projected_box_is_around_the_projected_corners(
    rows: list[tuple[float, float, float, float, float, float, float, str]],
) -> None:
    objects, k = boxes(rows), np.array([[300.0, 0, 400.0], [0, 300.0, 200.0], [0, 0, 1.0]])
    found = projected_boxes(objects, AHEAD, k, (800, 400))
    for i in range(len(objects)):
        c, s = np.cos(objects.yaw_rad[i]), np.sin(objects.yaw_rad[i])
        half = objects.size_m[i] / 2.0
        corners = np.array([[a, b, h] for a in (-1, 1) for b in (-1, 1) for h in (-1, 1)]) * half
        xyz = corners @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]) + objects.center_m[i]
        if xyz[:, 0].min() < 0.2:
            continue
        pixels = np.column_stack([400.0 - 300.0 * xyz[:, 1] / xyz[:, 0], 200.0 - 300.0 * xyz[:, 2] / xyz[:, 0]])
        edges = np.concatenate([pixels.min(axis=0), pixels.max(axis=0)])
        if (edges[:2] < (799.5, 399.5)).all() and (edges[2:] > -0.5).all():
            np.testing.assert_allclose(found[i], np.clip(edges, -0.5, [799.5, 399.5] * 2), atol=1e-6)
        else:
            assert np.isnan(found[i]).all()


def test_a_box_that_the_camera_stands_in_reaches_the_edges() -> None:
    near = boxes([(1.0, 0.0, 0.0, 4.0, 2.0, 2.0, 0.0, "car")])
    assert image_boxes(near, lidar_alone(), (1242, 375)).tolist() == [[-0.5, -0.5, 1241.5, 374.5]]


def test_nuscenes_tables_are_read_again(tmp_path: Path) -> None:
    objects = boxes([(12.0, 1.0, -0.9, 4.0, 1.8, 1.5, 0.3, "car"), (9.0, -3.0, -0.8, 1.9, 0.6, 1.7, 2.0, "cyclist")])
    mount = np.array([0.9, 0.0, 1.8])
    _, png = cv2.imencode(".png", np.full((4, 6, 3), 7, np.uint8))
    camera = np.linalg.inv(AHEAD)
    camera[:3, 3] = (1.5, 0.0, 1.4)
    k = np.array([[5.0, 0, 3.0], [0, 5.0, 2.0], [0, 0, 1.0]])
    tables = NuscenesTables(tmp_path)
    frame = NuscenesFrame("exported-r", 1_000_000, POINTS, objects, np.array([7, 9]), mount)
    tables.add("000000", frame)
    tables.add("000001", replace(frame, stamp_us=2_000_000, picture=(png.tobytes(), ".png", (6, 4), k, camera)))
    tables.write()
    recording = open_dataset(DatasetName.parse(f"nuscenes:{tmp_path}"))
    lidar = next(topic for topic in recording.topics if topic.topic == "/LIDAR_TOP")
    assert list(lidar.stamps_ns) == [1_000_000_000, 2_000_000_000]
    truth = recording.labels(lidar.stamps_ns[1])
    assert truth is not None and truth.points.tolist() == [7, 9]
    # A rider is no object of its own in nuScenes: its bicycle is.
    same(truth.objects, replace(objects, center_m=objects.center_m + mount, label=np.array(["car", "bicycle"])), 1e-6)


def test_nuscenes_development_kit_reads_what_we_write(tmp_path: Path) -> None:
    nuscenes = pytest.importorskip("nuscenes", reason="nuscenes-devkit is not installed")
    objects = boxes([(12.0, 1.0, -0.9, 4.0, 1.8, 1.5, 0.3, "car")])
    tables = NuscenesTables(tmp_path)
    tables.add("000000", NuscenesFrame("s", 1_000_000, POINTS, objects, np.array([7]), np.zeros(3)))
    tables.write()
    kit = nuscenes.NuScenes("v1.0-trainval", str(tmp_path), verbose=False)
    (annotation,) = kit.sample_annotation
    assert kit.get_box(annotation["token"]).orientation.yaw_pitch_roll[0] == pytest.approx(0.3)


PIXELS = st.tuples(st.floats(-0.5, 300.0), st.floats(-0.5, 200.0), st.floats(0.5, 100.0), st.floats(0.5, 100.0))


@settings(deadline=None, max_examples=30)
@given(rows=st.lists(PIXELS, max_size=4), name=st.sampled_from(("coco", "yolo")))
def test_pictures_with_boxes_are_read_again(
    rows: list[tuple[float, float, float, float]], name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("export")
    folder = home / ("images" if name == "coco" else "images/train")
    folder.mkdir(parents=True)
    edges = np.array([(x, y, x + w, y + h) for x, y, w, h in rows]).reshape(-1, 4)
    labels = [("person", "car")[i % 2] for i in range(len(rows))]
    written = ImageBoxes.make("camera", None, edges, labels, np.linspace(0.5, 0.9, len(rows)))
    ignored = ImageBoxes.make("camera", None, [[1.0, 2.0, 5.0, 8.0]], ["truck"])
    cv2.imwrite(str(folder / "000000.png"), np.zeros((300, 400, 3), np.uint8))
    picture = BoxedPicture(folder / "000000.png", (400, 300), written, ignored)
    (write_coco if name == "coco" else write_yolo)(home, [picture])
    (found,) = read_boxed_pictures(home)
    assert (found.path, found.size_px) == (picture.path, (400, 300))
    assert found.boxes.label.tolist() == labels
    np.testing.assert_allclose(found.boxes.box_px, edges, atol=2e-3)
    assert len(found.ignored) == (1 if name == "coco" else 0), "YOLO has no place for it"
    if name == "coco":
        np.testing.assert_allclose(found.boxes.score, written.score, atol=1e-6)


def test_cocos_own_reader_takes_our_file(tmp_path: Path) -> None:
    coco = pytest.importorskip("pycocotools.coco", reason="pycocotools is not installed")
    (tmp_path / "images").mkdir()
    one = ImageBoxes.make("camera", None, [[1.0, 2.0, 5.0, 8.0]], ["car"])
    picture = BoxedPicture(tmp_path / "images" / "000000.png", (40, 30), one, ImageBoxes.none("camera", None))
    write_coco(tmp_path, [picture])
    table = coco.COCO(str(tmp_path / "annotations" / "instances_train.json"))
    (row,) = table.loadAnns(table.getAnnIds(imgIds=[1], iscrowd=False))
    assert row["bbox"] == [1.5, 2.5, 4.0, 6.0] and row["area"] == 24.0


def test_a_folder_that_is_none_is_refused_and_a_damaged_one_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected a folder of `mt replay failures export`"):
        read_boxed_pictures(tmp_path)
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations" / "instances_train.json").write_text('{"images": [')
    with pytest.raises(InfrastructureError, match="cannot be read"):
        read_boxed_pictures(tmp_path)
