# SPDX-License-Identifier: Apache-2.0
"""Networks in files as stacks: what each family's outputs mean, and whole networks that the tests make themselves."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
pytest.importorskip("onnx", reason="the tests make their networks with it")

from made_onnx import bright_box, brightness, high_places

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.jsonl import read_result
from mt_nodes.base.network_file import _named
from mt_nodes.base.params import plain
from mt_nodes.cli.main import main
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.stacks.callables import load_callable
from mt_nodes.stacks.networks import cloud_decoders, picture_decoders
from mt_nodes.stacks.networks.cloud_decoders import Anchor
from mt_nodes.stacks.networks.cloud_form import CloudForm
from mt_nodes.stacks.networks.network_stack import network_stack
from mt_nodes.stacks.networks.picture_decoders import PICTURE_DECODERS
from mt_nodes.stacks.networks.picture_form import PictureForm
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e

SIZE, CLASSES = (128, 96), 3
#: Boxes in pixels of the input: edges, score, class.
BOXES = np.array([[10.0, 20.0, 50.0, 60.0], [70.0, 8.0, 100.0, 90.0]])
SCORES, KINDS = np.array([0.8, 0.6]), np.array([2, 0])
MIDDLES = np.column_stack([(BOXES[:, :2] + BOXES[:, 2:]) / 2, BOXES[:, 2:] - BOXES[:, :2]])


def one_hot(scale: float = 1.0) -> np.ndarray:
    out = np.full((2, CLASSES), 0.01)
    out[np.arange(2), KINDS] = SCORES * scale
    return out


def grid_rows(strides: tuple[int, ...], fill: np.ndarray) -> tuple[np.ndarray, list[tuple[int, float, float, int]]]:
    """Return rows of all points, and for each box the row, the point (column, row), and the stride it is said at."""
    rows, at, before = [], [], 0
    for stride in strides:
        columns, lines = -(-SIZE[0] // stride), -(-SIZE[1] // stride)
        rows.append(np.tile(fill, (columns * lines, 1)))
        if stride == strides[1]:
            for x, y in MIDDLES[:, :2]:
                column, line = int(x // stride), int(y // stride)
                at.append((before + line * columns + column, column, line, stride))
        before += columns * lines
    return np.concatenate(rows), at


def yolov5() -> dict[str, np.ndarray]:
    return {"output": np.concatenate([MIDDLES, np.full((2, 1), 0.5), one_hot(2.0)], axis=1)[None]}


def yolov8() -> dict[str, np.ndarray]:
    return {"output0": np.concatenate([MIDDLES, one_hot()], axis=1).T[None]}


def end_to_end() -> dict[str, np.ndarray]:
    return {"output0": np.column_stack([BOXES, SCORES, KINDS])[None]}


def yolox() -> dict[str, np.ndarray]:
    rows, at = grid_rows((8, 16, 32), np.zeros(5 + CLASSES))
    for i, (row, column, line, stride) in enumerate(at):
        middle = MIDDLES[i, :2] / stride - (column, line)
        rows[row] = [*middle, *np.log(MIDDLES[i, 2:] / stride), 0.5, *one_hot(2.0)[i]]
    return {"output": rows[None]}


def nanodet(strides: tuple[int, ...] = (8, 16, 32, 64), offset: float = 0.0) -> dict[str, np.ndarray]:
    bins = 8
    rows, at = grid_rows(strides, np.zeros(CLASSES + 4 * bins))
    for i, (row, column, line, stride) in enumerate(at):
        here = (np.array([column, line]) + offset) * stride
        away = np.concatenate([here - BOXES[i, :2], BOXES[i, 2:] - here]) / stride
        # Of two bins side by side, shared so that their mean is the distance.
        logits = np.full((4, bins), -50.0)
        for edge, distance in enumerate(away):
            low = min(int(distance), bins - 2)
            logits[edge, low], logits[edge, low + 1] = np.log([low + 1 - distance + 1e-12, distance - low + 1e-12])
        rows[row] = [*one_hot()[i], *logits.ravel()]
    return {"output": rows[None]}


def fastestdet() -> dict[str, np.ndarray]:
    columns, lines = SIZE[0] // 16, SIZE[1] // 16
    planes = np.zeros((5 + CLASSES, lines, columns))
    planes[1:5] = -20.0
    for i, (x, y, width, height) in enumerate(MIDDLES):
        column, line = int(x // 16), int(y // 16)
        place = np.arctanh([x / 16 - column, y / 16 - line])
        share = np.array([width / SIZE[0], height / SIZE[1]])
        planes[1:5, line, column] = [*place, *np.log(share / (1 - share))]
        planes[0, line, column], planes[5 + KINDS[i], line, column] = SCORES[i], SCORES[i]
    return {"output": planes[None]}


def ssd() -> dict[str, np.ndarray]:
    likely = np.concatenate([np.full((2, 1), 0.1), one_hot()], axis=1)
    return {"scores": likely[None], "boxes": (BOXES / np.tile(SIZE, 2))[None]}


def tensorflow() -> dict[str, np.ndarray]:
    shares = (BOXES / np.tile(SIZE, 2))[:, [1, 0, 3, 2]]
    names = ("num_detections", "detection_boxes:0", "detection_scores:0", "detection_classes:0")
    return dict(zip(names, (np.array([2.0]), shares[None], SCORES[None], KINDS[None] + 1.0), strict=True))


def torchvision() -> dict[str, np.ndarray]:
    return {"boxes": BOXES, "labels": KINDS, "scores": SCORES}


FAMILIES = {
    f.__name__: f for f in (yolov5, yolov8, end_to_end, yolox, nanodet, fastestdet, ssd, tensorflow, torchvision)
}


def test_every_family_is_tried() -> None:
    assert set(FAMILIES) == set(PICTURE_DECODERS)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_outputs_of_a_family_are_its_boxes(family: str) -> None:
    edges, score, kind = PICTURE_DECODERS[family][0](FAMILIES[family](), SIZE, CLASSES)
    best = [int(np.abs(edges - box).sum(axis=1).argmin()) for box in BOXES]
    assert edges[best] == pytest.approx(BOXES, abs=1e-4)
    assert score[best] == pytest.approx(SCORES, abs=1e-6) and kind[best].tolist() == KINDS.tolist()
    others = np.delete(score, best)
    assert not len(others) or others.max() < 0.05


def test_the_first_nanodet_says_its_strides_apart() -> None:
    rows = nanodet((8, 16, 32), offset=0.5)["output"][0]
    ends = np.cumsum([0, 16 * 12, 8 * 6, 4 * 3])
    parts = [rows[a:b] for a, b in pairwise(ends)]
    # As exports have them: in whatever order, some with a dimension for the batch.
    heads = {f"cls{i}": part[None, :, :CLASSES] for i, part in enumerate(parts)}
    heads |= {f"box{i}": parts[i][:, CLASSES:] for i in (2, 0, 1)}
    edges, score, kind = PICTURE_DECODERS["nanodet"][0](heads, SIZE, CLASSES)
    best = score.argsort()[::-1][:2]
    assert edges[best] == pytest.approx(BOXES, abs=1e-4) and score[best] == pytest.approx(SCORES)
    assert kind[best].tolist() == KINDS.tolist()
    with pytest.raises(UsageError, match=r"cls0 .*, expected for each stride"):
        PICTURE_DECODERS["nanodet"][0]({k: heads[k] for k in ("cls0", "cls1", "box0")}, SIZE, CLASSES)


@pytest.mark.parametrize("family", FAMILIES)
def test_outputs_of_another_form_are_refused(family: str) -> None:
    bad = {"output": np.zeros((1, 7, 7, 7, 7))}
    with pytest.raises(UsageError, match=r"expected"):
        PICTURE_DECODERS[family][0](bad, SIZE, CLASSES)


def test_a_wrong_number_of_labels_is_said() -> None:
    with pytest.raises(UsageError, match=r"8 numbers a box, expected 5 \+ 80 classes"):
        picture_decoders.yolov5(yolov5(), SIZE, 80)


def picture(width: int, height: int, box: tuple[int, int, int, int]) -> np.ndarray:
    """A dark picture with a bright box: left, upper, right and lower pixel, all of them bright."""
    image = np.full((height, width, 3), 20, dtype=np.uint8)
    x0, y0, x1, y1 = box
    image[y0 : y1 + 1, x0 : x1 + 1] = 250
    return image


@given(st.sampled_from(["stretch", "letterbox", "corner"]), st.integers(0, 2**16))
def test_a_box_is_found_where_it_is_however_the_picture_is_made_to_fit(fit: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    width, height = (int(n) for n in rng.integers(64, 300, 2))
    x0, y0 = int(rng.integers(0, width - 30)), int(rng.integers(0, height - 30))
    x1, y1 = int(rng.integers(x0 + 20, width)), int(rng.integers(y0 + 20, height))
    found = network(fit)(picture(width, height, (x0, y0, x1, y1)))
    assert len(found) == 1 and found.label.tolist() == ["lamp"] and found.score.tolist() == pytest.approx([0.9])
    # To a pixel of the network's input, in pixels of the picture.
    scale = (width / 64, height / 64) if fit == "stretch" else (max(width, height) / 64,) * 2
    off = np.abs(found.box_px[0] - (x0 - 0.5, y0 - 0.5, x1 + 0.5, y1 + 0.5))
    assert (off <= np.tile(scale, 2) + 0.5).all(), (found.box_px, off, scale)


@pytest.mark.parametrize(("fit", "rows"), [("corner", 46), ("letterbox", 47)])
def test_a_fraction_of_a_pixel_is_cut_off_as_yolox_does_or_rounded_as_yolov5(fit: str, rows: int) -> None:
    white = np.full((73, 100, 3), 255, np.uint8)  # 46.72 rows of the input
    tensor, _ = PictureForm(fit=fit, grey=0).tensor(white, (64, 64))
    assert tensor[0, 0].any(axis=1).sum() == rows


def test_boxes_of_a_picture_that_is_cropped_are_those_of_the_picture() -> None:
    image = picture(200, 100, (60, 40, 119, 79))
    image[:20] = image[:, 180:] = 250  # cut off: neither seen nor counted
    (box,) = network("letterbox", crop=(0.05, 0.2, 0.1, 0.0))(image).box_px
    assert box == pytest.approx([59.5, 39.5, 119.5, 79.5], abs=170 / 64 + 0.5)


@pytest.mark.parametrize("crop", [(0.5, 0.0, 0.5, 0.0), (0.1, 0.1)])
def test_a_crop_that_leaves_nothing_is_refused(crop: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match=r"picture.crop: got .*, expected four shares that leave something"):
        network("stretch", crop=crop)(picture(64, 64, (10, 10, 30, 30)))


def test_colours_as_brightness_and_two_differences() -> None:
    form = PictureForm(order="yuv", spread=(1.0,))
    grey, red = np.full((4, 4, 3), 77, np.uint8), np.zeros((4, 4, 3), np.uint8)
    red[..., 0] = 255
    assert form.tensor(grey, (4, 4))[0][0, :, 0, 0].tolist() == [77.0, 128.0, 128.0]
    # BT.601: Y = 0.299 R, U = 128 + 0.492 (B - Y), V = 128 + 0.877 (R - Y), which is cut at 255.
    assert form.tensor(red, (4, 4))[0][0, :, 0, 0].tolist() == pytest.approx([76.2, 90.5, 255.0], abs=1.0)


_MADE: dict[str, Any] = {}


def network(fit: str, **form: Any) -> Any:
    if "path" not in _MADE:
        import tempfile

        _MADE["folder"] = tempfile.TemporaryDirectory()
        _MADE["path"] = bright_box(Path(_MADE["folder"].name) / "bright.onnx")
    key = f"{fit} {form}"
    if key not in _MADE:
        params = {"picture": {"fit": fit, "grey": 0, **form}, "labels": ("lamp",)}
        _MADE[key] = network_stack(str(_MADE["path"]), "onnx", "yolov8", **params)
    return _MADE[key]


def test_nothing_bright_is_no_box_and_a_low_score_is_dropped(tmp_path: Path) -> None:
    assert len(network("stretch")(np.zeros((64, 64, 3), np.uint8))) == 0
    shy = network_stack(str(bright_box(tmp_path / "shy.onnx", score=0.2)), "onnx", "yolov8", score=0.25)
    assert len(shy(picture(64, 64, (10, 10, 30, 30)))) == 0


def test_a_network_of_any_size_sees_the_picture_as_it_is(tmp_path: Path) -> None:
    file = str(bright_box(tmp_path / "any.onnx", ("width", "height")))
    found = network_stack(file, "onnx", "yolov8")(picture(100, 70, (10, 20, 39, 49)))
    assert found.box_px.tolist() == [[9.5, 19.5, 39.5, 49.5]] and found.label.tolist() == ["0"]


def test_boxes_that_overlap_are_one_and_of_two_classes_two() -> None:
    from mt_nodes.stacks.networks.network_stack import _suppressed

    edges = np.array([[0.0, 0.0, 10.0, 10.0], [1.0, 1.0, 11.0, 11.0], [50.0, 50.0, 60.0, 60.0], [0.0, 0.0, 10.0, 10.0]])
    kind = np.array([0, 0, 0, 1])
    assert _suppressed(edges, np.array([0.6, 0.9, 0.5, 0.7]), kind, 0.25, 0.45).tolist() == [1, 3, 2]


HEADS_FORM = {"layout": "maps", "maps": ["height"], "x_m": [0.0, 40.0], "y_m": [-20.0, 20.0], "cell_m": 0.5}


def test_obstacles_are_where_a_network_of_centerpoints_form_says(tmp_path: Path) -> None:
    stack = network_stack(
        str(high_places(tmp_path / "high.onnx", 80, 80)), "onnx", "centerpoint", cloud=HEADS_FORM, labels=["car"]
    )
    points = np.array([[10.3, -3.7, 0.5, 1.0], [30.1, 8.2, 0.8, 0.2], [-5.0, 0.0, 0.5, 0.0], [20.0, 0.0, 9.0, 0.0]])
    found = stack(points.astype(np.float32))
    assert found.center_m.tolist() == pytest.approx(np.array([[30.25, 8.25, -0.9], [10.25, -3.75, -0.9]]), abs=1e-6)
    assert found.size_m == pytest.approx(np.tile((4.0, 2.0, 1.5), (2, 1)), abs=1e-6)
    assert found.yaw_rad == pytest.approx([0.3, 0.3], abs=1e-6) and found.label.tolist() == ["car", "car"]
    assert found.score == pytest.approx([0.95, 0.875], abs=1e-5)


def test_of_obstacles_on_one_place_the_better_stays(tmp_path: Path) -> None:
    stack = network_stack(str(high_places(tmp_path / "high.onnx", 80, 80)), "onnx", "centerpoint", cloud=HEADS_FORM)
    near = np.array([[10.3, 0.2, 0.5, 0.0], [11.8, 0.2, 0.9, 0.0]], dtype=np.float32)
    assert stack(near).score == pytest.approx([0.975], abs=1e-5)


def pointpillars(yaw: float) -> tuple[dict[str, np.ndarray], list[float]]:
    """Planes of two anchors that say one car at row 3, column 5 of 8 x 10, and the car."""
    anchor_yaw, turned = (np.pi / 2, 1) if abs(np.sin(yaw)) > 0.7 else (0.0, 0)
    box = [11.4, -1.9, -0.8, 4.2, 1.8, 1.6, yaw]
    x, y, z = 5.5 * 2.0, -8.0 + 3.5 * 2.0, -1.78 + 1.56 / 2
    diagonal = np.hypot(3.9, 1.6)
    half = np.mod(yaw, 2 * np.pi) >= np.pi
    differs = [(box[0] - x) / diagonal, (box[1] - y) / diagonal, (box[2] - z) / 1.56]
    differs += [*np.log(np.array(box[3:6]) / (3.9, 1.6, 1.56)), np.mod(yaw, np.pi) - anchor_yaw]
    classes, boxes, ways = np.full((1, 2 * 3, 8, 10), -9.0), np.zeros((1, 2 * 7, 8, 10)), np.zeros((1, 2 * 2, 8, 10))
    classes[0, 3 * turned + 1, 3, 5] = 2.0
    boxes[0, 7 * turned : 7 * turned + 7, 3, 5] = differs
    ways[0, 2 * turned + int(half), 3, 5] = 1.0
    return {"classes": classes, "boxes": boxes, "directions": ways}, box


@pytest.mark.parametrize("yaw", [0.2, 1.4, 2.9, 3.5, 4.6, 6.1])
def test_obstacles_are_read_from_planes_of_anchors(yaw: float) -> None:
    outputs, box = pointpillars(yaw)
    form = CloudForm(x_m=(0.0, 20.0), y_m=(-8.0, 8.0), cell_m=1.0)
    boxes, score, kind = cloud_decoders.pointpillars(outputs, form, (Anchor(),))
    assert boxes[0, :6].tolist() == pytest.approx(box[:6]) and kind[0] == 1
    assert np.cos(boxes[0, 6] - yaw) == pytest.approx(1.0) and score[0] == pytest.approx(1 / (1 + np.exp(-2.0)))
    assert score[1] < 0.01


@pytest.mark.parametrize("offset", [-np.pi / 2, 0.7854])
@pytest.mark.parametrize("yaw", [0.05, -0.05, 1.4, -1.4, 3.1])
def test_a_direction_is_of_the_half_turn_that_it_is_trained_for(yaw: float, offset: float) -> None:
    outputs, _ = pointpillars(yaw)
    ways = np.zeros((1, 4, 8, 10))
    ways[0, int(np.mod(yaw - offset, 2 * np.pi) >= np.pi) :: 2] = 1.0
    form = CloudForm(x_m=(0.0, 20.0), y_m=(-8.0, 8.0), cell_m=1.0)
    anchors = (Anchor(direction_offset_rad=offset),)
    boxes, _, _ = cloud_decoders.pointpillars({**outputs, "directions": ways}, form, anchors)
    assert np.cos(boxes[0, 6] - yaw) == pytest.approx(1.0)


def test_sizes_and_angle_of_nuscenes_are_turned(tmp_path: Path) -> None:
    file = str(high_places(tmp_path / "high.onnx", 80, 80))
    found = network_stack(file, "onnx", "centerpoint", cloud=HEADS_FORM, sizes="wlh")(
        np.array([[10.3, -3.7, 0.5, 1.0]], dtype=np.float32)
    )
    assert found.size_m[0] == pytest.approx((2.0, 4.0, 1.5)) and found.yaw_rad[0] == pytest.approx(-np.pi / 2 - 0.3)


def test_a_head_that_is_there_twice_is_refused() -> None:
    """A network of two tasks: one of its heatmaps alone would leave the classes of the other out."""
    heads = {"hm": 1, "reg": 2, "height": 1, "dim": 3, "rot": 2}
    outputs = {f"{name}{task}": np.zeros((1, n, 80, 80)) for task in ("", "_1") for name, n in heads.items()}
    with pytest.raises(UsageError, match=r"hm \(1, 1, 80, 80\).*hm_1.* expected one called hm or heatmap"):
        cloud_decoders.centerpoint(outputs, CloudForm(**HEADS_FORM), ())


@pytest.mark.parametrize("count", [1, 2, 7, 9])
@pytest.mark.parametrize("batch", [True, False])
def test_rows_with_their_own_suppression_are_read(count: int, batch: bool) -> None:
    rows, score = np.arange(7.0 * count).reshape(count, 7), np.linspace(0.9, 0.1, count)
    outputs = {"scores": score, "labels": np.arange(count), "boxes": rows}
    outputs = {name: value[None] if batch else value for name, value in outputs.items()}
    found = cloud_decoders.boxes3d(outputs, CloudForm(), ())
    assert [part.tolist() for part in found] == [rows.tolist(), score.tolist(), list(range(count))]


@given(st.integers(0, 2**32 - 1), st.sampled_from(["raw", "maps", "pillars"]))
def test_the_order_of_points_is_nothing_to_what_a_network_is_given(seed: int, layout: str) -> None:
    rng = np.random.default_rng(seed)
    form = CloudForm(layout=layout, x_m=(0.0, 20.0), y_m=(-8.0, 8.0), cell_m=1.0, max_points=3, max_pillars=20)
    points = rng.uniform((-2, -9, -4, 0), (22, 9, 2, 1), (300, 4)).astype(np.float32)
    for one, other in zip(form.tensors(points, ()), form.tensors(rng.permutation(points), ()), strict=True):
        assert np.array_equal(one, other)


def test_pillars_hold_the_points_of_their_cells() -> None:
    form = CloudForm(layout="pillars", x_m=(0.0, 20.0), y_m=(-8.0, 8.0), cell_m=1.0, max_points=2)
    rows = [[3.5, 1.5, 0.0, 0.1], [3.6, 1.5, 0.0, 0.2], [3.7, 1.5, 0.0, 0.3], [9.5, -7.5, -1.0, 0.4]]
    voxels, counts, places = form.tensors(np.array(rows, dtype=np.float32), ())
    assert voxels.shape == (2, 2, 4) and counts.tolist() == [2, 1]
    assert places.tolist() == [[0, 0, 9, 3], [0, 0, 0, 9]]
    assert voxels[0, :, 0].tolist() == pytest.approx([3.5, 3.6]) and voxels[1, 1].tolist() == [0.0] * 4


def test_a_command_is_made_of_what_a_driving_network_says(tmp_path: Path) -> None:
    file = str(brightness(tmp_path / "drive.onnx"))
    image = np.zeros((96, 128, 3), np.uint8)
    image[..., 0], image[..., 1] = 51, 102  # red and green: 0.2 and 0.4
    told = {"unit": "share", "full_lock_deg": 30.0, "positive": "right", "speed": 1}
    command = network_stack(file, "onnx", "steering", steering=told)(image).control
    assert command.steering_rad == pytest.approx(-0.2 * np.radians(30.0), abs=1e-6)
    assert command.speed_mps == pytest.approx(4.0, abs=1e-5)
    swapped = network_stack(file, "onnx", "steering", picture={"order": "bgr"})(image).control
    assert swapped.steering_rad == pytest.approx(-0.2, abs=1e-6) and np.isnan(swapped.speed_mps)


def test_a_first_look_at_a_driving_network_says_what_it_commands(
    lamp_drive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    brightness(tmp_path / "drive.onnx")
    rows = {"onnx": "drive.onnx", "network": {"output": "steering", "steering": {"unit": "share", "speed": 1}}}
    words = ["doctor", "--no-probe", "--stack", str(stack_file(tmp_path, **rows)), "--bag", str(lamp_drive)]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "commands: steering_rad" in printed and "commands: speed_mps" in printed and "saw nothing" not in printed


def stack_file(folder: Path, **rows: Any) -> Path:
    (folder / "net.yaml").write_text(yaml.safe_dump(rows))
    return folder / "net.yaml"


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ({"onnx": "none.onnx", "network": {"output": "yolov8"}}, "onnx: no file"),
        ({"onnx": "text.onnx", "network": {"output": "yolov8"}}, "no network can be read"),
        (
            {"onnx": "net.onnx"},
            "lacks network, expected beside onnx what the network says, such as network: {outp",
        ),
        ({"onnx": "net.onnx", "network": {"output": "yolo9000"}}, "expected one of yolov5, yolov8"),
        ({"onnx": "net.onnx", "network": {"output": "yolov8", "labls": ["a"]}}, "unknown parameter 'labls'"),
        ({"onnx": "net.onnx", "network": {"output": "yolov8", "picture": {"fit": "best"}}}, "network.picture.fit"),
        ({"onnx": "net.onnx", "network": {"output": "centerpoint", "picture": {}}}, "unknown parameter 'picture'"),
        ({"onnx": "net.onnx", "network": {"output": "yolov8"}, "command": ["x"]}, "a network starts alone"),
        ({"callable": "a:b", "network": {"output": "yolov8"}}, "network: got no file"),
        ({"onnx": "net.onnx", "torchscript": "n.pt", "network": {"output": "yolov8"}}, "a network starts alone"),
    ],
)
def test_a_stack_file_that_is_wrong_says_what_to_write(rows: dict[str, Any], says: str, tmp_path: Path) -> None:
    bright_box(tmp_path / "net.onnx")
    (tmp_path / "text.onnx").write_text("no network")
    with pytest.raises(UsageError) as error:
        load_callable(load_stack(str(stack_file(tmp_path, **rows))))
    assert says in str(error.value)


def test_an_input_of_another_size_is_refused_by_name(tmp_path: Path) -> None:
    file = str(bright_box(tmp_path / "net.onnx"))
    stack = network_stack(file, "onnx", "yolov8", picture={"size": [320, 320]})
    with pytest.raises(UsageError, match=r"got \[320, 320\], but its file says width and height \(64, 64\)"):
        stack(picture(64, 64, (10, 10, 30, 30)))


def test_outputs_that_are_read_as_another_family_are_said_with_the_networks_name(tmp_path: Path) -> None:
    stack = network_stack(str(bright_box(tmp_path / "net.onnx")), "onnx", "nanodet", labels=["a", "b"])
    with pytest.raises(InfrastructureError, match=r"net.onnx, read as nanodet: .*expected"):
        stack(picture(64, 64, (10, 10, 30, 30)))


def test_what_is_no_number_is_no_empty_answer(tmp_path: Path) -> None:
    stack = network_stack(str(bright_box(tmp_path / "net.onnx", score=float("nan"))), "onnx", "yolov8")
    with pytest.raises(InfrastructureError, match="1 of 5 numbers of 'output0' are NaN"):
        stack(picture(64, 64, (10, 10, 30, 30)))


def test_outputs_of_one_name_are_refused() -> None:
    part = SimpleNamespace(detach=lambda: SimpleNamespace(cpu=lambda: SimpleNamespace(numpy=lambda: np.zeros(2))))
    assert list(_named([{"hm": part}, (part,)])) == ["hm", "output10"]
    with pytest.raises(ValueError, match="several of its outputs have one name: hm, hm"):
        _named([{"hm": part}, {"hm": part}])


def test_logits_are_no_scores(tmp_path: Path) -> None:
    stack = network_stack(str(bright_box(tmp_path / "net.onnx", score=3.5)), "onnx", "yolov8")
    with pytest.raises(InfrastructureError, match=r"read as yolov8: got the score 3.5, expected 0 to 1"):
        stack(picture(64, 64, (10, 10, 30, 30)))


def test_a_class_beyond_the_labels_is_said(tmp_path: Path) -> None:
    """Of a network that counts from 1 each class would be called as the one after it."""
    stack = network_stack(str(high_places(tmp_path / "high.onnx", 80, 80)), "onnx", "centerpoint", labels=["a"])
    assert stack._names(np.array([0, 0]), stack.labels) == ["a", "a"]
    with pytest.raises(InfrastructureError, match="got the class 1, expected 0 to 0, as labels name 1"):
        stack._names(np.array([0, 1]), stack.labels)


def test_an_input_of_whole_numbers_is_given_no_fractions(tmp_path: Path) -> None:
    file = str(bright_box(tmp_path / "net.onnx", whole=True))
    with pytest.raises(InfrastructureError, match=r"'image' takes whole numbers, and is given fractions"):
        network_stack(file, "onnx", "yolov8")(picture(64, 64, (10, 10, 30, 30)))
    assert len(network_stack(file, "onnx", "yolov8", picture={"spread": [1.0]})(picture(64, 64, (10, 10, 30, 30)))) == 1


def test_a_saved_stack_file_is_set_like_the_first(tmp_path: Path) -> None:
    bright_box(tmp_path / "net.onnx")
    first = load_stack(str(stack_file(tmp_path, onnx="net.onnx", network={"output": "yolov8", "score": 0.3})))
    (tmp_path / "saved.yaml").write_text(yaml.safe_dump(plain(first)))
    assert plain(load_stack(str(tmp_path / "saved.yaml"))) == plain(first)
    assert load_stack(str(tmp_path / "saved.yaml"), {"network.score": 0.7}).params == {**first.params, "score": 0.7}


@pytest.fixture(scope="module")
def lamp_drive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A drive of enough pictures for a verdict, each of a lamp of a brightness of 200 of 255."""
    path = tmp_path_factory.mktemp("drives") / "drive"
    bundles = generate_drive(24, 3, replace(hdl_64e(), azimuths=300), CameraSensor(width=160, height=120))
    lamp = np.clip(picture(160, 120, (30, 10, 90, 110)), 0, 200)
    write_bundles(path, [replace(b, images=(replace(b.images[0], pixels=lamp),)) for b in bundles])
    return path


@pytest.mark.parametrize(("share", "code", "violated"), [(0.5, 0, 0), (0.97, 3, 24)])
def test_a_run_with_a_network_by_one_file(
    share: float, code: int, violated: int, lamp_drive: Path, tmp_path: Path
) -> None:
    """A network that sees what is very bright sees nothing any more in a picture darker by a tenth.

    All pictures show one scene, which is one observation: too little to blame the relation for.
    """
    bright_box(tmp_path / "net.onnx", level=share * 200.0 / 255.0)
    stack = stack_file(tmp_path, onnx="net.onnx", network={"output": "yolov8", "labels": ["lamp"]}, classes=["lamp"])
    loaded = load_stack(str(stack))
    assert loaded.stateless and loaded.map_free
    assert (list(loaded.inputs), list(loaded.outputs)) == (["camera"], ["boxes"])
    words = ["--stack", str(stack), "--transport", "inprocess", "--relations", "brightness_lowered_boxes"]
    got = main(["replay", str(lamp_drive), *words, "--out", str(tmp_path / "out")])
    relation = read_result(tmp_path / "out" / "summary.json")["relations"]["brightness_lowered_boxes"]
    assert (got, relation["decided"], relation["violated"], relation["control"]["decided"]) == (code, 24, violated, 24)
