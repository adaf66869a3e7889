# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the vehicle computer: its figures are of what there is, and a tiny run loses nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture
def bench_vehicle(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import bench_vehicle

    return bench_vehicle


def test_ratios_are_of_what_is_added_and_losses_are_counted(bench_vehicle: Any) -> None:
    passage = bench_vehicle.Passage
    found = bench_vehicle.figures(
        {
            "direct": passage([1.0, 1.0, 1.0], 3),
            "relay": passage([3.0, 3.0, 3.0], 4),
            "mutator": passage([4.0, 4.0], 2, 1),
        }
    )
    assert found["ratios"] == {"mutator": {"p50": 1.5, "p99": 1.5}}
    assert {way: (row["sent"], row["lost"], row["unchanged"]) for way, row in found["ways"].items()} == {
        "direct": (3, 0, 0),
        "relay": (4, 1, 0),
        "mutator": (2, 0, 1),
    }
    assert found["ways"]["mutator"]["added_p50_ms"] == 3.0


@pytest.mark.long
def test_a_tiny_run_of_both_sensors(bench_vehicle: Any, tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    argv = [
        sys.executable,
        str(SCRIPTS / "bench_vehicle.py"),
        "--seconds",
        "1",
        "--way",
        "mutator",
        "--json",
        str(file),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(file.read_text())
    assert set(found["sensors"]) == {"lidar", "camera"} and found["machine"]["cores"] >= 1
    for part in found["sensors"].values():
        assert set(part["ways"]) == {"direct", "relay", "mutator"} and set(part["ratios"]) == {"mutator"}
        for row in part["ways"].values():
            assert (row["sent"], row["lost"], row["unchanged"]) == (10, 0, 0)
            assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"] <= row["max_ms"]
    assert "| camera | mutator |" in done.stdout
