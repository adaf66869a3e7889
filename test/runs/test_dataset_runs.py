# SPDX-License-Identifier: Apache-2.0
"""Commands on data sets: replay with labels, reproduce, campaign, mutate into the same format."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import dataset_trees as trees
import numpy as np
import pytest
import yaml
from made_runs import no_pages
from mutations_for_tests import Echo

from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import read_result
from mt_nodes.cli.main import main
from mt_nodes.data.bags.bundles import BagSource, write_bundles
from mt_nodes.data.datasets.dataset_name import DatasetName
from mt_nodes.engine.bag_mutation import mutate_bag
from mt_nodes.relations.mutations.stream.identity import Identity
from mt_nodes.runs.campaign.inputs import drives

KITTI_BAG = Path(__file__).parents[3] / "shared" / "data" / "kitti_drive"
TREES = {
    "kitti": trees.kitti_raw,
    "kitti_object": trees.kitti_object,
    "nuscenes": trees.nuscenes,
    "argoverse2": trees.argoverse2,
    "folder": trees.folder,
}
#: Detects the car by its points, and loses it when the cloud has grown: a relation on added points is violated.
STACK = """
import numpy as np

def detect(points):
    x, y, z = points[:, 0], points[:, 1], points[:, 2]
    own = (abs(x - 12) < 2.5) & (abs(y - 1.5) < 1.6) & (z > 0.2) & (z < 1.7)
    boxes = [(12.0, 1.5, 0.8, 4.2, 1.8, 1.6, 0.3)] if own.sum() > 20 and len(points) <= 600 else []
    return np.array(boxes).reshape(-1, 7)
"""


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "stack"
    home.mkdir()
    (home / "counting_model.py").write_text(STACK)
    monkeypatch.syspath_prepend(str(home))
    (home / "stack.yaml").write_text(
        yaml.safe_dump(
            {
                "name": "counting",
                "callable": "counting_model:detect",
                "points_frame": "base_link",
                "inputs": {"lidar": "/points"},
                "outputs": {"detections": {"topic": "/o", "type": "visualization_msgs/msg/MarkerArray"}},
                "stateless": True,
                "map_free": True,
            }
        )
    )
    return home / "stack.yaml"


def replayed(name: str, out: Path, stack: Path, *options: str) -> tuple[int, dict[str, Any]]:
    words = ["replay", name, "--stack", str(stack), "--transport", "inprocess", "--out", str(out), *options]
    code = main([*words, "--relations", "noise_outside_roi_100,cloud_mirrored"])
    return code, read_result(out / "summary.json")


def test_labels_stand_beside_the_verdicts_of_a_replay(
    tmp_path: Path, stack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, summary = replayed(f"kitti:{trees.kitti_raw(tmp_path / 'day', 12)}", tmp_path / "out", stack)
    assert code == 1
    noise, mirrored = (summary["relations"][name] for name in ("noise_outside_roi_100", "cloud_mirrored"))
    assert noise["violated"] == 12 and noise["ground_truth"]["precision"]["wrong"] == 12
    assert noise["ground_truth"]["precision"]["compared"] == 12
    # The stack detects at one place only, so the mirrored car is lost, and that is really wrong.
    assert mirrored["ground_truth"]["precision"]["wrong"] == mirrored["violated"] > 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "noise_outside_roi_100: by the labels, the follow-up is really wrong in 12 of 12 violated pairs" in printed
    rows = list(csv.DictReader((tmp_path / "out" / "pairs.csv").open()))
    marks = {row["truth"] for row in rows if row["relation"] == "noise_outside_roi_100"}
    assert marks == {"followup_wrong"} and {r["truth"] for r in rows if "@" in r["draw"]} == {""}
    page = (tmp_path / "out" / "report.html").read_text()
    assert '<h2 id="ground-truth">Ground truth</h2>' in page and 'href="#ground-truth"' in page and "12 / 12" in page
    # Made again from the journal alone, the summary says the same.
    assert main(["report", str(tmp_path / "out")]) in (0, 1)
    assert read_result(tmp_path / "out" / "summary.json")["relations"] == summary["relations"]


def test_a_pair_of_a_data_set_is_made_again_wherever_it_lies(
    tmp_path: Path, stack: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trees.kitti_raw(tmp_path / "day")
    monkeypatch.chdir(tmp_path)
    with no_pages():
        code, _ = replayed("kitti:day", Path("out"), stack)
    assert code in (1, 3)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["reproduce", str(tmp_path / "out"), "0/1/noise_outside_roi_100/0"]) == 0
    assert "the judgement is the same as in the run" in capsys.readouterr().out
    (tmp_path / "day").rename(tmp_path / "moved")
    assert main(["reproduce", str(tmp_path / "out"), "0/1/noise_outside_roi_100/0"]) == 2
    assert "say where it is now with --bag" in capsys.readouterr().err
    again = ["reproduce", str(tmp_path / "out"), "0/1/noise_outside_roi_100/0", "--bag", f"kitti:{tmp_path / 'moved'}"]
    assert main(again) == 0


def test_a_damaged_frame_ends_the_run_with_exit_code_4(
    tmp_path: Path, stack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    day = trees.kitti_raw(tmp_path / "day", 5)
    file = day / "2011_09_26_drive_0009_sync/velodyne_points/data/0000000003.bin"
    file.write_bytes(file.read_bytes()[:-3])
    with no_pages():
        code, summary = replayed(f"kitti:{day}", tmp_path / "out", stack)
    assert code == 4 and "0000000003.bin: got 9597 bytes" in summary["infrastructure"]


def test_without_a_car_nothing_is_decided_and_the_run_does_not_pass(tmp_path: Path, stack: Path) -> None:
    day = trees.kitti_raw(tmp_path / "day")
    for file in day.glob("*/velodyne_points/data/*.bin"):
        np.frombuffer(file.read_bytes(), np.float32).reshape(-1, 4)[:400].tofile(file)
    with no_pages():
        code, summary = replayed(f"kitti:{day}", tmp_path / "out", stack)
    assert code == 3 and summary["relations"]["noise_outside_roi_100"]["decided"] == 0


def test_a_campaign_takes_every_scene_of_a_data_set(tmp_path: Path) -> None:
    root = trees.nuscenes(tmp_path / "nuscenes", 2, ("scene-0061", "scene-0103"))
    found = drives([f"nuscenes:{root}"], tmp_path / "hashes.sqlite")
    assert [drive.url for drive in found] == [f"nuscenes:{root},scene=scene-0{n}" for n in ("061", "103")]
    assert found[0].sha256 != found[1].sha256
    moved = tmp_path / "moved"
    shutil.copytree(root, moved)
    again = drives([f"nuscenes:{moved}"], tmp_path / "hashes.sqlite")
    assert [drive.sha256 for drive in again] == [drive.sha256 for drive in found]
    file = next(moved.glob("samples/LIDAR_TOP/n0__*"))
    file.write_bytes(file.read_bytes()[:-20])
    changed = drives([f"nuscenes:{moved}"], tmp_path / "hashes.sqlite")
    assert changed[0].sha256 != found[0].sha256 and changed[1].sha256 == found[1].sha256
    raw = drives([f"nuscenes:{root},scene=scene-0061,images=raw"], tmp_path / "hashes.sqlite")
    assert raw[0].sha256 != found[0].sha256


def files(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def points(name: str) -> list[Any]:
    with BagSource(Path(name)) as source:
        return [bundle.cloud().points for bundle in source]


@pytest.mark.parametrize("kind", TREES)
def test_a_data_set_through_no_mutation_is_the_same_data_set(kind: str, tmp_path: Path) -> None:
    dataset, root = kind.partition("_")[0], TREES[kind](tmp_path / "in")
    done = mutate_bag(Path(f"{dataset}:{root}"), [Identity()], Path(f"{dataset}:{tmp_path / 'out'}"))
    assert files(tmp_path / "out") == files(root)
    assert ("labels copied" in done.labels) == (kind != "folder")


@pytest.mark.parametrize("kind", TREES)
def test_a_mutated_data_set_has_the_mutated_clouds(kind: str, tmp_path: Path) -> None:
    dataset, root = kind.partition("_")[0], TREES[kind](tmp_path / "in")
    words = ["--mutation", "noise_outside_roi", "--set", "points=50"]
    assert main(["mutate", f"{dataset}:{root}", *words, "--out", f"{dataset}:{tmp_path / 'out'}"]) == 0
    assert main(["mutate", f"{dataset}:{root}", *words, "--out", str(tmp_path / "bag")]) == 0
    there = f"{dataset}:{tmp_path / 'out'}"
    got, expected = points(there), points(str(tmp_path / "bag"))
    assert len(got) == len(expected) >= trees.FRAMES
    for one, other in zip(got, expected, strict=True):
        assert len(one) == 650 and set(one.dtype.names) == set(other.dtype.names)  # Open3D has an order of its own
        # Argoverse's files hold coordinates in half precision.
        bound = 0.05 if kind == "argoverse2" else 0.0
        for axis in "xyz":
            assert np.abs(one[axis] - other[axis]).max() <= bound


def test_labels_stay_out_where_they_no_longer_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    day = trees.kitti_raw(tmp_path / "in")
    assert main(["mutate", f"kitti:{day}", "--mutation", "cloud_mirrored", "--out", f"kitti:{tmp_path / 'out'}"]) == 0
    assert "labels left out: the mutation changes which objects are there" in " ".join(capsys.readouterr().out.split())
    assert not list((tmp_path / "out").rglob("tracklet_labels.xml"))
    with BagSource(Path(f"kitti:{tmp_path / 'out'}")) as source:
        assert all(bundle.truth is None for bundle in source)


def test_what_a_format_cannot_hold_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    day, scenes = trees.kitti_raw(tmp_path / "day"), trees.nuscenes(tmp_path / "nuscenes")
    segment = trees.waymo(tmp_path / "waymo")
    out = tmp_path / "out"
    with pytest.raises(UsageError, match="sends messages several times or later, and kitti has one file a frame"):
        mutate_bag(Path(f"kitti:{day}"), [Echo(30_000_000)], Path(f"kitti:{out}"))
    with pytest.raises(UsageError, match="leave --limit out, or write a bag"):
        mutate_bag(Path(f"nuscenes:{scenes}"), [Identity()], Path(f"nuscenes:{out}"), limit=1)
    with pytest.raises(UsageError, match=r"waymo is not written; expected --out folder:DIR or a bag"):
        mutate_bag(Path(f"waymo:{segment}"), [Identity()], Path(f"waymo:{out}"))
    with pytest.raises(UsageError, match="cannot be written as nuscenes; expected a recording of nuscenes"):
        mutate_bag(Path(f"kitti:{day}"), [Identity()], Path(f"nuscenes:{out}"))
    out.mkdir()
    with pytest.raises(UsageError, match="exists already"):
        mutate_bag(Path(f"kitti:{day}"), [Identity()], Path(f"kitti:{out}"))
    assert not list(out.iterdir()) and not list(tmp_path.glob(".mt_*"))


@pytest.mark.parametrize("kind", ["kitti", "waymo", "bag"])
def test_any_recording_becomes_a_folder(kind: str, tmp_path: Path) -> None:
    name = f"kitti:{trees.kitti_raw(tmp_path / 'in')}"
    if kind == "waymo":
        name = f"waymo:{trees.waymo(tmp_path / 'in')}"
    if kind == "bag":
        with BagSource(Path(name)) as source:
            write_bundles(tmp_path / "bag", source)
        name = str(tmp_path / "bag")
    mutate_bag(Path(name), [Identity()], Path(f"folder:{tmp_path / 'out'}"))
    with BagSource(Path(name)) as before, BagSource(Path(f"folder:{tmp_path / 'out'}")) as after:
        for one, other in zip(before, after, strict=True):
            assert one.stamp_ns == other.stamp_ns
            for field in one.cloud().fields:
                assert np.array_equal(one.cloud().points[field], other.cloud().points[field])
            lidar = one.transforms.lookup("base_link", one.cloud().frame_id)
            assert np.allclose(lidar, other.transforms.lookup("base_link", "lidar"))
            assert [i.compressed for i in one.images] == [i.compressed for i in other.images]
            assert [i.k.tolist() for i in one.camera_infos] == [i.k.tolist() for i in other.camera_infos]


@pytest.mark.skipif(not KITTI_BAG.exists(), reason="the real drive is not here")
def test_the_real_drive_as_files_gives_the_frames_and_verdicts_of_the_bag(tmp_path: Path) -> None:
    day = _as_kitti(tmp_path / "2011_09_26", 3)
    with BagSource(KITTI_BAG, limit=3) as bag, BagSource(Path(f"kitti:{day}")) as tree:
        for one, other in zip(bag, tree, strict=True):
            assert one.stamp_ns == other.stamp_ns
            assert one.cloud().points.tobytes() == other.cloud().points.tobytes()
            assert one.cloud().points.dtype == other.cloud().points.dtype
    lines = []
    for name in (str(KITTI_BAG), f"kitti:{day}"):
        out = tmp_path / f"out{len(lines)}"
        words = ["replay", name, "--transport", "inprocess", "--limit", "3", "--out", str(out)]
        with no_pages():
            main([*words, "--relations", "noise_outside_roi_1000", "--fault", "grid_index_wrap"])
        lines.append([json.loads(line) for line in (out / "result.jsonl").read_text().splitlines()[1:]])
    assert lines[0] == lines[1] and any(line.get("outcome") == "VIOLATED" for line in lines[0])


def _as_kitti(day: Path, frames: int) -> Path:
    """Write the real drive in KITTI's raw form."""
    drive, stamps = day / "2011_09_26_drive_0001_sync", []
    with BagSource(KITTI_BAG, limit=frames) as source:
        for bundle in source:
            trees.write(drive / f"velodyne_points/data/{bundle.index:010d}.bin", bundle.cloud().points.tobytes())
            stamps.append(f"2011-09-26 05:00:00.{bundle.stamp_ns % 10**9:09d}")
            last = bundle
    to_camera = np.linalg.inv(last.transforms.lookup("velodyne", "camera"))
    trees.write(drive / "velodyne_points/timestamps.txt", "\n".join(stamps))
    trees.write(
        day / "calib_velo_to_cam.txt", f"R: {trees.words(to_camera[:3, :3])}\nT: {trees.words(to_camera[:3, 3])}\n"
    )
    projection = np.column_stack([trees.K, np.zeros(3)])
    trees.write(
        day / "calib_cam_to_cam.txt", f"R_rect_00: {trees.words(np.eye(3))}\nP_rect_02: {trees.words(projection)}\n"
    )
    assert DatasetName.parse(f"kitti:{day}").path == day
    return day
