# SPDX-License-Identifier: Apache-2.0
"""What is told before anything is switched on a vehicle, and what is measured while it is."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mt_nodes.base.processes import wait_until
from mt_nodes.runs.live.config import live_config
from mt_nodes.runs.vehicle import checkup
from mt_nodes.runs.vehicle.box_report import BoxReport
from mt_nodes.runs.vehicle.budget import Durations
from mt_nodes.runs.vehicle.checkup import check_vehicle
from mt_nodes.runs.vehicle.usage import ResourceUsage

CAREFUL: dict[str, Any] = {
    "box": {"use": "required"},
    "actuators": {"topics": ["/vehicle/*"]},
    "guard": {"baseline_s": 10.0},
    "caps": {"cpu_share": 1.5},
}


def told(config: dict[str, Any] | None = None) -> dict[str, tuple[str, str]]:
    found = check_vehicle(None if config is None else live_config(config, "test"))
    return {finding.title: (finding.level, finding.detail) for finding in found}


def test_a_careful_configuration_gives_no_cause() -> None:
    assert {title for title in told(CAREFUL) if title not in told()} == set()


@pytest.mark.parametrize(
    ("change", "title", "level"),
    [
        ({"box": {"use": "auto"}}, "box.use", "error"),
        ({"actuators": {}}, "actuators", "error"),
        ({"observers": ["/*"]}, "observers", "error"),
        ({"guard": {}}, "guard", "error"),
    ],
)
def test_what_is_not_safe_on_a_vehicle_is_told(change: dict[str, Any], title: str, level: str) -> None:
    assert told({**CAREFUL, **change})[title][0] == level


def test_each_layer_that_is_missing_is_an_error_that_says_what_it_means(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkup, "what_can_be_boxed", lambda: BoxReport({"network": "not permitted", "devices": ""}))
    found = told()
    assert found["box: network"][0] == "error" and "CAN" in found["box: network"][1]
    assert found["box: devices"][0] == "ok"


def test_buses_are_found_by_their_kind(tmp_path: Path) -> None:
    for name, kind in (("eth0", "1"), ("vcan0", "280"), ("lo", "772")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "type").write_text(f"{kind}\n")
    found = {f.title: f.detail for f in check_vehicle(net=tmp_path)}
    assert found["CAN"].startswith("vcan0 on")


def test_usage_counts_what_was_started_and_what_has_ended() -> None:
    usage = ResourceUsage()
    burn = "import time; b = bytearray(50_000_000); b[::4096] = bytes(len(b[::4096]))\nprint(1, flush=True); input()\n"
    burn += "u = time.process_time() + 0.5\nwhile time.process_time() < u: pass\nprint(2, flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None and child.stdout is not None
    child.stdout.readline()
    usage.look()
    before_mb = usage.memory_mb
    began_s = time.monotonic()
    child.stdin.write("\n")
    child.stdin.flush()
    child.stdout.readline()
    usage.look()
    lasted_s = time.monotonic() - began_s
    assert 0.45 / (lasted_s + 0.2) < usage.cores < 2.0 / lasted_s
    mean = usage.cores_mean
    child.communicate("\n")
    assert wait_until(lambda: (usage.look(), usage.memory_mb < before_mb - 40)[1], 100.0)
    assert usage.memory_mb_max >= before_mb and usage.cores_mean > 0.2 * mean
    assert set(usage.as_plain()) == {"cores", "cores_mean", "memory_mb", "memory_mb_max"}


def test_percentiles_of_durations_are_right_to_a_hundredth() -> None:
    rng = np.random.default_rng(1)
    times_ms = np.exp(rng.normal(1.0, 1.5, 5000))
    durations = Durations()
    for each in times_ms:
        durations.add(float(each))
    found = durations.as_plain()
    for name, share in (("p50", 50), ("p95", 95), ("p99", 99)):
        assert found[name] == pytest.approx(np.percentile(times_ms, share, method="inverted_cdf"), rel=0.01)
    assert found["max"] == times_ms.max() and found["count"] == 5000


@pytest.mark.parametrize(("times_ms", "p50"), [((), None), ((0.0,), 0.0), ((1e9,), 1e6), ((2.0, 2.0, 50.0), 2.0)])
def test_durations_at_the_edges(times_ms: tuple[float, ...], p50: float | None) -> None:
    durations = Durations()
    for each in times_ms:
        durations.add(each)
    assert durations.as_plain().get("p50") == (None if p50 is None else pytest.approx(p50, rel=0.01, abs=1e-3))
