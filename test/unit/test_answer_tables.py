# SPDX-License-Identifier: Apache-2.0
"""What people's models return is read where it can mean one thing only, and refused with their own first row else."""

from __future__ import annotations

import math
from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.params import build
from mt_nodes.data.messages import Image
from mt_nodes.data.outputs import Output
from mt_nodes.data.transforms import TransformTree
from mt_nodes.stacks.callable_host import CallableHost, as_output
from mt_nodes.stacks.stack import Stack

Box = namedtuple("Box", "x y z length width height yaw score label")


@dataclass
class Obstacle:
    center: tuple[float, float, float]
    size: tuple[float, float, float]
    heading: float
    confidence: float
    class_name: str
    track_id: int


class Tensor:
    """What a tensor on a GPU that needs a gradient allows."""

    def __init__(self, rows: Any) -> None:
        self.rows = np.asarray(rows)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    def detach(self) -> Any:
        return SimpleNamespace(cpu=lambda: SimpleNamespace(numpy=lambda: self.rows))


FIRST, SECOND = (1, 2, 3, 4.5, 1.8, 1.5, 0.25), (9, -2, 3, 0.6, 0.7, 1.7, -1.0)
NAMES = ["x", "y", "z", "length", "width", "height", "yaw"]
STRUCTURED = np.array(
    [(*FIRST, 0.9, "car"), (*SECOND, 0.4, "person")],
    dtype=[*((name, "f8") for name in NAMES), ("score", "f4"), ("label", "U10")],
)
ANSWERS = {
    "list of dicts": [
        {**dict(zip(NAMES, FIRST, strict=True)), "score": 0.9, "label": "car", "points": 17},
        {**dict(zip(NAMES, SECOND, strict=True)), "score": 0.4, "label": "person", "points": 3},
    ],
    "dataclasses": [
        Obstacle(FIRST[:3], FIRST[3:6], FIRST[6], 0.9, "car", 1),
        Obstacle(SECOND[:3], SECOND[3:6], SECOND[6], 0.4, "person", 2),
    ],
    "named tuples": [Box(*FIRST, 0.9, "car"), Box(*SECOND, 0.4, "person")],
    "objects": [
        SimpleNamespace(position=list(b[:3]), lwh=np.array(b[3:6]), yaw=b[6], conf=s, category=c)
        for b, s, c in ((FIRST, 0.9, "car"), (SECOND, 0.4, "person"))
    ],
    "structured array": STRUCTURED,
    "OpenPCDet's tensors": {
        "pred_boxes": Tensor([FIRST, SECOND]),
        "pred_scores": Tensor([0.9, 0.4]),
        "pred_labels": ["car", "person"],
    },
    "boxes, scores, classes": (np.array([FIRST, SECOND]), np.array([0.9, 0.4]), ["car", "person"]),
    "boxes, classes, scores": [Tensor([FIRST, SECOND]), np.array(["car", "person"]), [0.9, 0.4]],
    "nuScenes": [
        {
            "translation": b[:3],
            "size": (b[4], b[3], b[5]),
            "rotation": (math.cos(b[6] / 2), 0.0, 0.0, math.sin(b[6] / 2)),
            "detection_name": c,
            "detection_score": s,
        }
        for b, s, c in ((FIRST, 0.9, "car"), (SECOND, 0.4, "person"))
    ],
}


def read(said: Any) -> Output:
    return as_output(said, "base_link", 77)


@pytest.mark.parametrize("said", ANSWERS.values(), ids=ANSWERS)
def test_every_form_says_the_same(said: Any) -> None:
    seen = read(said).detections
    assert seen is not None and (seen.frame_id, seen.stamp_ns) == ("base_link", 77)
    rows = np.column_stack([seen.center_m, seen.size_m, seen.yaw_rad])
    assert np.allclose(rows, [FIRST, SECOND]) and np.allclose(seen.score, [0.9, 0.4])
    assert seen.label.tolist() == ["car", "person"]


def test_tracks_and_velocities_are_kept_and_numbers_are_texts() -> None:
    row = dict(zip(NAMES, FIRST, strict=True))
    seen = read([{**row, "id": 7, "velocity": (3.0, 0.5), "label": np.float32(2)}]).detections
    assert seen is not None and seen.track_id.tolist() == ["7"] and seen.label.tolist() == ["2"]
    assert seen.velocity_mps.tolist() == [[3.0, 0.5, 0.0]]


def test_a_tensor_by_itself_is_an_array() -> None:
    seen = read(Tensor([[*FIRST, 0.5]])).detections
    assert seen is not None and seen.score.tolist() == [0.5]


@pytest.mark.parametrize(
    "said",
    [
        {"boxes": Tensor([[10, 20, 30, 60]]), "labels": Tensor([1]), "scores": Tensor([0.8])},
        [{"bbox": [10, 20, 30, 60], "label": 1, "score": 0.8}],
        [{"box": np.array([10, 20, 30, 60]), "class": "1", "confidence": 0.8}],
        (Tensor([[10, 20, 30, 60]]), Tensor([0.8]), Tensor([1])),
    ],
)
def test_boxes_in_an_image(said: Any) -> None:
    output = read(said)
    assert output.detections is None and output.boxes is not None
    assert output.boxes.box_px.tolist() == [[10, 20, 30, 60]]
    assert (output.boxes.label.tolist(), output.boxes.score.tolist()) == (["1"], [0.8])


def test_nothing_seen_in_a_table() -> None:
    empty = read({"pred_boxes": np.empty((0, 7)), "pred_scores": [], "pred_labels": []}).detections
    assert empty is not None and len(empty) == 0
    boxes = read({"boxes": np.empty((0, 4)), "scores": [], "labels": []}).boxes
    assert boxes is not None and len(boxes) == 0
    assert read(STRUCTURED[:0]).detections is not None
    assert read((np.empty((0, 7)), np.empty(0), np.empty(0))).detections is not None
    lists = read({"pred_boxes": [], "pred_scores": [], "pred_labels": []}).detections
    assert lists is not None and len(lists) == 0


@pytest.mark.parametrize(
    "said", [[], {}, np.empty((0, 7)), np.empty((0, 4)), {"boxes": [], "scores": []}, {"boxes": np.empty((0, 4))}]
)
@pytest.mark.parametrize("sensor", ["camera", "lidar"])
def test_nothing_seen_is_nothing_of_what_the_stack_file_promises(said: Any, sensor: str) -> None:
    stack = build(
        Stack,
        {"callable": "a:b", "inputs": {sensor: "/in"}, "outputs": {"camera": "boxes", "lidar": "detections"}[sensor]},
        "a test",
    )
    output = CallableHost(lambda _: said, stack, takes_stamp=False)(
        Image("/in", 5, "front", np.zeros((4, 4, 3), np.uint8), "rgb8"), TransformTree()
    )
    there, other = (output.boxes, output.detections) if sensor == "camera" else (output.detections, output.boxes)
    assert there is not None and len(there) == 0 and (there.frame_id, there.stamp_ns) == ("front", 5)
    assert other is None


@pytest.mark.parametrize(
    ("outputs", "expected"), [("control", r"Control\(None, "), ("path", "an Output .* promise path")]
)
@pytest.mark.parametrize("said", [(0.1, 3.0), {"steering": 0.1, "speed": 3.0}, [], np.zeros((1, 7))])
def test_an_error_names_what_the_stack_file_promises_not_boxes(said: Any, outputs: str, expected: str) -> None:
    stack = build(Stack, {"callable": "a:b", "inputs": {"camera": "/in"}, "outputs": outputs}, "a test")
    host = CallableHost(lambda _: said, stack, takes_stamp=False)
    with pytest.raises(InfrastructureError, match=f"expected {expected}"):
        host(Image("/in", 5, "front", np.zeros((4, 4, 3), np.uint8), "rgb8"), TransformTree())


@pytest.mark.parametrize(
    ("name", "rows"), [("pred_boxes", [FIRST]), ("pred_boxes", np.empty((0, 7))), ("boxes", [[10, 20, 30, 60]])]
)
def test_a_batch_of_one_is_its_answer(name: str, rows: Any) -> None:
    table = {name: Tensor(rows), "scores": Tensor([0.8] * len(rows)), "labels": Tensor([2] * len(rows))}
    output = read([table])
    seen = output.detections if output.boxes is None else output.boxes
    assert seen is not None and (len(seen), seen.label.tolist()) == (len(rows), ["2"] * len(rows))


@pytest.mark.parametrize("shape", [(3, 0), (1, 0, 7)])
def test_an_empty_array_that_is_no_table_of_no_rows_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InfrastructureError, match="array of shape"):
        read(np.empty(shape))


ROW = dict(zip(NAMES, FIRST, strict=True))


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ([{"x": 1, "y": 2, "z": 3}], r"\{'x': 1, 'y': 2, 'z': 3\}, .* no length width height, no yaw among x, y, z"),
        ([{**ROW, "rotation_y": 0.1}], "'rotation_y' is KITTI's angle about the camera's axis"),
        ([{"center": (1, 2, 3), "extent": (2, 1, 1), "yaw": 0}], "'extent' is half of the size in CARLA"),
        ([{"xywh": (1, 2, 3, 4)}], "'xywh' is a box by its centre or corner"),
        ([{"bbox": (100, 200, 30, 60)}], "is it x y width height"),
        ([{"bbox": (1, 2, 3)}], r"its boxes have shape \(1, 3\)"),
        ([{**ROW, "confidance": 0.4}], "'confidance' is none of the names that are known: score"),
        ([{**ROW, "score": 0.4, "conf": 0.5}], "score and conf mean the same"),
        ([ROW, {**ROW, "yaw": "left"}], "could not convert string to float"),
        ((np.array([FIRST]), [0.4], [2.0]), r"'0': \[\[1\.0.*both columns beside the boxes are numbers with a point"),
        ((np.array([FIRST]), [4], ["car"]), "both columns beside the boxes are whole numbers or text"),
        ([{**ROW, "score": 0.4}, ROW], "row 1 has no 'score', and row 0 has"),
        ({"pred_boxes": [FIRST], "pred_scores": [0.4, 0.5]}, "cannot reshape"),
        ({"boxes": [[1, 2, 3, 4]] * 3, "label": "car"}, "got 'car', expected one class or track a row"),
        ({"pred_boxes": [FIRST], "pred_labels": [[0, 1, 0]]}, "expected one class or track a row"),
    ],
)
def test_what_could_mean_several_things_is_refused_with_its_first_row(said: Any, text: str) -> None:
    with pytest.raises(InfrastructureError, match=text) as refusal:
        read(said)
    assert "expected for each obstacle x y z (or center)" in str(refusal.value)
