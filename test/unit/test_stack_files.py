# SPDX-License-Identifier: Apache-2.0
"""The stack files of stacks that are not the package's own, and what is said where their message types are missing."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from recordings import drive, write_bag
from ros_types import PACKAGES, defined, installed, make, wired

from mt_nodes.base import plugins, resources
from mt_nodes.base.errors import UsageError
from mt_nodes.base.message_packages import SOURCES, is_missing, origin, refuse_missing, remedy
from mt_nodes.cli.main import main
from mt_nodes.data.stack_topics import OutputTopic
from mt_nodes.engine.plan import ArmPlan, ReplayRequest, stack_process
from mt_nodes.nodes.adapter_choice import adapter_of
from mt_nodes.runs import doctor
from mt_nodes.runs.live.config import LiveConfig
from mt_nodes.runs.live.live_run import LiveRun
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.stacks.stack import load_stack

THEIRS = [name for name in resources.shipped("stacks") if not load_stack(name).callable.startswith("mt_nodes.")]
OUTPUTS = [(name, role) for name in THEIRS for role in load_stack(name).outputs]
A_TYPE, ANOTHER, CARLA = "no_such_a_msgs/msg/A", "no_such_b_msgs/msg/B", "carla_msgs/msg/CarlaEgoVehicleControl"


def test_ready_files_are_there_and_say_that_nobody_has_run_them() -> None:
    assert {"autoware_lidar_perception", "autoware", "vision_ackermann", "carla_bridge", "apollo"} <= set(THEIRS)
    for name, path in resources.shipped("stacks").items():
        if name in THEIRS:
            comment = " ".join(line.lstrip("# ") for line in path.read_text().splitlines() if line.startswith("#"))
            assert "never run with" in load_stack(name).summary
            assert all(part in comment for part in ("Tested:", "Not tested:", "Sources "))


@pytest.mark.parametrize(("name", "role"), OUTPUTS)
def test_what_a_ready_file_names_is_read_from_messages_of_that_type(name: str, role: str) -> None:
    row = load_stack(name).outputs[role]
    assert row.type in defined(), "its type is built from its definition in tests"
    message = make(row.type)
    if hasattr(message, "apolloheader"):
        message.apolloheader.timestampsec = 7.0
    else:
        getattr(message, "header", message).stamp.sec = 7
    with installed():
        said = adapter_of(role, row).decode(wired(message))
    assert said.stamp_ns == 7_000_000_000


@pytest.mark.parametrize("name", THEIRS)
def test_the_command_of_a_ready_file_can_be_made_and_its_shell_has_no_mistake(name: str, tmp_path: Path) -> None:
    process = stack_process(load_stack(name), ArmPlan("source", None), 41, tmp_path, {"HOME": "/home/x"})
    assert process is not None and process.env["ROS_DOMAIN_ID"] == "41"
    assert not any("{" in word.replace("${", "") for word in process.argv), "nothing is left to fill in"
    if process.argv[0] == "bash":
        assert subprocess.run([*process.argv[:1], "-n", *process.argv[1:]], check=False).returncode == 0


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_autoware_without_a_map_says_what_to_export() -> None:
    process = stack_process(load_stack("autoware"), ArmPlan("source", None), 41, Path("out"), {"PATH": "/usr/bin:/bin"})
    assert process is not None
    done = subprocess.run(process.argv, env=dict(process.env), capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "MAP_PATH: export MAP_PATH=<directory" in done.stderr


# --- message types that are not installed


def test_every_type_of_the_adapters_comes_from_somewhere() -> None:
    assert remedy([CARLA, ANOTHER, A_TYPE, A_TYPE]) == (
        "apt install ros-jazzy-no-such-a-msgs ros-jazzy-no-such-b-msgs; "
        "build https://github.com/carla-simulator/ros-carla-msgs from source"
    )
    assert remedy([CARLA]) == "build https://github.com/carla-simulator/ros-carla-msgs from source"
    known = {cls.type for cls in plugins.catalogue("adapters").values()}  # type: ignore[attr-defined]
    assert all(re.fullmatch(r"ros-jazzy-[a-z0-9-]+|https://github.com/\S+", origin(name)) for name in known)
    assert set(SOURCES) <= set(PACKAGES), "those that cannot be installed are built from definitions in tests"


def test_what_is_missing_is_told_at_once() -> None:
    assert is_missing(A_TYPE) and not is_missing("nav_msgs/msg/Path")
    refuse_missing({"/path": "nav_msgs/msg/Path"}, "mine")
    with pytest.raises(UsageError) as caught:
        refuse_missing({"/a": A_TYPE, "/path": "nav_msgs/msg/Path", "/b": ANOTHER}, "stack 'mine'")
    assert str(caught.value) == (
        f"stack 'mine': message types are not installed here: /a ({A_TYPE}), /b ({ANOTHER}); "
        "apt install ros-jazzy-no-such-a-msgs ros-jazzy-no-such-b-msgs"
    )


@pytest.fixture
def mine(tmp_path: Path) -> str:
    """A stack that says two things in types that nobody has; a bag lies beside it."""
    write_bag(tmp_path / "bag", drive(1))
    outputs = {"detections": {"topic": "/a", "type": A_TYPE}, "control": {"topic": "/b", "type": ANOTHER}}
    stack = {"callable": "my_model:detect", "inputs": {"lidar": "/in"}, "outputs": outputs}
    (tmp_path / "mine.yaml").write_text(json.dumps(stack))
    return str(tmp_path / "mine.yaml")


def test_a_replay_is_refused_before_anything_starts(mine: str, tmp_path: Path, capsys: Any) -> None:
    bag, out = str(tmp_path / "bag"), tmp_path / "out"
    words = ["replay", bag, "--stack", mine, "--relations", "noise_outside_roi_10", "--out", str(out)]
    assert main(words) == 2 and not out.exists()
    said = capsys.readouterr().err
    assert f"/a ({A_TYPE}), /b ({ANOTHER}); apt install ros-jazzy-no-such-a-msgs ros-jazzy-no-such-b-msgs" in said
    asked = ReplayRequest((bag,), ("noise_outside_roi_10",), mine, transport="inprocess")
    assert Run.create(asked, str(out)).stack.outputs["detections"] == OutputTopic("/a", A_TYPE), "no topics, no types"


def test_a_live_run_is_refused_before_anything_starts(mine: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=re.escape(f"/a ({A_TYPE}), /b ({ANOTHER}); apt install")):
        LiveRun.make(LiveConfig(stack=mine, mode="twin", relations=("noise_outside_roi_10",)), tmp_path)


def test_doctor_looks_for_the_types_of_a_stack(mine: str, capsys: Any) -> None:
    finding = doctor.check_stack(mine)
    assert (finding.level, finding.title) == ("error", "stack 'mine'")
    assert A_TYPE in finding.detail and ANOTHER in finding.detail
    assert finding.fix == "apt install ros-jazzy-no-such-a-msgs ros-jazzy-no-such-b-msgs"
    assert doctor.check_stack("reference_detector").level == "ok"
    assert main(["doctor", "--no-probe", "--json", "--stack", "reference_detector"]) in (0, 4)
    told = {row["title"]: row for row in json.loads(capsys.readouterr().out)}
    assert told["stack 'reference_detector'"]["level"] == "ok"
    assert main(["doctor", "--no-probe", "--stack", "reference_detectr"]) == 2


def test_transforms_that_a_stack_needs_are_looked_for_too() -> None:
    types = load_stack("autoware_lidar_perception").message_types
    assert types["/tf"] == types["/tf_static"] == "tf2_msgs/msg/TFMessage"
    assert "tf2_msgs/msg/TFMessage" not in load_stack("reference_detector").message_types.values()
