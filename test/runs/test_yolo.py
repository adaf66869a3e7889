# SPDX-License-Identifier: Apache-2.0
"""The learned camera detector: a network and nothing else, what it finds, and that it loses what is covered."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
import yaml

from mt_nodes.base import resources
from mt_nodes.cli.main import main
from mt_nodes.data.image_boxes import iou
from mt_nodes.data.outputs import ImageBoxes
from mt_nodes.data.transforms import TransformTree
from mt_nodes.runs.models.detector_evaluation import picture_score
from mt_nodes.runs.models.labelled_pictures import PICTURE_CLASSES, LabelledPicture, labelled_picture
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.stack import load_stack

#: Streets that the shipped weights were not trained on: those have the seed 1.
UNSEEN, PICTURES = 1_000_003, 16


@cache
def unseen() -> tuple[LabelledPicture, ...]:
    return tuple(labelled_picture(UNSEEN, index) for index in range(PICTURES))


@pytest.fixture(scope="module")
def detector() -> CallableHost:
    return CallableHost.make(load_stack("reference_yolo"))


def boxes(detector: CallableHost, rgb: np.ndarray) -> ImageBoxes:
    picture = LabelledPicture(rgb, np.zeros((0, 4)), np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 0), np.int64))
    found = detector(picture.message(), TransformTree([])).boxes
    assert found is not None
    return found.take(found.score >= load_stack("reference_yolo").traits.thresholds("boxes").high)


def test_the_weights_that_ship_are_small_and_the_stack_is_nothing_else() -> None:
    path = resources.find("weights", "yolo_streets", (".onnx",))
    assert 100_000 < path.stat().st_size <= 2_000_000
    said = yaml.safe_load((resources.config_dir() / "stacks" / "reference_yolo.yaml").read_text())
    assert not {"callable", "command", "start", "params"} & set(said)
    assert (resources.config_dir() / "stacks" / said["onnx"]).resolve() == path.resolve()


def test_most_of_what_stands_in_unseen_streets_is_found(detector: CallableHost) -> None:
    least = load_stack("reference_yolo").traits.thresholds("boxes").high
    score = picture_score(detector, unseen(), least)
    assert sum(row.objects for row in score.classes) >= 40
    assert score.recall >= 0.5 and score.precision >= 0.75, score


@pytest.mark.parametrize("label", ["car", "pedestrian"])
def test_somebody_is_found_and_lost_when_covered(detector: CallableHost, label: str) -> None:
    tried = 0
    for picture in unseen():
        found = boxes(detector, picture.rgb)
        found = found.take(found.label == label)
        overlap = iou(picture.box_px, found.box_px)
        is_of = picture.kind == PICTURE_CLASSES.index(label)
        for row in np.flatnonzero(is_of & (overlap.max(axis=1, initial=0.0) > 0.6) & (picture.visible > 0.8))[:1]:
            x0, y0, x1, y1 = np.clip(np.rint(picture.box_px[row]).astype(int), 0, 640)
            covered = picture.rgb.copy()
            covered[y0 : y1 + 1, x0 : x1 + 1] = 128
            left = boxes(detector, covered)
            still = iou(picture.box_px[row : row + 1], left.take(left.label == label).box_px)
            assert still.max(initial=0.0) < 0.6
            tried += 1
    assert tried >= 2


def test_evaluations_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "evaluate-detector", "reference_yolo", "--pictures", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["pictures"] == 2 and 0.0 <= told["recall"] <= 1.0
    assert [row["label"] for row in told["classes"]] == list(PICTURE_CLASSES)
    assert main(["models", "evaluate-detector", "reference_yolo", "--pictures", "1"]) == 0
    assert "half visible" in capsys.readouterr().out


def test_pictures_of_other_sizes_are_taken(detector: CallableHost) -> None:
    for height, width in ((375, 1242), (480, 640), (180, 320)):
        found = boxes(detector, np.zeros((height, width, 3), np.uint8))
        assert len(found) == 0
