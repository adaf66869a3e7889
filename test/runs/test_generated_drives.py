# SPDX-License-Identifier: Apache-2.0
"""Drives with as many different frames as an experiment asks for."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from mt_nodes.base.errors import ExitCode
from mt_nodes.cli.main import main
from mt_nodes.data.bags.reader import BagReader
from mt_nodes.data.cdr import codec
from mt_nodes.runs.replay.generated_drives import BEND_1PM, FIRST_SEED, generate_drives
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e

SPARSE = replace(hdl_64e(), azimuths=30)


TOPIC = "/sensing/lidar/points"


def digests(*bags: Path) -> list[str]:
    """The SHA-256 of the points of every cloud."""
    found = []
    for path in bags:
        with BagReader(path) as bag:
            clouds = [wire.cdr for wire in bag.wires() if wire.topic == TOPIC]
        found += [hashlib.sha256(codec.decode("sensor_msgs/msg/PointCloud2", cdr).data).hexdigest() for cdr in clouds]
    return found


def test_no_frame_is_there_twice_and_every_drive_is_as_one_process_makes_it(tmp_path: Path) -> None:
    drives = generate_drives(tmp_path / "drives", 7, workers=2, lidar=SPARSE, each=3)
    assert [path.name for path in drives] == [f"drive_{FIRST_SEED + i}_{n}" for i, n in enumerate((3, 3, 1))]
    found = digests(*drives)
    assert len(found) == len(set(found)) == 7
    alone = [
        hashlib.sha256(bundle.clouds[0].points.tobytes()).hexdigest()
        for i, count in enumerate((3, 3, 1))
        for bundle in generate_drive(count, FIRST_SEED + i, SPARSE, bend_1pm=BEND_1PM if i % 2 else 0.0)
    ]
    assert found == alone
    assert not list((tmp_path / "drives").glob(".*")), "nothing unfinished is left"


def test_drives_that_are_there_are_used_again(tmp_path: Path) -> None:
    (first,) = generate_drives(tmp_path, 1, lidar=SPARSE)
    before = first.stat().st_mtime_ns
    assert generate_drives(tmp_path, 1, lidar=SPARSE) == (first,) and first.stat().st_mtime_ns == before


def test_the_experiment_without_bags_has_as_many_frames_as_pairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["experiment", "noise-outside-roi", "--n", "10", "--pairs", "3", "--transport", "inprocess"]
    assert main([*arguments, "--out", str(tmp_path / "out"), "--json"]) == ExitCode.UNDECIDED  # three frames are few
    table = json.loads(capsys.readouterr().out)
    assert (table["draws"], table["rows"][0]["frames"], table["rows"][0]["decided"]) == (1, 3, 3)


def test_generated_drives_beside_bags_and_nonsense_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    command = ["experiment", "noise-outside-roi", "--out", str(tmp_path / "out")]
    assert main([*command, "my_bag", "--drives", str(tmp_path / "drives")]) == ExitCode.USAGE
    assert main([*command, "--n", "0"]) == ExitCode.USAGE
    assert main([*command, "--stack", "nobodys"]) == ExitCode.USAGE
    assert not list(tmp_path.iterdir())
