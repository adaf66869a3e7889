# SPDX-License-Identifier: Apache-2.0
"""The weights that ship drive a lap of the town in its lane, and spoiled ones do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs the extra 'models'")

from lap_evaluation import LapResult, laps  # noqa: E402

from mt_nodes.base import resources  # noqa: E402
from mt_nodes.runs.loop.scenario_request import ScenarioRequest  # noqa: E402
from mt_nodes.runs.loop.scenario_run import ScenarioRun  # noqa: E402
from mt_nodes.runs.models.weights_file import load_weights  # noqa: E402

SHIPPED = resources.shipped("weights", ".pt")["pilotnet_town"]
CNN3D = resources.shipped("weights", ".pt")["cnn3d_towns"]


def came(weights: Path, parameters: dict[str, str], stack: str = "pilotnet") -> tuple[LapResult, LapResult]:
    """How a lap was kept to, by the network and by the expert."""
    asked = ScenarioRequest(("town_lap",), stack=stack, repeat=1, parameters=parameters)
    run = ScenarioRun.make(asked, Path())
    (lap,) = laps(replace(run, stack=replace(run.stack, params={"weights": str(weights)})))
    return lap.stack, lap.expert


@pytest.mark.timeout(300)
@pytest.mark.parametrize("parameters", [{}, {"hour": "7", "clouds": "0"}], ids=["noon", "low sun, unseen"])
def test_it_drives_a_lap_in_its_lane(parameters: dict[str, str]) -> None:
    stack, expert = came(SHIPPED, parameters)
    assert stack.in_lane
    assert stack.room_m > 0.2, "metres from the edges of its lane; the expert has 0.32"
    assert stack.aside_max_m < 0.3
    assert stack.lap_s is not None
    assert expert.lap_s is not None
    assert abs(stack.lap_s - expert.lap_s) < 5.0
    assert stack.slowest_mps < 4.6 < 7.0 < stack.fastest_mps, "slow in bends, fast between them"


@pytest.mark.timeout(300)
def test_four_pictures_at_a_time_drive_a_lap_at_night_and_slower() -> None:
    stack, _ = came(CNN3D, {"hour": "23", "duration": "150"}, "cnn3d")
    assert stack.in_lane and stack.room_m > 0.2
    assert stack.lap_s is not None and stack.lap_s > 100.0, "by day it takes 86 s"


@pytest.mark.timeout(120)
def test_spoiled_weights_leave_the_lane(tmp_path: Path) -> None:
    model = load_weights(SHIPPED)
    first = next(iter(model.network.parameters()))
    with torch.no_grad():
        first.copy_(first.flip(0))
    model.save(tmp_path / "spoiled.pt")
    stack, _ = came(tmp_path / "spoiled.pt", {})
    assert not stack.in_lane
    assert stack.lap_s is None
    assert stack.room_m < 0.0


def test_the_file_is_small_and_says_how_it_was_made() -> None:
    assert SHIPPED.stat().st_size < 1_500_000 > CNN3D.stat().st_size
    assert CNN3D.with_suffix(".md").is_file() and load_weights(CNN3D).about.network == "cnn3d"
    about = load_weights(SHIPPED).about
    assert (about.network, about.prepared.crop_top, about.made["ahead"]) == ("pilotnet", 0.41, 0)
    assert SHIPPED.with_suffix(".md").is_file()
