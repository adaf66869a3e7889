# SPDX-License-Identifier: Apache-2.0
"""From violated pairs to a folder to learn from, and back: exported, learned or learned by heart, replayed afresh."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from made_runs import no_pages
from recordings import bundles

from mt_nodes.base.jsonl import read_lines
from mt_nodes.cli.main import main
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.data.datasets.dataset_name import DatasetName
from mt_nodes.data.datasets.known_datasets import open_dataset
from mt_nodes.data.datasets.picture_label_files import read_boxed_pictures
from mt_nodes.data.messages import Bundle
from mt_nodes.runs.campaign.failures import Failures

COUNT = 24
#: Where the stack says its obstacle, and the same place in the frame of the tests' LiDAR.
PLACE_M, IN_LIDAR_M = (10.0, 0.0, 0.0), (-2.0, -9.0, -1.7)
STACK = '''
from pathlib import Path
import numpy as np
from mt_nodes.data.outputs import Detections

class Learner:
    """Loses its obstacle when points are missing, but for clouds that it has learned by heart."""
    def __init__(self, least=100, heart="", score=0.9):
        files = sorted(Path(heart).glob("training/velodyne/*.bin")) if heart else []
        self.known = [np.fromfile(f, np.float32).reshape(-1, 4)[:, :3] + [1.0, 2.0, 1.7] for f in files]
        self.least, self.score = least, score
    def __call__(self, points):
        known = any(len(k) == len(points) and np.allclose(k, points[:, :3], atol=1e-3) for k in self.known)
        count = int(known or len(points) >= self.least)
        return Detections.make("base_link", None, np.tile([10.0, 0.0, 0.0], (count, 1)), np.ones((count, 3)),
                               score=np.full(count, self.score))
'''


def with_returns(bundle: Bundle) -> Bundle:
    (cloud,) = bundle.clouds
    points = cloud.points.copy()
    for axis, middle in zip("xyz", IN_LIDAR_M, strict=True):
        points[axis][:40] = middle + np.linspace(-0.4, 0.4, 40)
    return replace(bundle, clouds=(replace(cloud, points=points),))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run in which every pair is violated."""
    place = tmp_path_factory.mktemp("found")
    write_bundles(place / "drive", [with_returns(bundle) for bundle in bundles(COUNT, points=100)])
    (place / "learner_stack.py").write_text(STACK)
    stack = {"name": "learner", "callable": "learner_stack:Learner", "points_frame": "base_link", "stateless": True}
    (place / "learner.yaml").write_text(json.dumps({**stack, "outputs": {"detections": {}}}))
    head = {"id": "dropped", "kind": "expected", "because": "for tests", "min_decided": 1, "check": "obstacles_kept"}
    (place / "dropped.yaml").write_text(json.dumps({**head, "mutate": [{"points_dropped": {"share": 0.3}}]}))
    with pytest.MonkeyPatch.context() as patch, no_pages():
        patch.chdir(place)
        stack_words = ["--stack", "learner.yaml", "--transport", "inprocess"]
        assert main(["replay", "drive", *stack_words, "--relations", "dropped.yaml", "--out", "run"]) == 1
    return place


@pytest.fixture
def here(found: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(found)
    with no_pages():
        yield found


def export(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mt_nodes.cli.main", "replay", "failures", "export", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def manifest(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return read


def again(out: str, *words: str) -> tuple[int, dict[str, Any]]:
    given = ["replay", "--failures", "--failures-file", "cases.sqlite", "--stack", "learner.yaml"]
    code = main([*given, "--transport", "inprocess", "--fresh-draws", "2", "--out", out, *words])
    return code, json.loads((Path(out) / "failures.json").read_text())


def test_exported_learned_by_heart_and_mended(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = export("run", "--format", "kitti", "--out", "failing", "--failures-file", "cases.sqlite")
    assert done.returncode == 0, done.stderr
    assert f"{COUNT} frames exported" in done.stdout and "pseudo-labels" in done.stdout
    rows = manifest(here / "failing")["frames"]
    ledger = {line["pair"]: line["sha256"] for line in read_lines(here / "run" / "ledger.jsonl")}
    assert all(row["sha256"] == ledger[row["pair"]] for row in rows) and len(rows) == COUNT
    assert {tuple(row["origins"]) for row in rows} == {("source_output",)}
    assert {row["objects"][0]["score"] for row in rows} == {0.9}, "a pseudo-label has the stack's score"
    # Our own reader finds the label where the stack of the source said it, in the LiDAR's upright frame.
    recording = open_dataset(DatasetName.parse("kitti:failing"))
    truth = recording.labels(recording.topics[0].stamps_ns[0])
    assert truth is not None
    np.testing.assert_allclose(truth.objects.center_m, [np.subtract(PLACE_M, (1.0, 2.0, 1.7))], atol=1e-3)
    with Failures(Path("cases.sqlite")) as failures:
        assert len(failures.cases()) == COUNT, "all that was exported, not only the worst"

    code, before = again("before")
    assert code == 1 and len(before["fresh"]) == 2 * COUNT and before["mended"] == []
    drawn = {(row["pair"], row["seed"]) for row in before["fresh"]}
    assert len(drawn) == 2 * COUNT and not drawn & {(row["pair"], row["seed"]) for row in before["cases"]}
    words = {}
    for out, setting in (("as_before", "least=100"), ("by_heart", f"heart={here / 'failing'}"), ("mended", "least=0")):
        code, now = again(out, "--set", f"params.{setting}", "--before", "before")
        (row,) = now["mended"]
        words[out] = row["word"], code, row["same"]["now"], row["fresh"]["now"]
        assert (row["same"]["before"], row["fresh"]["before"]) == (COUNT, 2 * COUNT)
    assert words == {
        "as_before": ("not mended", 1, COUNT, 2 * COUNT),
        "by_heart": ("learned by heart", 1, 0, 2 * COUNT),
        "mended": ("mended", 0, 0, 0),
    }
    assert "learned by heart" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--format", "coco"), "its check does not say which objects a picture shows"),
        (("--format", "kitti", "--labels", "labels"), "the recording has no labels"),
    ],
)
def test_nothing_exported_is_said_and_no_success(here: Path, words: tuple[str, ...], reason: str) -> None:
    done = export("run", *words, "--out", "nothing", "--failures-file", "none.sqlite")
    assert done.returncode == 3 and "nothing was exported" in done.stdout
    assert reason in " ".join(done.stdout.split()) and f" {COUNT} " in done.stdout
    assert not (here / "nothing").exists() and not (here / "none.sqlite").exists()


def test_a_pair_whose_evidence_or_bag_is_another_is_left_out(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    run = tmp_path / "run"
    shutil.copytree(here / "run", run)
    for path in (run / "evidence").glob("0_[2-9]_*.mcap"):
        path.unlink()
    first = next((run / "draws").glob("0.1.dropped.0.npz"), None)
    if first is not None:
        shutil.copy(next((run / "draws").glob("0.3.dropped.0.npz")), first)
    words = ["replay", "failures", "export", str(run), "--out", str(tmp_path / "out"), "--json"]
    assert main([*words, "--format", "nuscenes", "--failures-file", str(tmp_path / "db")]) == 0
    told = json.loads(capsys.readouterr().out)
    left_out = told["left_out"]
    assert left_out.pop("the recording has no labels, and no evidence with the stack's output was kept") == 8
    assert told["frames"] == COUNT - 8 - sum(left_out.values())
    if first is not None:
        assert any("SHA-256" in why or "do not fit" in why for why in left_out), left_out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("export run", "expected --format"),
        ("export run --format kitti --out run", "is there already"),
        ("export run --format kitti --out x --labels guesses", "got 'guesses'"),
        ("list --format kitti", "goes with export alone"),
        ("export --format kitti --out x", "expected results directories"),
    ],
)
def test_what_cannot_be_exported_is_refused(
    here: Path, words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", "failures", *words.split()]) == 2
    assert message in capsys.readouterr().err


def test_fresh_draws_need_a_former_replay_with_fresh_draws(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in (
        (["--failures", "--before", "run"], "--before goes with --fresh-draws"),
        (["--failures", "--fresh-draws", "1", "--before", "run"], "no failures.json can be read there"),
        (["drive", "--failures", "--fresh-draws", "1"], "without a BAG"),
    ):
        assert main(["replay", *words]) == 2
        assert message in capsys.readouterr().err


LOOKER = '''
from mt_nodes.data.outputs import ImageBoxes

class Looker:
    """Sees a person on the left, and nobody in a mirrored picture: its brightest column is on the other side."""
    def __call__(self, image):
        plain = image[:, :200].mean() > image[:, 200:].mean()
        rows = [[40.0, 20.0, 90.0, 120.0], [150.0, 20.0, 160.0, 40.0]] if plain else []
        return ImageBoxes.make("camera", None, rows, ["pedestrian"] * len(rows), [0.9] * len(rows))
'''


@pytest.mark.parametrize("name", ["coco", "yolo"])
def test_boxes_of_a_mirrored_picture_are_exported_mirrored(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pixels = np.tile(np.linspace(200, 20, 400).astype(np.uint8)[None, :, None], (200, 1, 3))
    drive = bundles(3)
    images = [(replace(bundle.images[0], pixels=pixels),) for bundle in drive]
    write_bundles(
        tmp_path / "drive", [replace(b, images=i, camera_infos=()) for b, i in zip(drive, images, strict=True)]
    )
    (tmp_path / "looker_stack.py").write_text(LOOKER)
    stack = {
        **{"name": "looker", "map_free": True},
        "callable": "looker_stack:Looker",
        "stateless": True,
        "inputs": {"camera": "/camera/image"},
    }
    (tmp_path / "looker.yaml").write_text(json.dumps({**stack, "outputs": {"boxes": {}}}))
    words = [
        "--stack",
        "looker.yaml",
        "--transport",
        "inprocess",
        "--relations",
        "image_mirrored_boxes",
        "--out",
        "run",
    ]
    with no_pages():
        assert main(["replay", "drive", *words]) in (1, 3)
    export_words = ["--format", name, "--out", "failing", "--failures-file", "cases.sqlite"]
    assert main(["replay", "failures", "export", "run", *export_words]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "3 frames exported" in told and ("COCO can" in told) == (name == "yolo")
    for one in read_boxed_pictures(tmp_path / "failing"):
        np.testing.assert_allclose(one.boxes.box_px, [[399 - 90.0, 20.0, 399 - 40.0, 120.0]], atol=2e-3)
        # Too small to be demanded: neither a person to be found, nor background.
        assert len(one.ignored) == (1 if name == "coco" else 0)
        written = cv2.imread(str(one.path))
        assert written is not None and (written[:, :200].mean() < written[:, 200:].mean())
    assert len(manifest(tmp_path / "failing")["frames"]) == 3
