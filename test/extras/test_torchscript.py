# SPDX-License-Identifier: Apache-2.0
"""Networks in TorchScript as stacks, and the training of the detectors: a few steps on a few clouds or pictures."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra 'models'")

sys.path.insert(0, str(Path(__file__).parents[1]))

from mt_nodes.base.errors import InfrastructureError, UsageError  # noqa: E402
from mt_nodes.cli.main import main  # noqa: E402
from mt_nodes.stacks.networks.network_stack import network_stack  # noqa: E402
from mt_nodes.stacks.reference.cell_features import CellGrid  # noqa: E402


class Everywhere(torch.nn.Module):  # type: ignore[misc]
    """Says one box in the form of torchvision, as wide as the picture is red."""

    def forward(self, image: torch.Tensor) -> dict[str, torch.Tensor]:
        red = image[0, 0].mean()
        box = torch.stack([torch.zeros(()), torch.zeros(()), red * image.shape[3], torch.tensor(20.0)])
        return {"boxes": box[None], "labels": torch.tensor([1]), "scores": torch.tensor([0.75])}


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "everywhere.pt"
    torch.jit.script(Everywhere()).save(str(path))
    return str(path)


def test_a_network_in_torchscript_is_a_stack(script: str) -> None:
    image = np.zeros((60, 100, 3), np.uint8)
    image[..., 0] = 102  # 0.4 of 255
    found = network_stack(script, "torchscript", "torchvision", labels=["none", "car"])(image)
    assert found.box_px.tolist() == [pytest.approx([-0.5, -0.5, 39.5, 19.5], abs=1e-4)]
    assert (found.label.tolist(), found.score.tolist()) == (["car"], [0.75])


def test_what_cannot_be_read_or_computed_is_said(script: str, tmp_path: Path) -> None:
    (tmp_path / "text.pt").write_text("no network")
    with pytest.raises(UsageError, match="no network can be read"):
        network_stack(str(tmp_path / "text.pt"), "torchscript", "torchvision")
    with pytest.raises(InfrastructureError, match="read as yolov8"):
        network_stack(script, "torchscript", "yolov8")(np.zeros((60, 100, 3), np.uint8))


def test_a_training_writes_a_network_that_is_a_stack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnx", reason="needs the extra 'models'")
    from mt_nodes.stacks.reference.cell_network import CellNetwork
    from mt_nodes.stacks.reference.cnnseg import CnnSeg

    out = tmp_path / "net"
    words = ["--clouds", "6", "--crops", "2", "--batch", "4", "--crop-cells", "64", "--workers", "0"]
    assert main(["models", "train-detector", "--out", str(out), *words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["steps"] == 3 and set(told["loss"]) == {
        "category",
        "offset",
        "confidence",
        "class",
        "heading",
        "height",
    }
    features = CellGrid().features(np.random.default_rng(0).normal(0, 9, (2000, 4)).astype(np.float32), 1.0)
    said = CellNetwork(told["weights"], CellGrid())(features)
    # OpenCV says of the file what PyTorch says of the network.
    from mt_nodes.runs.models.cnnseg_network import SlimCnnSeg

    network = SlimCnnSeg()
    network.load_state_dict(torch.load(out / "cnnseg.pt", weights_only=True))
    with torch.no_grad():
        expected = network.eval()(torch.from_numpy(features)[None])[0].numpy()
    assert np.abs(said - expected).max() < 1e-4
    assert CnnSeg(weights=told["weights"])(np.zeros((0, 4), np.float32)) is not None
    assert main(["models", "train-detector", "--out", str(out), *words]) == 2, "a training is there already"


def test_more_steps_make_the_loss_smaller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mt_nodes.runs.models import detector_training
    from mt_nodes.runs.models.cnnseg_training import SegmentationTask
    from mt_nodes.runs.models.detector_recipes import SegmentationRecipe

    monkeypatch.setattr(detector_training, "_REPORTED", 5)
    task = SegmentationTask(SegmentationRecipe(clouds=30, crops=2, batch=4, crop_cells=64))
    reports = detector_training.train_detector(task, tmp_path / "net", workers=0)
    assert [row.step for row in reports] == [5, 10, 15]
    for part in ("category", "confidence", "class"):
        assert reports[-1].loss[part] < 0.85 * reports[0].loss[part]


def test_a_camera_training_writes_a_network_that_is_a_stack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnx", reason="needs the extra 'models'")
    pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    from mt_nodes.base.network_file import load_network
    from mt_nodes.runs.models.picture_network import SmallDetector
    from mt_nodes.runs.models.picture_training import PictureTask

    monkeypatch.setattr(PictureTask, "unseen", 2)

    out = tmp_path / "net"
    words = [
        "--sensor",
        "camera",
        "--pictures",
        "4",
        "--crops",
        "4",
        "--batch",
        "8",
        "--crop-px",
        "64",
        "--workers",
        "0",
    ]
    assert main(["models", "train-detector", "--out", str(out), *words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["steps"] == 2 and set(told["loss"]) == {"class", "box"}
    (row,) = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    assert row["unseen"] > 0.0
    picture = np.random.default_rng(0).random((1, 3, 384, 640), dtype=np.float32)
    (said,) = load_network(told["weights"], "onnx")([picture]).values()
    network = SmallDetector()
    network.load_state_dict(torch.load(out / "yolo.pt", weights_only=True))
    with torch.no_grad():
        expected = network.eval()(torch.from_numpy(picture)).numpy()
    assert said.shape == (1, 8, 5040) and np.abs(said - expected).max() < 1e-2
    stack = network_stack(told["weights"], "onnx", "yolov8", labels=["car", "truck", "cyclist", "pedestrian"])
    assert stack(np.zeros((375, 1242, 3), np.uint8)) is not None
    assert main(["models", "train-detector", "--out", str(tmp_path / "no"), *words, "--clouds", "9"]) == 2
    assert "--clouds: got it with --sensor camera" in capsys.readouterr().err


def test_more_steps_make_the_loss_of_pictures_smaller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mt_nodes.runs.models import detector_training
    from mt_nodes.runs.models.detector_recipes import PictureRecipe
    from mt_nodes.runs.models.picture_training import PictureTask

    monkeypatch.setattr(detector_training, "_REPORTED", 30)
    monkeypatch.setattr(PictureTask, "unseen", 2)
    recipe = PictureRecipe(pictures=60, crops=6, batch=4, crop_px=96)
    reports = detector_training.train_detector(PictureTask(recipe), tmp_path / "net", workers=0)
    assert [row.step for row in reports] == [30, 60, 90]
    # Means of 30 steps: each step sees other streets, whose losses differ.
    assert reports[-1].loss["class"] < 0.8 * reports[0].loss["class"]
    assert reports[-1].loss["box"] < 0.95 * reports[0].loss["box"]


def test_who_is_said_best_by_a_cell_is_what_it_is_to_say() -> None:
    from mt_nodes.runs.models.picture_labels import IGNORED, NOBODY
    from mt_nodes.runs.models.picture_training import _assigned

    middle = torch.tensor([[10.0, 10.0], [50.0, 10.0], [90.0, 10.0], [130.0, 10.0]])
    objects = torch.tensor(
        [[[2.0, 0, 0, 20, 20], [1.0, 40, 0, 60, 20], [IGNORED, 80, 0, 100, 20], [NOBODY, 0, 0, 0, 0]]]
    )
    said = objects[:, [0, 1, 2, 3], 1:].clone()
    said[0, 1, 0] = 50.0  # half of its box
    wanted, which, weight, counted = _assigned(said, torch.full((1, 4, 3), 0.5), objects, middle)
    assert which[0, :2].tolist() == [0, 1] and weight[0].tolist() == pytest.approx([1.0, 0.5, 0.0, 0.0], abs=1e-4)
    assert wanted[0].argmax(dim=1)[:2].tolist() == [2, 1] and not wanted[0, 2:].any()
    assert counted[0].tolist() == [True, True, False, True], "a cell of what is ignored may say what it likes"


def test_a_detector_goes_on_from_weights_with_nothing_but_added_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames of the folder are learned, from the very first step near what the weights say."""
    pytest.importorskip("onnx", reason="needs the extra 'models'")
    from mt_nodes.data.datasets.kitti_writer import KittiFrame, lidar_alone
    from mt_nodes.data.outputs import Detections
    from mt_nodes.runs.models import cnnseg_training
    from mt_nodes.runs.models.cnnseg_network import SlimCnnSeg
    from mt_nodes.runs.models.starting_weights import start_from

    truck = Detections.make("lidar", None, [(12.0, 1.0, -0.03)], [(8.0, 2.5, 3.4)], [0.3], ["truck"])
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.uniform((8.0, 0.0, -1.0), (16.0, 2.0, 1.5), (800, 3)), np.full(800, 0.4)])
    frame = KittiFrame(points.astype(np.float32), truck, truck.take(np.zeros(1, dtype=bool)), lidar_alone())
    frame.write(tmp_path / "failing" / "training", "000000")
    monkeypatch.setattr(cnnseg_training, "labelled_cloud", lambda *_: pytest.fail("a street was taken"))
    words = ["models", "train-detector", "--start", "cnnseg_streets", "--add", str(tmp_path / "failing")]
    small = [
        "--add-share",
        "1",
        "--clouds",
        "4",
        "--crops",
        "2",
        "--batch",
        "2",
        "--crop-cells",
        "64",
        "--workers",
        "0",
    ]
    assert main([*words, *small, "--rate", "0.0001", "--out", str(tmp_path / "net")]) == 0
    before, after = SlimCnnSeg(), SlimCnnSeg()
    start_from(before, "cnnseg_streets")
    start_from(after, str(tmp_path / "net" / "cnnseg.onnx"))
    moved = [float((a - b).abs().max()) for a, b in zip(before.parameters(), after.parameters(), strict=True)]
    assert 0.0 < max(moved) < 0.01
    assert main([*words, "--out", str(tmp_path / "net")]) == 2, "a training is there already"
    assert main(["models", "train-detector", "--start", "yolo_streets", "--out", str(tmp_path / "other")]) == 2
