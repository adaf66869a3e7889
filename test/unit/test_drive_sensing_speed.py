# SPDX-License-Identifier: Apache-2.0
"""How much faster than real time a world is, with its sensors and without a stack: ``scripts/bench_drive.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.scenario import Environment

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def bench_drive(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import bench_drive

    return bench_drive


def measured(bench_drive: Any, name: str, steps: int) -> dict[str, Any]:
    drive = bench_drive.scenario(load_map("straight"), 20, Environment())
    return dict(bench_drive.measure(name, bench_drive.rigs()[name], drive, steps))


def test_the_figures_belong_together(bench_drive: Any) -> None:
    row = measured(bench_drive, "objects", 3)
    assert row["given"] == "objects"
    assert row["factor"] == pytest.approx(100.0 / row["wall_ms"])
    assert row["goal"] == 10.0


@pytest.mark.parametrize("name", ["objects", "lidar", "lidar and camera"])
def test_the_world_is_fast_enough_for_the_loop(bench_drive: Any, name: str) -> None:
    """By processor time, which others on the machine lengthen less than the clock's; the script tells both."""
    row = measured(bench_drive, name, 12)
    assert row["factor_on_two_cores"] >= row["goal"], row
