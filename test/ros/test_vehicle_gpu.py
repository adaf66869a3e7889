# SPDX-License-Identifier: Apache-2.0
"""Limits of GPUs reach the instance as CUDA reads them, and what they lack is told. No GPU is used."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mt_nodes.base.processes import Process
from mt_nodes.base.safety_settings import BoxSettings, Gpu
from mt_nodes.engine.plan import ArmPlan
from mt_nodes.nodes.live_safety import LiveSafety
from mt_nodes.runs.live.config import live_config
from mt_nodes.runs.vehicle.checkup import check_vehicle
from mt_nodes.runs.vehicle.gpu import CONTROL, gpu_environment, lacking_for
from mt_nodes.stacks.stack import load_stack

NO_BOX, IN_BOX = BoxSettings(use="off"), BoxSettings(use="required", devices=("/dev/nvidia0",))
SHARED = Gpu(memory_mib=2048, share_percent=25.0)


@pytest.mark.parametrize(
    ("gpu", "variables"),
    [
        (Gpu(), {}),
        (Gpu(devices=("GPU-1a2b", "1")), {"CUDA_VISIBLE_DEVICES": "GPU-1a2b,1"}),
        (Gpu(share_percent=12.5), {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "12.5"}),
        (Gpu(memory_mib=2048), {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=2048M"}),
        (
            Gpu(devices=("3", "1"), memory_mib=512),
            {"CUDA_VISIBLE_DEVICES": "3,1", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=512M,1=512M"},
        ),
    ],
)
def test_limits_are_variables_that_cuda_reads(gpu: Gpu, variables: dict[str, str]) -> None:
    assert gpu_environment(gpu) == variables


def test_that_mps_is_not_there_is_told_only_where_it_is_asked_for(tmp_path: Path) -> None:
    environ = {"CUDA_MPS_PIPE_DIRECTORY": str(tmp_path)}

    def nowhere(program: str) -> None:
        return None

    def here(program: str) -> str:
        return f"/usr/bin/{program}"

    assert lacking_for(Gpu(devices=("0",)), NO_BOX, environ, nowhere) == {}
    assert f"no program {CONTROL} here" in lacking_for(SHARED, NO_BOX, environ, nowhere)["gpu"]
    assert f"start it: {CONTROL} -d" in lacking_for(SHARED, NO_BOX, environ, here)["gpu"]
    (tmp_path / f"{CONTROL}.pid").write_text("1")
    assert lacking_for(SHARED, NO_BOX, environ, here) == {}
    assert "another one in a box" in lacking_for(SHARED, IN_BOX, environ, here)["gpu"]


def test_a_gpu_whose_device_is_not_named_is_told_not_to_be_in_the_box() -> None:
    seen = Gpu(devices=("0",))
    assert "in its box the instance sees none" in lacking_for(seen, BoxSettings(use="auto"), {})["gpu.devices"]
    assert lacking_for(seen, IN_BOX, {}) == {} == lacking_for(seen, NO_BOX, {})


@pytest.mark.parametrize("use", ["off", "auto"])
def test_an_instance_is_started_with_them_in_a_box_too(use: str, tmp_path: Path) -> None:
    (tmp_path / "tiny.py").write_text("def detect(points):\n    return []\n")
    (tmp_path / "stack.yaml").write_text(json.dumps({"callable": "tiny:detect", "inputs": {"lidar": "/points"}}))
    given = {"stack": str(tmp_path / "stack.yaml"), "box": {"use": use}, "gpu": {"devices": ["1"]}}
    run = SimpleNamespace(
        request=live_config(given, "test"), stack=load_stack(str(tmp_path / "stack.yaml")), out=tmp_path
    )
    safety = LiveSafety.__new__(LiveSafety)
    safety._run, safety._config = cast(Any, run), run.request
    started = safety.process(
        Process("stack", (sys.executable,), {"A": "b"}, tmp_path / "log"), ArmPlan("followup", None), 1, {}, ()
    )
    assert started is not None
    env = started.env if use == "off" else json.loads((tmp_path / "box_followup.json").read_text())["env"]
    assert env == {"A": "b", "CUDA_VISIBLE_DEVICES": "1"}


def test_the_doctor_says_what_a_configuration_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    asked = live_config({"gpu": {"share_percent": 25.0}}, "test")
    found = {finding.title: finding for finding in check_vehicle(asked)}
    assert found["gpu"].level == "warn" and CONTROL in found["gpu"].detail
    assert f"no {CONTROL} here" in found["GPU"].detail
